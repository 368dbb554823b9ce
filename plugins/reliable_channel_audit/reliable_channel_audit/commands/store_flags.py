"""Options of commands that read a Store."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from rich.status import Status

from reliable_channel.spi import channel_settings, err

from ..databases import FIRST_NS

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
