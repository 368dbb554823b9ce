"""Requests of an application, and their results. `send` returns a request, on whose result a
program may wait."""

from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Final

import anyio

from .._notifier import Notifier
from ..errors import ChannelClosed
from ..events import AnyEvent, DeliveryFailed, MessageAcknowledged, SendFailed, SendingMessage

RESULTS_LIMIT: Final = 1_000
"""Maximum number of remembered results of requests, for a `send` that is repeated under its key.
The oldest results are dropped. A request object that a program keeps has its result in any case.
"""
Result = MessageAcknowledged | DeliveryFailed | SendFailed
OWN_EVENTS: Final = (SendingMessage, MessageAcknowledged, DeliveryFailed, SendFailed)


@dataclass(slots=True, eq=False)
class Outcome:
    """Result of one request, which comes later."""

    is_known: bool = False
    event: Result | None = None
    """None while it is not known, and where an earlier run of the program was informed."""
    is_closed: bool = False
    _changed: Notifier | None = None
    """None while nobody waits: thousands of messages may wait to be sent."""

    def notify(self) -> None:
        """Wake the tasks that wait for the result."""
        if self._changed is not None:
            self._changed.notify()

    async def wait(self, within_s: float | None) -> bool:
        """Wait for the result, and return True if it is known in time.

        Raises:
            ChannelClosed: the channel was closed first.
        """
        with anyio.move_on_after(within_s):
            while not self.is_known and not self.is_closed:
                self._changed = self._changed or Notifier()
                await self._changed.wait()
        if self.is_closed and not self.is_known:
            raise ChannelClosed("the channel was closed before the message was acknowledged")
        return self.is_known


class Outcomes:
    """Results of own requests, by the message ids that events contain."""

    def __init__(self) -> None:
        self._pending: dict[str, Outcome] = {}
        """At most as many as messages may be unacknowledged."""
        self._known: OrderedDict[str, Outcome] = OrderedDict()

    def note(self, event: AnyEvent, at_ms: int) -> None:
        """Note an event about an own message."""
        if isinstance(event, SendingMessage):
            self._pending[event.message_id] = Outcome()
        elif isinstance(event, Result):
            outcome = self._pending.pop(event.message_id, None) or Outcome()
            outcome.event, outcome.is_known = event, True
            self._known[event.message_id] = outcome
            if len(self._known) > RESULTS_LIMIT:
                self._known.popitem(last=False)
            outcome.notify()

    def of(self, message_id: str, *, is_pending: bool) -> Outcome:
        """Return the result of a request, even if it was accepted before a restart."""
        found = self._pending.get(message_id) or self._known.get(message_id)
        if found is None:
            found = Outcome(is_known=not is_pending)
            if is_pending:
                self._pending[message_id] = found
        return found

    def close(self) -> None:
        """End all waits for results, because the channel was closed."""
        for outcome in self._pending.values():
            outcome.is_closed = True
            outcome.notify()


@dataclass(frozen=True, slots=True)
class Request:
    """Request of one `send`, for any number of segments."""

    request_id: str
    message_ids: tuple[str, ...]
    _wait: Callable[["Request", float | None], Awaitable[None]] = field(repr=False, compare=False)

    @property
    def message_id(self) -> str:
        """Message id that names the request in events, which is the id of its first segment."""
        return self.message_ids[0]

    async def acknowledged(self, *, within_s: float | None = None) -> None:
        """Wait until another participant is known to have received the message.

        Without `within_s` (s), the call waits for the result, which always comes at last. A
        repeated request counts as acknowledged if an earlier run of the program confirmed its
        result.

        Raises:
            NotAcknowledged: not in time, or never. The text says what was missing. The message is
                still retried, unless it failed.
            ChannelClosed: the channel was closed.
        """
        await self._wait(self, within_s)
