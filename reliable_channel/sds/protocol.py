"""State machine of one participant in one channel, for SDS with its repair extension SDS-R.

The state machine has no I/O. The owner calls `send…`, `receive`, `dispatched` and `on_deadline`,
each with the time. After each call the owner takes the items out of the lists `events`, `outgoing`
and `wanted`. No other call changes the state. The state machine reads no clock, never waits, and
draws random numbers only from `random`.

The sources are LIP 109 (SDS) and the SDS-R implementation guide. Comments cite the section names of
these documents.
"""

from collections.abc import Collection, Sequence, Sized
from copy import copy

from .agenda import Slot
from .changes import CHANNEL, NO_RECORDER, Changes, Recorder, Tables
from .factory import make_parts
from .ids import IdFunction
from .log.archive import NO_ARCHIVE, LogArchive
from .message import LogEntry
from .options import SdsOptions
from .profile import SPEC, WireProfile, understood
from .receiving import Arrival, Outcome
from .references.incoming import MissingEntry
from .restoring import restore
from .signing import Signing
from .state import Setup
from .statistics import Progress, SdsStatistics
from .sync import Random, SyncTrigger

__all__ = ["Arrival", "Outcome", "SdsProtocol"]


class SdsProtocol:
    """State machine of one participant of a channel.

    The participant sends the dialect `profile` and reads those in `listen_to` (by default all).
    `profile.py` describes how dialects can be mixed. The options and the id function default to
    those of `profile`. With `signing` the participant signs its messages. With `require_signatures`
    the participant rejects messages whose sender is not proven.

    `random` returns floats in [0, 1), for sync back-off and sync ids only.

    With a `recorder`, `changes()` returns the data for a restart after each step. If `archive`
    finds recorded entries, only the newest part of the log stays in memory.

    With `assembles_late`, own messages in `outgoing` are drafts, which are encoded when they
    leave.
    """

    def __init__(
        self,
        channel_id: str,
        sender_id: str,
        *,
        now_ms: int,
        random: Random,
        profile: WireProfile = SPEC,
        listen_to: Sequence[WireProfile] | None = None,
        options: SdsOptions | None = None,
        id_function: IdFunction | None = None,
        signing: Signing | None = None,
        require_signatures: bool = False,
        recorder: Recorder = NO_RECORDER,
        archive: LogArchive = NO_ARCHIVE,
        assembles_late: bool = False,
    ) -> None:
        self.options = options = options or profile.options
        self.profile = profile
        setup = Setup(
            channel_id=channel_id,
            sender_id=sender_id,
            now_ms=now_ms,
            random=random,
            profile=profile,
            listen_to=understood(profile) if listen_to is None else tuple(listen_to),
            options=options,
            id_function=id_function or profile.id_function,
            signing=signing,
            require_signatures=require_signatures,
            recorder=recorder,
            archive=archive,
            assembles_late=assembles_late,
        )
        state, self._sender, self._receiver, self._sweeps = make_parts(setup)
        self._state = state
        self.agenda = state.agenda
        """Agenda whose `next_ms` is the time for the next call of `on_deadline`."""
        self.events = state.events
        """New events, in order. The application must get each event once."""
        self.outgoing = state.outgoing
        """Messages to broadcast, in order. Call `dispatched` for each message that was sent."""
        self.wanted = state.wanted
        """Missing messages that were referred to for the first time (`repair_on_demand`)."""
        self.missing_tables: Sequence[Sized] = (
            state.incoming_buffer.missing,
            state.joining.presumed,
        )
        """Tables of messages to search in Store. Nothing is missing while both are empty."""
        self._recorded_clock: int | None = None
        if options.limits.retention_ms:
            self.agenda.plan(Slot.TRIM, now_ms)
        # Open to read; only the core writes.
        self.channel_id, self.sender_id = channel_id, sender_id
        self.clock, self.log, self.bloom_filter = state.clock, state.log, state.bloom_filter
        self.outgoing_buffer, self.incoming_buffer = state.outgoing_buffer, state.incoming_buffer
        self.unacknowledged: Collection[str] = state.outgoing_buffer.entries.keys()
        """Ids of own messages that no other participant is known to have received."""
        self.repair_requests, self.repair_responses = state.repair_requests, state.repair_responses
        self.participants, self.counters = state.participants, state.counters
        state.sync_timer.restart(SyncTrigger.START, now_ms)

    def restore(self, tables: Tables, newest: Sequence[LogEntry], now_ms: int) -> None:
        """Restore the saved state from its rows and the newest log entries, oldest first. Own
        messages that were never sent are in `outgoing` again."""
        restore(self._state, tables, newest, now_ms)
        self._sender.restored(now_ms)
        self._sweeps.restored(tables, now_ms)

    # -- inputs ------------------------------------------------------------------------------------

    def send(self, content: bytes, now_ms: int, *, timestamp_ns: int | None = None) -> str:
        """Accept a message for all participants and return the message id.

        Raises:
            EmptyContent: there is nothing to send.
            ContentTooLong: the message would be longer than `max_message_bytes`, or its content
                longer than the dialect takes.
            OutgoingBufferFull: `limits.outgoing_messages` own messages are unacknowledged.
            MessageIdInUse: the id function returned an id for the second time.
        """
        return self._sender.send(content, now_ms, timestamp_ns=timestamp_ns)

    def send_ephemeral(
        self, content: bytes, now_ms: int, *, timestamp_ns: int | None = None
    ) -> str:
        """Broadcast a message once without repair, and return its id (LIP 109, Ephemeral Messages).

        Raises:
            EmptyContent: there is nothing to send.
            ContentTooLong: the message would be longer than `max_message_bytes`.
            NotInDialect: the dialect knows no ephemeral messages.
        """
        return self._sender.send_ephemeral(content, now_ms, timestamp_ns=timestamp_ns)

    def send_sync(self, now_ms: int, *, message_id: str | None = None) -> bool:
        """Broadcast a sync message, unless the participant has nothing to report. Return True if a
        sync message was broadcast."""
        return self._sender.send_sync(now_ms, message_id=message_id)

    def dispatched(self, message_id: str, now_ms: int, retrieval_hint: bytes | None = None) -> None:
        """Note that the transport sent an own message, with the message hash for retrieval from
        Store."""
        self._sender.dispatched(message_id, now_ms, retrieval_hint)

    def abandon(self, message_id: str) -> None:
        """Stop sending an own message that the transport refuses permanently.

        The message stays in the log, because participants that know its id may request it.
        """
        self.outgoing_buffer.remove([message_id])

    def withdraw(self, message_id: str) -> None:
        """Withdraw an own message that no other participant knows.

        The message stays in the bloom filter, which costs a few bits, because its id is not used
        again.
        """
        self.outgoing_buffer.remove([message_id])
        self._sender.withdraw(message_id)
        self.counters.sent -= 1

    def resend(self, message_id: str, now_ms: int) -> None:
        """Broadcast an unacknowledged own message again, with the same bytes."""
        self._sender.resend(message_id, now_ms)

    def resend_early(self, message_id: str, now_ms: int) -> bool:
        """Broadcast an own message again before its retry is due. Return False if the message is
        acknowledged or has no attempt left."""
        entry = self.outgoing_buffer.entries.get(message_id)
        if entry is None or not self._sender.has_attempts(entry, now_ms):
            return False
        self.resend(message_id, now_ms)
        return True

    def join(self, now_ms: int, *, wanted_from: int = 0, presume_ms: int) -> None:
        """Join a conversation that is in progress. Messages with a Lamport timestamp below
        `wanted_from` (ms) are dropped. For `presume_ms`, unknown references count as references to
        messages before `wanted_from`."""
        self._state.joining.start(wanted_from=wanted_from, presume_until_ms=now_ms + presume_ms)

    def receive(
        self,
        data: bytes,
        now_ms: int,
        *,
        retrieval_hint: bytes | None = None,
        sent_at_ns: int | None = None,
    ) -> Arrival:
        """Receive the bytes of a message from the transport or from Store. `retrieval_hint` is the
        Waku message hash of the bytes, and `sent_at_ns` their Waku timestamp.

        Invalid bytes raise no error. A refused message becomes a `MessageRejected` event.
        """
        return self._receiver.receive(data, now_ms, retrieval_hint, sent_at_ns)

    # -- time --------------------------------------------------------------------------------------

    def on_deadline(self, now_ms: int) -> None:
        """Do all work that is due by time."""
        self._sweeps.on_deadline(now_ms)

    # -- outputs -----------------------------------------------------------------------------------

    def changes(self) -> Changes:
        """Return the changes to the saved state since the last call of `changes`. Write the
        returned changes in one transaction before you use `events` and `outgoing`."""
        recorder = self._state.recorder
        if recorder.records and self.clock.value != self._recorded_clock:
            self._recorded_clock = self.clock.value
            recorder.put(CHANNEL, "clock", self.clock.value)
        return recorder.take()

    def missing(self) -> Sequence[MissingEntry]:
        """Return the messages that are known only by reference, for a search in Store.

        Messages that others wait for come first, in the order of how long they are missing. The
        remaining messages are searched without urgency.
        """
        return [*self.incoming_buffer.missing.values(), *self._state.joining.presumed.values()]

    def ask_participants(self, missing: MissingEntry, now_ms: int) -> None:
        """Allow repair requests for a missing message, with T_req counted from now."""
        self.repair_requests.want(missing.entry, now_ms, missing.referrer_id)

    def is_awaited(self, message_id: str) -> bool:
        """Return True if other messages wait for this missing message."""
        return message_id in self.incoming_buffer.missing

    @property
    def capacity_left(self) -> int:
        """Return how many more own messages the channel accepts before an acknowledgement."""
        return self.options.limits.outgoing_messages - len(self.outgoing_buffer)

    def progress(self) -> Progress:
        """Return how complete the log is, compared with all known messages."""
        buffer, comparison = self.incoming_buffer, self._state.comparison
        return Progress(
            received=self.counters.delivered,
            missing=len(buffer.missing) + len(buffer.queued) + len(buffer.parked),
            lost=len(buffer.lost),
            different_from=comparison.different_from,
            repair_failed=comparison.repair_failed,
        )

    def statistics(self) -> SdsStatistics:
        """Return the current counters and the sizes of the buffers."""
        return SdsStatistics(
            counters=copy(self.counters),
            lamport_timestamp=self.clock.value,
            log_length=len(self.log),
            log_evicted=self.log.evicted,
            outgoing=len(self.outgoing_buffer),
            incoming=len(self.incoming_buffer.parked),
            missing=len(self.incoming_buffer.missing) + len(self.incoming_buffer.queued),
            lost_entries=len(self.incoming_buffer.lost),
            repair_requests=len(self.repair_requests),
            repair_responses=len(self.repair_responses),
            repair_cache_bytes=self._state.repair_cache.size_bytes,
            bloom_filter_messages=len(self.bloom_filter),
            bloom_filter_rollovers=self.bloom_filter.rollovers,
            participants=len(self.participants),
        )
