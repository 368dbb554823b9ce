"""Translation of events of the core into events of the application.

Acknowledgements of segments become acknowledgements of a request, and segments become payloads.
Deliveries and reports are pending until the application confirms them.
"""

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import NamedTuple

from ..diagnostics import MessagePossiblyAcknowledged, MessageRejected
from ..events import (
    AnyEvent,
    DeliveryFailed,
    EphemeralReceived,
    MessageAcknowledged,
    MessageLost,
    MessageReceived,
)
from ..sds.events import SdsEvent
from ..sds.log.log import MessageLog
from .pending_events import PendingEvents
from .requests import Requests
from .segments import Emitted, Segmentation


class EncryptedDelivery(NamedTuple):
    """Delivered message whose content is encrypted, with the number of its delivery."""

    event: MessageReceived | EphemeralReceived
    number: int


class Translation:
    """Translator of the core's events into the application's events. Without `pending_events`, the
    application need not confirm an event."""

    def __init__(
        self,
        requests: Requests,
        segmentation: Segmentation,
        *,
        pending_events: PendingEvents | None,
        opens_contents: bool,
    ) -> None:
        self.to_decrypt: deque[EncryptedDelivery] = deque()
        """Deliveries to decrypt, in order; `decrypted` or `undecryptable` must follow for each."""
        self._requests = requests
        self._segmentation = segmentation
        self._pending_events = pending_events
        self._opens_contents = opens_contents

    def public(self, event: SdsEvent, now_ms: int) -> Iterable[AnyEvent]:
        """Return the application's events for one event of the core."""
        pending = self._pending_events
        match event:
            case MessageReceived():
                number = 0 if pending is None else pending.delivered(event)
                if not self._opens_contents:
                    return self._accounted(self._segmentation.join(event, now_ms, number))
                self.to_decrypt.append(EncryptedDelivery(event, number))
                return ()
            case EphemeralReceived() if self._opens_contents:
                self.to_decrypt.append(EncryptedDelivery(event, 0))
                return ()
            case MessageAcknowledged() | MessagePossiblyAcknowledged() | DeliveryFailed():
                events = self._requests.resolved(event)
                return events if pending is None else pending.reported(events)
            case MessageLost():
                return (event,) if pending is None else pending.reported((event,))
            case _:
                return (event,)

    def decrypted(
        self, to_decrypt: EncryptedDelivery, content: bytes, now_ms: int
    ) -> Iterable[AnyEvent]:
        """Return the payload that a decrypted message completes."""
        event = replace(to_decrypt.event, content=content)
        if isinstance(event, EphemeralReceived):
            return (event,)
        return self._accounted(self._segmentation.join(event, now_ms, to_decrypt.number))

    def undecryptable(
        self, rejected: MessageRejected, to_decrypt: EncryptedDelivery
    ) -> Iterable[AnyEvent]:
        """Return the event about a delivered message that cannot be decrypted."""
        return self._accounted([Emitted(rejected, (to_decrypt.number,))])

    def refused(self, message_id: str, reason: str) -> Iterable[AnyEvent]:
        """Return the event about an own message that will never be sent."""
        failed, pending = self._requests.refused(message_id, reason), self._pending_events
        events = () if failed is None else (failed,)
        return events if pending is None else pending.reported(events)

    def on_deadline(self, now_ms: int) -> Iterable[AnyEvent]:
        """Return the events about incomplete payloads whose time limit has passed."""
        return self._accounted(self._segmentation.on_deadline(now_ms))

    def again(self, log: MessageLog, now_ms: int) -> Iterator[Iterable[AnyEvent]]:
        """Yield the events that were pending before a restart, one event after another."""
        assert self._pending_events is not None
        for event, number in self._pending_events.again(log):
            if not isinstance(event, MessageReceived):
                yield self._accounted([Emitted(event, (number,))])
            elif not self._opens_contents:
                yield self._accounted(self._segmentation.join(event, now_ms, number))
            else:
                self.to_decrypt.append(EncryptedDelivery(event, number))
                yield ()

    def _accounted(self, emitted: Iterable[Emitted]) -> Iterable[AnyEvent]:
        """Note which events account for which deliveries."""
        events, pending = list[AnyEvent](), self._pending_events
        for event, numbers in emitted:
            if pending is not None:
                pending.account(event, numbers)
            events.append(event)
        return events
