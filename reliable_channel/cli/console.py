"""Consoles of the command line, and the form in which errors are printed."""

import logging
import os
import sys
import termios
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from rich.console import Console
from rich.text import Text

from .._terminal_text import printable
from .exit_codes import ExitCode, code_of, expected_errors


class PipeConsole(Console):
    """Console that lets the command handle a closed pipe."""

    def on_broken_pipe(self) -> None:
        """Raise the error, because rich would end the process inside the tasks of a command."""
        raise


out = PipeConsole()
err = PipeConsole(stderr=True)
INDENT = "    "


@contextmanager
def errors() -> Iterator[None]:
    """Print each expected error as one line on standard error. Exit with the status of the first
    error."""
    status = ExitCode.DONE
    try:
        yield
    except* BrokenPipeError:  # quiet, as other programs in a pipe
        status = ExitCode.CUT_OFF
        _give_up_output()
    except* tuple(expected_errors()) as group:
        found = list(leaves(group))
        # Several tasks may fail for one reason.
        for text in dict.fromkeys(map(text_of, found)):
            fail(text)
        status = code_of(found[0])
    except* KeyboardInterrupt:
        status = status or ExitCode.INTERRUPTED
    if status:
        sys.exit(status)


def _give_up_output() -> None:
    """Let what is still to be written go nowhere: Python would complain at the end."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except BrokenPipeError:
            os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


def needs_input() -> None:
    """Check that the process has a standard input.

    Raises:
        ValueError: it is closed.
    """
    if sys.stdin is None:
        raise ValueError("standard input is closed; redirect it, or type in a terminal")


def text_of(error: BaseException) -> str:
    """Return the text of an error, with the name of a plugin in its note."""
    notes = "".join(f" ({note})" for note in getattr(error, "__notes__", ()))
    return (str(error) or type(error).__name__) + notes


def say(text: str, *, style: str | None = None) -> None:
    """Print a line without wrapping, however long it is."""
    out.print(text, style=style, markup=False, highlight=False, soft_wrap=True)


def warn(text: str) -> None:
    """Print a warning on standard error, while the command continues."""
    _complain("warning:", "bold yellow", text)


def fail(text: str) -> None:
    """Print the reason why the command fails, as one line on standard error."""
    _complain("error:", "bold red", text)


def _complain(label: str, style: str, text: str) -> None:
    # A node's own words may be part of the text.
    err.print(Text.assemble((label, style), " ", printable(text)), soft_wrap=True)


class PrintableFormatter(logging.Formatter):
    """Log formatter that escapes unprintable characters, because a line may quote a node's text."""

    def formatMessage(self, record: logging.LogRecord) -> str:
        """Return the log record as one line."""
        return printable(super().formatMessage(record))


def show(line: Text) -> None:
    """Print one line of a conversation.

    If the line is wider than the terminal, its further rows are indented. An indented row cannot
    look like a line of another participant.
    """
    if not out.is_terminal:
        out.print(line, soft_wrap=True)
        return
    first, *others = rows_of(line)
    out.print(first, soft_wrap=True)
    for row in others:
        out.print(Text(INDENT) + row, soft_wrap=True)


def rows_of(line: Text) -> list[Text]:
    """Return the rows of a line in the terminal's width, all but the first indented."""
    return list(line.wrap(out, max(columns() - len(INDENT), 1), overflow="fold"))


def columns() -> int:
    """Return the width of the terminal, even if the variable `COLUMNS` is larger."""
    with suppress(OSError):
        if own := os.get_terminal_size(out.file.fileno()).columns:
            return min(own, out.width)
    return out.width


@contextmanager
def terminal_restored() -> Iterator[None]:
    """Restore the terminal at the end of the block. If the process ends while a line is typed, the
    terminal would otherwise not show typed text."""
    if not sys.stdin.isatty():
        yield
        return
    found = termios.tcgetattr(sys.stdin)
    try:
        yield
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, found)


def leaves(group: BaseExceptionGroup[BaseException]) -> Iterator[BaseException]:
    """Yield the exceptions in a group and in the groups inside it."""
    for error in group.exceptions:
        if isinstance(error, BaseExceptionGroup):
            yield from leaves(error)
        else:
            yield error
