"""Consoles, and how errors look to a person."""

import sys
import termios
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.markup import escape

from waku.node import ArchiveError

from ..errors import ReliableChannelError, SdsError, StateError

out = Console()
err = Console(stderr=True)


@contextmanager
def errors() -> Iterator[None]:
    """Turn expected errors into one line on standard error and exit status 2."""
    try:
        yield
    except* (
        ReliableChannelError,
        SdsError,
        StateError,
        ArchiveError,
        ValueError,
        OSError,
    ) as group:
        for error in _leaves(group):
            err.print(f"[bold red]error:[/] {escape(str(error))}", highlight=False, soft_wrap=True)
        sys.exit(2)
    except* KeyboardInterrupt:
        sys.exit(130)


def say(text: str, *, style: str | None = None) -> None:
    """Print a line as it is, however long."""
    out.print(text, style=style, markup=False, highlight=False, soft_wrap=True)


def warn(text: str) -> None:
    """Say on standard error what goes on without."""
    err.print(f"[bold yellow]warning:[/] {escape(text)}", highlight=False, soft_wrap=True)


@contextmanager
def terminal_restored() -> Iterator[None]:
    """Leave the terminal as it was found: a line that is being typed when the process ends leaves
    it without echo."""
    if not sys.stdin.isatty():
        yield
        return
    found = termios.tcgetattr(sys.stdin)
    try:
        yield
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, found)


def _leaves(group: BaseExceptionGroup[BaseException]) -> Iterator[BaseException]:
    for error in group.exceptions:
        if isinstance(error, BaseExceptionGroup):
            yield from _leaves(error)
        else:
            yield error
