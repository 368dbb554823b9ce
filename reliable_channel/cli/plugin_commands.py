"""Commands that plugins add to the command line. If a plugin fails, the program names it, and the
commands of other plugins work."""

from collections.abc import Iterator
from contextlib import suppress
from typing import Final

import typer

from .._plugins.loading import working_registry
from .._plugins.registry import Registry
from ..errors import PluginError
from .console import warn

HOOK: Final = "register_commands"


def add_commands_of_plugins(app: typer.Typer) -> None:
    """Let every plugin that can be loaded add its commands."""
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
    """Return the names of the commands that each working plugin adds. For a command in a group, the
    name begins with the group's name."""
    found: dict[str, list[str]] = {}
    registry, _ = working_registry()
    for plugin in _with_commands(registry):
        app = typer.Typer()
        with suppress(PluginError):  # named when the command line started
            registry.run(plugin, HOOK, app=app)
        found[plugin] = sorted(_words(app))
    return found


def _with_commands(registry: Registry) -> list[str]:
    return [plugin for plugin, hooks in registry.hooks.items() if HOOK in hooks]


def _add(app: typer.Typer, registry: Registry, plugin: str) -> None:
    """Let a plugin add to a separate command line first: then a failure leaves nothing behind."""
    own = typer.Typer()
    registry.run(plugin, HOOK, app=own)
    _merge(app, own, plugin)


def _merge(app: typer.Typer, own: typer.Typer, plugin: str) -> None:
    """Add commands and groups; a group that is there already gets the commands of this one."""
    commands = {_name(command) for command in app.registered_commands}
    groups = {group.name: group.typer_instance for group in app.registered_groups}
    for command in own.registered_commands:
        if (name := _name(command)) in commands | groups.keys():
            warn(f"the command {name!r} of plugin {plugin!r} is left out: the name is taken")
        else:
            app.registered_commands.append(command)
    for group in own.registered_groups:
        if group.name in commands:
            warn(
                f"the commands {group.name!r} of plugin {plugin!r} are left out: the name is taken"
            )
        elif (there := groups.get(group.name)) and group.typer_instance:
            _merge(there, group.typer_instance, plugin)
        else:
            app.registered_groups.append(group)


def _words(app: typer.Typer) -> Iterator[str]:
    """All words of each command."""
    yield from (str(_name(command)) for command in app.registered_commands)
    for group in app.registered_groups:
        if group.typer_instance:
            yield from (f"{group.name} {words}" for words in _words(group.typer_instance))


def _name(command: typer.models.CommandInfo) -> str | None:
    """The name of a command, as typer makes it from that of its function."""
    if command.name is not None or command.callback is None:
        return command.name
    return command.callback.__name__.lower().replace("_", "-")
