"""Sending of messages (LIP 109, Send Message, Periodic Sync Message and Ephemeral Messages)."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from reprlib import repr as short
from typing import ClassVar, Final, SupportsBytes

from .bloom import SPEC_BLOOM
from .changes import LogKey
from .dialects import CodecError, SpecCodec
from .dialects.codec import MAX_ID_BYTES
from .draft import Draft, SavedDraft
from .errors import (
    ContentTooLong,
    EmptyContent,
    MessageIdInUse,
    NotInDialect,
    OutgoingBufferFull,
)
from .events import OutgoingKind, RepairRequested, SyncSent
from .message import HistoryEntry, LogEntry, LogRoot, Message
from .outgoing import OutgoingEntry
from .references.causal_history import History
from .repair.cache import Assembled
from .signing import sign_message, signed_text, with_signature
from .state import ChannelState
from .states import Trigger
from .sync import SyncTrigger

LONGER: Final = (
    '; a smaller causal_history_size leaves more, and segmentation="nim-segmentation" at all '
    "participants sends longer contents"
)
"""Advice in the error about content that is too long, except for an ephemeral message."""

SEARCHED: Final = 200
"""Number of newest log messages in which an own message is looked for."""


class Sender:
    """Sender of one participant's messages."""

    is_tuned: ClassVar[bool] = False
    """True if this participant tunes itself, and sends syncs only when needed."""

    def __init__(self, state: ChannelState) -> None:
        setup = state.setup
        self._state = state
        self._id_function, self._random = setup.id_function, setup.random
        self._signing = setup.signing
        self._has_filters = state.has_filters
        codec, form = state.profile.codec, state.profile.bloom
        self._spec = codec if isinstance(codec, SpecCodec) and form is SPEC_BLOOM else None
        self._assembles_late = setup.assembles_late
        enabled = state.options.repair.enabled
        self._requests: Callable[[int], Sequence[HistoryEntry]] = (
            state.repair_requests.due if enabled else lambda now_ms: ()
        )
        """What the next message asks for."""
        self._last_timestamp_ns = 0
        self._repeated = 0
        """Own messages that were broadcast again to carry requests."""
        self._undispatched: dict[str, LogEntry] = {}

    def send(self, content: bytes, now_ms: int, *, timestamp_ns: int | None = None) -> str:
        """Accept a message and return its id, like `SdsProtocol.send`."""
        state = self._state
        if not content:
            raise EmptyContent(
                "a message needs content, because an empty message reads as a sync message"
            )
        if not isinstance(content, bytes):
            raise TypeError(f"`content` must be bytes (got {short(content)})")
        limit = state.options.limits.outgoing_messages
        if len(state.outgoing_buffer.entries) >= limit:
            raise OutgoingBufferFull(
                f"{limit} own messages wait for an acknowledgement, which is the limit; send "
                "again later"
            )
        if state.profile.max_content_bytes is not None:
            self._check_content(content)
        message_id = self._next_id(content, now_ms, timestamp_ns)
        if state.log.get(message_id) or message_id in state.outgoing_buffer.entries:
            raise MessageIdInUse(
                f"message id {message_id!r} belongs to an earlier message; return a unique id "
                "from `id_function`"
            )
        lamport = state.clock.tick(now_ms)
        draft = self._draft(message_id, lamport, content, now_ms)
        # Durable whatever the others' are: its sender is the first to be asked for it.
        records = state.recorder.records
        own = Assembled(bytes(draft), bytes(draft.history)) if records else None
        is_cached = state.repair_cache.add(message_id, draft, durably=True, own=own)
        state.outgoing_buffer.add(message_id, draft, is_cached=is_cached)
        data = draft if self._assembles_late else self.leave(draft, now_ms)[0]
        entry = LogEntry(message_id, state.sender_id, lamport, content)
        if state.options.behaviour.log_own_message == "on_send":
            self._log_own(entry)
        else:
            self._undispatched[message_id] = entry
        state.broadcast(OutgoingKind.CONTENT, message_id, data, self._last_timestamp_ns)
        state.counters.sent += 1
        state.sync_timer.restart(SyncTrigger.OWN_CONTENT, now_ms)
        return message_id

    def send_sync(self, now_ms: int, *, message_id: str | None = None) -> bool:
        """Broadcast a sync message (LIP 109, Periodic Sync Message), unless there is nothing to
        report. Return True if a sync message was broadcast."""
        state = self._state
        lamport = state.clock.tick(now_ms)
        has_request = state.repair_requests.is_due(now_ms)
        if not (len(state.log) or has_request or state.options.behaviour.sync_without_history):
            return False
        message_id = message_id or self._sync_id()
        if (data := self._sync(message_id, lamport, now_ms)) is None:
            return False
        if (profile := state.profile).refers_to_syncs:
            state.referable_syncs.add(message_id)
            state.on_transition(message_id, Trigger.SENT)
            sync = profile.codec.decode(data)
            state.repair_cache.add(message_id, profile.kept_sync(sync, data))
        is_redundant = self.is_tuned and not has_request
        state.broadcast(OutgoingKind.SYNC, message_id, data, is_redundant=is_redundant)
        state.events.append(SyncSent(message_id))
        state.counters.syncs_sent += 1
        state.sync_timer.restart(SyncTrigger.OWN_SYNC, now_ms)
        return True

    def send_ephemeral(
        self, content: bytes, now_ms: int, *, timestamp_ns: int | None = None
    ) -> str:
        """Broadcast an ephemeral message (LIP 109), like `SdsProtocol.send_ephemeral`."""
        if not self._state.profile.has_ephemeral:
            name = self._state.profile.name
            raise NotInDialect(f"the {name} dialect has no ephemeral messages; call `send` instead")
        if not content:
            raise EmptyContent("an ephemeral message needs content")
        message_id = self._next_id(content, now_ms, timestamp_ns)
        message = Message(
            self._state.sender_id, message_id, self._state.channel_id, content=content
        )
        data = self._signed(self._state.profile.codec.encode(message))
        if len(data) > self._state.options.max_message_bytes:
            raise self._too_long(content, len(data))
        self._state.broadcast(OutgoingKind.EPHEMERAL, message_id, data)
        self._state.counters.ephemeral_sent += 1
        return message_id

    def dispatched(self, message_id: str, now_ms: int, retrieval_hint: bytes | None = None) -> None:
        """Note that the transport sent an own message, with the message hash for retrieval from
        Store."""
        if entry := self._undispatched.pop(message_id, None):
            self._log_own(entry)
        self._state.outgoing_buffer.dispatched(message_id, now_ms)
        if retrieval_hint is not None:
            self._state.log.set_retrieval_hint(message_id, retrieval_hint)

    def withdraw(self, message_id: str) -> None:
        """Withdraw an own message that was never sent."""
        if self._undispatched.pop(message_id, None) is None:
            self._state.forget(message_id)
            self._state.on_transition(message_id, Trigger.FORGED)
        else:
            self._state.repair_cache.discard(message_id)

    def resend(self, message_id: str, now_ms: int) -> None:
        """Broadcast an unacknowledged own message again, with the same bytes. The Lamport clock
        advances as for a new message."""
        entry = self._state.outgoing_buffer.entries[message_id]
        self._state.clock.tick(now_ms)
        self._state.broadcast(OutgoingKind.RETRY, message_id, self._ready(entry.data, now_ms))
        self._state.counters.retries += 1

    def repeat_with_requests(self, now_ms: int) -> None:
        """Broadcast an own message again with the due repair requests.

        Where syncs count as messages, no other message carries the requests of a silent
        participant. The newest own messages take turns, because the same requests in the same
        message look like a replay.
        """
        state, codec = self._state, self._state.profile.codec
        requests = state.repair_requests.due(now_ms)
        newest = reversed(state.log.last(SEARCHED))
        own = [entry.message_id for entry in newest if entry.sender_id == state.sender_id]
        if not requests or not own:
            return
        message_id = own[self._repeated % len(own)]
        self._repeated += 1
        held = state.held(message_id)
        # Another dialect, if this sender wrote it before it changed its own.
        if held is None or not codec.recognises(held):
            return
        message = replace(codec.decode(held), repair_request=tuple(requests), signature=None)
        data = self._signed_in_turn(codec.encode(message))
        if data is not None and len(data) <= state.options.max_message_bytes:
            state.broadcast(OutgoingKind.REPAIR, message_id, data)
            self._asked(requests, message_id, now_ms)

    def has_attempts(self, entry: OutgoingEntry, now_ms: int) -> bool:
        """Return True if an own message may be sent again."""
        return entry.attempts <= self._state.options.max_retry_attempts

    def bare(self, draft: Draft) -> bytes:
        """Encode the fixed part of a draft (see `Maker.bare`)."""
        data = self._assembled(draft.message, draft.history)
        return with_signature(data, draft.signature) if draft.signature else data

    def leave(
        self, draft: Draft | SavedDraft, now_ms: int, bloom_filter: bytes | None = None
    ) -> tuple[bytes, bool]:
        """Encode a message that leaves now (see `Maker.leave`)."""
        state, message_id = self._state, draft.message_id
        entry = state.outgoing_buffer.entries.get(message_id)
        if entry is not None and isinstance(entry.data, bytes):
            return entry.data, False
        if isinstance(draft, Draft):
            fixed, history = draft.message, draft.history
        else:
            try:
                fixed, history = self._decoded(draft)
            except CodecError:  # an earlier version wrote more than this one reads
                return bytes(draft), False
        due, has_filters = self._requests(now_ms), self._has_filters
        # `send` left room for the filter, unless the options were others then.
        for requests, has_filter in ((due, has_filters), ((), has_filters), ((), False)):
            message = replace(fixed, repair_request=requests) if requests else fixed
            data = self._assembled(message, history, bloom_filter, has_filter=has_filter)
            if self._signing is not None:
                try:
                    data = self._signed(data)
                except Exception:  # of a plugin: what `send` signed is valid without the rest
                    message, data = fixed, bytes(draft)
            if len(data) <= state.options.max_message_bytes:
                break
        if message.repair_request:
            self._asked(due, message_id, now_ms)
        if entry is not None:
            entry.data = data
        state.repair_cache.replace(message_id, data)
        return data, bool(message.repair_request)

    def restored(self, now_ms: int) -> None:
        """Make drafts of the messages that were saved before a restart. Broadcast the messages that
        were never sent, in their order."""
        state, codec = self._state, self._state.profile.codec
        for lamport, message_id in sorted(map(self._place, state.outgoing_buffer)):
            entry = state.outgoing_buffer.entries[message_id]
            data = bytes(entry.data)
            if codec.recognises(data):
                entry.data = SavedDraft(self, message_id, lamport or now_ms, data)
            if not entry.attempts:
                ready = self._ready(entry.data, now_ms)
                state.broadcast(OutgoingKind.CONTENT, message_id, ready)

    def _place(self, entry: OutgoingEntry) -> LogKey:
        """Return the place of a saved message among the others, even if the log lost it."""
        if (logged := self._state.log.get(entry.message_id)) is not None:
            return logged.key
        codec, data = self._state.profile.codec, bytes(entry.data)
        try:
            lamport = codec.decode(data).lamport_timestamp if codec.recognises(data) else None
        except CodecError:
            lamport = None
        return lamport or 0, entry.message_id

    def _draft(self, message_id: str, lamport: int, content: bytes, now_ms: int) -> Draft:
        """Fix what is to be fixed of a message, signed in a channel with signatures."""
        state = self._state
        message = Message(state.sender_id, message_id, state.channel_id, lamport, content=content)
        history = state.causal_tail.encoded()
        if self._signing is None:
            signature, fixed = b"", state.profile.codec.assemble(message, b"")
            size_bytes = len(fixed) + history.end - history.start
        else:
            data = self._assembled(message, history)
            signature = self._signing.sign(signed_text(data))
            size_bytes = len(with_signature(data, signature) if signature else data)
        draft = Draft(self, message_id, message, history, signature, size_bytes)
        length = draft.size_bytes + (self._filter_bytes if self._has_filters else 0)
        if length > state.options.max_message_bytes:
            raise self._too_long(content, length, hint=LONGER)
        return draft

    def _decoded(self, draft: SavedDraft) -> tuple[Message, History]:
        """Return the fixed part of a saved message, and its causal history.

        Raises:
            CodecError: the message cannot be read.
        """
        codec = self._state.profile.codec
        message = codec.decode(draft.data)
        logged = self._state.log.entries.get(message.message_id)
        fixed = Message(
            message.sender_id,
            message.message_id,
            message.channel_id,
            message.lamport_timestamp,
            content=logged.content if logged else message.content,
        )
        history = b"".join(map(codec.encode_causal_entry, message.causal_history))
        return fixed, History(history, 0, len(history))

    def _assembled(
        self,
        message: Message,
        history: History,
        bloom_filter: bytes | None = None,
        *,
        has_filter: bool = False,
    ) -> bytes:
        """Encode a message with its history, and with the given or current filter."""
        state, current = self._state, self._state.bloom_filter
        if self._spec is not None:  # history and filter, nearly all bytes, are copied once
            words = (bloom_filter or current.sent.data) if has_filter else None
            return self._spec.assemble(message, history.view, words)
        if has_filter:
            message = replace(message, bloom_filter=bloom_filter or bytes(current))
        return state.profile.codec.assemble(message, bytes(history))

    def _ready(self, data: SupportsBytes, now_ms: int) -> bytes | Draft | SavedDraft:
        """A message for its owner, who has a draft leave."""
        if not isinstance(data, Draft | SavedDraft):
            return bytes(data)
        return data if self._assembles_late else self.leave(data, now_ms)[0]

    def _sync(self, message_id: str, lamport: int, now_ms: int) -> bytes | None:
        state, requests = self._state, self._requests(now_ms)
        message = Message(
            state.sender_id,
            message_id,
            state.channel_id,
            lamport,
            repair_request=requests,
            log_root=self._root(now_ms),
        )
        history = state.causal_tail.encoded(is_sync=True)
        assembled = self._assembled(message, history, has_filter=self._has_filters)
        data = self._signed_in_turn(assembled)
        if requests and data is not None:
            self._asked(requests, message_id, now_ms)
        return data

    @cached_property
    def _filter_bytes(self) -> int:
        """What a bloom filter adds to a message."""
        codec, message = self._state.profile.codec, Message("", "", "", 0)
        words = bytes(self._state.bloom_filter)
        whole = replace(message, bloom_filter=words)
        return len(codec.assemble(whole, b"")) - len(codec.assemble(message, b""))

    def _asked(self, requests: Sequence[HistoryEntry], message_id: str, now_ms: int) -> None:
        """Take note that a message asks for others."""
        state, asked = self._state, tuple(entry.message_id for entry in requests)
        state.repair_requests.asked(asked, now_ms)
        state.events.append(RepairRequested(asked, message_id))
        state.counters.repairs_requested += len(asked)

    def _root(self, now_ms: int) -> LogRoot | None:
        has_root = self._state.options.behaviour.compare_logs
        return self._state.comparison.root(now_ms) if has_root else None

    def _sync_id(self) -> str:
        return f"sync-{int(self._random() * 2**53):014x}"

    def _signed(self, data: bytes) -> bytes:
        return data if self._signing is None else sign_message(self._signing, data)

    def _signed_in_turn(self, data: bytes) -> bytes | None:
        """Sign a message that no call of the application sends. Return None if that fails."""
        try:
            return self._signed(data)
        except Exception:  # of a plugin: another turn comes, and the channel must not end
            return None

    def _check_content(self, content: bytes) -> None:
        profile = self._state.profile
        limit = profile.max_content_bytes
        if limit is not None and len(content) > limit:
            raise ContentTooLong(
                f"the content has {len(content)} bytes; the {profile.name} dialect takes {limit}"
            )

    def _too_long(self, content: bytes, length: int, *, hint: str = "") -> ContentTooLong:
        limit = self._state.options.max_message_bytes
        most = max(0, limit - (length - len(content)))
        return ContentTooLong(
            f"{len(content)} bytes of content make a message of {length} bytes; "
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
        if self._has_filters:
            self._state.bloom_filter.insert(entry.message_id)
        self._state.log.insert(entry)
        self._state.on_transition(entry.message_id, Trigger.SENT)
