"""Consoles, and the form in which a person sees errors."""

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
        """Raise the error, because rich would exit within the command's tasks."""
        raise


out = PipeConsole()
err = PipeConsole(stderr=True)
INDENT = "    "


@contextmanager
def errors() -> Iterator[None]:
    """Turn expected errors into one line each on standard error. Exit with the status of the
    first."""
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
    """Check that there is a standard input.

    Raises:
        ValueError: it is closed.
    """
    if sys.stdin is None:
        raise ValueError("standard input is closed; redirect it, or type in a terminal")


def text_of(error: BaseException) -> str:
    """Return the text of an error, with the plugin that it names in a note."""
    notes = "".join(f" ({note})" for note in getattr(error, "__notes__", ()))
    return (str(error) or type(error).__name__) + notes


def say(text: str, *, style: str | None = None) -> None:
    """Print a line as it is, however long."""
    out.print(text, style=style, markup=False, highlight=False, soft_wrap=True)


def warn(text: str) -> None:
    """Print a warning on standard error. The command continues."""
    _complain("warning:", "bold yellow", text)


def fail(text: str) -> None:
    """Print in one line on standard error why the command fails."""
    _complain("error:", "bold red", text)


def _complain(label: str, style: str, text: str) -> None:
    # A node's own words may be part of the text.
    err.print(Text.assemble((label, style), " ", printable(text)), soft_wrap=True)


class PrintableFormatter(logging.Formatter):
    """Log formatter that escapes like error lines, because a line may contain a node's own
    words."""

    def formatMessage(self, record: logging.LogRecord) -> str:
        """Return the message as one line."""
        return printable(super().formatMessage(record))


def show(line: Text) -> None:
    """Print a line of a conversation.

    If it is wider than the terminal, its further rows are indented. None of them then looks like a
    line of another participant.
    """
    if not out.is_terminal:
        out.print(line, soft_wrap=True)
        return
    first, *others = rows_of(line)
    out.print(first, soft_wrap=True)
    for row in others:
        out.print(Text(INDENT) + row, soft_wrap=True)


def rows_of(line: Text) -> list[Text]:
    """Return the rows of a line in the width of the terminal, indented except for the first."""
    return list(line.wrap(out, max(columns() - len(INDENT), 1), overflow="fold"))


def columns() -> int:
    """Return the terminal's width, even if `COLUMNS` in the environment is larger."""
    with suppress(OSError):
        if own := os.get_terminal_size(out.file.fileno()).columns:
            return min(own, out.width)
    return out.width


@contextmanager
def terminal_restored() -> Iterator[None]:
    """Restore the terminal. A line that is being typed when the process ends would otherwise leave
    it without echo."""
    if not sys.stdin.isatty():
        yield
        return
    found = termios.tcgetattr(sys.stdin)
    try:
        yield
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, found)


def leaves(group: BaseExceptionGroup[BaseException]) -> Iterator[BaseException]:
    """Return the exceptions of a group and of the groups in it."""
    for error in group.exceptions:
        if isinstance(error, BaseExceptionGroup):
            yield from leaves(error)
        else:
            yield error
