"""All that one participant knows of a channel, and what it has to say about it."""

from collections import deque
from typing import Final

from .acknowledgements import AcknowledgementReview, Participants
from .bloom import RollingBloomFilter
from .causal_history import CausalTail
from .events import Outgoing, OutgoingKind, SdsEvent
from .ids import RecentIds
from .incoming import IncomingBuffer
from .joining import Joining
from .log import LogEntry, MessageLog
from .options import SdsOptions
from .outgoing import OutgoingBuffer
from .profile import WireProfile
from .repair import IncomingRepairBuffer, OutgoingRepairBuffer, RepairCache
from .statistics import SdsCounters
from .sync import SyncTimer

REFERABLE_SYNCS: Final = 10_000
"""Sync messages that are remembered for those who refer to them; nim-sds keeps 1000 messages."""


class ChannelState:
    """The tables that sender, receiver, delivery and sweeps share (LIP 109, Participant state)."""

    def __init__(
        self,
        channel_id: str,
        sender_id: str,
        options: SdsOptions,
        profile: WireProfile,
        sync_timer: SyncTimer,
        now_ms: int,
    ) -> None:
        self.channel_id = channel_id
        self.sender_id = sender_id
        self.options = options
        self.profile = profile
        self.sync_timer = sync_timer
        self.clock = profile.clock(now_ms)
        self.log = MessageLog(options.limits.log_entries, options.limits.log_bytes)
        self.causal_tail = CausalTail(
            self.log,
            options.causal_history_size,
            options.max_message_bytes // 2,
            profile.codec.encode_causal_entry,
        )
        self.bloom_filter = RollingBloomFilter(options.bloom, form=profile.bloom)
        self.participants = Participants(options.limits.participants)
        self.outgoing_buffer = OutgoingBuffer(
            options.bloom,
            retry_interval_ms=options.retry_interval_ms,
            possibly_acknowledged_interval_ms=options.possibly_acknowledged_interval_ms,
        )
        self.acknowledgements = AcknowledgementReview(
            self.outgoing_buffer, self.participants, options
        )
        self.incoming_buffer = IncomingBuffer(lost_limit=options.limits.missing_entries)
        timers = profile.repair_timers
        self.joining = Joining(options.limits.missing_entries)
        self.repair_requests = OutgoingRepairBuffer(sender_id, options.repair, timers)
        self.repair_responses = IncomingRepairBuffer(sender_id, options.repair, timers)
        self.repair_cache = RepairCache(options.repair.cache_bytes if options.repair.enabled else 0)
        self.referable_syncs = RecentIds(REFERABLE_SYNCS)
        """Sync messages of dialects whose peers refer to them: there is nothing to wait for."""
        self.counters = SdsCounters()
        self.events: deque[SdsEvent] = deque()
        self.outgoing: deque[Outgoing] = deque()

    def tell(self, event: SdsEvent) -> None:
        """Queue an event for the owner."""
        self.events.append(event)

    def broadcast(
        self, kind: OutgoingKind, message_id: str, data: bytes, timestamp_ns: int | None = None
    ) -> None:
        """Queue bytes for the transport."""
        self.outgoing.append(Outgoing(kind, message_id, data, timestamp_ns))

    def forget(self, message_id: str) -> LogEntry:
        """Take a message that turned out to be forged out of all that is kept or passed on."""
        self.repair_responses.remove(message_id)
        self.repair_cache.discard(message_id)
        self.causal_tail.forget(message_id)
        return self.log.remove(message_id)

    def set_retrieval_hint(self, message_id: str, retrieval_hint: bytes) -> None:
        """Remember how others may retrieve a message, where that was not known yet."""
        entry = self.log.get(message_id)
        if entry is not None and entry.retrieval_hint is None:
            entry.retrieval_hint = retrieval_hint
            self.causal_tail.forget(message_id)

    def held(self, message_id: str) -> bytes | None:
        """A message as it was on the wire, where it is still held: what others ask for."""
        own = self.outgoing_buffer.entries.get(message_id)
        return own.data if own else self.repair_cache.get(message_id)
