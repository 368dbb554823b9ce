"""The options of a channel as flags: every command that opens a channel has the same ones."""

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Concatenate, Final, ParamSpec, get_type_hints

import typer

from ..options import ChannelOptions, PresetName, option_texts

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
                "network: udp+multicast://239.1.2.3:5007 for a LAN without any node; or service "
                "peers: /dns4/…/wss/p2p/16Uiu2…, enrtree://…. Give several "
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
    "preset": (
        Annotated[
            PresetName,
            typer.Option(
                help="Options for a kind of group (docs/choosing.md); single options override it.",
            ),
        ],
        "documented",
    ),
    "journal": (
        Annotated[
            Path | None,
            typer.Option(help="Append every event and wire message to this file (JSON lines)."),
        ],
        None,
    ),
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

        # Without a share of its own a channel cannot be cut off, which `peer` may want.
        options = {"wait_for_node": wait_for_node, "drop_incoming": 0.0, **self.options}
        common = self.common | {"state": self.common["state"] or default_state}
        if "network" in self.options and common["node"] == [DEFAULT_NODE]:
            common["node"] = None  # the network names its own peers
        return ReliableChannel(**common, **options)


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


NO_FLAGS: Final = frozenset({"marker", "marker_required", "require_signatures"})
"""Options of which a command line has nothing to say: they go with bytes, or with a signing."""
NAMES: Final = frozenset({"id_function", "retrieval_strategy", "retry_policy", "wire_profile"})
"""Options of which a command line can only give the name."""


def _parameters() -> dict[str, inspect.Parameter]:
    """One keyword parameter an option, its help taken from its declaration.

    What is not given stays None, so that the wire profile can choose its own default.
    """
    hints, help_texts = get_type_hints(ChannelOptions), option_texts()
    hints |= dict.fromkeys(NAMES, str) | {"rate_limit_file": Path}
    found = {}
    for field in fields(ChannelOptions):
        if field.name in NO_FLAGS:
            continue
        flag = "--" + field.name.replace("_", "-")
        if hints[field.name] is bool:
            flag = f"{flag}/--no-{flag[2:]}"
        default = "" if field.default is None else f" \\[default: {field.default}]"
        option = typer.Option(
            flag, help=help_texts[field.name] + default, rich_help_panel="Channel options"
        )
        found[field.name] = inspect.Parameter(
            field.name,
            inspect.Parameter.KEYWORD_ONLY,
            annotation=Annotated[hints[field.name] | None, option],
            default=None,
        )
    return found


_option_parameters = _parameters()
