"""Following of growing journals, also when the SDK renames and compresses them.

A long file is renamed and compressed, and the journal continues in a new file. An offset in a
stream therefore contains no file names. An offset names the part that was read last, after all
earlier parts, and the position in it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from os import SEEK_END
from pathlib import Path
from sys import maxsize
from typing import IO, Final, NamedTuple

from reliable_channel.spi import Unpacker

from ..journals import (
    DAMAGE,
    PACKED,
    TAIL_BYTES,
    family_of,
    first_opened,
    journal_files,
    opened_file,
    part_number,
    texts,
)
from ..lines import Line, line_of, set_aside

FRESH_BYTES = 2 * 1024 * 1024
"""Number of bytes before a stretch in which a line without references to earlier lines is
searched."""
TRIES: Final = 5
"""Maximum number of attempts to find a part that is being renamed or compressed."""
GONE: Final = "a part of this journal was removed before it was read to its end"


class Position(NamedTuple):
    """Position in a journal, up to which all lines are read."""

    mark: str
    """Mark of the part that was read last."""
    opened_ms: int
    """Time at which the part that was read last begins. The beginnings of parts tell which parts
    are newer, even if a part was removed."""
    at: int
    """Number of bytes of the part that are read, decompressed."""


class Part(NamedTuple):
    """Part of a journal, which is one file."""

    path: str
    mark: str
    """Digest of the first line of the part, which contains the time. The mark identifies a part,
    because its file name may change."""
    opened_ms: int
    channel_id: str
    participant_id: str


@dataclass(frozen=True)
class Stretch:
    """Stretch of lines in a part of a journal that must be read."""

    family: str
    """Path of the journal that the part belongs to."""
    part: Part
    begin: int
    end: int | None
    """Position at which the stretch ends. For the rest of a finished part, `end` is None."""


Offset = dict[str, tuple[str, int, int]]
"""Offset of a stream, with the `Position` in each journal by path, as JSON."""
Journals = dict[str, list[Part]]
"""Parts of each journal by its path, the oldest first."""


def journals_in(paths: Sequence[str]) -> Journals:
    """Return the present journals whose participants are known.

    Raises:
        FileNotFoundError: a path that is not there.
    """
    parts: dict[Path, Part | None] = {}
    for tries in range(1, TRIES + 1):
        try:
            files = journal_files(paths, may_be_none=True)
            parts = {path: _part(path) for path in sorted(files, key=part_number)}
            if files == journal_files(paths, may_be_none=True):
                break
        except FileNotFoundError:  # it was renamed or packed meanwhile
            if tries == TRIES:
                raise
    found: dict[str, dict[str, Part]] = {}
    for path, part in parts.items():
        if part is not None:
            found.setdefault(family_of(path), {}).setdefault(part.mark, part)
    return {family: list(known.values()) for family, known in found.items()}


def _part(path: Path) -> Part | None:
    try:
        with opened_file(path) as file:
            mark = _mark_of(file)
        opened = first_opened(path)
    except FileNotFoundError:
        raise
    except DAMAGE:
        return None
    return Part(str(path), mark, opened[2], *opened[:2]) if opened is not None and mark else None


def read_to(
    journals: Journals, start: Offset, budget_bytes: int | None = None, target: Offset | None = None
) -> Offset:
    """Return the next offset, with about `budget_bytes` in whole lines, and a line of each grown
    journal. The next offset is not beyond `target`."""
    grew = {}
    for family, parts in journals.items():
        to = None if target is None else _position(target, family)
        known = parts if target is None else parts[: _count(parts, to)]
        if _read_to(family, known, _position(start, family), None, to) is not None:
            grew[family] = known, to
    share = None if budget_bytes is None or not grew else max(1, budget_bytes // len(grew))
    ends = dict(start)
    for family, (known, to) in grew.items():
        end = _read_to(family, known, _position(start, family), share, to)
        ends |= {} if end is None else {family: (end.mark, end.opened_ms, end.at)}
    return ends


def stretches(journals: Journals, start: Offset, end: Offset) -> Iterator[Stretch]:
    """Yield the stretches between two offsets. If a part is missing, a stretch reports the missing
    part."""
    for family, values in end.items():
        parts = journals.get(family, [])
        if parts and start.get(family) != values:
            yield from _between(family, parts, _position(start, family), Position(*values))


def lines_of(stretch: Stretch) -> Iterator[Line]:
    """Yield the lines in a stretch."""
    file = _opened(stretch.family, stretch.part)
    if file is None:
        yield set_aside(GONE)
        return
    unpacker = Unpacker()
    with file:
        file.seek(_fresh_before(file, stretch.begin))
        for text in texts(file):
            line = text if isinstance(text, Line) else line_of(text, unpacker)
            is_empty = not isinstance(text, Line) and text.isspace()
            if file.tell() > stretch.begin and not is_empty:
                yield line
            if stretch.end is not None and file.tell() >= stretch.end:
                break


def _position(offset: Offset, family: str) -> Position | None:
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


def _count(parts: Sequence[Part], position: Position | None) -> int:
    """How many parts there are up to a position."""
    if position is None:
        return 0
    number, _ = _place(parts, position)
    return number + (number < len(parts) and parts[number].mark == position.mark)


def _read_to(
    family: str,
    parts: Sequence[Part],
    start: Position | None,
    budget: int | None,
    target: Position | None,
) -> Position | None:
    """How far to read one journal; None if there is nothing new."""
    first, at = _place(parts, start)
    end = None
    for part in parts[first:] if budget is not None else parts[max(first, len(parts) - 1) :]:
        at = at if part is parts[first] else 0
        most = target.at if target is not None and part.mark == target.mark else maxsize
        whole, is_all = _end_of_lines(family, part, at, budget, most)
        if whole > at:
            end = Position(part.mark, part.opened_ms, whole)
        if budget is not None:
            budget -= whole - at
            if budget <= 0 or not is_all:
                break
    return end


def _end_of_lines(
    family: str, part: Part, at: int, budget: int | None, most: int
) -> tuple[int, bool]:
    """Where the last line ends that is whole, within so many bytes from `at`; of a longer one its
    end; `at` if there is none. And whether the part has no more."""
    file = _opened(family, part)
    if file is None:
        return at, False
    with file:
        wanted = min(most, maxsize if budget is None else at + budget)
        end = file.seek(min(wanted, _size(file)))
        is_all = not file.read(1)
        begin = max(at, end - TAIL_BYTES)
        file.seek(begin)
        last = file.read(end - begin).rfind(b"\n")
        if last >= 0:
            return begin + last + 1, is_all
        file.seek(at)
        whole = at
        while whole < wanted and (text := file.readline(TAIL_BYTES)):
            if text.endswith(b"\n") and file.tell() <= most:
                whole = file.tell()
        return whole, is_all


def _size(file: IO[bytes]) -> int:
    """The size of a plain file; of a packed one it is not known before it is unpacked."""
    name = getattr(file, "name", "")
    return maxsize if str(name).endswith(PACKED) else file.seek(0, SEEK_END)


def _between(
    family: str, parts: Sequence[Part], start: Position | None, end: Position
) -> Iterator[Stretch]:
    first, at = _place(parts, start)
    if start is not None and start.mark not in (part.mark for part in parts[first : first + 1]):
        yield _gone(family, parts, start)
    last, _ = _place(parts, end)
    for part in parts[first:last]:
        yield Stretch(family, part, at, None)
        at = 0
    if last < len(parts) and parts[last].mark == end.mark:
        if end.at > at:
            yield Stretch(family, parts[last], at, end.at)
    else:
        yield _gone(family, parts, end)


def _gone(family: str, parts: Sequence[Part], position: Position) -> Stretch:
    part = parts[0]._replace(path=family, mark=position.mark)
    return Stretch(family, part, position.at, None)


def _opened(family: str, part: Part) -> IO[bytes] | None:
    """A part, under any name; None if it is gone."""
    for _ in range(TRIES):
        near = Path(family).parent.glob("*")
        for path in (Path(part.path), *(each for each in near if family_of(each) == family)):
            with suppress(*DAMAGE):
                file = opened_file(path)
                if _mark_of(file) == part.mark:
                    return file
                file.close()
    return None


def _mark_of(file: IO[bytes]) -> str:
    """The digest of the first line; empty until it is whole."""
    file.seek(0)
    line = file.readline(TAIL_BYTES)
    return sha256(line).hexdigest()[:16] if line.endswith(b"\n") or len(line) == TAIL_BYTES else ""


def _fresh_before(file: IO[bytes], end: int) -> int:
    """Where the last line before `end` begins that needs no bytes of lines before it."""
    window = FRESH_BYTES
    while end:
        begin = max(0, end - window)
        file.seek(begin)
        text = file.read(end - begin)
        at = text.rfind(b"\n", 0, max(0, text.rfind(b'"fresh":true')))
        if at >= 0 or not begin:
            return begin + at + 1
        window *= 4
    return 0
