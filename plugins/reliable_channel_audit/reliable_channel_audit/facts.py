"""Facts of a journal, rows that audits compare, from one pass over the journal's lines.

`check` collects facts in this process, and Spark collects them in many processes.
"""

from __future__ import annotations

import gc
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from heapq import heappush, heapreplace
from itertools import groupby
from typing import Final, NamedTuple

from reliable_channel.sds import CoreLimits
from reliable_channel.spi import CodecError, Message, NimCodec, SpecCodec

from .findings import Coverage, Finding, Gap, HeardSender, Orphan
from .journals import Noted, Participant, lived
from .lines import SET_ASIDE, WIRE, Line
from .misbehaviour import Deed
from .reception import TAKEN
from .replay import HEARD, Life, Replay
from .verdict import SetAside

LAGS_OF_A_SENDER: Final = 16
"""Maximum number of a sender's messages that are examined, those with the smallest hashes."""
MAX_LAGS: Final = CoreLimits().participants
"""Maximum number of senders whose clock one participant examines, the first ones."""
_CODECS: Final = (SpecCodec(), NimCodec())


class Delivery(NamedTuple):
    """Fact that a message entered the log of a participant, sent or received."""

    channel_id: str
    participant_id: str
    life: int
    message_id: str
    sender_id: str
    lamport_timestamp: int
    content_sha256: bytes
    at_ms: int
    first_segment_id: str | None
    """Id of the first segment of an own message's payload (None for others' messages)."""
    message_hash: bytes | None
    """Hash of the message that arrived. For an own message, `message_hash` is None."""
    source: str | None
    """Source of the message, `live` or `store`. For an own message, `source` is None."""
    missing_since_ms: int | None
    """Time since which other messages had waited for the message (None if none had waited)."""
    log_position: int
    """Position of the message in the final log."""


class Outcome(NamedTuple):
    """Event about a message that was not delivered."""

    channel_id: str
    participant_id: str
    life: int
    message_id: str
    is_failure: bool
    """True for an own message that failed, False for another's message that was lost."""


class Acknowledgement(NamedTuple):
    """Own message with the time of its acknowledgement event."""

    channel_id: str
    participant_id: str
    life: int
    message_id: str
    accepted_ms: int
    acknowledged_ms: int | None
    """Time of the acknowledgement event (None if no acknowledgement was emitted)."""
    source: str | None
    """Evidence for the acknowledgement, `causal_history` or `bloom_filter`."""


class Dispatch(NamedTuple):
    """Publication of a message, each time with another message hash."""

    channel_id: str
    participant_id: str
    life: int
    message_hash: bytes
    kind: str
    """Kind of the publication, such as `content`, `retry`, `repair`, `sync` or `ephemeral`."""


WAY_OF_KIND: Final = {"content": "live", "retry": "retransmission", "repair": "repair"}
"""Path of a message for each kind of copy that arrived."""


def way_of(source: str | None, kind: str | None) -> str:
    """Return the path of a message, which is Store or the kind of the copy that arrived. If the
    sender left no journal, the path is `unknown`."""
    return "store" if source == "store" else WAY_OF_KIND.get(kind or "", "unknown")


class Repair(NamedTuple):
    """Message with the numbers of its repair requests and of its repairs for others."""

    channel_id: str
    participant_id: str
    life: int
    message_id: str
    requests: int
    responses: int


class Lag(NamedTuple):
    """Lag from the timestamp to the arrival of a sender's live message, each by its own clock."""

    channel_id: str
    participant_id: str
    life: int
    sender_id: str
    message_hash: bytes
    """Hash of the copy that arrived. The sender's journal shows whether the sender or another
    participant sent this copy."""
    least_ms: int


Fact = (
    Life
    | Delivery
    | Outcome
    | Acknowledgement
    | Dispatch
    | Repair
    | Lag
    | Deed
    | Finding
    | Gap
    | Coverage
    | HeardSender
    | Orphan
    | SetAside
)


def facts_of(participant: Participant, *, settle_ms: int | None = None) -> Iterator[Fact]:
    """Yield the facts in one participant's journals."""
    whose = participant.channel_id, participant.participant_id
    aside: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
    for life, noted in groupby(lived(*whose, participant.paths), key=lambda noted: noted.life):
        gathering = Gathering((*whose, life), settle_ms=settle_ms)
        for each in noted:
            if reason := _unread(each.line):
                aside[each.path, reason].append(each.number)
            yield from gathering.add(each, message_in(each.line))
        yield from gathering.end()
    for (path, reason), numbers in aside.items():
        yield SetAside(path, reason, len(numbers), min(numbers))


@contextmanager
def uncollected() -> Iterator[None]:
    """Disable Python's garbage collector inside the context. Facts are kept and form no cycles, so
    the collector would only examine them repeatedly."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


class Gathering:
    """Collector of facts from a participant's journal lines, in order."""

    def __init__(self, whose: tuple[str, str, int], *, settle_ms: int | None = None) -> None:
        self.replay = Replay(*whose, settle_ms=settle_ms)
        self._whose = whose
        self._logged: dict[str, Line] = {}
        self._sources: dict[bytes, str] = {}
        self._missing_since_ms: dict[str, int] = {}
        self._acknowledged: dict[str, Line] = {}
        self._responses: Counter[str] = Counter()
        self._lags: dict[str, list[tuple[int, bytes, int]]] = {}

    def add(self, noted: Noted, message: Message | None) -> Iterator[Fact]:
        """Process the next line of the journal, and yield the facts that need no other line."""
        self.replay.add(noted, message)
        line = noted.line
        message_id, message_hash, at_ms = line.message_id or "", line.message_hash, line.at_ms or 0
        match line.event:
            case "message_logged":
                self._logged.setdefault(message_id, line)
            case "message_forged":
                self._logged.pop(message_id, None)
            case "wire_in" if message_hash is not None:
                if line.outcome in TAKEN:
                    self._sources[message_hash] = line.source or ""
                if message is not None and line.outcome in HEARD:
                    self._lag(line, message, message_hash, at_ms)
            case "wire_out" if message_hash is not None:
                yield Dispatch(*self._whose, message_hash, line.source or "")
            case "message_acknowledged":
                self._acknowledged[message_id] = line
            case "message_missing":
                for missing_id in line.message_ids or ():
                    self._missing_since_ms.setdefault(missing_id, at_ms)
            case "repair_sent":
                self._responses[message_id] += 1
            case "message_lost":
                yield Outcome(*self._whose, message_id, is_failure=False)
            case "send_failed" | "delivery_failed":
                yield Outcome(*self._whose, message_id, is_failure=True)

    def end(self) -> Iterator[Fact]:
        """Yield the facts that would be true if no more lines followed. More lines may follow."""
        replay = self.replay
        if not replay.has_begun:
            return
        yield replay.life()
        yield from replay.findings()
        yield from replay.judged()
        yield from replay.heard()
        yield from replay.orphans()
        yield from replay.gaps()
        yield from replay.misbehaviour
        positions = {entry.message_id: i for i, entry in enumerate(replay.log)}
        for message_id, line in self._logged.items():
            yield Delivery(
                *self._whose,
                message_id,
                line.sender_id or "",
                line.lamport_timestamp or 0,
                line.content_sha256 or b"",
                line.at_ms or 0,
                line.first_segment_id,
                line.message_hash,
                self._sources.get(line.message_hash or b""),
                self._missing_since_ms.get(message_id),
                positions.get(message_id, 0),
            )
            if line.first_segment_id == message_id:
                told = self._acknowledged.get(message_id)
                when = (None, None) if told is None else (told.at_ms, told.source)
                yield Acknowledgement(*self._whose, message_id, line.at_ms or 0, *when)
        for sender_id, lags in self._lags.items():
            for _, message_hash, lag_ms in sorted(lags):
                yield Lag(*self._whose, sender_id, message_hash, lag_ms)
        for message_id in replay.asked.keys() | self._responses.keys():
            requests, responses = len(replay.asked.get(message_id, ())), self._responses[message_id]
            yield Repair(*self._whose, message_id, requests, responses)

    def _lag(self, line: Line, message: Message, message_hash: bytes, at_ms: int) -> None:
        if line.source != "live" or line.timestamp_ns is None:
            return
        lags = self._lags.get(message.sender_id)
        if lags is None:
            if len(self._lags) >= MAX_LAGS:
                return
            lags = self._lags[message.sender_id] = []
        place = -int.from_bytes(message_hash[:8])
        entry = place, message_hash, at_ms - line.timestamp_ns // 1_000_000
        if len(lags) < LAGS_OF_A_SENDER:
            heappush(lags, entry)
        elif place > lags[0][0]:
            heapreplace(lags, entry)


def _unread(line: Line) -> str:
    """The reason why a line, or the message in it, could not be read."""
    if line.event == SET_ASIDE:
        return line.record or ""
    is_lost = line.event in WIRE and line.payload is None
    return "its bytes stand in a line that could not be read" if is_lost else ""


def message_in(line: Line) -> Message | None:
    """Return the SDS message in a line, in any dialect, or None."""
    if line.event not in WIRE or line.payload is None:
        return None
    try:
        codec = next((each for each in _CODECS if each.recognises(line.payload)), None)
        return None if codec is None else codec.decode(line.payload)
    except CodecError:
        return None
