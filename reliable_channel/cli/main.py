"""The command line's entry point."""

import logging
import os
import sys
import threading
from contextlib import suppress
from typing import Annotated, Final, NoReturn

import typer

from .._version import __version__
from .console import PrintableFormatter, errors
from .exit_codes import ExitCode
from .lazy_command import lazy_command
from .plugin_commands import add_commands_of_plugins

COMMANDS: Final = {
    "demo": "Watch five processes agree on one log though the network loses 30 % and cuts one off.",
    "node": "Run a Waku node for development and tests: the REST API of nwaku, a message store, no "
    "network.",
    "chat": "Chat in a terminal. What you type is sent line by line; a tick says that somebody has "
    "it.",
    "send": "Send one message and print its id.",
    "listen": "Print the messages of a channel in causal order as they are delivered, one a line.",
    "peer": "Take part in a channel, driven by JSON lines on standard input and telling all on "
    "standard output.",
    "plugins": "List the plugins: their distributions, and the schemes and names that they "
    "register.",
}
"""Our commands, each in the module of its name; the texts are those of their own help."""
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
    for name, summary in COMMANDS.items():
        lazy_command(app, name, f"{__package__}.{name}", summary)
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
    status: int | str | None = 0
    try:
        with errors():
            try:
                command_line()()
            except SystemExit as end:
                status = end.code
    except SystemExit as end:
        status = end.code
    except BaseException:
        sys.excepthook(*sys.exc_info())
        status = ExitCode.DEFECT
    _leave(status)


def _leave(status: int | str | None) -> NoReturn:
    """End now: Python would wait for a thread that waits for a line, which cannot be interrupted,
    until somebody presses Enter."""
    if threading.active_count() > 1:
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError):
                stream.flush()
        os._exit(status if isinstance(status, int) else int(status is not None))
    sys.exit(status)
