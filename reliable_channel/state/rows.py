"""Rows of a state file with checksums, which find flipped bits on a disk."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final
from zlib import crc32

from ..errors import StateCorrupt
from ..sds.changes import Row, Value

CHECKSUM: Final = "row_checksum"
"""Name of the last column in every table whose rows have a checksum."""


def checksum(table: str, row: Sequence[Value]) -> int:
    """Return a crc32 of the table's name and of the type, length and bytes of each value.

    The checksum finds every flipped bit, and a row in another table or under another key.
    """
    parts = [table.encode()]
    for value in row:
        if isinstance(value, str):
            data = value.encode()
            parts += (b"s%d:" % len(data), data)
        elif isinstance(value, int):
            data = b"%d" % value
            parts.append(b"i%d:%b" % (len(data), data))
        elif value is None:
            parts.append(b"n0:")
        else:
            parts += (b"b%d:" % len(value), value)
    return crc32(b"".join(parts))


def verified(path: Path, table: str, rows: Iterable[Row]) -> Iterator[Row]:
    """Yield the rows without their checksums, after a check.

    Raises:
        StateCorrupt: one does not fit its checksum.
    """
    for *values, found in rows:
        if checksum(table, values) != found:
            raise damaged(path, f"a row of {table!r} does not fit its checksum")
        yield tuple(values)


def damaged(path: Path, why: str) -> StateCorrupt:
    """Return the error for a damaged state file."""
    return StateCorrupt(
        f"{path} is damaged or no state ({why}); move it away and start without it, or bring back "
        "a copy"
    )
