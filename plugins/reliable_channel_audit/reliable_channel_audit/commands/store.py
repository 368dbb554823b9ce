"""`reliable-channel audit store`, which prints facts about a channel from a Store alone, and
`reliable-channel audit archive`, which writes the content of a Store into files."""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import aclosing, contextmanager
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from rich.status import Status

from reliable_channel import printable, run
from reliable_channel.spi import ExitCode, channel_settings, err, out, say

from ..databases import FIRST_NS, Row
from ..findings import SETTLE_MS
from ..store_audit.reading import fill, stored_in
from ..store_audit.tally import ChannelTally, Sender, StoreTally
from ..store_audit.verdict import MAX_PER_WINDOW, TROUBLES, StoreVerdict, judged
from .verdict_text import print_table

UNKNOWN: Final = "unknown"
CHUNK: Final = 20_000
"""Number of messages that are written to the archive at once."""
MAX_SHOWN: Final = 20
"""Maximum number of senders and findings that are printed. With `--json`, all senders and findings
are printed."""
_MINUTE_MS: Final = 60_000
_HOUR_NS: Final = 3_600_000_000_000

Source = Annotated[
    list[str] | None,
    typer.Argument(
        help=(
            "Nodes (REST address, multiaddress or enrtree://…), or the database of one node: "
            "a file, or postgresql://…"
        )
    ),
]
Network = Annotated[
    str | None, typer.Option(metavar="NAME", help="Named network, whose nodes are queried.")
]
ChannelId = Annotated[
    str | None,
    typer.Option("--channel-id", "--channel", metavar="ID", help="Id of the channel."),
]
ContentTopic = Annotated[
    str | None,
    typer.Option(metavar="TOPIC", help="Content topic. Default: the content topic of the channel."),
]
Hours = Annotated[
    float | None, typer.Option(min=0, help="Number of newest hours that are read from the Store.")
]
Config = Annotated[
    Path | None, typer.Option(metavar="FILE", help="TOML file with a table [channel].")
]


def register(app: typer.Typer) -> None:
    app.command()(store)
    app.command()(archive)


def store(
    source: Source = None,
    network: Network = None,
    channel_id: ChannelId = None,
    content_topic: ContentTopic = None,
    encryption: Annotated[
        str | None, typer.Option(metavar="URL", help="Encryption of the payloads in the Store.")
    ] = None,
    hours: Hours = None,
    settle_ms: Annotated[
        int, typer.Option(min=0, help="Time that a message may be on its way (ms).")
    ] = SETTLE_MS,
    silent_minutes: Annotated[
        float | None,
        typer.Option(min=0, help="Time without a stored message after which a sender is reported."),
    ] = None,
    max_messages: Annotated[
        int, typer.Option(min=1, help="Maximum number of messages of each sender in ten minutes.")
    ] = MAX_PER_WINDOW,
    config: Config = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print all findings as JSON.")] = False,
) -> None:
    """Print facts about a channel from a Store alone, without any journal.

    The command reports missing messages, and senders that are silent, lag behind, or send too much.
    The exit status is 1 if a problem is found, and 5 if Store has no SDS message.
    """
    given = store_arguments(
        source,
        config,
        network=network,
        channel_id=channel_id,
        content_topic=content_topic,
        encryption=encryption,
    )
    silent_ms = None if silent_minutes is None else int(silent_minutes * _MINUTE_MS)
    tally = StoreTally(settle_ms, given.get("channel_id"))
    with shown_count() as show:
        if run(fill, tally, given, start_of(hours), show) is None:
            raise typer.Exit(ExitCode.INTERRUPTED)
    verdict = judged(tally, silent_ms=silent_ms, max_per_window=max_messages)
    if as_json:
        out.print_json(json.dumps(verdict.to_dict()), ensure_ascii=True)
    else:
        _tell(verdict)
    if verdict.findings:
        raise typer.Exit(ExitCode.FAILED)
    raise typer.Exit(ExitCode.DONE if verdict.tally.channels else ExitCode.UNKNOWN)


def store_arguments(
    source: list[str] | None, config: Path | None, **flags: str | None
) -> dict[str, Any]:
    """Return the channel arguments that name a Store, from flags that override a file."""
    given = channel_settings(config) | {name: value for name, value in flags.items() if value}
    return given | ({"node": source} if source else {})


def start_of(hours: float | None) -> int:
    """Return the first timestamp to read from a Store (ns)."""
    return FIRST_NS if hours is None else time.time_ns() - int(hours * _HOUR_NS)


@contextmanager
def shown_count() -> Iterator[Callable[[int], None]]:
    """Show the number of messages that are read. The context gives a function that takes it."""
    with Status("reading", console=err) as status:
        yield lambda count: status.update(f"reading {count:,}")


def _tell(verdict: StoreVerdict) -> None:
    tally = verdict.tally
    say(f"{tally.messages:,} messages, {tally.total_bytes:,} bytes")
    for topic, count in tally.foreign.most_common(MAX_SHOWN):
        say(f"{count:,} on {printable(topic)} are no SDS messages that can be read")
    for channel in tally.channels.values():
        say("")
        _tell_channel(channel)
    if not tally.channels:
        say("no SDS message: of channels nothing is known")
        return
    say("")
    _tell_findings(verdict)


def _tell_channel(channel: ChannelTally) -> None:
    older = sum(gap.may_be_older for gap in channel.gaps.values())
    say(f"channel {printable(channel.channel_id)}", style="bold")
    say(
        f"{channel.messages:,} messages of {len(channel.senders):,} senders; "
        f"{len(channel.gaps) - older:,} that they refer to are absent"
        + (f", and {older:,} that may be older than this Store" if older else "")
        + f"; {channel.orphans:,} refer to what is absent"
    )
    senders = sorted(channel.senders.values(), key=lambda each: -each.total_bytes)
    rows = [_shown(each, channel.last_ms) for each in senders[:MAX_SHOWN]]
    print_table(tuple(rows[0]), (tuple(row.values()) for row in rows), labels=1)
    if len(senders) > MAX_SHOWN:
        say(f"… and {len(senders) - MAX_SHOWN:,} more")


def _shown(sender: Sender, last_ms: int) -> dict[str, str]:
    return {
        "sender": sender.sender_id,
        "messages": f"{sender.contents:,}",
        "copies": f"{sender.copies:,}",
        "syncs": f"{sender.syncs:,}",
        "bytes": f"{sender.total_bytes:,}",
        "filters lack": f"{sender.lacking:,} of {sender.tested:,}" if sender.tested else UNKNOWN,
        "lag": f"{sender.max_lag_ms / 1000:,.0f} s" if sender.tested else UNKNOWN,
        "nothing since": f"{(last_ms - sender.last_ms) / 1000:,.0f} s",
    }


def _tell_findings(verdict: StoreVerdict) -> None:
    for trouble, meaning in TROUBLES.items():
        found = [each for each in verdict.findings if each.trouble == trouble]
        if not found:
            continue
        say(f"{trouble}: {len(found):,}; {meaning}", style="bold red")
        for each in found[:MAX_SHOWN]:
            who = " ".join(filter(None, (each.message_id, each.sender_id)))
            say(f"  {printable(who)}: {printable(each.detail)}")
        if len(found) > MAX_SHOWN:
            say(f"  … and {len(found) - MAX_SHOWN:,} more")
    for unknown in verdict.unknown[:MAX_SHOWN]:
        name = printable(unknown.channel_id)
        say(f"unknown in {name}: {unknown.what}: {unknown.why}", style="yellow")
    if not verdict.findings:
        say("nothing found; a message that was never stored, and to which none refers, is not seen")


def archive(
    to: Annotated[
        Path, typer.Option("--to", metavar="DIRECTORY", help="Folder for the files of the archive.")
    ],
    source: Source = None,
    form: Annotated[
        str,
        typer.Option(
            "--format", help="Format of the archive: parquet, or delta (needs `deltalake`)."
        ),
    ] = "parquet",
    network: Network = None,
    channel_id: ChannelId = None,
    content_topic: ContentTopic = None,
    hours: Hours = None,
    config: Config = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the counts of archived messages as JSON.")
    ] = False,
) -> None:
    """Archive the content of a Store as files, each message once.

    The files are Parquet by day and content topic, or a Delta table. Messages whose hash is already
    in the archive are left out. The command may be repeated, also with several nodes or after an
    interruption.
    """
    given = store_arguments(
        source, config, network=network, channel_id=channel_id, content_topic=content_topic
    )
    done = run(_archived, given, start_of(hours), to, form)
    if done is None:
        raise typer.Exit(ExitCode.INTERRUPTED)
    if as_json:
        out.print_json(json.dumps(done))
    else:
        say(f"{done['added']:,} messages added to {to}, of {done['read']:,} read")


async def _archived(given: dict[str, Any], start_ns: int, to: Path, form: str) -> dict[str, int]:
    """Copy what is not there yet."""
    try:
        from ..archiving import open_archive

        kept = open_archive(to, form)
    except ImportError as error:
        extra = "delta" if form == "delta" else "parquet"
        raise ValueError(
            f"--format {form} needs {error.name}: pip install 'reliable-channel-audit[{extra}]'"
        ) from error
    read = added = 0
    waiting: list[Row] = []
    with shown_count() as show:
        async with aclosing(stored_in(given, start_ns)) as pages:
            async for page in pages:
                waiting += page
                read += len(page)
                show(read)
                if len(waiting) >= CHUNK:
                    added += kept.add(waiting)
                    waiting = []
    if waiting:
        added += kept.add(waiting)
    return {"read": read, "added": added}
