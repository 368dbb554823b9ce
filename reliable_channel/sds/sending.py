"""Sending (LIP 109, Send Message, Periodic Sync Message and Ephemeral Messages)."""

from reprlib import repr as short
from typing import Final

from .changes import NO_RECORDER
from .dialects.codec import MAX_ID_BYTES
from .errors import (
    ContentTooLong,
    EmptyContent,
    MessageIdInUse,
    NotInDialect,
    OutgoingBufferFull,
)
from .events import OutgoingKind, RepairRequested, SyncSent
from .ids import IdFunction
from .log.differences import Assembled
from .log.entry import LogEntry
from .log.root import LogRoot, Reconciling
from .message import Message
from .signing import Signing, sign_message
from .state import ChannelState
from .states import Trigger
from .sync import Random, SyncTrigger

LONGER: Final = (
    '; a smaller causal_history_size leaves more, and segmentation="nim-segmentation" at all '
    "participants sends longer contents"
)
"""Advice for content that is too long; an ephemeral message can use none of it."""


class Sender:
    """Makes the messages of one participant."""

    def __init__(
        self,
        state: ChannelState,
        id_function: IdFunction,
        random: Random,
        signing: Signing | None = None,
    ) -> None:
        self._state = state
        self._id_function = id_function
        self._random = random
        self._signing = signing
        self._last_timestamp_ns = 0
        self._undispatched: dict[str, LogEntry] = {}

    def send(self, content: bytes, now_ms: int, *, timestamp_ns: int | None = None) -> str:
        """Accept a message and return its id; as `SdsProtocol.send`."""
        state = self._state
        if not content:
            raise EmptyContent("a message needs content: an empty one reads as a sync message")
        limit = state.options.limits.outgoing_messages
        if len(state.outgoing_buffer) >= limit:
            raise OutgoingBufferFull(
                f"{limit} own messages wait for an acknowledgement; send again later"
            )
        if state.profile.max_content_bytes is not None:
            self._check_content(content)
        message_id = self._next_id(content, now_ms, timestamp_ns)
        if message_id in state.log or message_id in state.outgoing_buffer.entries:
            raise MessageIdInUse(
                f"message id {message_id!r} belongs to an earlier message; ids must be unique"
            )
        lamport = state.clock.tick(now_ms)
        own = self._assemble(message_id, lamport, content, now_ms)
        data = own.data
        entry = LogEntry(message_id, state.sender_id, lamport, content)
        # Durable whatever the others' are: its sender is the first to be asked for it.
        is_cached = state.repair_cache.add(message_id, data, durably=True, own=own)
        state.outgoing_buffer.add(message_id, data, is_cached=is_cached)
        if state.options.behaviour.log_own_message == "on_send":
            self._log_own(entry)
        else:
            self._undispatched[message_id] = entry
        state.broadcast(OutgoingKind.CONTENT, message_id, data, self._last_timestamp_ns)
        state.counters.sent += 1
        state.sync_timer.restart(SyncTrigger.OWN_CONTENT, now_ms)
        return message_id

    def send_sync(self, now_ms: int, *, message_id: str | None = None) -> bool:
        """Broadcast a sync message (LIP 109, Periodic Sync Message); return whether there was
        anything to say."""
        state = self._state
        lamport = state.clock.tick(now_ms)
        has_request = state.repair_requests.is_due(now_ms)
        if not (len(state.log) or has_request or state.options.behaviour.sync_without_history):
            return False
        message_id = message_id or f"sync-{int(self._random() * 2**53):014x}"
        data = self._assemble(message_id, lamport, None, now_ms).data
        if (profile := state.profile).refers_to_syncs:
            state.referable_syncs.add(message_id)
            state.on_transition(message_id, Trigger.SENT)
            sync = profile.codec.decode(data)
            state.repair_cache.add(message_id, profile.kept_sync(sync, data))
        is_redundant = state.tuner is not None and not has_request
        state.broadcast(OutgoingKind.SYNC, message_id, data, is_redundant=is_redundant)
        state.emit(SyncSent(message_id))
        state.counters.syncs_sent += 1
        state.sync_timer.restart(SyncTrigger.OWN_SYNC, now_ms)
        return True

    def send_reconciling(self, said: Reconciling, now_ms: int) -> None:
        """Broadcast what reconciles logs, in a sync message."""
        state = self._state
        message_id = f"sync-{int(self._random() * 2**53):014x}"
        message = Message(
            state.sender_id,
            message_id,
            state.channel_id,
            state.clock.tick(now_ms),
            reconciling=said,
        )
        data = self._signed(state.profile.codec.encode(message))
        state.broadcast(OutgoingKind.CONTROL, message_id, data)
        state.counters.syncs_sent += 1

    def send_ephemeral(
        self, content: bytes, now_ms: int, *, timestamp_ns: int | None = None
    ) -> str:
        """Broadcast an ephemeral message (LIP 109); as `SdsProtocol.send_ephemeral`."""
        if not self._state.profile.has_ephemeral:
            name = self._state.profile.name
            raise NotInDialect(f"the {name} dialect has no ephemeral messages; use send")
        if not content:
            raise EmptyContent("an ephemeral message needs content")
        message_id = self._next_id(content, now_ms, timestamp_ns)
        message = Message(
            self._state.sender_id, message_id, self._state.channel_id, content=content
        )
        data = self._signed(self._state.profile.codec.encode(message))
        self._check_length(content, data)
        self._state.broadcast(OutgoingKind.EPHEMERAL, message_id, data)
        self._state.counters.ephemeral_sent += 1
        return message_id

    def dispatched(self, message_id: str, now_ms: int, retrieval_hint: bytes | None = None) -> None:
        """Take note that an own message is out, and under which Waku message hash others may
        retrieve it."""
        if entry := self._undispatched.pop(message_id, None):
            self._log_own(entry)
        if self._state.tuner is not None:
            self._state.tuner.dispatched(message_id, now_ms)
        self._state.outgoing_buffer.dispatched(message_id, now_ms)
        if retrieval_hint is not None:
            self._state.set_retrieval_hint(message_id, retrieval_hint)

    def withdraw(self, message_id: str) -> None:
        """Forget an own message that never went out."""
        if self._undispatched.pop(message_id, None) is None:
            self._state.forget(message_id)
            self._state.on_transition(message_id, Trigger.FORGED)
        else:
            self._state.repair_cache.discard(message_id)

    def resend(self, message_id: str, now_ms: int) -> None:
        """Broadcast an unacknowledged own message again, the same bytes; its clock steps as for a
        new one."""
        entry = self._state.outgoing_buffer.entries[message_id]
        self._state.clock.tick(now_ms)
        self._state.broadcast(OutgoingKind.RETRY, message_id, entry.data)
        self._state.counters.retries += 1

    def _assemble(
        self, message_id: str, lamport: int, content: bytes | None, now_ms: int
    ) -> Assembled:
        state = self._state
        requests = state.repair_requests.due(now_ms) if state.options.repair.enabled else []
        is_sync, has_filter = content is None, True
        # DIVERGES: LIP 109 has a filter in each message. With `self_tuning` it has full size, or is
        # left out where nobody else was heard; js-waku never delivers a message with a shorter one.
        if state.tuner is not None:
            has_filter = state.tuner.wants_filter(now_ms)
        if state.heads is not None:
            state.heads.is_long = has_filter
        bloom_filter = bytes(state.bloom_filter) if has_filter else None
        message = Message(
            state.sender_id,
            message_id,
            state.channel_id,
            lamport,
            bloom_filter=bloom_filter,
            repair_request=requests,
            content=content,
            log_root=self._root(now_ms) if is_sync else None,
            is_tuned=state.tuner is not None and has_filter,
        )
        history = state.causal_tail.encoded(is_sync=is_sync)
        data = state.profile.codec.assemble(message, history)
        if self._signing is not None:
            data = sign_message(self._signing, data)
        if content is not None:
            self._check_length(content, data, hint=LONGER)
            if state.heads is not None:
                state.heads.sent()
        if requests:
            asked = tuple(entry.message_id for entry in requests)
            state.repair_requests.asked(asked, now_ms)
            if state.tuner is not None:
                state.tuner.asked(asked, now_ms)
            state.emit(RepairRequested(asked, message_id))
            state.counters.repairs_requested += len(asked)
        is_kept = not is_sync and state.recorder is not NO_RECORDER
        # A message without a filter leaves it to the next one that has it to say what changed.
        changed = state.bloom_filter.changed() if is_kept and bloom_filter else ()
        return Assembled(data, history, bloom_filter or b"", changed)

    def _root(self, now_ms: int) -> LogRoot | None:
        state = self._state
        if not state.options.behaviour.compare_logs:
            return None
        if state.tuner is not None and not state.tuner.sync_timer.is_long:
            return None  # right after news logs differ, and syncs are many
        return state.comparison.root(now_ms)

    def _signed(self, data: bytes) -> bytes:
        return data if self._signing is None else sign_message(self._signing, data)

    def _check_content(self, content: bytes) -> None:
        profile = self._state.profile
        limit = profile.max_content_bytes
        if limit is not None and len(content) > limit:
            raise ContentTooLong(
                f"{len(content)} bytes of content; the {profile.name} dialect takes {limit}"
            )

    def _check_length(self, content: bytes, data: bytes, *, hint: str = "") -> None:
        limit = self._state.options.max_message_bytes
        if len(data) > limit:
            most = max(0, limit - (len(data) - len(content)))
            raise ContentTooLong(
                f"{len(content)} bytes of content make a message of {len(data)} bytes; "
                f"max_message_bytes is {limit}, which leaves {most} for content{hint}"
            )

    def _next_id(self, content: bytes, now_ms: int, timestamp_ns: int | None) -> str:
        # The timestamp is the salt of the id: two equal messages within a millisecond are still
        # two.
        wanted_ns = now_ms * 1_000_000 if timestamp_ns is None else timestamp_ns
        self._last_timestamp_ns = max(wanted_ns, self._last_timestamp_ns + 1)
        made = self._id_function(self._state.sender_id, self._last_timestamp_ns, content)
        if not isinstance(made, str) or not 1 <= len(made) <= MAX_ID_BYTES:
            raise ValueError(
                f"`id_function` must return a text of 1 to {MAX_ID_BYTES:,} characters "
                f"(got {short(made)})"
            )
        return made

    def _log_own(self, entry: LogEntry) -> None:
        self._state.bloom_filter.insert(entry.message_id)
        self._state.log.insert(entry)
        if self._state.heads is not None:
            self._state.heads.logged(entry.message_id)
        self._state.on_transition(entry.message_id, Trigger.SENT)
