"""Audit log with a line of JSON for each action, which contains the hash of the previous line.

A changed, removed or inserted line therefore breaks the chain of hashes. A line that a crash left
incomplete is dropped when the file is opened. A full file is renamed, and the chain of hashes
continues in a new file.
"""

import json
import os
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

MAX_FILE_BYTES: Final = 10_000_000
"""Size at which the file is renamed to `NAME.1`, which replaces an older file of that name."""
MAX_TEXT: Final = 500
START: Final = "0" * 64
_FIELDS: Final = ("at_ms", "case", "action", "by", "user", "why", "before")


class LogBroken(ValueError):
    """Error that a line of the audit log does not follow the previous line."""


@dataclass(frozen=True, slots=True)
class Entry:
    """Action in the audit log, with its case and its moderator."""

    at_ms: int
    case: int
    """Number of the case, or 0 for an action without a case."""
    action: str
    by: str
    """Public key of the moderator, or `bot` for an action of the bot."""
    user: str
    why: str
    before: str
    """SHA-256 of the previous line, as hexadecimal digits."""


class AuditLog:
    """Audit log that this process writes.

    Raises:
        LogBroken: the last line does not belong to a log.
        OSError: it cannot be written.
    """

    def __init__(self, file: Path, *, max_bytes: int = MAX_FILE_BYTES) -> None:
        self._file = file
        self._max_bytes = max_bytes
        _cut_off(file)
        lines = _lines(file)
        if not lines and (rotated := _rotated(file)).exists():
            lines = _lines(rotated)
        self._hash = START
        self._last: tuple[int, str, str] | None = None
        for line in lines[-1:]:
            entry = _entry(line, 0)
            self._hash, self._last = _digest(line), (entry.case, entry.action, entry.by)

    def add(
        self, at_ms: int, action: str, *, case: int = 0, by: str = "bot", user: str = "", why: str
    ) -> None:
        """Write an action to the audit log, so that it is on disk when `add` returns. An action of
        a case that the last line already has, as after a crash, is not written again.

        Raises:
            OSError: it cannot be written.
        """
        if case and self._last == (case, action, by):
            return
        entry = Entry(at_ms, case, action, by, user, why[:MAX_TEXT], self._hash)
        line = json.dumps(asdict(entry), separators=(",", ":")).encode()
        is_new = not self._file.exists()
        with self._file.open("ab") as file:
            if is_new and sys.platform != "win32":  # where the folder alone keeps it private
                os.fchmod(file.fileno(), 0o600)
            file.write(line + b"\n")
            file.flush()
            os.fsync(file.fileno())
            is_full = file.tell() >= self._max_bytes
        if is_full:
            self._file.replace(_rotated(self._file))
        self._hash, self._last = _digest(line), (case, action, by)

    def last(self, count: int) -> list[Entry]:
        """Return the last actions, with the latest action at the end."""
        return [_entry(line, 0) for line in _lines(self._file)[-count:]]


def read_log(file: Path, *, is_first: bool = True) -> Iterator[Entry]:
    """Yield the actions of an audit log, each checked against the previous line.

    Args:
        file: of the log.
        is_first: whether its first line must be the first of all; not so after a rename.

    Raises:
        LogBroken: a line was changed, removed or put in between.
        OSError: it cannot be read.
    """
    before = START if is_first else None
    for number, line in enumerate(_lines(file), 1):
        entry = _entry(line, number)
        if before is not None and entry.before != before:
            raise LogBroken(f"{file}, line {number}: the line does not continue the line before")
        yield entry
        before = _digest(line)


def _entry(line: bytes, number: int) -> Entry:
    try:
        found: dict[str, Any] = json.loads(line)
        return Entry(**{name: found[name] for name in _FIELDS})
    except (ValueError, KeyError, TypeError) as error:
        raise LogBroken(f"line {number} is not an action of a moderation log: {error}") from error


def _digest(line: bytes) -> str:
    return sha256(line).hexdigest()


def _lines(file: Path) -> list[bytes]:
    return file.read_bytes().splitlines() if file.exists() else []


def _rotated(file: Path) -> Path:
    return file.with_name(f"{file.name}.1")


def _cut_off(file: Path) -> None:
    """Remove a last line without its end."""
    if not file.exists() or not (data := file.read_bytes()) or data.endswith(b"\n"):
        return
    with file.open("r+b") as opened:
        opened.truncate(data.rfind(b"\n") + 1)
