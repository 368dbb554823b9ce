"""Requests: one `send` may be many SDS messages, and the application hears of it as one (LIP 173,
RequestId)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from ..events import (
    DeliveryFailed,
    MessageAcknowledged,
    MessagePossiblyAcknowledged,
    MessageSent,
    SendFailed,
    SendProgress,
)

Acknowledgement = MessageAcknowledged | MessagePossiblyAcknowledged | DeliveryFailed


@dataclass(slots=True)
class _Request:
    request_id: str
    message_ids: tuple[str, ...]
    sent: int = 0
    acknowledged: int = 0
    failed: bool = False

    @property
    def total(self) -> int:
        return len(self.message_ids)


class Requests:
    """The requests under way. A request is forgotten when all its messages are settled."""

    def __init__(self) -> None:
        self._by_message: dict[str, _Request] = {}

    def __len__(self) -> int:
        return len(self._by_message)

    def accepted(self, request_id: str, message_ids: Sequence[str]) -> None:
        """Follow a request."""
        request = _Request(request_id, tuple(message_ids))
        self._by_message.update(dict.fromkeys(message_ids, request))

    def sent(self, message_id: str, message_hash: bytes) -> Iterator[MessageSent | SendProgress]:
        """A message went out for the first time."""
        request = self._by_message.get(message_id)
        if request is None or request.sent == request.total:
            return
        request.sent += 1
        if request.total > 1:
            yield self._progress(request, "sent", request.sent)
        if request.sent == request.total:
            yield MessageSent(
                request.message_ids[0], request.request_id, message_hash, request.message_ids
            )

    def settled(self, event: Acknowledgement) -> Iterator[Acknowledgement | SendProgress]:
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
                del self._by_message[event.message_id]
                request.acknowledged += 1
                if request.total > 1:
                    yield self._progress(request, "acknowledged", request.acknowledged)
                if request.acknowledged == request.total:
                    yield replace(event, message_id=first)
            case DeliveryFailed():
                del self._by_message[event.message_id]
                if not request.failed:
                    request.failed = True
                    yield replace(event, message_id=first)

    def refused(self, message_id: str, reason: str) -> SendFailed | None:
        """A message will never go out: its request has failed, and that is told once."""
        request = self._by_message.pop(message_id, None)
        if request is None or request.failed:
            return None
        request.failed = True
        return SendFailed(request.message_ids[0], request.request_id, reason)

    @staticmethod
    def _progress(request: _Request, state: str, chunks: int) -> SendProgress:
        return SendProgress(
            request.message_ids[0], request.request_id, state, chunks, request.total
        )
