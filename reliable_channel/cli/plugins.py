"""`reliable-channel plugins`: what is installed, from where, and what it does."""

import json
from dataclasses import asdict
from typing import Annotated

import typer
from rich.markup import escape
from rich.table import Table

from ..plugins import installed
from .console import out


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(plugins)


def plugins(
    as_json: Annotated[bool, typer.Option("--json", help="A JSON line for each plugin.")] = False,
) -> None:
    """List the plugins: their distributions, and the hooks they fill."""
    found = list(installed())
    if as_json:
        for plugin in found:
            typer.echo(json.dumps(asdict(plugin)))
        return
    table = Table("plugin", "from", "hooks", box=None, pad_edge=False)
    for plugin in found:
        does = escape(plugin.problem) if plugin.problem else ", ".join(plugin.hooks)
        style = "yellow" if plugin.problem else ""
        table.add_row(plugin.name, f"{plugin.distribution} {plugin.version}", does, style=style)
    out.print(table)
