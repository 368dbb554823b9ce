"""The commands that plugins add; one that fails at it is named, and the others work."""

from contextlib import suppress
from typing import Final

import typer

from .._plugins.loading import working_registry
from .._plugins.registry import Registry
from ..errors import PluginError
from .console import warn

HOOK: Final = "register_commands"


def add_commands_of_plugins(app: typer.Typer) -> None:
    """Let every plugin that works add its commands."""
    try:
        registry, problems = working_registry()
    except PluginError as error:
        warn(f"without commands of plugins: {error}")
        return
    for problem in problems:
        warn(str(problem))
    for plugin in _with_commands(registry):
        try:
            _add(app, registry, plugin)
        except PluginError as error:
            warn(f"without its commands: {error}")


def commands_of_plugins() -> dict[str, list[str]]:
    """Names of the commands that each working plugin adds."""
    found: dict[str, list[str]] = {}
    registry, _ = working_registry()
    for plugin in _with_commands(registry):
        app = typer.Typer()
        with suppress(PluginError):  # named when the command line started
            registry.run(plugin, HOOK, app=app)
        found[plugin] = sorted(str(name) for name in _names(app))
    return found


def _with_commands(registry: Registry) -> list[str]:
    return [plugin for plugin, hooks in registry.hooks.items() if HOOK in hooks]


def _add(app: typer.Typer, registry: Registry, plugin: str) -> None:
    """Let a plugin add to a separate command line first: then a failure leaves nothing behind."""
    own = typer.Typer()
    registry.run(plugin, HOOK, app=own)
    taken = _names(app)
    for name in _names(own) & taken:
        warn(f"the command {name!r} of plugin {plugin!r} is left out: the name is taken")
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
