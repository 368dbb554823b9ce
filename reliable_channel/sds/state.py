"""State of one participant in a channel, and its output queues."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from . import states
from .acknowledgements import AcknowledgementReview, Participants
from .agenda import Agenda
from .bloom import BloomParameters, RollingBloomFilter
from .changes import Recorder, Table
from .comparison import LogComparison
from .draft import Draft, SavedDraft
from .events import Outgoing, OutgoingKind, SdsEvent
from .ids import IdFunction, RecentIds
from .log.archive import LogArchive
from .log.log import MessageLog
from .message import HistoryEntry, LogEntry
from .options import SdsOptions
from .outgoing import OutgoingBuffer, RetryPolicy
from .profile import WireProfile
from .references.causal_history import CausalTail
from .references.incoming import IncomingBuffer, MissingEntry
from .references.joining import Joining
from .repair.buffers import IncomingRepairBuffer, OutgoingRepairBuffer, RepairTimers
from .repair.cache import RepairCache
from .signing import Signing
from .states import OnTransition, Trigger, unchecked
from .states_of import StatesOf, TransitionCheck
from .statistics import SdsCounters
from .sync import Random, SyncTimer, make_schedule

REFERABLE_SYNCS: Final = 10_000
"""Number of sync messages that are remembered because messages may refer to them. nim-sds keeps
1000 messages."""
REFERABLE: Final = Table("referable_syncs", (("message_id", "TEXT"),))
NO_FILTER: Final = BloomParameters(1)
"""Size of the empty filter of a participant whose messages have none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """Arguments of `SdsProtocol`, with all defaults filled in."""

    channel_id: str
    sender_id: str
    now_ms: int
    random: Random
    profile: WireProfile
    listen_to: tuple[WireProfile, ...]
    options: SdsOptions
    id_function: IdFunction
    signing: Signing | None
    require_signatures: bool
    recorder: Recorder
    archive: LogArchive
    assembles_late: bool


@dataclass(frozen=True, slots=True)
class Timing:
    """Rules for the times of syncs, retries, repair requests and answers."""

    sync_timer: SyncTimer
    retry_policy: RetryPolicy
    repair_timers: RepairTimers


class ChannelState:
    """State that sender, receiver, delivery and sweeps share (LIP 109, Participant state)."""

    has_filters = True
    """True if own messages have a bloom filter. Otherwise no filter is kept."""

    def __init__(self, setup: Setup) -> None:
        options, profile, recorder = setup.options, setup.profile, setup.recorder
        limits = options.limits
        self.setup = setup
        self.channel_id = setup.channel_id
        self.sender_id = setup.sender_id
        self.options = options
        self.profile = profile
        self.agenda = agenda = Agenda()
        timing = self._timing()
        self.sync_timer = timing.sync_timer
        self.clock = profile.clock(setup.now_ms)
        self.recorder = recorder
        self.log = MessageLog(
            limits.log_entries,
            limits.log_bytes,
            archive=setup.archive,
            recorder=recorder,
            window=limits.log_window_entries,
        )
        self.causal_tail = self._causal_tail(
            options.causal_history_size,
            options.max_message_bytes // 2,
            profile.codec.encode_causal_entry,
        )
        self.bloom_filter = RollingBloomFilter(
            options.bloom if self.has_filters else NO_FILTER, form=profile.bloom
        )
        self.participants = Participants(limits.participants, recorder)
        self.outgoing_buffer = OutgoingBuffer(
            options.bloom,
            retry_interval_ms=options.retry_interval_ms,
            possibly_acknowledged_interval_ms=options.possibly_acknowledged_interval_ms,
            retry_policy=timing.retry_policy,
            recorder=recorder,
            agenda=agenda,
        )
        self.acknowledgements = AcknowledgementReview(
            self.outgoing_buffer, self.participants, options
        )
        self.incoming_buffer = IncomingBuffer(
            lost_limit=limits.missing_entries, recorder=recorder, on_transition=self._on_transition
        )
        self.has_syncs = bool(options.sync_min_interval_ms) or not profile.refers_to_syncs
        """False if requests ride on content alone."""
        repair = options.repair
        self.joining = Joining(limits.missing_entries, recorder, self._on_transition)
        self.comparison = self._comparison()
        self.repair_requests = OutgoingRepairBuffer(
            self.sender_id,
            repair,
            timing.repair_timers,
            recorder,
            agenda,
        )
        self.repair_responses = IncomingRepairBuffer(
            self.sender_id, repair, timing.repair_timers, recorder, agenda
        )
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

    def _timing(self) -> Timing:
        setup, options = self.setup, self.options
        schedule = make_schedule(options.sync_schedule, options.sync_min_interval_ms, setup.random)
        timer = SyncTimer(schedule, self.agenda)
        return Timing(timer, options.retry_policy, self.profile.repair_timers)

    def _causal_tail(
        self, size: int, limit_bytes: int, encode: Callable[[HistoryEntry], bytes]
    ) -> CausalTail:
        return CausalTail(self.log, size, limit_bytes, encode)

    def _comparison(self) -> LogComparison:
        return LogComparison(self.log, self.joining)

    def broadcast(
        self,
        kind: OutgoingKind,
        message_id: str,
        data: bytes | Draft | SavedDraft,
        timestamp_ns: int | None = None,
        *,
        is_redundant: bool = False,
    ) -> None:
        """Queue a message to be broadcast by the transport."""
        data, draft = (data, None) if isinstance(data, bytes) else (b"", data)
        self.outgoing.append(Outgoing(kind, message_id, data, timestamp_ns, is_redundant, draft))

    def want(self, entry: HistoryEntry, now_ms: int, referrer_id: str) -> None:
        """Plan a repair request for a missing message."""
        if not self.options.repair.enabled:
            return
        if self.options.repair.repair_on_demand:
            missing = self.incoming_buffer.missing.get(entry.message_id)
            since_ms = now_ms if missing is None else missing.since_ms
            self.wanted.append(MissingEntry(entry, since_ms, referrer_id))
        else:
            self.repair_requests.want(entry, now_ms, referrer_id)

    def forget(self, message_id: str) -> LogEntry:
        """Remove a forged or withdrawn message from all tables and queues."""
        self.repair_responses.remove(message_id)
        self.repair_cache.discard(message_id)
        return self.log.remove(message_id)

    def held(self, message_id: str) -> bytes | None:
        """Return the bytes of a cached message for a participant that requests it, or None. An own
        message that was not sent since a restart has neither bloom filter nor repair requests."""
        own = self.outgoing_buffer.entries.get(message_id)
        return bytes(own.data) if own else self.repair_cache.get(message_id)
