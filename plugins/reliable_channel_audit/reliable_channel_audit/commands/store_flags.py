"""Options of commands that read a Store."""

import time
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from reliable_channel.spi import channel_settings

from ..databases import FIRST_NS

_HOUR_NS: Final = 3_600_000_000_000

Source = Annotated[
    list[str] | None,
    typer.Argument(
        help="Nodes (REST or multiaddresses, enrtree://…), or the database of one: a file, or "
        "postgresql://…"
    ),
]
Network = Annotated[
    str | None, typer.Option(metavar="NAME", help="Named network. Its nodes are queried.")
]
ContentTopic = Annotated[
    str | None, typer.Option(metavar="TOPIC", help="Content topic. Default: that of the channel.")
]
Hours = Annotated[float | None, typer.Option(min=0, help="Read only the newest hours.")]
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
