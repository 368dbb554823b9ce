"""What the application was told, or is about to be, and has not confirmed.

A message that was delivered, and a report of what became of one, is owed until the application says
that it has handled it; after a crash what is owed is told again.
"""

import json
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from typing import Final

from ..events import (
    AcknowledgementSource,
    DeliveryFailed,
    Event,
    HistoryEntry,
    MessageAcknowledged,
    MessageLost,
    MessageReceived,
    SendFailed,
)
from ..sds.changes import Recorder, Row, Table, Value
from ..sds.log import LogEntry, MessageLog

UNCONFIRMED: Final = Table(
    "unconfirmed", (("number", "INTEGER"), ("message_id", "TEXT"), ("event", "TEXT"))
)
"""In the order of telling. A message's content stands in the log."""

UNCONFIRMED_LIMIT: Final = 100_000
"""Events that wait for their confirmation in memory; the oldest beyond can be confirmed only after
the next start, which tells them again."""
Report = MessageAcknowledged | DeliveryFailed | SendFailed | MessageLost
"""What became of a message, told once."""
REPORTS: Final = (MessageAcknowledged, DeliveryFailed, SendFailed, MessageLost)
_BY_NAME: Final[dict[str, type[Report]]] = {kind.wire_name: kind for kind in REPORTS}


class Unconfirmed:
    """Numbers what is owed, and remembers which event accounts for which numbers."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._last = 0
        self._owed: OrderedDict[int, tuple[Event, tuple[int, ...]]] = OrderedDict()
        """By the identity of the event, which is kept so that it stays one."""

    def __len__(self) -> int:
        return len(self._owed)

    def delivered(self, event: MessageReceived) -> int:
        """A message is delivered: number it."""
        told = {
            "event": event.wire_name,
            "position": event.position,
            "missing": [_packed_entry(entry) for entry in event.missing],
        }
        return self._number(event.message_id, told)

    def report(self, event: Report) -> None:
        """A report is about to be told."""
        told = {"event": event.wire_name} | {
            field.name: _packed(getattr(event, field.name)) for field in fields(event)
        }
        self.account(event, (self._number(event.message_id, told),))

    def account(self, event: Event, numbers: tuple[int, ...]) -> None:
        """An event is about to be told that accounts for deliveries."""
        if numbers:
            self._owed[id(event)] = event, numbers
            if len(self._owed) > UNCONFIRMED_LIMIT:
                self._owed.popitem(last=False)

    def confirm(self, event: Event) -> bool:
        """The application has handled an event; return whether it was owed."""
        _, numbers = self._owed.pop(id(event), (None, ()))
        for number in numbers:
            self._recorder.delete(UNCONFIRMED, number)
        return bool(numbers)

    def forget(self, event: Event) -> None:
        """Nobody read an event in time: it stays owed, until the next start."""
        self._owed.pop(id(event), None)

    def restore(self, rows: Sequence[Row], log: MessageLog) -> Iterator[tuple[Event, int]]:
        """What is owed from before a restart, in order, with its numbers. Messages that retention
        has trimmed meanwhile are left out."""
        for number, message_id, told in sorted(rows, key=lambda row: int(row[0] or 0)):
            assert isinstance(number, int)
            assert isinstance(message_id, str) and isinstance(told, str)
            self._last = max(self._last, number)
            values = json.loads(told)
            if kind := _BY_NAME.get(values.pop("event")):
                yield _report(kind, values), number
            elif entry := log.get(message_id):
                yield _redelivered(entry, values), number
            else:
                self._recorder.delete(UNCONFIRMED, number)

    def _number(self, message_id: str, told: Mapping[str, object]) -> int:
        self._last += 1
        self._recorder.put(UNCONFIRMED, self._last, message_id, json.dumps(told))
        return self._last


def _redelivered(entry: LogEntry, values: dict[str, object]) -> MessageReceived:
    position, missing = values["position"], values["missing"]
    assert isinstance(position, int) and isinstance(missing, list)
    return MessageReceived(
        entry.message_id,
        entry.sender_id,
        entry.content,
        entry.lamport_timestamp,
        position,
        tuple(
            HistoryEntry(message_id, bytes.fromhex(hint) if hint else None, sender_id)
            for message_id, hint, sender_id in missing
        ),
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
    return [entry.message_id, _packed(entry.retrieval_hint), entry.sender_id]


def _packed(value: object) -> Value:
    if isinstance(value, AcknowledgementSource):
        return value.value
    if isinstance(value, bytes):
        return value.hex()
    assert value is None or isinstance(value, (str, int))
    return value
