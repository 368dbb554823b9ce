"""Requests of the application to send a payload (LIP 173, RequestId). One `send` may become many
SDS messages, and is reported as one request. A repeated `send` under the same idempotency key
belongs to the same request."""

import json
from collections import OrderedDict
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import Final, NamedTuple

from ..diagnostics import MessagePossiblyAcknowledged
from ..errors import StateError
from ..events import DeliveryFailed, MessageAcknowledged, MessageSent, SendFailed, SendProgress
from ..sds.changes import NO_RECORDER, Recorder, Row, typed_table


class _RequestRow(NamedTuple):
    request_id: str
    message_ids: str


class _RequestProgressRow(NamedTuple):
    request_id: str
    sent: int
    acknowledged: int
    failed: int


class _SendRow(NamedTuple):
    idempotency_key: str
    number: int
    request_id: str
    message_ids: str


REQUESTS: Final = typed_table("requests", _RequestRow)
REQUEST_PROGRESS: Final = typed_table("request_progress", _RequestProgressRow)
"""Table of the progress of requests, without their ids. The ids are written once, because a long
payload has a hundred ids and a step for each."""
SENDS: Final = typed_table("sends", _SendRow)
_UUID_FIXED: Final = 0xF000 << 64 | 0xC000 << 48
_UUID_VERSION_4: Final = 0x4000 << 64 | 0x8000 << 48
KEYS_REMEMBERED: Final = 100_000
"""Maximum number of remembered idempotency keys. The oldest keys are evicted."""
Acknowledgement = MessageAcknowledged | MessagePossiblyAcknowledged | DeliveryFailed


@dataclass(slots=True)
class Accepted:
    """Result of `send`, with the request id and the ids of its segments."""

    request_id: str
    message_ids: tuple[str, ...]
    idempotency_key: str | None = None
    failure: StateError | None = field(default=None, compare=False)
    """Error if the message could not be saved and was therefore withdrawn, otherwise None."""


@dataclass(slots=True)
class _Request:
    request_id: str
    message_ids: tuple[str, ...]
    sent: int = 0
    acknowledged: int = 0
    failed: bool = False
    pending: int = 0


class Requests:
    """Requests of the application that have no result yet. A request is removed when each of its
    messages has a result."""

    def __init__(self, recorder: Recorder = NO_RECORDER) -> None:
        self._recorder = recorder
        self._by_message: dict[str, _Request] = {}

    def __len__(self) -> int:
        return len(self._by_message)

    def __contains__(self, message_id: str) -> bool:
        """Return True if a message is neither acknowledged nor failed."""
        return message_id in self._by_message

    def accepted(self, request_id: str, message_ids: Sequence[str]) -> None:
        request = _Request(request_id, tuple(message_ids), pending=len(message_ids))
        self._by_message.update(dict.fromkeys(message_ids, request))
        if self._recorder.records:
            self._recorder.put(REQUESTS, request_id, json.dumps(request.message_ids))

    def withdrawn(self, message_ids: Sequence[str]) -> None:
        """Withdraw a request, if no message of it was sent."""
        for message_id in message_ids:
            if message_id in self._by_message:
                self._finish(message_id)

    def sent(self, message_id: str, message_hash: bytes) -> Sequence[MessageSent | SendProgress]:
        """Note that a message of a request was sent for the first time."""
        request = self._by_message.get(message_id)
        if request is None or request.sent == len(request.message_ids):
            return ()
        request.sent += 1
        if self._recorder.records:
            self._record(request)
        message_ids, total = request.message_ids, len(request.message_ids)
        events = list[MessageSent | SendProgress]()
        if total > 1:
            events.append(self._progress(request, "sent", request.sent))
        if request.sent == total:
            first = message_ids[0]
            events.append(MessageSent(first, request.request_id, message_hash, message_ids))
        return events

    def resolved(self, event: Acknowledgement) -> Sequence[Acknowledgement | SendProgress]:
        """Return the events about a request after the acknowledgement of one message."""
        request = self._by_message.get(event.message_id)
        if request is None:
            return (event,)
        first, total = request.message_ids[0], len(request.message_ids)
        if isinstance(event, MessagePossiblyAcknowledged):
            return (event,) if total == 1 else ()
        if isinstance(event, DeliveryFailed):
            known, request.failed = request.failed, True
            self._finish(event.message_id)
            return () if known else (replace(event, message_id=first),)
        request.acknowledged += 1
        self._finish(event.message_id)
        if total == 1:
            return (event,)
        progress = self._progress(request, "acknowledged", request.acknowledged)
        is_whole = request.acknowledged == total
        return (progress, replace(event, message_id=first)) if is_whole else (progress,)

    def refused(self, message_id: str, reason: str) -> SendFailed | None:
        """Return the failure of a request because one message will never be sent, once for each
        request."""
        request = self._by_message.get(message_id)
        if request is None:
            return None
        known, request.failed = request.failed, True
        self._finish(message_id)
        return None if known else SendFailed(request.message_ids[0], request.request_id, reason)

    def restore(
        self, rows: Iterable[Row], progress: Iterable[Row], pending: Container[str]
    ) -> None:
        """Restore the requests that were saved before a restart. Messages in `pending` still wait
        for an acknowledgement."""
        steps = {row.request_id: row[1:] for row in REQUEST_PROGRESS.read(progress)}
        for request_id, message_ids in REQUESTS.read(rows):
            sent, acknowledged, failed = steps.get(request_id, (0, 0, 0))
            request = _Request(
                request_id, tuple(json.loads(message_ids)), sent, acknowledged, bool(failed)
            )
            waiting = [i for i in request.message_ids if i in pending]
            request.pending = len(waiting)
            self._by_message.update(dict.fromkeys(waiting, request))

    def _finish(self, message_id: str) -> None:
        request = self._by_message.pop(message_id)
        request.pending -= 1
        if not self._recorder.records:
            return
        if request.pending:
            self._record(request)
        else:
            self._recorder.delete(REQUESTS, request.request_id)
            self._recorder.delete(REQUEST_PROGRESS, request.request_id)

    def _record(self, request: _Request) -> None:
        self._recorder.put(
            REQUEST_PROGRESS,
            request.request_id,
            request.sent,
            request.acknowledged,
            int(request.failed),
        )

    @staticmethod
    def _progress(request: _Request, state: str, chunks: int) -> SendProgress:
        return SendProgress(
            request.message_ids[0], request.request_id, state, chunks, len(request.message_ids)
        )


def random_uuid(bits: int) -> str:
    """Return a UUID of version 4 (RFC 9562), made of 128 random bits, as text."""
    digits = f"{bits & ~_UUID_FIXED | _UUID_VERSION_4:032x}"
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


class Idempotency:
    """Accepted requests by their idempotency keys."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._accepted: OrderedDict[str, Accepted] = OrderedDict()
        self._number = 0

    def get(self, key: str) -> Accepted | None:
        """Return the request that was accepted under an idempotency key, or None."""
        return self._accepted.get(key)

    def add(self, key: str, accepted: Accepted) -> None:
        """Note that a request was accepted under an idempotency key."""
        self._number += 1
        self._accepted[key] = accepted
        message_ids = json.dumps(accepted.message_ids)
        self._recorder.put(SENDS, key, self._number, accepted.request_id, message_ids)
        if len(self._accepted) > KEYS_REMEMBERED:
            self._recorder.delete(SENDS, self._accepted.popitem(last=False)[0])

    def discard(self, key: str | None) -> None:
        """Note that the request under an idempotency key was withdrawn."""
        if key is not None and self._accepted.pop(key, None) is not None:
            self._recorder.delete(SENDS, key)

    def restore(self, rows: Iterable[Row]) -> None:
        """Restore the idempotency keys that were saved before a restart."""
        for row in sorted(SENDS.read(rows), key=attrgetter("number")):
            key, self._number = row.idempotency_key, row.number
            self._accepted[key] = Accepted(row.request_id, tuple(json.loads(row.message_ids)), key)
