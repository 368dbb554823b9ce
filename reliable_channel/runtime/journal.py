"""The journal: every event and every message on the wire as JSON lines, for audits and for
curiosity."""

import json
from base64 import b64encode
from os import SEEK_END
from pathlib import Path
from types import TracebackType
from typing import Self, TextIO

from ..events import Event, record

FORMAT = "sds-journal/1"


class Journal:
    """Appends to a file; each line is whole once written, so that a killed process leaves at most
    one torn line.

    Raises:
        OSError: the file cannot be opened for appending.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._file: TextIO | None = self.path.open("a", encoding="utf-8", buffering=1)
        if _is_torn(self.path):
            self._file.write("\n")

    def opened(self, *, at_ms: int, channel_id: str, sender_id: str, content_topic: str) -> None:
        """Say whose journal this is; once a session."""
        self._write(
            {
                "event": "journal_opened",
                "at_ms": at_ms,
                "format": FORMAT,
                "channel_id": channel_id,
                "sender_id": sender_id,
                "content_topic": content_topic,
            }
        )

    def event(self, event: Event, at_ms: int) -> None:
        """Note an event."""
        self._write(record(event, at_ms))

    def wire(
        self, direction: str, payload: bytes, message_hash: bytes, source: str, at_ms: int
    ) -> None:
        """Note a message on the wire; `direction` is `in` or `out`, `source` says how it came or
        why it goes."""
        self._write(
            {
                "event": f"wire_{direction}",
                "at_ms": at_ms,
                "source": source,
                "message_hash": message_hash.hex(),
                "payload": b64encode(payload).decode(),
            }
        )

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
            self._file.write(json.dumps(values, separators=(",", ":")) + "\n")


def _is_torn(path: Path) -> bool:
    """Whether the last session was killed in the middle of a line."""
    with path.open("rb") as file:
        if not file.seek(0, SEEK_END):
            return False
        file.seek(-1, SEEK_END)
        return file.read() != b"\n"
