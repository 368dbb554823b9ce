"""All that one participant knows of a channel, and what it has to say about it."""

from typing import TYPE_CHECKING, Final

from . import states
from .acknowledgements import AcknowledgementReview, Participants
from .adaptive.causal_frontier import CausalFrontier
from .adaptive.comparison import STABLE_MS, LogComparison
from .agenda import Agenda
from .bloom import RollingBloomFilter
from .changes import NO_RECORDER, Recorder, Table
from .events import Outgoing, OutgoingKind, SdsEvent
from .ids import RecentIds
from .log.archive import NO_ARCHIVE, LogArchive
from .log.entry import LogEntry
from .log.log import MessageLog
from .message import HistoryEntry, Message
from .options import SdsOptions
from .outgoing import OutgoingBuffer
from .profile import WireProfile
from .references.causal_history import CausalTail
from .references.incoming import IncomingBuffer, MissingEntry
from .references.joining import Joining
from .repair.buffers import IncomingRepairBuffer, OutgoingRepairBuffer
from .repair.cache import RepairCache
from .states import OnTransition, Trigger, unchecked
from .states_of import StatesOf, TransitionCheck
from .statistics import SdsCounters
from .sync import SyncTimer

if TYPE_CHECKING:
    from .adaptive.reconciliation import Reconciliation
    from .adaptive.tuner import Tuner

REFERABLE_SYNCS: Final = 10_000
"""Sync messages that are remembered for references to them; nim-sds keeps 1000 messages."""
SOON_STABLE_MS: Final = 15_000
"""The same as `STABLE_MS` where missing messages are asked for at once."""
RECONCILED_SECONDS: Final = 50_000
"""Seconds with messages that are compared where a difference can be repaired."""
REFERABLE: Final = Table("referable_syncs", (("message_id", "TEXT"),))


class ChannelState:
    """The tables that sender, receiver, delivery and sweeps share (LIP 109, Participant state)."""

    def __init__(
        self,
        *,
        channel_id: str,
        sender_id: str,
        options: SdsOptions,
        profile: WireProfile,
        sync_timer: SyncTimer,
        agenda: Agenda,
        now_ms: int,
        recorder: Recorder = NO_RECORDER,
        archive: LogArchive = NO_ARCHIVE,
        tuner: "Tuner | None" = None,
        rebuilds: bool = False,
    ) -> None:
        limits = options.limits
        self.channel_id = channel_id
        self.sender_id = sender_id
        self.options = options
        self.profile = profile
        self.sync_timer = sync_timer
        self.agenda = agenda
        self.tuner = tuner
        """Where the channel tunes itself."""
        self._rebuilds = rebuilds
        self.clock = profile.clock(now_ms)
        self.recorder = recorder
        self.log = MessageLog(
            limits.log_entries,
            limits.log_bytes,
            archive=archive,
            recorder=recorder,
            window=limits.log_window_entries,
        )
        history = (
            self.log,
            options.causal_history_size,
            options.max_message_bytes // 2,
            profile.codec.encode_causal_entry,
        )
        self.heads = None if tuner is None else CausalFrontier(*history, recorder)
        self.causal_tail = CausalTail(*history) if self.heads is None else self.heads
        self.bloom_filter = RollingBloomFilter(options.bloom, form=profile.bloom)
        self.participants = Participants(limits.participants, recorder)
        self.outgoing_buffer = OutgoingBuffer(
            options.bloom,
            retry_interval_ms=options.retry_interval_ms,
            possibly_acknowledged_interval_ms=options.possibly_acknowledged_interval_ms,
            retry_policy=options.retry_policy if tuner is None else tuner.retry_ms,
            recorder=recorder,
            agenda=agenda,
        )
        self.acknowledgements = AcknowledgementReview(
            self.outgoing_buffer, self.participants, options
        )
        self.incoming_buffer = IncomingBuffer(
            lost_limit=limits.missing_entries, recorder=recorder, on_transition=self._on_transition
        )
        timers = profile.repair_timers if tuner is None else tuner.timers
        repair = options.repair
        self.joining = Joining(limits.missing_entries, recorder, self._on_transition)
        self.reconciliation = (
            None if tuner is None or profile.refers_to_syncs else self._reconciling(tuner)
        )
        """Where the channel tunes itself, and its dialect has fields for it."""
        self.comparison = LogComparison(
            self.log,
            self.joining,
            stable_ms=STABLE_MS if self.reconciliation is None else SOON_STABLE_MS,
            reconciliation=self.reconciliation,
        )
        self.repair_requests = OutgoingRepairBuffer(
            sender_id,
            repair,
            timers,
            recorder,
            None if tuner is None else tuner.again_ms,
            # Without sync messages, requests ride on content alone.
            agenda if options.sync_min_interval_ms or not profile.refers_to_syncs else None,
        )
        self.repair_responses = IncomingRepairBuffer(sender_id, repair, timers, recorder, agenda)
        self.repair_cache = RepairCache(
            repair.cache_bytes if repair.enabled else 0,
            recorder,
            self.outgoing_buffer.no_longer_cached,
        )
        self.referable_syncs = RecentIds(REFERABLE_SYNCS, recorder=recorder, table=REFERABLE)
        """Sync messages of dialects whose peers refer to them: there is nothing to wait for."""
        self.wanted: list[MissingEntry] = []
        """What might be asked of others, where the owner decides that."""
        self.states = StatesOf(self.log, self.incoming_buffer, self.joining, self.referable_syncs)
        self.on_transition: OnTransition = unchecked
        """Takes note of each transition of a message (`states.py`)."""
        if states.check_transitions:
            self.on_transition = TransitionCheck(self.states)
        self.counters = SdsCounters()
        self.events: list[SdsEvent] = []
        self.outgoing: list[Outgoing] = []

    def _on_transition(self, message_id: str, event: Trigger) -> None:
        self.on_transition(message_id, event)

    def _reconciling(self, tuner: "Tuner") -> "Reconciliation":
        from .adaptive.reconciliation import Reconciliation  # most channels do without

        self.log.sums.max_seconds = RECONCILED_SECONDS
        return Reconciliation(
            self.sender_id,
            self.log,
            tuner.observations,
            tuner.random,
            held=self._held_or_rebuilt,
            parked=self.incoming_buffer.waiting,
            agenda=self.agenda,
        )

    def emit(self, event: SdsEvent) -> None:
        """Queue an event for the owner."""
        self.events.append(event)

    def broadcast(
        self,
        kind: OutgoingKind,
        message_id: str,
        data: bytes,
        timestamp_ns: int | None = None,
        *,
        is_redundant: bool = False,
    ) -> None:
        """Queue bytes for the transport."""
        self.outgoing.append(Outgoing(kind, message_id, data, timestamp_ns, is_redundant))

    def want(self, entry: HistoryEntry, now_ms: int, referrer_id: str) -> None:
        """Have others asked for a missing message that was referred to."""
        if not self.options.repair.enabled:
            return
        if self.options.repair.repair_on_demand:
            missing = self.incoming_buffer.missing.get(entry.message_id)
            since_ms = now_ms if missing is None else missing.since_ms
            self.wanted.append(MissingEntry(entry, since_ms, referrer_id))
        else:
            self.repair_requests.want(entry, now_ms, referrer_id)

    def forget(self, message_id: str) -> LogEntry:
        """Take a message that turned out to be forged, or was withdrawn, out of all that is kept or
        passed on."""
        self.repair_responses.remove(message_id)
        self.repair_cache.discard(message_id)
        return self.log.remove(message_id)

    def set_retrieval_hint(self, message_id: str, retrieval_hint: bytes) -> None:
        """Remember how others may retrieve a message, where that was not known yet."""
        self.log.set_retrieval_hint(message_id, retrieval_hint)

    def held(self, message_id: str) -> bytes | None:
        """A message as it was on the wire, where it is still held: what others ask for."""
        own = self.outgoing_buffer.entries.get(message_id)
        return own.data if own else self.repair_cache.get(message_id)

    def _held_or_rebuilt(self, message_id: str, after: str | None) -> bytes | None:
        """The same, or what the log has of it, which lacks signature and causal history.

        Its dependency is the message that reconciliation broadcast `after`: what is rebuilt arrives
        in the order of the log.
        """
        if (data := self.held(message_id)) is not None or not self._rebuilds:
            return data
        if (entry := self.log.get(message_id)) is None:
            return None
        before = None if after is None else self.log.get(after)
        history = () if before is None else (_referring(before),)
        message = Message(
            entry.sender_id,
            message_id,
            self.channel_id,
            entry.lamport_timestamp,
            history,
            content=entry.content,
        )
        return self.profile.codec.encode(message)


def _referring(entry: LogEntry) -> HistoryEntry:
    return HistoryEntry(entry.message_id, entry.retrieval_hint, entry.sender_id)
