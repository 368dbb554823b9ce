"""Delivery of messages from the node to the log and the application, with Lamport timestamps."""

from collections.abc import Sequence

from reliable_channel.diagnostics import MessageRejected, RejectionReason
from reliable_channel.events import MessageReceived
from reliable_channel.spi import (
    CHANNEL,
    Arrival,
    CoreContext,
    LogEntry,
    MessageLog,
    Outcome,
    SdsCounters,
    SdsEvent,
    Tables,
)

from .. import events as node_events
from ..message import MessageId
from .wire import Content, EnvelopeError


class Delivery:
    """Message log and clock of a participant, with the events about them."""

    def __init__(self, context: CoreContext) -> None:
        self._options = context.options.sds_options()
        self.log = MessageLog(
            self._options.limits.log_entries,
            self._options.limits.log_bytes,
            archive=context.archive,
            recorder=context.recorder,
        )
        self.clock = context.now_ms
        self.counters = SdsCounters()
        self.events: list[SdsEvent] = []
        self._context = context
        self._recorded_clock = 0
        self._wanted_from = 0

    def next_clock(self, now_ms: int) -> int:
        """Return the Lamport timestamp of the participant's next message."""
        return max(now_ms, self.clock + 1)

    def accepted(self, message_id: MessageId, content: Content) -> None:
        """Put an own message into the log at once."""
        self.clock = content.lamport_timestamp
        self._insert(message_id.hex(), content, None)
        self.counters.sent += 1

    def deliver(
        self, event: node_events.MessageReceived, now_ms: int, retrieval_hint: bytes | None
    ) -> None:
        """Deliver a message of another participant, unless it was delivered before or is
        invalid."""
        message_id = event.message_id.hex()
        try:
            message = Content.decode(event.body)
        except EnvelopeError as error:
            sender_id = event.peer_id.decode()
            self.rejected(RejectionReason.MALFORMED, str(error), sender_id, message_id)
            return
        lamport, sender_id = message.lamport_timestamp, message.sender_id
        if lamport > now_ms + self._options.max_lamport_ahead_ms:
            detail = f"its Lamport timestamp is {lamport - now_ms} ms ahead"
            self.rejected(RejectionReason.LAMPORT_TOO_FAR_AHEAD, detail, sender_id, message_id)
        elif lamport < self._wanted_from or message_id in self.log:
            pass
        elif self.log.is_below_horizon(lamport, message_id):
            detail = "it is older than what the log has let go"
            self.rejected(RejectionReason.OLDER_THAN_LOG, detail, sender_id, message_id)
        else:
            self.clock = max(self.clock, lamport)
            position = self._insert(message_id, message, retrieval_hint)
            self.counters.delivered += 1
            self.events.append(
                MessageReceived(
                    message_id,
                    sender_id,
                    message.content,
                    lamport,
                    position,
                    retrieval_hint=retrieval_hint,
                )
            )

    def rejected(
        self, reason: RejectionReason, detail: str, sender_id: str = "", message_id: str = ""
    ) -> Arrival:
        """Report to the application that a message was refused."""
        self.counters.rejected += 1
        self.events.append(MessageRejected(reason, detail, message_id, sender_id))
        return Arrival(Outcome.REJECTED, message_id, reason=reason)

    def want_from(self, wanted_from: int) -> None:
        """Skip messages from before the given time."""
        self._wanted_from = wanted_from
        self._context.recorder.put(CHANNEL, "mvds_wanted_from", wanted_from)

    def record(self) -> None:
        """Record the clock for a restart, if the clock has changed."""
        if self.clock != self._recorded_clock:
            self._recorded_clock = self.clock
            self._context.recorder.put(CHANNEL, "clock", self.clock)

    def restore(self, tables: Tables, newest: Sequence[LogEntry]) -> None:
        """Begin with the state that an earlier process recorded."""
        values = {row[0]: row[1] for row in tables.get(CHANNEL.name, ())}
        clock, wanted_from = values.get("clock", 0), values.get("mvds_wanted_from", 0)
        assert isinstance(clock, int) and isinstance(wanted_from, int)
        self.clock = max(self.clock, clock)
        self._wanted_from = wanted_from
        self.log.restore_from(tables, newest)

    def _insert(self, message_id: str, message: Content, retrieval_hint: bytes | None) -> int:
        return self.log.insert(
            LogEntry(
                message_id,
                message.sender_id,
                message.lamport_timestamp,
                message.content,
                retrieval_hint,
            )
        )
