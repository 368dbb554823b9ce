"""Journals on disk, with their files, participants, and lines in the original order."""

from __future__ import annotations

import glob
import json
import re
import zlib
from codecs import BOM_UTF8
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from io import BufferedReader
from itertools import groupby, islice
from operator import itemgetter
from os import SEEK_END
from pathlib import Path
from sys import maxsize
from types import MappingProxyType
from typing import IO, Any, Final, NamedTuple, cast

from reliable_channel.config import flat
from reliable_channel.options import ChannelOptions
from reliable_channel.spi import JOURNAL_FORMAT, Unpacker

from .lines import CLOSED, CONTINUED, OPENED, SET_ASIDE, Line, line_of, set_aside
from .verdict import SetAside

ZSTANDARD: Final[Any] = import_module("zstandard") if find_spec("zstandard") else None
"""Module `zstandard`, or None without the extra [spark] that installs it."""
GZIP: Final[Any] = import_module("isal.igzip" if find_spec("isal") else "gzip")
"""Module that opens `.gz` files. The extra [parquet] installs a faster one than Python's."""
DAMAGE: Final = (
    *(EOFError, OSError, zlib.error),
    *((ZSTANDARD.ZstdError,) if ZSTANDARD else ()),
    *((GZIP.igzip_lib.IsalError,) if find_spec("isal") else ()),
)
"""Errors that mean that the rest of a file cannot be read."""
PACKED: Final = (".gz", ".zst")
SUFFIXES: Final = tuple(
    kind + packed for kind in (".jsonl", ".journal") for packed in ("", *PACKED)
)
_PART: Final = re.compile(
    r"(?P<stem>.+)\.(?P<number>\d{4,9})(?P<suffix>\.jsonl|\.journal)(\.gz|\.zst)?"
)
BY_HAND: Final = maxsize - 1
"""Number of a packed file without a number, which another program packed."""
TAIL_BYTES: Final = 64 * 1024
MAX_LINE_BYTES: Final = 32 * 1024 * 1024
"""Maximum length of a line in a journal. The longest payload, 16 MiB, has 22 MiB as base64. Lines
that are longer than the maximum are skipped."""
MAX_ASKED: Final = 100
"""Maximum number of participants whose options are read."""
DEFAULTS: Final = flat(ChannelOptions())
MAX_LINES_BEFORE_OPENED: Final = 1_000
"""Number of lines of a file in which its participant is searched."""


class Noted(NamedTuple):
    """Line of a journal, with its place."""

    path: str
    number: int
    """Number of the line in its file, from 1."""
    life: int
    """Number of the participant's log, from 0. A participant that starts without its previous state
    begins a new log."""
    line: Line


@dataclass(frozen=True, slots=True)
class Participant:
    """Journals of one participant in one channel, in order of time."""

    channel_id: str
    participant_id: str
    paths: tuple[str, ...]
    size_bytes: int


def journal_files(paths: Iterable[str | Path], *, may_be_none: bool = False) -> list[Path]:
    """Return the journals among the given files, with their earlier parts, and in the given
    folders, at any depth.

    Raises:
        FileNotFoundError: a path that is not there.
        ValueError: there is no journal at all, and there must be one.
    """
    files: dict[Path, None] = {}
    places = [Path(path) for path in paths]
    for path in places:
        if path.is_dir():
            found = path.rglob("*")
        elif path.exists():
            beside = path.parent.glob(f"{glob.escape(path.stem)}.*")
            found = (each for each in beside if _run_of(each)[0] == str(path))
            files[path] = None
        else:
            raise FileNotFoundError(
                f"{path} does not exist; give journals, or directories of journals"
            )
        named = (each for each in found if each.name.endswith(SUFFIXES) and each.is_file())
        files.update(dict.fromkeys(sorted(named)))
    if not files and not may_be_none:
        names = " and ".join(map(str, places)) or "no path"
        raise ValueError(
            f"no journals in {names}; the command looked for files whose names end with "
            f"{', '.join(SUFFIXES)}"
        )
    return list(files)


class Group(NamedTuple):
    """Participants that have journals among files, and files that are not read."""

    participants: list[Participant]
    unknown: list[Path]
    """Files whose participant is unknown, because they have no opening line."""
    copies: list[SetAside]
    """Files whose lines are also in another file."""

    @property
    def set_aside(self) -> list[SetAside]:
        """Files that are not read, each with the reason."""
        why = "no journal_opened: its participant is unknown"
        return [SetAside(str(path), why, 0, 0) for path in self.unknown] + self.copies


Opened = tuple[str, str, int]
"""Channel and participant of a journal, with the time when the journal begins."""


def group_of(
    files: Iterable[Path], opened_by: Mapping[Path, Opened] = MappingProxyType({})
) -> Group:
    """Return the participants of files, of which `opened_by` contains the known ones. Of several
    files with the same lines, only one is read."""
    known: defaultdict[tuple[str, str], list[tuple[int, Path]]] = defaultdict(list)
    unknown = []
    for path in files:
        opened = opened_by.get(path) or first_opened(path)
        if opened is None:
            unknown.append(path)
        else:
            known[opened[0], opened[1]].append((opened[2], path))
    copies = [copy for found in known.values() for copy in _copies(found)]
    group = [
        Participant(
            channel_id,
            participant_id,
            tuple(map(str, in_order(found))),
            sum(path.stat().st_size for _, path in found),
        )
        for (channel_id, participant_id), found in sorted(known.items())
    ]
    return Group(group, unknown, copies)


def _copies(found: list[tuple[int, Path]]) -> Iterator[SetAside]:
    """Take out files of which another one has all lines: backups, and parts packed beside."""
    for at_ms, same in groupby(sorted(found), key=itemgetter(0)):
        paths = [path for _, path in same]
        for path in paths:
            for other in (each for each in paths if each != path and (at_ms, each) in found):
                is_first = _rank(path) < _rank(other)
                if _is_copy(path, other) and not (is_first and _is_copy(other, path)):
                    found.remove((at_ms, path))
                    yield SetAside(str(path), f"a copy: {other} has the same lines", 0, 0)
                    break


def _rank(path: Path) -> tuple[int, bool, Path]:
    """Place of a file among equal ones, of which the first is kept. Others are in folders for
    backups, are packed by hand, or are parts whose process was killed before it removed them."""
    is_part = part_of(path)[1] < BY_HAND
    return len(path.parts), (path.suffix in PACKED) != is_part, path


def _is_copy(path: Path, other: Path) -> bool:
    """True if a file has the same bytes as another one, or its first ones, unpacked."""
    try:
        with opened_file(path) as one, opened_file(other) as whole:
            while block := one.read(TAIL_BYTES):
                if whole.read(len(block)) != block:
                    return False
    except DAMAGE:
        return False
    return True


MAX_VALUES: Final = 5
"""Maximum number of an option's values that are shown."""


def options_of(group: Sequence[Participant]) -> tuple[list[str], dict[str, str]]:
    """Return the versions of journals, and the options that differ from the defaults."""
    formats: set[str] = set()
    given: defaultdict[str, set[str]] = defaultdict(set)
    for participant in group[:MAX_ASKED]:
        lines = _first_lines(Path(participant.paths[0]), OPENED)
        values = next((settings(line) for line in lines if line.event == OPENED), {})
        formats.add(str(values.get("format", "")))
        options = values.get("options")
        for name, value in options.items() if isinstance(options, dict) else ():
            if DEFAULTS.get(name) != value:
                given[name].add(str(value))
    return sorted(formats - {""}), {name: _text(given[name]) for name in sorted(given)}


def _text(values: set[str]) -> str:
    """Values of an option, each once: each participant has a seed."""
    shown = ", ".join(sorted(values, key=lambda value: (len(value), value))[:MAX_VALUES])
    return shown + (f" and {len(values) - MAX_VALUES} more" if len(values) > MAX_VALUES else "")


def in_order(found: Sequence[tuple[int, Path]]) -> list[Path]:
    """Return files in order of the times when they begin. Parts of one journal are ordered by
    number, even if the clock was set back."""
    began: dict[str, int] = {}
    for at_ms, path in found:
        run, _ = _run_of(path)
        began[run] = min(at_ms, began.get(run, at_ms))

    def place(path: Path) -> tuple[int, str, int]:
        run, number = _run_of(path)
        return began[run], run, number

    return sorted((path for _, path in found), key=place)


def _run_of(path: Path) -> tuple[str, int]:
    """`part_of`, but a file packed by hand is alone, because it may be older than the parts."""
    family, number = part_of(path)
    return (str(path) if number == BY_HAND else family), number


def part_of(path: Path) -> tuple[str, int]:
    """Return the path of the journal that a file is a part of, and the number of the part. A file
    that is still written has the highest number, and a file packed by hand the next."""
    part = _PART.fullmatch(path.name)
    if part is not None:
        return str(path.with_name(part["stem"] + part["suffix"])), int(part["number"])
    if path.suffix in PACKED:
        return str(path.with_suffix("")), BY_HAND
    return str(path), maxsize


def lived(channel_id: str, participant_id: str, paths: Sequence[str]) -> Iterator[Noted]:
    """Yield the lines of a participant's journals, file by file.

    A new log begins if the participant starts without its state, or if two journals overlap in
    time.
    """
    lives = Lives()
    for path in paths:
        for number, line in lines_of(channel_id, participant_id, path):
            yield lives.noted(path, number, line)


class Lives:
    """Counter of one participant's logs, which reads its journal lines in order."""

    def __init__(self) -> None:
        self.last_ms = 0
        """Time of the newest line."""
        self._life = -1
        self._path = self._before = ""
        self._is_first = True

    def noted(self, path: str, number: int, line: Line) -> Noted:
        """Return the line with its place and the number of its log."""
        if path != self._path:
            self._before, self._path, self._is_first = Path(self._path).name, path, True
        if line.event == OPENED:
            values, befores = settings(line), (self._before, f"{self._before}.gz")
            if self._is_first and self._before and values.get("follows") in befores:
                line = line._replace(event=CONTINUED)
            else:
                overlaps = self._is_first and (line.at_ms or 0) < self.last_ms
                is_new = isinstance(values.get("wanted_from_ms"), int)
                self._life += self._life < 0 or overlaps or is_new
            self._is_first = False
        if line.event != SET_ASIDE:
            self.last_ms = max(self.last_ms, line.at_ms or 0)
        return Noted(path, number, max(self._life, 0), line)


def lines_of(channel_id: str, participant_id: str, path: str) -> Iterator[tuple[int, Line]]:
    """Yield the numbered lines of one journal file. Lines without a participant, of another
    participant, or of another version are skipped."""
    reading = Reading(channel_id, participant_id)
    for number, text in numbered_texts(Path(path)):
        yield number, reading.line(text)


class Reading:
    """Reader of one journal's lines, in order."""

    def __init__(self, channel_id: str, participant_id: str) -> None:
        self._whose = channel_id, participant_id
        self._why = "before journal_opened: its participant is unknown"
        self._unpacker = Unpacker()

    def line(self, text: bytes | Line) -> Line:
        line = text if isinstance(text, Line) else line_of(text, self._unpacker)
        if line.event == OPENED:
            self._why = other_format(line)
            if not self._why and (settings(line).get("channel_id"), line.sender_id) != self._whose:
                name = f"{self._whose[1]!r:.80}"
                self._why = f"of another participant than {name}, whose journal this is"
        return line if not self._why or line.event == SET_ASIDE else set_aside(self._why)


def other_format(opened: Line) -> str:
    """Return the reason why a session has another journal format, or an empty text."""
    found = settings(opened).get("format")
    return "" if found == JOURNAL_FORMAT else f"format {found!r:.40}; this reads {JOURNAL_FORMAT}"


def settings(opened: Line) -> dict[str, object]:
    """Return the settings of a session, from its first line."""
    values = json.loads(opened.record or "{}")
    return values if isinstance(values, dict) else {}


def numbered_texts(path: Path) -> Iterator[tuple[int, bytes | Line]]:
    """Yield the lines of a file, which may be compressed. A line that is too long or damaged is
    replaced by a line with the reason. Empty lines of the file are skipped."""
    number = 0
    try:
        with opened_file(path) as file:
            for number, text in enumerate(texts(file), 1):
                if isinstance(text, Line) or not text.isspace():
                    yield number, text
    except DAMAGE as error:
        yield number + 1, set_aside(f"the file cannot be read on: {error}")


def texts(file: IO[bytes]) -> Iterator[bytes | Line]:
    """Yield the lines of a file from its present position. Lines that are too long are skipped."""
    while text := file.readline(MAX_LINE_BYTES):
        if len(text) < MAX_LINE_BYTES or text.endswith(b"\n"):
            yield text.removeprefix(BOM_UTF8)  # which an editor leaves before the first line
            continue
        while rest := file.readline(MAX_LINE_BYTES):
            if rest.endswith(b"\n"):
                break
        yield set_aside(f"longer than {MAX_LINE_BYTES} bytes")


def is_closed(path: Path) -> bool:
    """Return True if no lines will be added to a journal file (a part, compressed, or ended)."""
    if path.suffix in PACKED or _PART.fullmatch(path.name) is not None:
        return True
    with path.open("rb") as file:
        file.seek(max(0, file.seek(0, SEEK_END) - TAIL_BYTES))
        *_, last = file.read().rstrip().rpartition(b"\n")
    return CLOSED.encode() in last


def opened_file(path: Path) -> IO[bytes]:
    """Return a journal file, opened for reading and decompressed.

    Raises:
        OSError: it cannot be opened.
        ModuleNotFoundError: a `.zst` file without `zstandard`.
    """
    if path.suffix == ".gz":
        return cast("IO[bytes]", GZIP.open(path, "rb"))
    if path.suffix != ".zst":
        return path.open("rb")
    if ZSTANDARD is None:
        raise ModuleNotFoundError(
            f"{path} needs zstandard to be read: pip install reliable-channel-audit[spark], or "
            "unpack the file"
        )
    unpacking = ZSTANDARD.ZstdDecompressor()
    packed = path.open("rb")
    return BufferedReader(unpacking.stream_reader(packed, read_across_frames=True, closefd=True))


def first_opened(path: Path, owner: tuple[str, str] | None = None) -> Opened | None:
    """Return channel, participant and beginning of the first readable session in a file. If no
    session has this SDK's version, a session of another version is used, so that its lines count.
    A file that begins within a session belongs to the `owner`, if there is one.
    """
    found = None
    for line in _first_lines(path, OPENED if owner is None else ""):
        channel_id = settings(line).get("channel_id") if line.event == OPENED else None
        if isinstance(channel_id, str) and line.sender_id is not None:
            found = found or (channel_id, line.sender_id, line.at_ms or 0)
            if not other_format(line):
                return found[0], found[1], line.at_ms or 0
        elif owner is not None and found is None:
            return *owner, line.at_ms or 0
    return found


def _first_lines(path: Path, word: str) -> Iterator[Line]:
    """The readable lines with a word, among the first ones."""
    for _, text in islice(numbered_texts(path), MAX_LINES_BEFORE_OPENED):
        if not isinstance(text, Line) and word.encode() in text:
            line = line_of(text)
            if line.event != SET_ASIDE:
                yield line
