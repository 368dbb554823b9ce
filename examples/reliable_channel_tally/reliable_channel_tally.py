"""Counts the events of channels, and with `reliable-channel tally` those of a journal."""

import json
from collections import Counter
from pathlib import Path

import typer

from reliable_channel.spi import Register, hookimpl

counts: Counter[str] = Counter()


@hookimpl
def register_observers(register: Register) -> None:
    register("tally", lambda event: counts.update([event.wire_name]))


@hookimpl
def register_commands(app: typer.Typer) -> None:
    @app.command()
    def tally(journal: Path) -> None:
        """Count the events of a journal."""
        events = (json.loads(line)["event"] for line in journal.open(encoding="utf-8"))
        for name, count in Counter(events).most_common():
            typer.echo(f"{count} {name}")
