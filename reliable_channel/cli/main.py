"""The command line's entry point."""

import logging
import os
import sys
import threading
from contextlib import suppress
from typing import Annotated, Final, NoReturn

import typer

from .._version import __version__
from . import chat, demo, listen, node, peer, plugins, send
from .console import PrintableFormatter, errors
from .exit_codes import ExitCode
from .plugin_commands import add_commands_of_plugins

COMMANDS: Final = (demo, node, chat, send, listen, peer, plugins)
EXIT_CODES: Final = "\n\n".join(
    ["Exit status:", *(f"{code.value}: {code.meaning}" for code in ExitCode)]
)


def command_line() -> typer.Typer:
    """The command line with all its commands, those of plugins included."""
    app = typer.Typer(
        name="reliable-channel",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback(epilog=EXIT_CODES)(_reliable_channel)
    for module in COMMANDS:
        module.register(app)
    add_commands_of_plugins(app)
    return app


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"reliable-channel {__version__}")
        raise typer.Exit


def _reliable_channel(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_show_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    """Reliable channels over the Waku network."""


def run() -> NoReturn:
    """Run the command line and end the process; a person sees one line for an error, not a
    traceback."""
    if logging.lastResort is not None:  # what is logged goes to standard error
        logging.lastResort.setFormatter(PrintableFormatter())
    try:
        with errors():
            command_line()()
    except SystemExit as end:
        _leave(end.code)
    except BaseException:
        sys.excepthook(*sys.exc_info())
        _leave(ExitCode.DEFECT)
    _leave(0)


def _leave(status: int | str | None) -> NoReturn:
    """End now: Python would wait for a thread that waits for a line, which cannot be interrupted,
    until somebody presses Enter."""
    if threading.active_count() > 1:
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError):
                stream.flush()
        os._exit(status if isinstance(status, int) else int(status is not None))
    sys.exit(status)
