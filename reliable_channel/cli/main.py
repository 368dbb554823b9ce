"""Entry point of the command line."""

import logging
import os
import sys
import threading
from contextlib import suppress
from textwrap import fill
from typing import Annotated, Any, Final, NoReturn

import typer
from typer.core import TyperGroup

from .._terminal_text import is_text
from .._version import __version__
from .console import PrintableFormatter, errors
from .exit_codes import ExitCode
from .lazy_command import lazy_command
from .plugin_commands import add_commands_of_plugins

COMMANDS: Final = {
    "demo": "Start five processes that agree on one log, although the network loses 30 % and one "
    "is cut off.",
    "node": "Run a small Waku node: the REST API of nwaku, a message store, and with --listen and "
    "--relay-peer a node among libp2p peers.",
    "chat": "Chat in a terminal. Each line that you type is sent. A tick means that a peer "
    "received it.",
    "send": "Send one message and print its id.",
    "listen": "Print the messages of a channel in causal order as they are delivered, one a line.",
    "peer": "Take part in a channel: commands are JSON lines on standard input, events on standard "
    "output.",
    "doctor": "Find the problems of a set-up, and how to solve them.",
    "plugins": "List the plugins: their distributions, and the schemes and names that they "
    "register.",
}
"""Built-in commands and their help texts, each in the module of its name."""
STATE_COMMANDS: Final = {
    "list": "List state files, each with its channel, participant and contents.",
    "check": "Read every row of a file and print any damage. The exit status is then 1.",
    "export": "Print the messages of a file as JSON lines, in the order of the log.",
    "prune": "Evict old messages and give the space back. Peers and Store still have them.",
    "backup": "Copy a file, also while a channel has it open.",
    "restore": "Replace a file by a copy. The earlier file stays beside it.",
}
"""Commands of the group `state`, with their help texts."""
PACKAGES: Final = {
    "audit": "reliable-channel-audit",
    "bot": "reliable-channel-status",
    "check": "reliable-channel-audit",
    "conformance": "reliable-channel-conformance",
    "simulate": "reliable-channel-lab",
    "sweep": "reliable-channel-lab",
    "watch": "reliable-channel-watch",
}
"""Packages of this project's plugins that add commands, by command."""
HELP_COLUMNS: Final = 76
EXIT_CODES: Final = "\b\nExit status:\n" + "\n".join(
    fill(f"{code.value:3}  {code.meaning}", HELP_COLUMNS, subsequent_indent=5 * " ")
    for code in ExitCode
)
"""List of exit statuses for the end of the help. The character `\b` keeps the line breaks."""


class Program(TyperGroup):
    """Group of all commands, which handles errors before click does."""

    def invoke(self, ctx: Any) -> Any:
        """Run a command, and print an expected error as one line."""
        with errors():
            try:
                return super().invoke(ctx)
            except typer.BadParameter as error:
                error.message = error.message.removeprefix("Value error, ")
                raise

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command that the first argument names.

        Raises:
            click.UsageError: no such command. The text names the package that provides it.
        """
        if args and args[0] not in self.commands and (package := PACKAGES.get(args[0])):
            ctx.fail(f"the command {args[0]!r} is part of {package}; pip install {package}")
        return super().resolve_command(ctx, args)


def command_line() -> typer.Typer:
    """Return the command line with all commands, those of plugins included."""
    app = typer.Typer(
        cls=Program,
        name="reliable-channel",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,  # whose tables cut off what is too wide
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback(epilog=EXIT_CODES)(_reliable_channel)
    for name, summary in COMMANDS.items():
        lazy_command(app, name, f"{__package__}.{name}", summary)
    state = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
    for name, summary in STATE_COMMANDS.items():
        lazy_command(state, name, f"{__package__}.state", summary)
    app.add_typer(
        state, name="state", help="Commands for state files: list, check, back up, prune."
    )
    if not _completes_own_command():
        add_commands_of_plugins(app)
    return app


def _completes_own_command() -> bool:
    """Return True if a shell completes the arguments of a command that no plugin adds: to look for
    plugins would take a third of the time."""
    line = os.environ.get("_TYPER_COMPLETE_ARGS") or os.environ.get("COMP_WORDS", "")
    words = line.split()
    return "_RELIABLE_CHANNEL_COMPLETE" in os.environ and len(words) > 2 and words[1] in COMMANDS


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
    """Run the command line and end the process. An expected error is printed as one line, not as a
    traceback."""
    if logging.lastResort is not None:  # what is logged goes to standard error
        logging.lastResort.setFormatter(PrintableFormatter())
    status: int | str | None = 0
    try:
        with errors():
            _check_arguments()
            try:
                command_line()()
            except SystemExit as end:
                status = end.code
    except SystemExit as end:
        status = end.code
    except BaseException as error:
        sys.excepthook(type(error), error, error.__traceback__)
        status = ExitCode.DEFECT
    _leave(status)


def _check_arguments() -> None:
    for argument in sys.argv[1:]:
        if not is_text(argument):
            encoding = sys.getfilesystemencoding()
            raise ValueError(f"an argument must be text in {encoding} (got {argument!r})")


def _leave(status: int | str | None) -> NoReturn:
    """End now: Python would wait for a thread that waits for a line, which cannot be interrupted,
    until Enter is pressed."""
    if threading.active_count() > 1:
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError):
                stream.flush()
        os._exit(status if isinstance(status, int) else int(status is not None))
    sys.exit(status)
