"""Journal file of a channel, with a JSON line for every event, wire message and log entry."""

import gzip
import json
import re
import shutil
from collections.abc import Callable, Mapping
from contextlib import suppress
from hashlib import sha256
from io import FileIO
from os import SEEK_END
from pathlib import Path
from sys import maxsize
from threading import Thread
from typing import Final, NamedTuple, Self

from ..engine.logged import Logged
from ..events import AnyEvent, record
from ..sds.log.log import MessageLog
from ..transport.base import Envelope, Received
from .journal_packing import Packer
from .private_file import private

JOURNAL_FORMAT: Final = "reliable-channel-journal/1"
PART_BYTES: Final = 64 * 1024 * 1024
"""File size (bytes) from which a journal file becomes a numbered part, packed with gzip."""
LINE: Final = b'{"event":"'
"""First characters of each journal line."""
MAX_HEADER_BYTES: Final = 64 * 1024
QUIET_MS: Final = 60_000
"""Minimum interval between two reports of lost lines (ms), because short lines may still be
written."""
RENOTED = 1_000
"""Number of newest log entries that are written to the journal again after a restart. A killed
process may have saved some of these entries without a journal line."""


class Journal:
    """Journal writer that appends lines to a file. Each written line is whole, so a killed process
    leaves at most one partial line.

    A file longer than `part_bytes` is renamed from `alice.jsonl` to `alice.0001.jsonl`. A thread
    then compresses the renamed file to `alice.0001.jsonl.gz`.

    A line that cannot be written, as on a full disk, is lost. A failing journal does not stop the
    channel. The journal tries to write each later line. Before the next written line, a line
    `journal_gap` gives the time span and number of lost lines.

    Raises:
        OSError: the file cannot be opened for appending.
        ValueError: it is a journal of another format.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        channel_id: str,
        sender_id: str,
        content_topic: str,
        part_bytes: int = PART_BYTES,
    ) -> None:
        self.path = Path(path)
        self._part_bytes = part_bytes
        self._file_bytes = 0
        self._packer = Packer()
        self._packing: Thread | None = None
        self._log_length = self._evicted = 0
        self._options: dict[str, object] = {}
        self._has_store = True
        self._whose = {
            "channel_id": channel_id,
            "sender_id": sender_id,
            "content_topic": content_topic,
        }
        self.degraded: Callable[[OSError], object] = lambda error: None
        """Callback for lines that begin to be lost; called at most once in `QUIET_MS`."""
        self._quiet_until_ms = 0
        self.gap: Gap | None = None
        """Lines that are lost since the last one that was written."""
        if self.path.is_file():
            _check_format(self.path)
        self._header_due = b""
        """The line that says whose journal it is, until it is written."""
        self._is_closed = False
        self._file: FileIO | None = self._opened_file()
        self._is_torn = False
        if self.path.is_file():
            self._file_bytes = self.path.stat().st_size
            self._is_torn = _is_torn(self.path)
        else:  # a pipe or a terminal, which has no parts
            self._part_bytes = maxsize

    def opened(
        self,
        *,
        at_ms: int,
        wanted_from_ms: int | None,
        log_length: int,
        options: Mapping[str, object],
        has_store: bool = True,
    ) -> None:
        """Write the first line of a session, which names the participant.

        `wanted_from_ms` is the time from which this participant wants messages. If `wanted_from_ms`
        is None, the participant continues from saved state, with `log_length` entries. Without a
        Store (`has_store`), the participant cannot expect earlier messages.
        """
        self._log_length, self._options, self._has_store = log_length, dict(options), has_store
        self._write(self._header(at_ms) | {"wanted_from_ms": wanted_from_ms})

    def _header(self, at_ms: object) -> dict[str, object]:
        return {
            "event": "journal_opened",
            "at_ms": at_ms,
            "format": JOURNAL_FORMAT,
            **self._whose,
            "wanted_from_ms": None,
            "log_length": self._log_length - self._evicted,
            "has_store": self._has_store,
            "options": self._options,
        }

    def logged(self, logged: Logged, at_ms: int) -> None:
        """Write that a message entered the log."""
        self._log_length += 1
        self._evicted = logged.evicted
        self._logged(logged, at_ms)

    def restored(self, log: MessageLog, at_ms: int) -> None:
        """Write the contents of the log after a restart."""
        for entry in log.last(RENOTED):
            row = entry.message_id, entry.sender_id, entry.lamport_timestamp, 0, 0, entry.content
            self._logged(Logged(*row), at_ms, outcome="restored")

    def _logged(self, logged: Logged, at_ms: int, **values: str) -> None:
        message_hash = logged.message_hash
        self._write(
            {
                "event": "message_logged",
                "at_ms": at_ms,
                "message_id": logged.message_id,
                "sender_id": logged.sender_id,
                "lamport_timestamp": logged.lamport_timestamp,
                "position": logged.position,
                "evicted": logged.evicted,
                "content_sha256": sha256(logged.content).hexdigest(),
                "first_segment_id": logged.first_segment_id,
                "message_hash": None if message_hash is None else message_hash.hex(),
                "missing": logged.missing,
                **values,
            }
        )

    def event(self, event: AnyEvent, at_ms: int) -> None:
        """Write an event of the channel."""
        values = record(event, at_ms)
        content = getattr(event, "content", None)
        if isinstance(content, bytes):
            del values["payload"]
            values |= self._fresh()
            values["packed"] = self._packer.pack_value(content)
        self._write(values)

    def came(self, payload: bytes, envelope: Received, outcome: str, at_ms: int) -> None:
        """Write a received wire message after its decryption, with its outcome."""
        self._wire("in", payload, envelope, envelope.source.value, at_ms, outcome=outcome)

    def went(self, payload: bytes, envelope: Envelope, kind: str, at_ms: int) -> None:
        """Write a sent wire message in its unencrypted form, with its kind."""
        self._wire("out", payload, envelope, kind, at_ms)

    def _wire(
        self,
        direction: str,
        payload: bytes,
        envelope: Envelope | Received,
        source: str,
        at_ms: int,
        **values: str,
    ) -> None:
        self._write(
            {
                "event": f"wire_{direction}",
                "at_ms": at_ms,
                "source": source,
                "message_hash": envelope.message_hash.hex(),
                "timestamp_ns": envelope.timestamp_ns,
                **values,
                **self._fresh(),
                "packed": self._packer.pack(payload),
            }
        )

    def _fresh(self) -> dict[str, object]:
        return {"fresh": True} if self._packer.begins() else {}

    def closed(self, at_ms: int) -> None:
        """Write that the session has ended normally. The session of a killed process has no
        `journal_closed` line."""
        self._write({"event": "journal_closed", "at_ms": at_ms})

    def close(self) -> None:
        """Close the journal file. A second call of `close` does nothing."""
        self._is_closed = True
        self._close_part()

    def _close_part(self) -> None:
        file, self._file = self._file, None
        if file is not None:
            with suppress(OSError):  # such as of a network disk that wrote late
                file.close()
        if self._packing is not None:
            self._packing.join()
            self._packing = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def _opened_file(self) -> FileIO:
        return FileIO(self.path, "ab", opener=private)

    def _write(self, values: dict[str, object]) -> None:
        if self._is_closed:
            return
        line, at_ms = _line(values), values["at_ms"]
        if values["event"] == "journal_opened":
            self._header_due, line = line, b""
        gap = b"" if self.gap is None else _line(self.gap.record(at_ms))
        try:
            self._append(self._header_due + gap + line)
        except OSError as error:
            self._lose(line, at_ms, error)
            return
        self._header_due, self.gap = b"", None
        if line and self._file_bytes > self._part_bytes:
            self._begin_part(at_ms)

    def _append(self, line: bytes) -> None:
        """Append whole lines.

        Raises:
            OSError: they cannot be written. What was written of them is torn off, if that works.
        """
        if self._file is None:
            self._file = self._opened_file()
        if self._is_torn:
            line = b"\n" + line
        written = 0
        try:
            while written < len(line):
                written += self._file.write(line[written:]) or 0
        except OSError:
            if written:
                self._tear_off(self._file, written)
            raise
        self._is_torn = False
        self._file_bytes += len(line)

    def _tear_off(self, file: FileIO, written: int) -> None:
        """Remove what was written of a line, or else have the next line begin a new one."""
        try:
            file.truncate(self._file_bytes)
        except OSError:
            self._is_torn = True
            self._file_bytes += written

    def _lose(self, line: bytes, at_ms: object, error: OSError) -> None:
        begins = self.gap is None
        since_ms, lines = (at_ms, 0) if self.gap is None else self.gap[:2]
        self.gap = Gap(since_ms, lines + bool(line), str(error))
        self._packer = Packer()  # otherwise the next line would refer to one that is lost
        if begins and isinstance(at_ms, int) and at_ms >= self._quiet_until_ms:
            self._quiet_until_ms = at_ms + QUIET_MS
            self.degraded(error)

    def _begin_part(self, at_ms: object) -> None:
        """Go on in a new file; the old one is packed meanwhile."""
        self._close_part()
        try:
            part = _next_part(self.path)
            self.path.rename(part)
        except OSError:
            self._part_bytes *= 2  # goes on in this file, and tries again then
            return
        self._packer = Packer()
        self._file_bytes = 0
        self._header_due = _line(self._header(at_ms) | {"follows": packed_path(part).name})
        with suppress(OSError):  # it goes with the next line
            self._append(self._header_due)
            self._header_due = b""
        packing = Thread(target=_pack, args=(part,), name="reliable_channel.journal")
        with suppress(RuntimeError):  # without a thread to be had, the part stays as it is
            packing.start()
            self._packing = packing


class Gap(NamedTuple):
    """Lines that a journal failed to write."""

    from_ms: object
    lines: int
    reason: str

    def record(self, until_ms: object) -> dict[str, object]:
        """Return the values of the line `journal_gap`."""
        return {"event": "journal_gap", "at_ms": until_ms, **self._asdict()}


def part_path(path: Path, number: int) -> Path:
    """Return the path of a part of the journal that is not packed yet."""
    return path.with_name(f"{path.stem}.{number:04}{path.suffix}")


def packed_path(part: Path) -> Path:
    """Return the path of a packed part of the journal."""
    return part.with_name(f"{part.name}.gz")


def _next_part(path: Path) -> Path:
    """Return the path of a new part, whose number is above all that are there: readers order parts
    by number, and the oldest may have been removed."""
    name = re.compile(rf"{re.escape(path.stem)}\.(\d{{4,9}}){re.escape(path.suffix)}(?:\.gz)?")
    found = (name.fullmatch(each.name) for each in path.parent.iterdir())
    return part_path(path, 1 + max((int(each[1]) for each in found if each), default=0))


def _pack(part: Path) -> None:
    """Pack a part; where that fails, or the process is killed meanwhile, it stays as it was."""
    unfinished = part.with_name(f"{part.name}.gz.unfinished")
    with suppress(OSError):
        with part.open("rb") as plain, open(unfinished, "wb", opener=private) as file:
            with gzip.open(file, "wb", compresslevel=6) as packed:
                shutil.copyfileobj(plain, packed)
        unfinished.rename(packed_path(part))
        part.unlink()


def _line(values: dict[str, object]) -> bytes:
    return json.dumps(values, separators=(",", ":"), default=_named).encode() + b"\n"


def _named(value: object) -> str:
    """Return the name of an option that is a function or a wire profile."""
    name: str = getattr(value, "name", type(value).__qualname__)
    return getattr(value, "__qualname__", name)


def _check_format(path: Path) -> None:
    """See that a journal that is there already has this format.

    Raises:
        ValueError: it has another one.
    """
    with path.open("rb") as file:
        header = file.readline(MAX_HEADER_BYTES)
    if LINE.startswith(header.rstrip(b"\n")):
        return  # empty, or torn
    found: object = "something else"
    if header.startswith(LINE):
        try:
            values = json.loads(header)
        except (ValueError, RecursionError):
            return  # torn
        if values["event"] != "journal_opened":
            return
        found = values.get("format")
    if found != JOURNAL_FORMAT:
        raise ValueError(
            f"`journal` must be a file of format {JOURNAL_FORMAT} (got {found!r:.40} in {path}); "
            "give another path, or move the file away"
        )


def _is_torn(path: Path) -> bool:
    """Return True if the last session was killed in the middle of a line."""
    with path.open("rb") as file:
        if not file.seek(0, SEEK_END):
            return False
        file.seek(-1, SEEK_END)
        return file.read() != b"\n"
