"""Command-line flags for a channel's options, the same for every command that opens a channel.

`--help` shows the few flags that people need, and `--help-all` shows all flags. `-o name=value`,
the environment and a file can also set every option (`reliable_channel.config`).
"""

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Concatenate, Final, ParamSpec

import typer
from typer.core import TyperOption

from ..config import SETTINGS, channel_settings, check_channel_name, flat, from_text, nested
from ..options import ChannelOptions, PresetName
from ..transport.addresses import masked_text

if TYPE_CHECKING:
    from ..channel import ReliableChannel

DEFAULT_NODE: Final = "http://127.0.0.1:8645"
DEFAULT_CHANNEL: Final = "general"

P = ParamSpec("P")


def _flag(*names: str, help: str, hidden: bool = False, metavar: str | None = None) -> Any:
    return typer.Option(*names, help=help, hidden=hidden, metavar=metavar, show_default=False)


_COMMON: Final[dict[str, Any]] = {
    "node": Annotated[
        list[str] | None,
        _flag(
            "--node",
            "--url",
            metavar="URL",
            help=(
                "REST address of a Waku node (`reliable-channel node` starts one), a service "
                "peer's multiaddress, or another URL, such as "
                "udp+multicast://239.1.2.3:5007. Repeat it for nodes that replace each "
                f"other. [default: {DEFAULT_NODE}]"
            ),
        ),
    ],
    "channel_id": Annotated[
        str | None,
        _flag(
            "--channel-id",
            "--channel",
            metavar="ID",
            help=f"Id of the channel. [default: {DEFAULT_CHANNEL}]",
        ),
    ],
    "sender_id": Annotated[
        str | None,
        _flag(
            "--sender-id",
            "--sender",
            metavar="ID",
            help="Your name, unique in the channel. [required]",
        ),
    ],
    "state": Annotated[
        str | None,
        _flag("--state", metavar="URL", help="URL of the state: sqlite:///path, or memory:."),
    ],
    "encryption": Annotated[
        str | None,
        _flag("--encryption", metavar="URL", help="URL of an encryption that a plugin provides."),
    ],
    "preset": Annotated[
        PresetName | None,
        _flag(
            "--preset",
            metavar="NAME",
            help=("Preset of options: documented (the default), auto, small-group, large-group."),
        ),
    ],
    "config": Annotated[
        Path | None,
        _flag("--config", metavar="FILE", help="TOML file with a table [channel]."),
    ],
    "option": Annotated[
        list[str] | None,
        _flag(
            "-o",
            "--option",
            metavar="NAME=VALUE",
            help=("Option, such as -o retry_interval_ms=5000 (list: --help-all)."),
        ),
    ],
    "journal": Annotated[
        Path | None,
        _flag(
            "--journal",
            hidden=True,
            metavar="FILE",
            help="Append every event and wire message to this file (JSON lines).",
        ),
    ],
}
"""Flags beside those of single options."""
_ANY_SENDER: Final = Annotated[
    str | None,
    _flag(
        "--sender-id",
        "--sender",
        metavar="ID",
        help="Your name in the channel. Without a name no state is examined.",
    ),
]


@dataclass(frozen=True)
class ChannelArguments:
    """Arguments of a channel from flags, the environment and a configuration file."""

    given: dict[str, Any]
    """Values of the given options, by flat option names."""
    config: Path | None = None
    """Path of the file that `--config` names."""

    @property
    def nodes(self) -> tuple[str, ...]:
        """Given node addresses, or an empty tuple if the channel uses its default."""
        return tuple(self.given.get("node", ()))

    @property
    def state(self) -> str | None:
        """State file that the arguments name, or None."""
        return self.given.get("state")

    @property
    def names_sender(self) -> bool:
        """True if the arguments name a `sender_id`."""
        return "sender_id" in self.given

    def of_sender(self, sender_id: str) -> "ChannelArguments":
        """Return the same arguments for another sender, without saved state."""
        return ChannelArguments(self.given | {"sender_id": sender_id, "state": None}, self.config)

    def joined(self, invitation: str) -> "ChannelArguments":
        """Return the same arguments with the values of an invitation, which flags override.

        Raises:
            ValueError: as `ReliableChannel.join`.
        """
        from ..conversation.invitation import joined

        return ChannelArguments(
            joined(invitation, self.given["sender_id"], self.given), self.config
        )

    def channel(
        self, *, default_state: str | None = None, wait_for_node: bool = False
    ) -> "ReliableChannel":
        """Return the channel that the arguments describe.

        Raises:
            ValueError: an option outside of its limits.
        """
        from ..channel import ReliableChannel

        # Without a share of its own a channel cannot be cut off, which `peer` may want.
        given = {"wait_for_node": wait_for_node, "drop_incoming": 0.0, **self.given}
        given.setdefault("channel_id", DEFAULT_CHANNEL)
        given["state"] = self.state or default_state
        if "network" not in given:  # which names its own peers
            given.setdefault("node", [DEFAULT_NODE])
        return ReliableChannel(**nested(given))


def with_channel_flags(
    command: Callable[Concatenate[ChannelArguments, P], None], *, needs_sender: bool = True
) -> Callable[..., None]:
    """Add the flags of a channel to `command`, which gets their values as its first argument."""
    common = _COMMON if needs_sender else _COMMON | {"sender_id": _ANY_SENDER}

    @functools.wraps(command)
    def wrapper(**values: Any) -> None:
        values.pop(_HELP_ALL.name)
        names = [*common, *_option_parameters]
        given = {name: value for name in names if (value := values.pop(name)) is not None}
        command(_arguments(given, needs_sender=needs_sender), **values)  # type: ignore[call-arg]

    own = list(inspect.signature(command, eval_str=True).parameters.values())[1:]
    shared = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=annotation, default=None)
        for name, annotation in common.items()
    ]
    keyword_only = [
        parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)
        for parameter in [*own, *shared, _HELP_ALL, *_option_parameters.values()]
    ]
    wrapper.__signature__ = inspect.Signature(keyword_only)  # type: ignore[attr-defined]
    wrapper.__annotations__ = {p.name: p.annotation for p in keyword_only}
    return wrapper


def _arguments(flags: dict[str, Any], *, needs_sender: bool) -> ChannelArguments:
    """Flags over `-o`, over the environment, over the file.

    Raises:
        ValueError: a name or a value is unusable, or there is no `sender_id` where it is needed.
        OSError: the file cannot be read.
    """
    config = flags.pop("config", None)
    given = channel_settings(config)
    for text in flags.pop("option", None) or ():
        name, equals, value = text.partition("=")
        name = name.strip().replace("-", "_")
        if not equals:
            raise ValueError(f"`-o` must be of the form NAME=VALUE (got {masked_text(text)!r})")
        check_channel_name(name, "-o")
        given[name] = from_text(name, value, f"-o {name}")
    given |= {name: value for name, value in flags.items() if value != []}
    if needs_sender and "sender_id" not in given:
        raise ValueError(
            "`sender_id` is missing: your name in the channel; give --sender-id NAME, or set "
            "RELIABLE_CHANNEL_SENDER_ID"
        )
    return ChannelArguments(given, config)


def _show_all(context: typer.Context, wanted: bool) -> None:
    """Print the help with all flags, and end."""
    if wanted:
        for parameter in context.command.params:
            if isinstance(parameter, TyperOption):
                parameter.hidden = False
        typer.echo(context.get_help())
        raise typer.Exit


_HELP_ALL: Final = inspect.Parameter(
    "help_all",
    inspect.Parameter.KEYWORD_ONLY,
    annotation=Annotated[
        bool,
        typer.Option(
            "--help-all",
            is_eager=True,
            expose_value=False,
            callback=_show_all,
            help="Show the flags of all options, and exit.",
        ),
    ],
    default=False,
)
NO_FLAGS: Final = frozenset({"marker", "marker_required", "require_signatures"})
"""Options without a flag, because their values are bytes or objects."""


def _parameters() -> dict[str, inspect.Parameter]:
    """One keyword parameter an option, its help taken from its declaration.

    What is not given stays None, so that the wire profile can choose its own default.
    """
    found, defaults = {}, flat(ChannelOptions())
    kinds = {name: one.declared.kind for name, one in SETTINGS.items()}
    for name, (_, _, option) in SETTINGS.items():
        if name in NO_FLAGS:
            continue
        flag = "--" + name.replace("_", "-")
        if kinds[name] is bool:
            flag = f"{flag}/--no-{flag[2:]}"
        default = "" if defaults[name] is None else f" [default: {defaults[name]}]"
        shown = _flag(flag, help=option.doc + default, hidden=True)
        found[name] = inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            annotation=Annotated[kinds[name] | None, shown],
            default=None,
        )
    return found


_option_parameters = _parameters()


def channel_flag_names() -> tuple[str, ...]:
    """Return the names of the parameters that `with_channel_flags` adds, in the order of
    `--help-all`."""
    return (*_COMMON, _HELP_ALL.name, *_option_parameters)
