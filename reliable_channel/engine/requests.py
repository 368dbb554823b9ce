"""Requests: one `send` may be many SDS messages, and the application hears of it as one (LIP 173,
RequestId); a `send` that is repeated under its key is one request."""

import json
from collections import OrderedDict
from collections.abc import Container, Iterable, Iterator, Sequence
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
"""Apart from the ids, which are written once: a long message has a hundred and a step for each.
From the first step on."""
SENDS: Final = typed_table("sends", _SendRow)
_UUID_FIXED: Final = 0xF000 << 64 | 0xC000 << 48
_UUID_VERSION_4: Final = 0x4000 << 64 | 0x8000 << 48
KEYS_REMEMBERED: Final = 100_000
"""The oldest are forgotten beyond."""
Acknowledgement = MessageAcknowledged | MessagePossiblyAcknowledged | DeliveryFailed


@dataclass(slots=True)
class Accepted:
    """What became of a `send`: its request, and the ids of its segments."""

    request_id: str
    message_ids: tuple[str, ...]
    idempotency_key: str | None = None
    failure: StateError | None = field(default=None, compare=False)
    """Why it was not accepted after all: it could not be written."""


@dataclass(slots=True)
class _Request:
    request_id: str
    message_ids: tuple[str, ...]
    sent: int = 0
    acknowledged: int = 0
    failed: bool = False
    pending: int = 0
    total: int = field(init=False)

    def __post_init__(self) -> None:
        self.total = len(self.message_ids)


class Requests:
    """The requests under way. A request is removed when all its messages have their result."""

    def __init__(self, recorder: Recorder = NO_RECORDER) -> None:
        self._recorder = recorder
        self._by_message: dict[str, _Request] = {}

    def __len__(self) -> int:
        return len(self._by_message)

    def __contains__(self, message_id: str) -> bool:
        """Whether a message is neither acknowledged nor failed."""
        return message_id in self._by_message

    def accepted(self, request_id: str, message_ids: Sequence[str]) -> None:
        request = _Request(request_id, tuple(message_ids), pending=len(message_ids))
        self._by_message.update(dict.fromkeys(message_ids, request))
        if self._recorder.records:
            self._recorder.put(REQUESTS, request_id, json.dumps(request.message_ids))

    def withdrawn(self, message_ids: Sequence[str]) -> None:
        """A request was taken back before anything of it went out."""
        for message_id in message_ids:
            if message_id in self._by_message:
                self._finish(message_id)

    def sent(self, message_id: str, message_hash: bytes) -> Iterator[MessageSent | SendProgress]:
        """A message went out for the first time."""
        request = self._by_message.get(message_id)
        if request is None or request.sent == request.total:
            return
        request.sent += 1
        if self._recorder.records:
            self._record(request)
        if request.total > 1:
            yield self._progress(request, "sent", request.sent)
        if request.sent == request.total:
            yield MessageSent(
                request.message_ids[0], request.request_id, message_hash, request.message_ids
            )

    def resolved(self, event: Acknowledgement) -> Iterator[Acknowledgement | SendProgress]:
        """What an acknowledgement of one message means for its request."""
        request = self._by_message.get(event.message_id)
        if request is None:
            yield event
            return
        first = request.message_ids[0]
        match event:
            case MessagePossiblyAcknowledged():
                if request.total == 1:
                    yield event
            case MessageAcknowledged():
                request.acknowledged += 1
                self._finish(event.message_id)
                if request.total > 1:
                    yield self._progress(request, "acknowledged", request.acknowledged)
                if request.acknowledged == request.total:
                    yield event if request.total == 1 else replace(event, message_id=first)
            case DeliveryFailed():
                known, request.failed = request.failed, True
                self._finish(event.message_id)
                if not known:
                    yield replace(event, message_id=first)

    def refused(self, message_id: str, reason: str) -> SendFailed | None:
        """A message will never go out: its request has failed, which is emitted once."""
        request = self._by_message.get(message_id)
        if request is None:
            return None
        known, request.failed = request.failed, True
        self._finish(message_id)
        return None if known else SendFailed(request.message_ids[0], request.request_id, reason)

    def restore(
        self, rows: Iterable[Row], progress: Iterable[Row], pending: Container[str]
    ) -> None:
        """Begin with the requests from before a restart, of whose messages `pending` still wait
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
            request.message_ids[0], request.request_id, state, chunks, request.total
        )


def random_uuid(bits: int) -> str:
    """The UUID of version 4 (RFC 9562) that 128 random bits make, as `uuid.UUID` writes it."""
    digits = f"{bits & ~_UUID_FIXED | _UUID_VERSION_4:032x}"
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


class Idempotency:
    """What was accepted under which key."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._accepted: OrderedDict[str, Accepted] = OrderedDict()
        self._number = 0

    def get(self, key: str) -> Accepted | None:
        """What was accepted under a key before."""
        return self._accepted.get(key)

    def add(self, key: str, accepted: Accepted) -> None:
        """Something is accepted under a key."""
        self._number += 1
        self._accepted[key] = accepted
        message_ids = json.dumps(accepted.message_ids)
        self._recorder.put(SENDS, key, self._number, accepted.request_id, message_ids)
        if len(self._accepted) > KEYS_REMEMBERED:
            self._recorder.delete(SENDS, self._accepted.popitem(last=False)[0])

    def discard(self, key: str | None) -> None:
        """What was accepted under a key was withdrawn."""
        if key is not None and self._accepted.pop(key, None) is not None:
            self._recorder.delete(SENDS, key)

    def restore(self, rows: Iterable[Row]) -> None:
        """Begin with the keys from before a restart."""
        for row in sorted(SENDS.read(rows), key=attrgetter("number")):
            key, self._number = row.idempotency_key, row.number
            self._accepted[key] = Accepted(row.request_id, tuple(json.loads(row.message_ids)), key)
