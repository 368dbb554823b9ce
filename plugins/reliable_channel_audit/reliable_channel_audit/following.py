"""Follower of growing journals, also when they are renamed, compressed, or copied and truncated.

A long file is renamed and compressed, and the journal continues in a new file. An offset therefore
contains no file names. An offset names the part that was read last, after all earlier parts, and
the position in it.
"""

from __future__ import annotations

import glob
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import lru_cache, partial
from hashlib import sha256
from math import inf
from pathlib import Path
from sys import maxsize
from typing import IO, Final, NamedTuple

from reliable_channel.spi import Unpacker

from .journals import (
    DAMAGE,
    PACKED,
    TAIL_BYTES,
    first_opened,
    journal_files,
    opened_file,
    part_of,
    texts,
)
from .lines import Line, line_of, set_aside

FRESH_BYTES = 2 * 1024 * 1024
"""Number of bytes before a stretch in which a line without references to earlier lines is
searched."""
TRIES: Final = 5
"""Maximum number of attempts to find a part that is being renamed or compressed."""
MAX_KNOWN: Final = 65_536
"""Maximum number of unchanged files that are not opened again to identify them."""
GONE: Final = "a part of this journal was removed before it was read to its end"


class Position(NamedTuple):
    """Position in a journal, up to which all lines are read."""

    mark: str
    """Mark of the part that was read last."""
    opened_ms: int
    """Time at which the part that was read last begins. The beginnings of parts tell which parts
    are newer, even if a part was removed."""
    at: int
    """Number of bytes of the part that are read, decompressed. `maxsize` means a whole part."""


class Part(NamedTuple):
    """Part of a journal, which is one file."""

    family: str
    """Path of the journal that the part belongs to."""
    path: str
    mark: str
    """Digest of the first line of the part, which contains the time. The mark identifies a part,
    because its file name may change."""
    opened_ms: int
    channel_id: str
    participant_id: str
    end: int
    """Number of bytes of the part. For a compressed part, which grows no more, it is `maxsize`."""


class Stretch(NamedTuple):
    """Stretch of lines in a part of a journal that must be read."""

    part: Part
    begin: int
    end: int
    """Position at which the stretch ends. For the rest of a part, `end` is `maxsize`."""


Offset = dict[str, Position]
"""Positions in journals by path. From JSON, a position is a list."""
Journals = dict[str, list[Part]]
"""Parts of each journal by its path, the oldest first."""
Owners = dict[str, tuple[str, str]]
"""Channel and participant of each journal by its path. A file that was copied and truncated
continues without the opening line that contains them."""


def journals_in(paths: Sequence[str | Path], owners: Owners | None = None) -> Journals:
    """Return the present journals whose participants are known. `owners` contains the owners of
    journals that were found before, and gets the owners of new ones.

    Raises:
        FileNotFoundError: a path that is not there.
    """
    owners = {} if owners is None else owners
    parts: list[Part | None] = []
    for tries in range(1, TRIES + 1):
        try:
            files = journal_files(paths, may_be_none=True)
            in_order = sorted(files, key=lambda path: part_of(path)[1])
            parts = [_part_at(path, owners) for path in in_order]
            if files == journal_files(paths, may_be_none=True):
                break
        except FileNotFoundError:  # it was renamed or packed meanwhile
            if tries == TRIES:
                raise
    found: dict[str, dict[str, Part]] = {}
    for part in filter(None, parts):
        # Of two files with one beginning, the last is kept, because it is the one that may grow.
        found.setdefault(part.family, {})[part.mark] = part
    return {family: list(known.values()) for family, known in found.items()}


def _part_at(path: Path, owners: Owners) -> Part | None:
    """A file as a part of its journal; None if it cannot be read or its owner is unknown."""
    status, (family, _) = path.stat(), part_of(path)
    owner = owners.get(family)
    try:
        part = _part(path, owner, status.st_size, status.st_ino, status.st_mtime_ns)
    except FileNotFoundError:
        raise
    except (LookupError, *DAMAGE):
        return None
    owners[family] = part.channel_id, part.participant_id
    return part


@lru_cache(MAX_KNOWN)
def _part(path: Path, owner: tuple[str, str] | None, size_bytes: int, *_status: int) -> Part:
    """Describe a file as a part. `owner` is used if the file begins without an opening line.

    A failure must be an exception, because it may pass and exceptions are not cached.

    Raises:
        LookupError: no owner was found, or no whole line.
    """
    with opened_file(path) as file:
        mark = _mark_of(file)
    opened = first_opened(path, owner)
    if opened is None or not mark:
        raise LookupError(path)
    end = maxsize if path.suffix in PACKED else size_bytes
    return Part(part_of(path)[0], str(path), mark, opened[2], *opened[:2], end)


def read_to(journals: Journals, start: Offset, budget_bytes: int | None = None) -> Offset:
    """Return the next offset, with about `budget_bytes` in whole lines, and a line of each grown
    journal. The next offset is not beyond the end that the parts had when they were found.

    Raises:
        ValueError: an offset of an earlier version.
    """
    grew = [
        family
        for family, parts in journals.items()
        if parts
        and _at(start, family) != Position(parts[-1].mark, parts[-1].opened_ms, parts[-1].end)
    ]
    share = inf if budget_bytes is None else max(1, budget_bytes // max(1, len(grew)))
    found = {each: _read_to(journals[each], _at(start, each), share) for each in grew}
    return start | {family: end for family, end in found.items() if end is not None}


def stretches(journals: Journals, start: Offset, end: Offset) -> Iterator[Stretch]:
    """Yield the stretches between two offsets. If a part is missing, its stretch reports this.

    Raises:
        ValueError: an offset of an earlier version.
    """
    for family in end:
        parts, before, until = journals.get(family, []), _at(start, family), _at(end, family)
        if not parts or until is None or before == until:
            continue
        present = {part.mark for part in parts}
        for each in (before, until):
            if each is not None and each.mark not in [part.mark for part in parts]:
                gone = parts[0]._replace(path=family, mark=each.mark, opened_ms=each.opened_ms)
                place, _ = _place(parts, each)
                parts = [*parts[:place], gone, *parts[place:]]
        first, begin = _place(parts, before)
        last, _ = _place(parts, until)
        for part in parts[first : last + 1]:
            stretch_end = until.at if part.mark == until.mark else maxsize
            # Parts after a missing part may be missing as well, even if it was read to its end.
            if stretch_end > begin or part.mark not in present:
                yield Stretch(part, begin, stretch_end)
            begin = 0


def lines_of(
    stretch: Stretch, read: Callable[[bytes | Line], Line] | None = None
) -> Iterator[Line]:
    """Yield the lines in a stretch. The function `read` converts a line, and has converted all
    earlier lines. Without `read`, the earlier lines that are needed are read again."""
    file = _opened(stretch.part)
    if file is None:
        yield set_aside(GONE)
        return
    try:
        if stretch.begin == maxsize:  # the part was missing, and is there under another name
            return
        _move_on(file, stretch.begin if read else _fresh_before(file, stretch.begin))
        read = read or partial(_line, Unpacker())
        for text in texts(file):
            line = read(text)
            if file.tell() > stretch.begin and (isinstance(text, Line) or not text.isspace()):
                yield line
            if file.tell() >= stretch.end:
                break
    except DAMAGE as error:
        yield set_aside(f"the file cannot be read on: {error}")
    finally:
        file.close()


def _line(unpacker: Unpacker, text: bytes | Line) -> Line:
    return text if isinstance(text, Line) else line_of(text, unpacker)


def _at(offset: Offset, family: str) -> Position | None:
    values = offset.get(family)
    if isinstance(values, int):
        raise ValueError("an earlier version wrote the checkpoint; begin another checkpoint")
    return None if values is None else Position(*values)


def _place(parts: Sequence[Part], position: Position | None) -> tuple[int, int]:
    """Which part is to be read next, and from where."""
    if position is None:
        return 0, 0
    for number, part in enumerate(parts):
        if part.mark == position.mark:
            return number, position.at
    newer = (n for n, part in enumerate(parts) if part.opened_ms > position.opened_ms)
    return next(newer, len(parts)), 0


def _read_to(parts: Sequence[Part], start: Position | None, left: float) -> Position | None:
    """How far to read one journal; None if there is nothing new."""
    first, at = _place(parts, start)
    end = None
    for part in parts[first:]:
        is_final = part is not parts[-1] or part.end == maxsize
        if is_final and part.end - at <= left:
            whole, size_bytes = part.end, part.end - at
        else:
            whole, size_bytes = _end_of_lines(part, at, left)
        if whole > at:
            end = Position(part.mark, part.opened_ms, whole)
        left -= size_bytes
        if left <= 0 or whole < part.end:
            break
        at = 0
    return end


def _end_of_lines(part: Part, at: int, most: float) -> tuple[int, int]:
    """Where the last line ends that is whole, within so many bytes from `at`; of a longer one its
    end; `at` if there is none; `part.end` if the part has no more. And the number of bytes that
    were read, which `part.end` does not tell for a packed part."""
    file = _opened(part) if at < part.end else None
    if file is None:
        return at, 0
    end = position = at
    with file, suppress(*DAMAGE):
        _move_on(file, at)
        while text := file.readline(TAIL_BYTES):
            position += len(text)
            if position > part.end or (position - at > most and end > at):
                return end, end - at
            if text.endswith(b"\n"):
                end = position
    return part.end if part.end == maxsize else end, position - at


def _opened(part: Part) -> IO[bytes] | None:
    """A part at its beginning, under any name; None if it is gone."""
    family = Path(part.family)
    for _ in range(TRIES):
        near = family.parent.glob(f"{glob.escape(family.stem)}[.-]*")
        for each in (Path(part.path), *near):
            with suppress(*DAMAGE):
                file = opened_file(each)
                is_part = _mark_of(file) == part.mark
                if is_part and file.seekable():
                    file.seek(0)
                    return file
                file.close()
                if is_part:
                    return opened_file(each)
    return None


def _move_on(file: IO[bytes], position: int) -> None:
    """Move forward in a file. Of a `.zst` file, the bytes before the position must be read."""
    if file.seekable():
        file.seek(position)
        return
    while (left := position - file.tell()) > 0 and file.read(min(left, TAIL_BYTES)):
        pass


def _mark_of(file: IO[bytes]) -> str:
    """The digest of the first line of a file just opened; empty until the line is whole."""
    line = file.readline(TAIL_BYTES)
    return sha256(line).hexdigest()[:16] if line.endswith(b"\n") or len(line) == TAIL_BYTES else ""


def _fresh_before(file: IO[bytes], end: int) -> int:
    """Where the last line before `end` begins that needs no bytes of lines before it. A `.zst` file
    cannot be searched backwards, so it is read from its beginning."""
    window = FRESH_BYTES
    while end and file.seekable():
        begin = max(0, end - window)
        file.seek(begin)
        text = file.read(end - begin)
        at = text.rfind(b"\n", 0, max(0, text.rfind(b'"fresh":true')))
        if at >= 0 or not begin:
            return begin + at + 1
        window *= 4
    return 0
