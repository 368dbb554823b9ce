"""Commands whose module is loaded when the command is run or completed. The help of the program
needs only the names of the commands."""

import gc
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperCommand

from .logs import log_options


def lazy_command(app: typer.Typer, name: str, module: str, summary: str) -> None:
    """Add a command to the program whose module is loaded on first use.

    The function `register(app)` of the module adds the real command. `summary` is the first
    paragraph of the command's help, for the list of commands.
    """

    class Lazy(TyperCommand):
        def make_context(self, *arguments: Any, **keywords: Any) -> Any:
            return loaded_command(name, module).make_context(*arguments, **keywords)

    # Without a short help of its own, the list cuts the text after a sentence, or in it.
    @app.command(name, cls=Lazy, help=summary, short_help=summary)
    def _(module: str = module) -> None:
        """Never called: the context that is made is that of the command."""


def loaded_command(name: str, module: str) -> TyperCommand:
    """Return the command with a name that a module registers."""
    own = typer.Typer(rich_markup_mode=None)
    own.callback()(lambda: None)  # a group also of a single command
    gc.disable()  # it would look through each module again and again: a tenth of a command's start
    try:
        import_module(module).register(own)
    finally:
        gc.freeze()
        gc.enable()
    group: Any = typer.main.get_command(own)
    command: TyperCommand = group.commands[name]
    command.params += log_options()
    return command
