"""Log records of a channel, by the logger `reliable_channel`.

Failures are warnings, recoveries are INFO, all other events are DEBUG. A payload is never logged,
and text from other participants is logged in one printable line. Every record has `channel_id`,
`sender_id` and `event` as attributes, for handlers that write JSON.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import fields
from enum import Enum
from typing import Final

from .._terminal_text import printable
from ..diagnostics import (
    JournalDegraded,
    LogDiffers,
    NodeHealth,
    NodeHealthChanged,
    ObserverSetAside,
    ObserverSlow,
    PendingEventsDropped,
    ReaderFellBehind,
    SendingFellBehind,
    TransportDegraded,
    TransportRecovered,
)
from ..events import (
    AnyEvent,
    ConnectionStatusChanged,
    DeliveryFailed,
    MessageForged,
    MessageLost,
    RateLimitReached,
    SendFailed,
    StateDegraded,
    StateRecovered,
    StateRolledBack,
)
from ..transport.addresses import masked_text

LOGGER: Final = logging.getLogger("reliable_channel")
LEVELS: Final[Mapping[type[AnyEvent], int]] = {
    **dict.fromkeys(
        (
            DeliveryFailed,
            JournalDegraded,
            LogDiffers,
            MessageForged,
            MessageLost,
            ObserverSetAside,
            ObserverSlow,
            RateLimitReached,
            ReaderFellBehind,
            SendFailed,
            SendingFellBehind,
            StateDegraded,
            StateRolledBack,
            TransportDegraded,
            PendingEventsDropped,
        ),
        logging.WARNING,
    ),
    **dict.fromkeys(
        (ConnectionStatusChanged, NodeHealthChanged, StateRecovered, TransportRecovered),
        logging.INFO,
    ),
}
"""Log levels of events. All events without a level here have the level DEBUG."""
Failures = dict[str, set[tuple[str, str, str]]]
"""Channel, participant and component of each failure, by the cause of the failure."""


class EventLog:
    """Log records of one channel.

    Args:
        failures: what does not work at the moment; channels through the same nodes share it.
    """

    def __init__(self, channel_id: str, sender_id: str, failures: Failures | None = None) -> None:
        self._key = channel_id, sender_id
        self._name = f"channel {channel_id!r}, participant {sender_id!r}"
        self._is_open = False
        self._failures: Failures = {} if failures is None else failures
        self._extra = {"channel_id": channel_id, "sender_id": sender_id}

    def event(self, event: AnyEvent) -> None:
        """Write a log record for an event. If no handler wants the level of the event, the call
        costs one look-up."""
        level = LEVELS.get(type(event))
        if level is None:
            level = logging.DEBUG  # as nearly all
        elif isinstance(event, TransportDegraded):
            # One dead node is one warning, though it ends sending, receiving and Store.
            cause = event.reason.rpartition(": ")[2]
            failing = self._failures.setdefault(cause, set())
            level = logging.INFO if failing else level
            failing.add((*self._key, event.component))
        elif isinstance(event, TransportRecovered):
            self._forget(event.component)
        if LOGGER.isEnabledFor(level):
            self._write(level, described(event), event.wire_name)

    def opened(self, content_topic: str, nodes: Sequence[NodeHealth]) -> None:
        self._is_open = True
        if LOGGER.isEnabledFor(logging.INFO):
            through = ", ".join(map(_reached, nodes)) or "its transport"
            self._write(logging.INFO, f"opened on {content_topic} through {through}", "opened")

    def warn(self, text: str, event: str) -> None:
        """Log a warning about a problem that has no event."""
        if LOGGER.isEnabledFor(logging.WARNING):
            self._write(logging.WARNING, text, event)

    def closed(self) -> None:
        """Log that the channel is closed, if it was opened before."""
        for component in ("send", "receive", "store"):
            self._forget(component)
        if self._is_open and LOGGER.isEnabledFor(logging.INFO):
            self._write(logging.INFO, "closed", "closed")
        self._is_open = False

    def _forget(self, component: str) -> None:
        key = *self._key, component
        for cause in [cause for cause, failing in self._failures.items() if key in failing]:
            self._failures[cause].discard(key)
            if not self._failures[cause]:
                del self._failures[cause]

    def _write(self, level: int, text: str, event: str) -> None:
        text = printable(masked_text(text))
        extra = {**self._extra, "event": event}
        LOGGER.log(level, "%s: %s", printable(self._name), text, extra=extra)


def described(event: AnyEvent) -> str:
    """Return an event in one line, with the size of the payload instead of the payload."""
    if isinstance(event, ReaderFellBehind):
        return (
            f"{event.readers} reader(s) of events() fell behind, the slowest by {event.unread} "
            "events; the channel goes on, and messages follow from the log. Handle events faster, "
            "raise limits.events, or close readers that you left: "
            "`async with channel.events() as events`"
        )
    if isinstance(event, PendingEventsDropped):
        return (
            f"{event.count} messages and reports were never confirmed, and will not be emitted "
            "again after a restart. Read events(), or open the channel without state"
        )
    shown = (f"{field.name}={_value(getattr(event, field.name))}" for field in fields(event))
    return " ".join([event.wire_name, *shown])


def _reached(node: NodeHealth) -> str:
    return f"{node.address} ({node.api})" if node.api else node.address


def _value(value: object) -> str:
    if isinstance(value, bytes):
        return f"<{len(value)} bytes>"
    if isinstance(value, Enum):
        return str(value.value)
    if isinstance(value, tuple):
        return f"<{len(value)}>"
    return repr(value) if isinstance(value, str) else str(value)
