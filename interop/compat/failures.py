"""What goes wrong, and what is the reason of several things that do."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["Refused", "first_alone"]


class Refused(Exception):
    """A call did not do its job; the text is the library's."""


@contextmanager
def first_alone() -> Iterator[None]:
    """Raise the first error of a group of them by itself: of what fails at a start it is the
    reason."""
    try:
        yield
    except BaseExceptionGroup as group:
        error: BaseException = group
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        raise error from group
