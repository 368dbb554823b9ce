"""The commands that plugins add; one that fails at it is named, and the others work."""

import typer

from ..errors import PluginError
from ..plugin_calls import Call, calls
from ..plugins import working_plugins
from .console import warn


def add_commands_of_plugins(app: typer.Typer) -> None:
    """Let every plugin that works add its commands."""
    try:
        manager, problems = working_plugins()
    except PluginError as error:
        warn(f"without commands of plugins: {error}")
        return
    for problem in problems:
        warn(str(problem))
    for call in calls(manager, "register_commands"):
        try:
            _add(app, call)
        except Exception as error:  # whatever it is: the other commands work without it
            warn(f"without the commands of plugin {call.plugin!r}: {error!r}")


def _add(app: typer.Typer, call: Call) -> None:
    """Let a plugin add to a command line of its own first, so that half of it is none."""
    own = typer.Typer()
    call(app=own)
    taken = _names(app)
    for name in _names(own) & taken:
        warn(f"the command {name!r} of plugin {call.plugin!r} is left out: the name is taken")
    app.registered_commands += [c for c in own.registered_commands if _name(c) not in taken]
    app.registered_groups += [g for g in own.registered_groups if g.name not in taken]


def _names(app: typer.Typer) -> set[str | None]:
    return {_name(command) for command in app.registered_commands} | {
        group.name for group in app.registered_groups
    }


def _name(command: typer.models.CommandInfo) -> str | None:
    """The name of a command, as typer makes it from that of its function."""
    if command.name is not None or command.callback is None:
        return command.name
    return command.callback.__name__.lower().replace("_", "-")
