"""A target: a decoder, and what must hold for whatever bytes it is given."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final

MAX_INPUT_BYTES: Final = 4096
"""Longer inputs find nothing more in these decoders, and cost time; limits beyond that have unit
tests of their own."""


@dataclass(frozen=True, slots=True)
class Target:
    """What is fuzzed under one name."""

    name: str
    check: Callable[[bytes], None]
    """Give it bytes: raises only where a property does not hold, an undocumented exception
    included."""
    seeds: Callable[[], Iterable[bytes]]
    """Where the search starts from: what honest peers write."""
    words: tuple[bytes, ...] = ()
    """What random bytes would hardly ever spell."""


JSON_WORDS: Final = (
    *(b"null", b"true", b"false", b"NaN", b"-Infinity", b"1e999", b"-1", b"0.5", b"9" * 20),
    *(b'"\\ud800"', b'"\\u0000"', b'""', b"[]", b"{}", b"[" * 64, b"]" * 64, b'{"a":' * 64),
)


def records(data: bytes, *, most: int = 64) -> Iterator[bytes]:
    """Cut an input into several messages, each after its length in two bytes; of a message that is
    cut short, what there is."""
    at = 0
    for _ in range(most):
        if at + 2 > len(data):
            return
        length = int.from_bytes(data[at : at + 2])
        yield data[at + 2 : at + 2 + length]
        at += 2 + length


def joined(messages: Iterable[bytes]) -> bytes:
    """The input that `records` cuts into these."""
    return b"".join(len(message).to_bytes(2) + message for message in messages)
