"""Events (deliveries and reports) that the application has not confirmed yet.

A channel emits unconfirmed events again after a restart. If the application confirms no events, the
oldest events are dropped.
"""

import json
from collections import OrderedDict, deque
from collections.abc import Iterator, Sequence
from dataclasses import fields
from typing import Final, NamedTuple

from ..events import (
    AcknowledgementSource,
    AnyEvent,
    DeliveryFailed,
    HistoryEntry,
    MessageAcknowledged,
    MessageLost,
    MessageReceived,
    SendFailed,
)
from ..sds.changes import DamagedRow, Recorder, Row, typed_table
from ..sds.log.log import MessageLog
from ..sds.message import LogEntry


class _PendingRow(NamedTuple):
    number: int
    message_id: str
    event: str


PENDING_EVENTS: Final = typed_table("unconfirmed", _PendingRow)
"""Table of unconfirmed events in the order of emission. The content of a delivered message is in
the log."""

PENDING_EVENTS_LIMIT: Final = 100_000
"""Maximum number of unconfirmed deliveries and reports. If there are more, the oldest tenth is
dropped."""
Report = MessageAcknowledged | DeliveryFailed | SendFailed | MessageLost
"""Event about the result of a message, which is emitted once."""
REPORTS: Final = (MessageAcknowledged, DeliveryFailed, SendFailed, MessageLost)
_BY_NAME: Final[dict[str, type[Report]]] = {kind.wire_name: kind for kind in REPORTS}
_FIELDS: Final = {kind: [field.name for field in fields(kind)] for kind in REPORTS}


Key = tuple[str, str] | AnyEvent
"""Key of an event, as its kind and message id, or the event itself if it has no message id. A copy
of an event has the same key."""


class _Delivery(NamedTuple):
    """A delivery before a restart, whose content is in the log."""

    message_id: str
    position: int
    missing: tuple[HistoryEntry, ...]


class PendingEvents:
    """Numbers of deliveries and reports, and the event that confirms each number."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._last = 0
        self._numbers: OrderedDict[Key, tuple[int, ...]] = OrderedDict()
        """What the confirmation of an event confirms, oldest event first."""
        self._rows = 0
        """Numbers in all of these."""
        self._dropped = 0
        self._restored: deque[tuple[int, Report | _Delivery]] = deque()

    def __len__(self) -> int:
        return len(self._numbers)

    def delivered(self, event: MessageReceived) -> int:
        """Return the number for a delivered message."""
        missing = [_packed_entry(entry) for entry in event.missing]
        packed = f'{{"event": "{event.wire_name}", "position": {event.position}, "missing": '
        packed += f"{_ENCODE(missing) if missing else []}}}"
        return self._number(event.message_id, packed)

    def reported(self, events: Sequence[AnyEvent]) -> Sequence[AnyEvent]:
        """Give a number to each report among events that are about to be emitted. Return the
        events."""
        for event in events:
            if isinstance(event, REPORTS):
                values = {name: getattr(event, name) for name in _FIELDS[type(event)]}
                packed = _ENCODE({"event": event.wire_name, **values})
                self.account(event, (self._number(event.message_id, packed),))
        return events

    def account(self, event: AnyEvent, numbers: tuple[int, ...]) -> None:
        """Note that an event is about to be emitted that confirms deliveries."""
        if not numbers:
            return
        key = _key(event)
        self._numbers[key] = self._numbers.get(key, ()) + numbers
        self._rows += len(numbers)
        if self._rows > PENDING_EVENTS_LIMIT:
            self._drop_oldest(self._rows - PENDING_EVENTS_LIMIT + PENDING_EVENTS_LIMIT // 10)

    def confirm(self, event: AnyEvent) -> bool:
        """Note that the application has handled an event. Return True if the event was
        unconfirmed."""
        if (numbers := self._numbers.pop(_key(event), None)) is None:
            return False
        self._forget(numbers)
        return True

    def restore(self, rows: Sequence[Row]) -> None:
        """Read the unconfirmed events that were saved before a restart."""
        for number, message_id, event in sorted(PENDING_EVENTS.read(rows)):
            self._last = number
            values = json.loads(event)
            if not isinstance(values, dict):
                raise DamagedRow(f"the stored event {number} must be an object (got {event!r})")
            kind = _BY_NAME.get(values.pop("event"))
            restored = _delivery(message_id, values) if kind is None else _report(kind, values)
            self._restored.append((number, restored))

    def again(self, log: MessageLog) -> Iterator[tuple[AnyEvent, int]]:
        """Yield the events that `restore` read, in order, with their numbers. Messages that the
        log's limits have removed are left out."""
        while self._restored:
            number, event = self._restored.popleft()
            if not isinstance(event, _Delivery):
                yield event, number
            elif entry := log.get(event.message_id):
                yield _redelivered(entry, event), number
            else:
                self._recorder.delete(PENDING_EVENTS, number)

    def _number(self, message_id: str, packed: str) -> int:
        self._last += 1
        self._recorder.put(PENDING_EVENTS, self._last, message_id, packed)
        return self._last

    def newly_dropped(self) -> int:
        """Return how many unconfirmed deliveries and reports were dropped since the last call."""
        dropped, self._dropped = self._dropped, 0
        return dropped

    def _drop_oldest(self, rows: int) -> None:
        while rows > 0:
            _, numbers = self._numbers.popitem(last=False)
            self._forget(numbers)
            rows -= len(numbers)
            self._dropped += len(numbers)

    def _forget(self, numbers: tuple[int, ...]) -> None:
        self._rows -= len(numbers)
        for number in numbers:
            self._recorder.delete(PENDING_EVENTS, number)


def _key(event: AnyEvent) -> Key:
    message_id = getattr(event, "message_id", None)
    return (event.wire_name, message_id) if isinstance(message_id, str) else event


def _delivery(message_id: str, values: dict[str, object]) -> _Delivery:
    position, missing = values["position"], values["missing"]
    if not (isinstance(position, int) and isinstance(missing, list)):
        raise DamagedRow(
            f"the stored event of message {message_id!r} has no position or no list of missing "
            "messages"
        )
    entries = (
        HistoryEntry(entry_id, bytes.fromhex(hint) if hint else None, sender_id)
        for entry_id, hint, sender_id in missing
    )
    return _Delivery(message_id, position, tuple(entries))


def _redelivered(entry: LogEntry, event: _Delivery) -> MessageReceived:
    return MessageReceived(
        entry.message_id,
        entry.sender_id,
        entry.content,
        entry.lamport_timestamp,
        event.position,
        event.missing,
        entry.retrieval_hint,
        redelivered=True,
    )


def _report(kind: type[Report], values: dict[str, object]) -> Report:
    if "source" in values:
        values["source"] = AcknowledgementSource(values["source"])
    hint = values.get("retrieval_hint")
    if isinstance(hint, str):
        values["retrieval_hint"] = bytes.fromhex(hint)
    return kind(**values)  # type: ignore[arg-type]


def _packed_entry(entry: HistoryEntry) -> list[object]:
    return [entry.message_id, entry.retrieval_hint, entry.sender_id]


def _packed(value: object) -> str:
    if isinstance(value, AcknowledgementSource):
        return value.value
    assert isinstance(value, bytes)
    return value.hex()


_ENCODE: Final = json.JSONEncoder(default=_packed).encode
