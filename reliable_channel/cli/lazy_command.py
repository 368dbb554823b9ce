"""Commands that are loaded when they are run or completed. Help needs only their names."""

from importlib import import_module
from typing import Any

import typer
from typer.core import TyperCommand

from .logs import log_options


def lazy_command(app: typer.Typer, name: str, module: str, summary: str) -> None:
    """Add a command whose module is loaded when it is used.

    `register(app)` of the module adds the command itself. `summary` is the first paragraph of its
    help, for the list of commands.
    """

    class Lazy(TyperCommand):
        def make_context(self, *arguments: Any, **keywords: Any) -> Any:
            return loaded_command(name, module).make_context(*arguments, **keywords)

    # Without a short help of its own, the list cuts the text after a sentence, or in it.
    @app.command(name, cls=Lazy, help=summary, short_help=summary)
    def _(module: str = module) -> None:
        """Never called: the context that is made is that of the command."""


def loaded_command(name: str, module: str) -> TyperCommand:
    """Return the command of this name that a module registers."""
    own = typer.Typer(rich_markup_mode=None)
    own.callback()(lambda: None)  # a group also of a single command
    import_module(module).register(own)
    group: Any = typer.main.get_command(own)
    command: TyperCommand = group.commands[name]
    command.params += log_options()
    return command
