"""Incoming path of a bot, from Waku messages to payloads. The module has no I/O and no clock.

The incoming path reverses `sealing`. Any received bytes lead to a `Received`, an `Ignored` or a
`Refused`. SDS messages are decoded in all chats.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

from reliable_channel.segmentation import (
    DiscardReason,
    PayloadReassembled,
    Reassembler,
    ReassemblyLimits,
    SegmentOutcome,
    SegmentRefused,
    SegmentSetDropped,
    SetDropReason,
)
from waku import WakuMessage

from .application import from_protocol, unwrap
from .chats import carries
from .community_payloads import CommunityRequestToJoinResponse
from .direct.correspondence import DirectPayload
from .enums import MessageType
from .envelope import (
    MalformedEnvelope,
    NotForThisKey,
    Opened,
    open_ecies,
    open_symmetric,
)
from .keys import PrivateKey, PublicKey
from .layers import DirectLayer, GroupLayer
from .outcomes import Ignored, Received, RefusalReason, Refused, SignedPayload
from .payloads import (
    ChatMessage,
    DeleteMessage,
    EditMessage,
    EmojiReaction,
    MembershipUpdateMessage,
    PinMessage,
)
from .sds import SdsArrival, read_sds, what_is_forged
from .sealing import NS_PER_MS
from .segments import STATUS_SEGMENTATION
from .topics import Topic

READ_VERSIONS: Final = (0, 1, None)
"""Values of `version` that Status treats alike, because all payloads are encrypted as in
26/WAKU2-PAYLOAD."""
MAX_RECEIVED_BYTES: Final = 1024 * 1024
"""Maximum size of a received message (`DefaultMaxMessageSize` of status-go). No Status client sends
a larger message."""


Outcome: TypeAlias = Received | Ignored | Refused
"""Result of an arriving payload."""


@dataclass(frozen=True, slots=True)
class _Arrival:
    """Where a piece came from."""

    topic: Topic
    timestamp_ms: int
    signer: PublicKey | None
    is_private: bool
    is_ephemeral: bool
    is_direct: bool = False


class Opener:
    """Decrypts and reads Waku messages on the given topics.

    Args:
        topics: what is listened to at first; `listen` and `ignore` change it.
        private_keys: of receivers for which others encrypt by ECIES.
        needs_signed_envelope: status-go drops what has no signed envelope. Keep it so unless your
            peers do not sign.
        limits: of incomplete segments.
        on_sds: called with each valid SDS message, before `receive` returns its content.
        direct: opens direct messages; without it they are refused.
        on_direct: called with the envelope's signer and what was decrypted, before `receive`
            returns the signed payloads in it.
        groups: opens messages for groups, and takes their keys; without it they are refused. What
            comes before its key follows in `waited`.
    """

    def __init__(
        self,
        topics: Iterable[Topic] = (),
        *,
        private_keys: Sequence[PrivateKey] = (),
        needs_signed_envelope: bool = True,
        limits: ReassemblyLimits | None = None,
        on_sds: Callable[[SdsArrival], None] | None = None,
        direct: DirectLayer | None = None,
        on_direct: Callable[[PublicKey, DirectPayload], None] | None = None,
        groups: GroupLayer | None = None,
    ) -> None:
        self._direct = direct
        self._groups = groups
        self._on_direct = on_direct
        self._topics: dict[str, list[Topic]] = {}
        self._private_keys = tuple(private_keys)
        self._needs_signed_envelope = needs_signed_envelope
        self._on_sds = on_sds
        self._reassembler = Reassembler(
            limits or ReassemblyLimits(max_segment_bytes=MAX_RECEIVED_BYTES)
        )
        for topic in topics:
            self.listen(topic)

    def listen(self, topic: Topic) -> None:
        """Decrypt messages of a topic from now on. `listen` derives the topic's key, so that no
        message waits for it."""
        _ = topic.key
        same = self._topics.setdefault(topic.content_topic, [])
        if topic not in same:
            same.append(topic)

    def ignore(self, topic: Topic) -> None:
        """Stop decrypting messages of a topic."""
        same = self._topics.get(topic.content_topic, [])
        if topic in same:
            same.remove(topic)
        if not same:
            self._topics.pop(topic.content_topic, None)

    @property
    def content_topics(self) -> tuple[str, ...]:
        """Content topics to which the bot must subscribe."""
        return tuple(self._topics)

    def receive(self, message: WakuMessage, now_ms: int) -> list[Outcome]:
        """Read a Waku message. `receive` returns the payloads that the message completes, or the
        reason of a refusal. While segments are missing, and for parity and SDS sync messages, the
        result is empty. Pass each message once (`waku.message_hash`), because a repeated segment
        would count twice. The time `now_ms` must never decrease."""
        return list(self._received(message, now_ms))

    def waited(self) -> list[Outcome]:
        """Read waiting messages whose group keys arrived since the last call. Call `waited` at the
        start, and after each `receive`. `GroupKeys.done` removes a waiting message that was
        handled."""
        if self._groups is None:
            return []
        outcomes: list[Outcome] = []
        for one in self._groups.take_ready():
            arrival = _Arrival(
                Topic(one.topic_id), one.timestamp_ms, one.signer, False, one.is_ephemeral
            )
            for outcome in self._read(one.data, arrival):
                if isinstance(outcome, Received):
                    outcome = replace(outcome, waiting_id=one.id)
                elif getattr(outcome, "reason", None) is not RefusalReason.WAITS_FOR_KEY:
                    self._groups.done(one.id)
                outcomes.append(outcome)
        return outcomes

    def next_deadline_ms(self) -> int | None:
        """Return the time of the next call of `on_deadline`, or None while no segment waits."""
        return self._reassembler.next_deadline_ms()

    def on_deadline(self, now_ms: int) -> list[Refused]:
        """Drop segments that waited too long for the rest of their message."""
        return [r for o in self._reassembler.on_deadline(now_ms) for r in _refusals(o)]

    def _received(self, message: WakuMessage, now_ms: int) -> Iterator[Outcome]:
        opened = self._open(message)
        if isinstance(opened, Refused):
            yield opened
            return
        plain, arrival = opened
        segment = STATUS_SEGMENTATION.decode(plain)
        if segment is None:
            yield from self._read(plain, arrival)
            return
        # Segments of one payload share their author and topic, so that others cannot mix theirs in.
        sender = f"{arrival.topic.id} {arrival.signer}"
        for outcome in self._reassembler.add(sender, segment, now_ms):
            if isinstance(outcome, PayloadReassembled):
                yield from self._read(outcome.payload, arrival)
            yield from _refusals(outcome)

    def _read(self, plain: bytes, arrival: _Arrival) -> Iterator[Outcome]:
        opened = None
        if self._direct is not None:
            opened = self._direct.open(plain, arrival.signer, arrival.timestamp_ms)
        if isinstance(opened, Refused):
            yield opened
        elif opened is None:
            yield from map(self._described, self._read_shared(plain, arrival))
        else:
            yield from map(self._described, self._read_direct(opened, arrival))

    def _described(self, outcome: Outcome) -> Outcome:
        """A description in the clear."""
        if self._groups is None or not isinstance(outcome, Received):
            return outcome
        return self._groups.describe(outcome)

    def _read_direct(self, opened: DirectPayload, arrival: _Arrival) -> Iterator[Outcome]:
        assert self._direct is not None and arrival.signer is not None  # it was opened
        if self._on_direct is not None:
            self._on_direct(arrival.signer, opened)
        yield from opened.refused
        if opened.group_keys is not None and self._groups is not None:
            refused = self._groups.learn(opened.group_id, opened.group_keys, arrival.signer)
            if refused is not None:
                yield refused
        arrival = replace(arrival, is_private=True, is_direct=True)
        for body, datasync_id in opened.bodies:
            outcome = _read(body, arrival)
            if isinstance(outcome, Received):
                outcome = _meant_for(self._direct.public_key, outcome)
            if isinstance(outcome, Received):
                outcome = replace(outcome, datasync_id=datasync_id, ratchet_key=opened.ratchet_key)
            yield outcome

    def _read_shared(self, plain: bytes, arrival: _Arrival) -> Iterator[Outcome]:
        """What is for all that have the topic's key, or for the members of a group."""
        opened = None
        if self._groups is not None:
            opened = self._groups.open(
                plain,
                arrival.topic.id,
                arrival.timestamp_ms,
                arrival.signer,
                arrival.is_ephemeral,
            )
        if isinstance(opened, Refused):
            yield opened
        elif opened is None:
            yield from self._read_public(plain, arrival)
        elif opened:
            yield _read(opened, arrival)

    def _read_public(self, plain: bytes, arrival: _Arrival) -> Iterator[Outcome]:
        data = from_protocol(plain)
        if isinstance(data, Refused):
            yield data
            return
        sds = read_sds(data, arrival.timestamp_ms)
        if sds is None:
            yield _read(data, arrival)
            return
        outcome = None if sds.content is None else _read(sds.content, arrival)
        author = arrival.signer if outcome is None else outcome.signer or arrival.signer
        if why := what_is_forged(sds, arrival.topic, author):
            yield Refused(RefusalReason.FORGED_SDS, why, author)
            return
        if self._on_sds is not None:
            self._on_sds(sds)
        if outcome is not None:
            yield outcome

    def _open(self, message: WakuMessage) -> tuple[bytes, _Arrival] | Refused:
        size_bytes = len(message.payload)
        if size_bytes > MAX_RECEIVED_BYTES:
            detail = f"{size_bytes} bytes; at most {MAX_RECEIVED_BYTES} are read"
            return Refused(RefusalReason.TOO_LARGE, detail)
        if message.version not in READ_VERSIONS:
            detail = f"version is {message.version}; Status clients write 0 or 1"
            return Refused(RefusalReason.UNKNOWN_VERSION, detail)
        topics = self._topics.get(message.content_topic)
        if not topics:
            return Refused(RefusalReason.UNKNOWN_TOPIC, message.content_topic[:150])
        try:
            found = self._with_any_key(message.payload, topics)
        except MalformedEnvelope as error:
            return Refused(RefusalReason.MALFORMED_ENVELOPE, str(error))
        if found is None:
            detail = f"{size_bytes} bytes on {message.content_topic}: no key opens them"
            return Refused(RefusalReason.NOT_FOR_US, detail)
        opened, topic, is_private = found
        if opened.signer is None and self._needs_signed_envelope:
            return Refused(RefusalReason.UNSIGNED_ENVELOPE, f"on the topic of {topic.id[:150]}")
        return opened.payload, _Arrival(
            topic,
            message.timestamp // NS_PER_MS,
            opened.signer,
            is_private,
            message.ephemeral,
        )

    def _with_any_key(
        self, sealed: bytes, topics: Sequence[Topic]
    ) -> tuple[Opened, Topic, bool] | None:
        """Try the keys of the topics and then those of receivers: which is meant is not on the
        wire."""
        for topic in topics:
            try:
                return open_symmetric(sealed, topic.key), topic, False
            except NotForThisKey:
                continue
        for key in self._private_keys:
            try:
                return open_ecies(sealed, key), topics[0], True
            except NotForThisKey:
                continue
        return None


def read_again(data: bytes, topic: Topic, *, is_private: bool = False) -> Outcome:
    """Read a signed payload that arrived on a topic earlier, for example from a channel's log."""
    return _read(data, _Arrival(topic, 0, None, is_private, False))


def _read(data: bytes, arrival: _Arrival) -> Outcome:
    signed = unwrap(data)
    if not isinstance(signed, SignedPayload):
        return signed
    match signed.payload:
        case ChatMessage() | EditMessage() | DeleteMessage() | PinMessage() | EmojiReaction():
            # Signed for another chat and sealed again for this one by somebody else. In private
            # chats the id says nothing (62/STATUS-PAYLOADS).
            chat_id = signed.payload.chat_id
            if not arrival.is_private and not carries(arrival.topic, chat_id):
                detail = f"for {chat_id[:150]!r} on the topic of {arrival.topic.id[:150]!r}"
                return Refused(RefusalReason.WRONG_CHAT, detail, signed.signer, signed.message_id)
    return Received(
        signed,
        arrival.topic,
        arrival.timestamp_ms,
        arrival.signer,
        arrival.is_private,
        arrival.is_ephemeral,
        is_direct=arrival.is_direct,
    )


def _meant_for(receiver: PublicKey, received: Received) -> Received | Refused:
    """Return True if the author of a direct message wrote it, and wrote it to this receiver.

    DIVERGES: status-go takes the author of the inner signature for the sender and ignores the
    chat, so that a receiver can pass a message on as if its author had sent it.
    """
    payload, reason = received.payload, None
    if isinstance(payload, CommunityRequestToJoinResponse):
        return received  # the community's key signs it, and its owner's envelope may carry keys
    if received.signer != received.envelope_signer:
        reason, detail = RefusalReason.FORGED_DIRECT, "another than its author encrypted it"
    elif isinstance(payload, MembershipUpdateMessage):
        return received
    elif isinstance(payload, _IN_CHATS):
        if payload.message_type is MessageType.PRIVATE_GROUP:
            return received
        if payload.message_type is not MessageType.ONE_TO_ONE or payload.chat_id != receiver.hex:
            reason, detail = RefusalReason.WRONG_CHAT, f"for {payload.chat_id[:150]!r}"
    if reason is None:
        return received
    detail = f"{type(payload).__name__}: {detail}"
    return Refused(reason, detail, received.signer, received.message_id)


_IN_CHATS: Final = (ChatMessage, EditMessage, DeleteMessage, PinMessage, EmojiReaction)


def _refusals(outcome: SegmentOutcome) -> Iterator[Refused]:
    match outcome:
        case SegmentRefused(reason=DiscardReason.PARITY_IGNORED):
            return
        case SegmentRefused():
            yield Refused(RefusalReason.BAD_SEGMENT, outcome.detail)
        case SegmentSetDropped():
            has = f"{outcome.chunks} of {outcome.total_chunks} segments"
            waited = outcome.reason in (SetDropReason.EXPIRED, SetDropReason.EVICTED)
            reason = RefusalReason.SEGMENTS_DROPPED if waited else RefusalReason.BAD_SEGMENT
            yield Refused(reason, f"{has}: {outcome.reason.value}")
