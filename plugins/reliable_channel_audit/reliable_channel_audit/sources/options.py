"""Options of a Spark reader, which Spark passes as text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

T = TypeVar("T", int, None)


def whole(options: Mapping[str, str], name: str, otherwise: T, *, at_least: int = 1) -> int | T:
    """Return the whole number in an option's text, or `otherwise` without the option.

    Raises:
        ValueError: it is none, or too small.
    """
    given = options.get(name)
    if given is None:
        return otherwise
    try:
        value = int(given)
    except ValueError:
        value = at_least - 1
    if value < at_least:
        raise ValueError(
            f"option {name} must be a whole number of at least {at_least} (got {given!r})"
        )
    return value
