"""The options of a channel as flags: every command that opens a channel has the same ones."""

import ast
import functools
import inspect
from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Concatenate, ParamSpec, get_type_hints

import typer

from ..options import ChannelOptions
from ..transport.settings import Service

if TYPE_CHECKING:
    from ..channel import ReliableChannel

DEFAULT_NODE = "http://127.0.0.1:8645"

P = ParamSpec("P")

_COMMON: dict[str, tuple[Any, Any]] = {
    "node": (
        Annotated[
            list[str],
            typer.Option(
                "--node",
                "--url",
                envvar="RELIABLE_CHANNEL_NODE",
                help="REST address of a Waku node (`reliable-channel node` starts one), or another "
                "network: udp+multicast://239.1.2.3:5007 for a LAN without any node. Give several "
                "to have each stand in for the others.",
            ),
        ],
        [DEFAULT_NODE],
    ),
    "channel_id": (
        Annotated[str, typer.Option("--channel-id", "--channel", help="The channel.")],
        "general",
    ),
    "sender_id": (
        Annotated[
            str,
            typer.Option("--sender-id", "--sender", help="Who you are; unique in the channel."),
        ],
        inspect.Parameter.empty,
    ),
    "content_topic": (
        Annotated[
            str | None,
            typer.Option(help="Where the channel lives on Waku; from the channel id if absent."),
        ],
        None,
    ),
    "pubsub_topic": (
        Annotated[str | None, typer.Option(help="A static shard; autosharding if absent.")],
        None,
    ),
    "cluster_id": (Annotated[int, typer.Option(help="The network's cluster.")], 1),
    "num_shards": (Annotated[int, typer.Option(help="The cluster's shards.")], 8),
    "service": (
        Annotated[Service, typer.Option(help="Which of the node's services to use.")],
        "auto",
    ),
    "store_peer": (
        Annotated[
            str | None,
            typer.Option(help="Multiaddress of the Store node to ask; nwaku finds one itself."),
        ],
        None,
    ),
    "wait_for_node": (
        Annotated[
            bool | None,
            typer.Option(
                "--wait-for-node/--no-wait-for-node",
                help="Start although no node answers, and go on trying; `peer` does.",
            ),
        ],
        None,
    ),
    "state": (
        Annotated[
            str | None,
            typer.Option(
                envvar="RELIABLE_CHANNEL_STATE",
                help="Where the channel's state outlives the process: sqlite:///path, or memory: "
                "for nowhere.",
            ),
        ],
        None,
    ),
    "encryption": (
        Annotated[
            str | None,
            typer.Option(
                envvar="RELIABLE_CHANNEL_ENCRYPTION",
                help="What seals the channel: a URL that a plugin knows.",
            ),
        ],
        None,
    ),
    "retry_policy": (
        Annotated[
            str,
            typer.Option(
                help="When what nobody acknowledged goes again: fixed, doubling, or what a plugin "
                "knows.",
            ),
        ],
        "fixed",
    ),
    "rate_limit_file": (
        Annotated[
            Path | None,
            typer.Option(help="Where the spent budget outlives the process."),
        ],
        None,
    ),
    "journal": (
        Annotated[
            Path | None,
            typer.Option(help="Append every event and wire message to this file (JSON lines)."),
        ],
        None,
    ),
    "drop_incoming": (
        Annotated[
            float, typer.Option(help="Share of live messages to throw away, to try reliability.")
        ],
        0.0,
    ),
    "seed": (Annotated[int | None, typer.Option(help="Make random choices repeatable.")], None),
}


@dataclass(frozen=True)
class ChannelArguments:
    """What the flags said."""

    common: dict[str, Any]
    options: dict[str, Any]
    """Those that were given."""

    def channel(
        self, *, default_state: str | None = None, wait_for_node: bool = False
    ) -> "ReliableChannel":
        """The channel they describe.

        Raises:
            ValueError: an option outside what is allowed.
        """
        from ..channel import ReliableChannel

        waits = self.common["wait_for_node"]
        common = self.common | {
            "state": self.common["state"] or default_state,
            "wait_for_node": wait_for_node if waits is None else waits,
        }
        return ReliableChannel(**self.options, **common)


def with_channel_flags(
    command: Callable[Concatenate[ChannelArguments, P], None],
) -> Callable[..., None]:
    """Give `command` the flags of a channel; it gets them as its first argument,
    `ChannelArguments`."""

    @functools.wraps(command)
    def wrapper(**values: Any) -> None:
        common = {name: values.pop(name) for name in _COMMON}
        options = {name: values.pop(name) for name in _option_parameters}
        options = {name: value for name, value in options.items() if value is not None}
        command(ChannelArguments(common, options), **values)  # type: ignore[call-arg]

    own = list(inspect.signature(command, eval_str=True).parameters.values())[1:]
    shared = [
        inspect.Parameter(
            name, inspect.Parameter.KEYWORD_ONLY, annotation=annotation, default=default
        )
        for name, (annotation, default) in _COMMON.items()
    ]
    keyword_only = [
        parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)
        for parameter in [*own, *shared, *_option_parameters.values()]
    ]
    wrapper.__signature__ = inspect.Signature(keyword_only)  # type: ignore[attr-defined]
    wrapper.__annotations__ = {p.name: p.annotation for p in keyword_only}
    return wrapper


def _parameters() -> dict[str, inspect.Parameter]:
    """One keyword parameter an option, its help taken from the option's own docstring.

    What is not given stays None, so that the wire profile can choose its own default.
    """
    hints, help_texts = get_type_hints(ChannelOptions), attribute_docstrings(ChannelOptions)
    # A function, or a profile, cannot be written in a command line.
    hints |= {"retrieval_strategy": str, "wire_profile": str}
    found = {}
    for field in fields(ChannelOptions):
        flag = "--" + field.name.replace("_", "-")
        if hints[field.name] is bool:
            flag = f"{flag}/--no-{flag[2:]}"
        assert field.default is not MISSING
        help_text = f"{help_texts[field.name]} \\[default: {field.default}]"
        option = typer.Option(flag, help=help_text, rich_help_panel="Channel options")
        found[field.name] = inspect.Parameter(
            field.name,
            inspect.Parameter.KEYWORD_ONLY,
            annotation=Annotated[hints[field.name] | None, option],
            default=None,
        )
    return found


def attribute_docstrings(kind: type) -> dict[str, str]:
    """The texts that stand below the fields of a class."""
    (tree,) = ast.parse(inspect.getsource(kind)).body
    assert isinstance(tree, ast.ClassDef)
    texts = {}
    for statement, below in zip(tree.body, tree.body[1:], strict=False):
        match statement, below:
            case (
                ast.AnnAssign(target=ast.Name(id=name)),
                ast.Expr(value=ast.Constant(value=str(text))),
            ):
                texts[name] = " ".join(text.split())
    return texts


_option_parameters = _parameters()
