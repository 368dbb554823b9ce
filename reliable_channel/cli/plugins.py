"""Command `reliable-channel plugins`, which lists installed plugins and what they register."""

import json
from dataclasses import asdict, replace
from typing import Annotated

import typer
from rich.markup import escape
from rich.table import Table

from .._plugins.loading import installed
from .console import out
from .plugin_commands import commands_of_plugins


def register(app: typer.Typer) -> None:
    app.command()(plugins)


def plugins(
    as_json: Annotated[
        bool, typer.Option("--json", help="Print a JSON line for each plugin.")
    ] = False,
) -> None:
    """List the plugins: their distributions, and the schemes and names that they register."""
    commands = commands_of_plugins()
    found = [
        replace(plugin, registered={**plugin.registered, "commands": commands[plugin.name]})
        if plugin.name in commands
        else plugin
        for plugin in installed()
    ]
    if as_json:
        for plugin in found:
            typer.echo(json.dumps(asdict(plugin)))
        return
    table = Table("plugin", "from", "registers", box=None, pad_edge=False)
    for plugin in found:
        style = "yellow" if plugin.problem else ""
        registered = "\n".join(
            f"{kind.replace('_', ' ')}: {', '.join(names)}"
            for kind, names in plugin.registered.items()
        )
        table.add_row(
            plugin.name,
            f"{plugin.distribution} {plugin.version}",
            escape(plugin.problem or registered),
            style=style,
        )
    out.print(table)
