"""From what the core says to what the application is told.

Acknowledgements of segments become those of their request, delivered segments become payloads, and
what the application must not miss is noted as owed until it is confirmed.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence

from ..events import (
    DeliveryFailed,
    EphemeralReceived,
    Event,
    MessageAcknowledged,
    MessageLost,
    MessagePossiblyAcknowledged,
    MessageReceived,
    MessageRejected,
)
from ..sds.changes import Row
from ..sds.events import SdsEvent
from ..sds.log import MessageLog
from .requests import Requests
from .segments import Segmentation, Told
from .unconfirmed import REPORTS, Unconfirmed

Deliver = Callable[[MessageReceived | EphemeralReceived, int], None]
"""Takes what the core delivered, with the number of its delivery, to be opened."""


class Telling:
    """What events of the core mean; without `unconfirmed` nothing is owed."""

    def __init__(
        self,
        requests: Requests,
        segmentation: Segmentation,
        now_ms: Callable[[], int],
        *,
        deliver: Deliver | None,
        unconfirmed: Unconfirmed | None,
    ) -> None:
        self._requests = requests
        self._segmentation = segmentation
        self._now_ms = now_ms
        self._deliver = deliver
        self._unconfirmed = unconfirmed

    def meaning(self, event: SdsEvent) -> Sequence[Event]:
        """What an event of the core means to the application."""
        match event:
            case MessageReceived():
                number = 0 if self._unconfirmed is None else self._unconfirmed.delivered(event)
                return self._passed_on(event, number)
            case EphemeralReceived():
                return self._passed_on(event, 0)
            case MessageAcknowledged() | MessagePossiblyAcknowledged() | DeliveryFailed():
                return self._reported(*self._requests.settled(event))
            case MessageLost():
                return self._reported(event)
            case _:
                return (event,)

    def opened(self, event: MessageReceived | EphemeralReceived, number: int) -> Sequence[Event]:
        """What a delivered message, opened where it was sealed, makes whole."""
        if isinstance(event, EphemeralReceived):
            return (event,)
        return self._accounted(self._segmentation.join(event, self._now_ms(), number))

    def unopened(self, event: MessageRejected, number: int) -> Sequence[Event]:
        """A delivered message does not open."""
        return self._accounted([Told(event, (number,))])

    def refused(self, message_id: str, reason: str) -> Sequence[Event]:
        """An own message will never go out."""
        failed = self._requests.refused(message_id, reason)
        return () if failed is None else self._reported(failed)

    def on_deadline(self, now_ms: int) -> Sequence[Event]:
        """What took too long."""
        return self._accounted(self._segmentation.on_deadline(now_ms))

    def again(self, owed: Sequence[Row], log: MessageLog) -> Iterator[Sequence[Event]]:
        """What was owed before a restart, one event after the other."""
        assert self._unconfirmed is not None
        for event, number in self._unconfirmed.restore(owed, log):
            if isinstance(event, MessageReceived):
                yield self._passed_on(event, number)
            else:
                yield self._accounted([Told(event, (number,))])

    def _passed_on(
        self, event: MessageReceived | EphemeralReceived, number: int
    ) -> Sequence[Event]:
        if self._deliver is None:
            return self.opened(event, number)
        self._deliver(event, number)
        return ()

    def _accounted(self, told: Iterable[Told]) -> Sequence[Event]:
        """Note which events account for which deliveries."""
        if self._unconfirmed is None:
            return [event for event, _ in told]
        events = []
        for event, numbers in told:
            self._unconfirmed.account(event, numbers)
            events.append(event)
        return events

    def _reported(self, *events: Event) -> Sequence[Event]:
        """Note the reports that the application must not miss."""
        if self._unconfirmed is not None:
            for event in events:
                if isinstance(event, REPORTS):
                    self._unconfirmed.report(event)
        return events
