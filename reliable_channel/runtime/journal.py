"""The journal: every event, every message on the wire and every entry of the log as JSON lines, for
audits and for curiosity."""

import json
from base64 import b64encode
from collections.abc import Iterable, Mapping
from hashlib import sha256
from os import SEEK_END
from pathlib import Path
from types import TracebackType
from typing import Self, TextIO

from ..engine.logged import Logged
from ..events import Event, record
from ..sds.log_entry import LogEntry
from ..transport.base import Envelope, Received

FORMAT = "sds-journal/2"
RENOTED = 1_000
"""Entries that are noted again after a restart: those that a killed process had written to its
state and not yet to its journal are among the newest."""


class Journal:
    """Appends to a file; each line is whole once written, so that a killed process leaves at most
    one torn line.

    Raises:
        OSError: the file cannot be opened for appending.
    """

    def __init__(
        self, path: str | Path, *, channel_id: str, sender_id: str, content_topic: str
    ) -> None:
        self.path = Path(path)
        self._whose = {
            "channel_id": channel_id,
            "sender_id": sender_id,
            "content_topic": content_topic,
        }
        self._file: TextIO | None = self.path.open("a", encoding="utf-8", buffering=1)
        if _is_torn(self.path):
            self._file.write("\n")

    def opened(
        self,
        *,
        at_ms: int,
        wanted_from_ms: int | None,
        log_length: int,
        options: Mapping[str, object],
    ) -> None:
        """Say whose journal this is; once a session.

        `wanted_from_ms` is from when on this participant wants what was said, None where it goes on
        as before a restart, with `log_length` entries in its log.
        """
        self._write(
            {
                "event": "journal_opened",
                "at_ms": at_ms,
                "format": FORMAT,
                **self._whose,
                "wanted_from_ms": wanted_from_ms,
                "log_length": log_length,
                "options": dict(options),
            }
        )

    def logged(self, logged: Logged, at_ms: int) -> None:
        """Note that a message entered the log."""
        self._logged(logged, at_ms)

    def restored(self, entries: Iterable[LogEntry], at_ms: int) -> None:
        """Note what is in the log after a restart."""
        for entry in entries:
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

    def event(self, event: Event, at_ms: int) -> None:
        """Note an event."""
        self._write(record(event, at_ms))

    def came(self, payload: bytes, envelope: Received, outcome: str, at_ms: int) -> None:
        """Note what came over the wire, opened, and what became of it."""
        self._wire("in", payload, envelope, envelope.source.value, at_ms, outcome=outcome)

    def went(self, payload: bytes, envelope: Envelope, kind: str, at_ms: int) -> None:
        """Note what went over the wire, before it was sealed, and why."""
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
                "payload": b64encode(payload).decode(),
            }
        )

    def closed(self, at_ms: int) -> None:
        """Say that the session ends as it should; a killed process does not."""
        self._write({"event": "journal_closed", "at_ms": at_ms})

    def close(self) -> None:
        """Close the file; twice does nothing."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _write(self, values: dict[str, object]) -> None:
        if self._file is not None:
            text = json.dumps(values, separators=(",", ":"), default=_named)
            self._file.write(text + "\n")


def _named(value: object) -> str:
    """An option that is a function, by its name."""
    return getattr(value, "__qualname__", type(value).__qualname__)


def _is_torn(path: Path) -> bool:
    """Whether the last session was killed in the middle of a line."""
    with path.open("rb") as file:
        if not file.seek(0, SEEK_END):
            return False
        file.seek(-1, SEEK_END)
        return file.read() != b"\n"
