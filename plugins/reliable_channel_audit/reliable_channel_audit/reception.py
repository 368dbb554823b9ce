"""Comparison of arrivals, log entries and deliveries to the application in one journal.

The journal has separate lines for arrival, log entry and delivery, so each is evidence against the
others. A missing line proves something only if every line of the journal could be read. If some
lines are unreadable, the missing line may be one of the unreadable lines.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from hashlib import sha256
from typing import Final, NamedTuple

from reliable_channel.spi import Message

from .findings import Audit
from .lines import Line

TAKEN: Final = frozenset({"delivered", "parked"})
"""Outcomes of messages that enter the log at once or later."""

LINES_MISSING: Final = "lines of the journal are missing or cannot be read"

Remark = tuple[Audit, str, int, str]
"""Broken promise as audit, message id, time and detail."""


class _Copy(NamedTuple):
    """A message as it arrived or was logged."""

    message_id: str
    sender_id: str
    lamport_timestamp: int
    content_sha256: bytes
    at_ms: int
    references: tuple[str, ...] = ()


class Reception:
    """Collector that compares a participant's journal lines in order."""

    def __init__(self, participant_id: str) -> None:
        self._participant_id = participant_id
        self.is_plain = True
        """True if the application receives contents as they stand in messages: neither cut into
        segments nor encrypted inside them."""
        self.is_damaged = False
        """True if lines are missing or could not be read."""
        self.arrivals = self.receptions = 0
        """Messages of others that were logged; messages that the application received."""
        self._arrived: dict[bytes, _Copy] = {}
        self._waiting: dict[str, _Copy] = {}
        """Logged, and not received yet."""
        self._early: defaultdict[str, list[tuple[str, int]]] = defaultdict(list)
        """By a message that waits: those received that refer to it, and when they were."""
        self._received: dict[str, int] = {}
        """Which one it was."""
        self._unlogged: dict[str, _Copy] = {}
        """Received and not logged so far."""
        self._not_arrived: dict[str, _Copy] = {}
        self._logged: dict[str, _Copy] = {}
        self._found: list[Remark] = []
        self._is_open = False
        self._last_ms = 0

    def add(self, line: Line, message: Message | None) -> None:
        """Process the next line of the journal, with the message in the line."""
        at_ms = line.at_ms or 0
        match line.event:
            case "set_aside":
                self.is_damaged = True
                return
            case "wire_in":
                if line.payload is None:
                    self.is_damaged = True
                elif message is not None and line.message_hash and line.outcome in TAKEN:
                    self._arrived[line.message_hash] = _copy(message, at_ms)
            case "message_logged":
                self._log(line, at_ms)
            case "message_received":
                self._receive(line, at_ms)
            case "message_forged":
                self._waiting.pop(line.message_id or "", None)
            case "journal_opened":
                self._waiting = self._without_last()
                self._is_open = True
            case "journal_closed":
                self._is_open = False
        self._last_ms = at_ms

    def remarks(self) -> Iterator[Remark]:
        """Yield the broken promises so far. More lines may be added after `remarks`."""
        yield from self._found
        if self.is_damaged:
            return
        missing = [(Audit.ARRIVED, self._not_arrived, "in the log, and it never arrived")]
        if self.is_plain:
            detail = "in the log, and the application did not receive it"
            missing.append((Audit.RECEIVED, self._without_last(), detail))
            missing.append((Audit.RECEIVED, self._unlogged, "received, and not in the log"))
        for audit, copies, detail in missing:
            yield from ((audit, each, copy.at_ms, detail) for each, copy in copies.items())

    def unjudged(self) -> Iterator[tuple[Audit, str]]:
        """Yield the audits with cases that could not be judged, with reasons."""
        if self.is_damaged and (self._not_arrived or self._waiting or self._unlogged):
            yield Audit.ARRIVED, LINES_MISSING
            yield Audit.RECEIVED, LINES_MISSING
        if not self.is_plain and self.arrivals:
            why = "contents are cut into segments or encrypted: only senders and doubles are judged"
            yield Audit.RECEIVED, why

    def _log(self, line: Line, at_ms: int) -> None:
        logged = _copy_in(line, line.content_sha256 or b"", at_ms)
        message_id = logged.message_id
        known = self._logged.setdefault(message_id, logged)
        if known is not logged:
            if line.outcome == "restored" and (what := _difference(known, logged)):
                detail = f"the log has another {what} than before the restart"
                self._found.append((Audit.ARRIVED, message_id, at_ms, detail))
            return
        if line.outcome == "restored":
            return
        self.arrivals += line.sender_id != self._participant_id
        if line.message_hash is None:
            return
        arrived = self._arrived.pop(line.message_hash, None)
        if arrived is None:
            self._not_arrived[message_id] = logged
        elif what := _difference(arrived, logged):
            detail = f"the log has another {what} than arrived"
            self._found.append((Audit.ARRIVED, message_id, at_ms, detail))
        copy = (arrived or logged)._replace(at_ms=at_ms)
        early = self._unlogged.pop(message_id, None)
        if early is None:
            self._waiting[message_id] = copy
        else:
            self._compare(copy, early)

    def _receive(self, line: Line, at_ms: int) -> None:
        message_id = line.message_id or ""
        if message_id in self._received and line.outcome != "redelivered":
            detail = "the application received it twice"
            self._found.append((Audit.RECEIVED, message_id, at_ms, detail))
            return
        self.receptions += 1
        self._received[message_id] = self.receptions
        content = b"" if line.payload is None else sha256(line.payload).digest()
        received = _copy_in(line, content, at_ms)
        copy = self._waiting.pop(message_id, None)
        if copy is not None:
            self._compare(copy, received)
        elif message_id in self._logged:
            self._compare_contents(self._logged[message_id], received)
        else:
            self._unlogged[message_id] = received
        for early_id, early_ms in self._early.pop(message_id, ()):
            detail = f"received before {message_id}, to which it refers"
            self._found.append((Audit.RECEIVED, early_id, early_ms, detail))

    def _compare(self, copy: _Copy, received: _Copy) -> None:
        """A message that was logged and received."""
        self._compare_contents(copy, received)
        if not self.is_plain:
            return
        place = self._received[received.message_id]  # `copy` may have arrived under another id
        if place == self.receptions and not self._waiting:
            return  # as nearly always: nothing can be out of order
        for reference in copy.references:
            if reference in self._waiting:
                self._early[reference].append((copy.message_id, received.at_ms))
            elif self._received.get(reference, 0) > place:
                detail = f"received before {reference}, to which it refers"
                self._found.append((Audit.RECEIVED, copy.message_id, received.at_ms, detail))

    def _compare_contents(self, copy: _Copy, received: _Copy) -> None:
        if not self.is_plain or not received.content_sha256:
            received = received._replace(content_sha256=copy.content_sha256)
        if what := _difference(copy, received):
            detail = f"the application received another {what} than arrived"
            self._found.append((Audit.RECEIVED, copy.message_id, received.at_ms, detail))

    def _without_last(self) -> dict[str, _Copy]:
        """What waits, without what a killed process logged in its last step and did not emit."""
        waiting = self._waiting.items()
        return {at: copy for at, copy in waiting if copy.at_ms < self._last_ms or not self._is_open}


def _copy(message: Message, at_ms: int) -> _Copy:
    return _Copy(
        message.message_id,
        message.sender_id,
        message.lamport_timestamp or 0,
        sha256(message.content or b"").digest(),
        at_ms,
        tuple(message.causal_ids),
    )


def _copy_in(line: Line, content_sha256: bytes, at_ms: int) -> _Copy:
    sender_id, lamport_timestamp = line.sender_id or "", line.lamport_timestamp or 0
    return _Copy(line.message_id or "", sender_id, lamport_timestamp, content_sha256, at_ms)


def _difference(one: _Copy, other: _Copy) -> str:
    """What differs, in words; empty where nothing does."""
    names = ("id", "sender", "Lamport timestamp", "content")
    pairs = zip(names, one, other, strict=False)
    return " and ".join(name for name, mine, theirs in pairs if mine != theirs)
