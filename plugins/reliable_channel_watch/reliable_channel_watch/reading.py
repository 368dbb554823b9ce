"""Reads the lines of journals into a view, and follows files that participants still write."""

import heapq
import json
import re
from collections.abc import Iterable, Iterator
from os import stat_result
from pathlib import Path
from typing import IO, Any, Final, Self

from reliable_channel.spi import Unpacker
from reliable_channel_audit.facts import message_in
from reliable_channel_audit.journals import (
    DAMAGE,
    MAX_LINE_BYTES,
    PACKED,
    journal_files,
    opened_file,
    other_format,
    settings,
)
from reliable_channel_audit.lines import (
    LOGGED,
    OPENED,
    SET_ASIDE,
    WIRE_IN,
    WIRE_OUT,
    Line,
    line_of,
    set_aside,
)

from .model import WHOLE_CHANNEL, View
from .values import LAMPS, Lamp

READ: Final = {
    "delivery_failed",
    "message_acknowledged",
    "message_missing",
    "message_reconciled",
    "node_health_changed",
    "send_failed",
    "transport_degraded",
    "transport_recovered",
}
"""Events of which `reading` needs more fields than a `Line` has."""
_NODE_LAMPS: Final[dict[str, tuple[Lamp, ...]]] = {
    "healthy": LAMPS,
    "failing": (Lamp.SEND, Lamp.STORE),
    "unsubscribed": (Lamp.RECEIVE,),
}

_PART: Final = re.compile(r"\.\d{4,9}(\.jsonl|\.journal)(\.gz|\.zst)?$")


def note(view: View, participant: str, line: Line) -> None:
    """Pass a line of a participant's journal to a view."""
    at_ms, message_id = line.at_ms or 0, line.message_id or ""
    match line.event:
        case event if event == OPENED:
            view.opened(participant, at_ms, str(settings(line).get("channel_id", "")))
        case event if event == LOGGED:
            sender, clock = line.sender_id or "", line.lamport_timestamp
            view.entered_log(participant, message_id, sender, at_ms, lamport_timestamp=clock)
        case event if event in (WIRE_IN, WIRE_OUT):
            _note_wire(view, participant, line, at_ms)
        case "message_lost":
            view.was_lost(participant, message_id, at_ms)
        case "repair_requested":
            view.asked_others(participant, line.message_ids or (), at_ms)
        case event if event in READ and line.record is not None:
            _note_event(view, participant, event, json.loads(line.record), at_ms)


def _note_wire(view: View, participant: str, line: Line, at_ms: int) -> None:
    payload, digest = line.payload or b"", line.message_hash or b""
    message = message_in(line)
    works = Lamp.SEND if line.event == WIRE_OUT else Lamp.RECEIVE
    works = Lamp.STORE if line.source == "store" else works
    view.lamp(participant, WHOLE_CHANNEL, works, at_ms, is_on=True)
    is_first = line.source == "content"
    if message is None:
        view.traffic(digest, len(payload), 0, at_ms)
        return
    content = message.content or b""
    has_content = bool(content) and message.lamport_timestamp is not None
    if not view.has_passed(digest):
        view.passed(
            message.message_id,
            message.sender_id,
            at_ms,
            references=message.causal_ids,
            has_content=has_content,
            lamport_timestamp=message.lamport_timestamp,
            size_bytes=len(payload),
            hint=digest,
            sent_ms=(line.timestamp_ns or 0) // 1_000_000,
        )
        known = view.message(message.message_id)
        is_first = is_first or (known is not None and known.hint == digest)
        view.traffic(digest, len(payload), len(content) if is_first else 0, at_ms)
    if line.event == WIRE_OUT:
        view.went_out(participant, message.message_id, line.source or "", at_ms)
    else:
        parked = line.outcome == "parked"
        view.came_in(participant, message.message_id, line.source or "", at_ms, parked=parked)


def _note_event(
    view: View, participant: str, event: str, values: dict[str, Any], at_ms: int
) -> None:
    match event:
        case "message_missing":
            for each in values["missing"]:
                hint = each.get("retrieval_hint")
                view.is_missing(
                    participant,
                    str(each["message_id"]),
                    at_ms,
                    sender=each.get("sender_id"),
                    hint=None if hint is None else bytes.fromhex(hint),
                    referrer=str(values.get("referrer_id", "")),
                )
        case "message_reconciled":
            message_id = values["message_id"]
            view.came_in(participant, message_id, "reconciliation", at_ms, parked=False)
        case "message_acknowledged":
            by, how = str(values.get("acknowledged_by", "")), str(values["source"])
            view.was_acknowledged(participant, values["message_id"], at_ms, by=by, how=how)
        case "delivery_failed" | "send_failed":
            view.has_failed(participant, values["message_id"], at_ms, str(values["reason"]))
        case "transport_degraded" | "transport_recovered":
            is_on, why = event == "transport_recovered", str(values.get("reason", ""))
            lamp = Lamp(values["component"])
            view.lamp(participant, WHOLE_CHANNEL, lamp, at_ms, is_on=is_on, why=why)
        case "node_health_changed":
            node, state = str(values["address"]), str(values["state"])
            for lamp in _NODE_LAMPS.get(state, ()):
                why = str(values["reason"])
                view.lamp(participant, node, lamp, at_ms, is_on=state == "healthy", why=why)


class Follower:
    """Reads new lines of journals since the last call, and finds new files and parts.

    The lines of all participants are returned in order of time. All files stay open, so the
    process's limit of open files limits the number of journals.
    """

    def __init__(self, paths: Iterable[str | Path]) -> None:
        self._paths = [Path(path) for path in paths]
        self._files: list[_File] = []
        self._families: set[str] = set()
        """Paths of journals that were read since before their newest part was packed."""
        self.set_aside = 0
        """Lines that could not be read."""

    def look(self) -> Iterator[tuple[str, Line]]:
        """Yield the new lines since the last call, each with its participant.

        Raises:
            FileNotFoundError: a path does not exist.
            ValueError: there is no journal at all, or one has another format.
        """
        before = frozenset(self._families)
        for path in journal_files(self._paths):
            family = _PART.sub(r"\1", str(path))
            self._families.add(family)
            try:
                identity = path.stat()
            except FileNotFoundError:  # a part that was packed just now
                continue
            # A part that is packed after it was read under the journal's name is not read again.
            is_read = path.suffix in PACKED and family in before
            if not is_read and not any(file.is_same(identity) for file in self._files):
                self._files.append(_File(path, identity))
        return heapq.merge(*(self._lines(file) for file in self._files), key=_when)

    def close(self) -> None:
        """Close all files of the journals. A second call of `close` does nothing."""
        for file in self._files:
            file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def _lines(self, file: "_File") -> Iterator[tuple[str, Line]]:
        for line in file.lines():
            if line.event == SET_ASIDE:
                self.set_aside += 1
            elif file.participant and line.at_ms is not None:
                yield file.participant, line


class _File:
    """One journal, as far as it was read."""

    def __init__(self, path: Path, identity: stat_result) -> None:
        self.participant = ""
        self._identity = identity.st_dev, identity.st_ino
        self._path = path
        self._is_done = False
        self._unpacker = Unpacker()
        self._end = 0
        self._file: IO[bytes] | None = None

    def is_same(self, identity: stat_result) -> bool:
        """Return True if it is this file, by whichever name."""
        return self._identity == (identity.st_dev, identity.st_ino)

    def lines(self) -> Iterator[Line]:
        """The whole lines that were written since the last time."""
        if self._is_done:
            return
        # Asked before reading: what is appended until it is renamed is read below.
        self._is_done = self._path.suffix in PACKED or not self._has_its_name()
        try:
            self._file = self._file or opened_file(self._path)
            yield from self._new_lines(self._file)
        except DAMAGE as error:
            self._is_done = True
            yield set_aside(f"the file cannot be read on: {error}")
        if self._is_done:
            self.close()

    def close(self) -> None:
        self._is_done = True
        if self._file is not None:
            self._file.close()

    def _has_its_name(self) -> bool:
        try:
            return self.is_same(self._path.stat())
        except OSError:
            return False

    def _new_lines(self, file: IO[bytes]) -> Iterator[Line]:
        file.seek(self._end)
        while text := file.readline(MAX_LINE_BYTES):
            if not text.endswith(b"\n"):
                if len(text) == MAX_LINE_BYTES:
                    self._is_done = True
                    yield set_aside(f"longer than {MAX_LINE_BYTES} bytes")
                return  # the rest of the line is not written yet
            self._end += len(text)
            line = line_of(text, self._unpacker)
            if line.event == OPENED and (why := other_format(line)):
                raise ValueError(f"{self._path} cannot be read: {why}")
            if line.event == OPENED and line.sender_id is not None:
                self.participant = line.sender_id
            yield line


def _when(noted: tuple[str, Line]) -> int:
    return noted[1].at_ms or 0
