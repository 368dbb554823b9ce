"""`reliable-channel watch`, which shows a channel, live or from journals, as a web page."""

from collections.abc import Awaitable, Callable, Coroutine, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final
from urllib.parse import urlsplit

import anyio
import anyio.abc
import typer

from reliable_channel.spi import (
    DEFAULT_NODE,
    ChannelArguments,
    channel_settings,
    check_channel_name,
    from_text,
    masked_address,
    say,
)

if TYPE_CHECKING:
    from reliable_channel import ReliableChannel

    from .feeds import Feed
    from .model import View

MINUTE_S: Final = 60
LOCAL: Final = ("127.0.0.1", "localhost", "::1")
Beside = Callable[..., Coroutine[Any, Any, None]]
"""Function that serves a node and calls `started`."""


def register(app: typer.Typer) -> None:
    app.command()(watch)


def watch(
    paths: Annotated[
        list[Path] | None, typer.Argument(help="Journals, or directories of journals.")
    ] = None,
    sniff: Annotated[
        bool,
        typer.Option(
            "--sniff", help="Decode the messages of a content topic without joining the channel."
        ),
    ] = False,
    node: Annotated[
        list[str] | None,
        typer.Option(
            metavar="URL",
            help=(
                f"Address of a node. Repeat the flag for several nodes. [default: {DEFAULT_NODE}]"
            ),
        ),
    ] = None,
    channel_id: Annotated[
        str | None,
        typer.Option("--channel-id", "--channel", metavar="ID", help="Id of the channel."),
    ] = None,
    content_topic: Annotated[
        str | None,
        typer.Option(
            metavar="TOPIC", help="Content topic. Default: the content topic of the channel."
        ),
    ] = None,
    sender_id: Annotated[
        str | None,
        typer.Option(
            "--sender-id", "--sender", metavar="ID", help="Join the channel under this name."
        ),
    ] = None,
    history: Annotated[
        int,
        typer.Option(
            min=0,
            metavar="MINUTES",
            help="With --sniff: time span of messages that are read from the Store.",
        ),
    ] = 10,
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port of the page (0: a free one).")
    ] = 0,
    with_node: Annotated[
        bool,
        typer.Option(
            "--with-node", help="Also run an embedded node, which listens at this address."
        ),
    ] = False,
    config: Annotated[
        Path | None, typer.Option(metavar="FILE", help="TOML file with a table [channel].")
    ] = None,
    option: Annotated[
        list[str] | None,
        typer.Option(
            "-o",
            "--option",
            metavar="NAME=VALUE",
            help="Any option of a channel, such as -o retry_interval_ms=5000.",
        ),
    ] = None,
) -> None:
    """Show a channel, live or from journals, as a web page.

    With journals, the page shows the events that participants append to them. A live channel is
    read with --sniff, or joined as one more participant with --sender-id. The page never shows
    payloads.

    The command prints the address of the page. Once a minute, the command prints the number of
    participants, messages and losses. This line also names the participants that miss messages.
    """
    flags = {
        "node": node,
        "channel_id": channel_id,
        "content_topic": content_topic,
        "sender_id": sender_id,
    }
    if with_node and paths:
        raise ValueError(
            "the flag --with-node needs --sniff or --sender-id, and cannot be combined with "
            "journals"
        )
    beside = _node_beside(node or [DEFAULT_NODE]) if with_node else None
    feed = _feed(paths or (), sniff, history * MINUTE_S, flags, config, option or ())
    from reliable_channel import run

    run(_serve, feed, port, beside)


def _feed(
    paths: Sequence[Path],
    sniff: bool,
    history_s: float,
    flags: dict[str, Any],
    config: Path | None,
    options: Sequence[str],
) -> "Feed":
    """What fills the view; what is wrong with the arguments is raised here.

    Raises:
        ValueError: arguments that do not go together, or an unusable one.
        OSError: a file cannot be read.
    """
    from .feeds import follow, join
    from .reading import Follower

    given = {name: value for name, value in flags.items() if value}
    if bool(paths) + sniff + ("sender_id" in given and not sniff) != 1:
        raise ValueError(
            "give exactly one of these: paths of journals, --sniff, or --sender-id to join"
        )
    if paths:
        with Follower(paths) as follower:
            next(follower.look(), None)
        return partial(follow, paths=paths)
    given = channel_settings(config) | _options(options) | given
    if sniff:
        from .sniffing import Sniffer

        if "network" not in given:
            given.setdefault("node", [DEFAULT_NODE])
        if "content_topic" not in given and "channel_id" not in given:
            raise ValueError("--sniff needs --channel-id or --content-topic")
        return Sniffer(given, history_s=history_s).listen

    def channel(folder: Path) -> "ReliableChannel":
        journal = folder / "watch.jsonl"
        return ChannelArguments(given | {"journal": journal}).channel(wait_for_node=True)

    return partial(join, open_channel=channel)


def _options(texts: Sequence[str]) -> dict[str, Any]:
    """What `-o` gives.

    Raises:
        ValueError: a name or a value is unusable.
    """
    found = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals:
            raise ValueError(f"`-o` must have the form NAME=VALUE (got {text})")
        name = name.strip().replace("-", "_")
        check_channel_name(name, "-o")
        found[name] = from_text(name, value, f"-o {name}")
    return found


def _node_beside(urls: Sequence[str]) -> "Beside":
    """A node at the address of the one that is watched.

    Raises:
        ValueError: it is not an address of this machine.
    """
    from waku.node import serve

    found = urlsplit(urls[0])
    if len(urls) != 1 or found.scheme != "http" or found.hostname not in LOCAL or not found.port:
        raise ValueError(
            "with --with-node, `--node` must be one address of this machine, such as "
            f"{DEFAULT_NODE} (got {', '.join(map(masked_address, urls))})"
        )
    return partial(serve, host=found.hostname, port=found.port)


async def _serve(feed: "Feed", port: int, beside: "Beside | None") -> None:
    """Serve the page, and a node beside it, until a signal comes."""
    from .model import View
    from .web.server import WatchServer

    view = View()
    async with anyio.create_task_group() as tasks:
        url = await tasks.start(WatchServer(view).run, port)
        if beside is not None:
            await tasks.start(_run_node, beside, tasks.cancel_scope)
        say(f"open {url}")
        tasks.start_soon(feed, view)
        tasks.start_soon(_report, view)


async def _report(view: "View", sleep: Callable[[float], Awaitable[None]] = anyio.sleep) -> None:
    """Print a line a minute, until cancelled."""
    from .summary import summary

    while True:
        await sleep(MINUTE_S)
        say(summary(view))


async def _run_node(
    beside: "Beside", everything: anyio.CancelScope, *, task_status: anyio.abc.TaskStatus[None]
) -> None:
    """Run a node until a signal ends it, and then everything."""
    await beside(started=lambda _: task_status.started())
    everything.cancel()
