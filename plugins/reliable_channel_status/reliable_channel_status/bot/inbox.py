"""Conversion of Waku messages to events in the bot's chats."""

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from ..wire.chats import Community
from ..wire.community_payloads import (
    CommunityDescription,
    CommunityEncryptionKeysRequest,
    CommunityRequestToJoin,
    CommunityRequestToJoinResponse,
    CommunityRequestToLeave,
    CommunityUserKicked,
)
from ..wire.conversation import Applied, Conversation
from ..wire.enums import MessageType, PayloadType
from ..wire.keys import PrivateKey
from ..wire.opening import Opener, Outcome, read_again
from ..wire.outcomes import Ignored, Received, RefusalReason, Refused, SignedPayload
from ..wire.payloads import ChatPayload, MembershipUpdateMessage
from ..wire.rules import review
from ..wire.sds import SdsArrival
from ..wire.topics import Topic
from .control_task import Taken
from .link import Fetched
from .membership import Change
from .session import Session

_ORDINARY = (RefusalReason.REPEATED, RefusalReason.REPEATED_KEY, RefusalReason.UNKNOWN_TOPIC)
"""What a healthy chat brings all the time."""


@dataclass(frozen=True, slots=True)
class Arrival:
    """Received payload, after its changes were applied to the bot's chats."""

    received: Received
    applied: Applied
    clock_ms: int
    """Time by the author's signed clock, or by the Waku timestamp if the clock is not a time."""
    is_live: bool
    """True if the payload arrived live, False if Store returned it."""
    membership: Change | None = None
    """Change of the bot's membership that the payload caused."""
    taken: Taken | None = None
    """Effect of the payload on a community that the bot runs."""


class Inbox:
    """Decrypts, reads and orders received messages. Refused messages are counted and logged."""

    def __init__(
        self, session: Session, topics: Sequence[Topic], private_keys: Sequence[PrivateKey]
    ) -> None:
        self._session = session
        self._fixed = frozenset(topics) - frozenset(session.rooms.topics)
        self._topics = set(topics)
        self._me = session.public_key
        self._sds: list[SdsArrival] = []
        desk = session.direct
        self._opener = Opener(
            topics,
            private_keys=private_keys,
            on_sds=self._sds.append,
            direct=session.correspondence,
            on_direct=None if desk is None else desk.heard,
            groups=session.group_keys,
        )
        self.on_sds: Callable[[SdsArrival, bytes], None] = lambda sds, message_hash: None
        """Given each SDS message with the hash of the Waku message that brought it."""
        self.conversation = Conversation(
            is_privileged=session.is_privileged, may_pin=session.may_pin
        )

    def follow(self) -> Iterator[Topic]:
        """Listen to the content topics of the bot's present chats. `follow` yields after each
        change, because deriving a new key takes some hundredths of a second."""
        wanted = {*self._fixed, *self._session.rooms.topics}
        for topic in sorted(self._topics ^ wanted, key=lambda one: one.id):
            if topic in wanted:
                self._opener.listen(topic)
            else:
                self._opener.ignore(topic)
            self._topics ^= {topic}
            yield topic

    def said(self, signed: SignedPayload, topic: Topic) -> None:
        """Note a direct message that the bot sent, because no copy of it comes back."""
        now_ms = self._session.now_ms()
        own = Received(signed, topic, now_ms, self._me, is_private=True, is_ephemeral=False)
        self.conversation.apply(own, now_ms)

    @property
    def content_topics(self) -> tuple[str, ...]:
        """Content topics to request from the node."""
        return self._opener.content_topics

    def take(self, messages: Sequence[Fetched], *, is_live: bool) -> list[Arrival]:
        """Return the payloads of the given messages, ordered by clock, then by message id."""
        now_ms = self._session.now_ms()
        received: list[Received] = []
        for one in messages:
            for outcome in self._opener.receive(one.message, now_ms):
                received += self._opened(outcome)
            for sds in self._sds:
                self.on_sds(sds, one.message_hash)
            self._sds.clear()
        for outcome in self._opener.waited():
            received += self._opened(outcome)
        self._session.looked()
        due_ms = self._opener.next_deadline_ms()
        if due_ms is not None and due_ms <= now_ms:
            for refused in self._opener.on_deadline(now_ms):
                self._refused(refused)
        return self.apply(received, is_live=is_live)

    def _opened(self, outcome: Outcome) -> list[Received]:
        """What is to be applied of something that was opened."""
        if isinstance(outcome, Refused):
            self._refused(outcome)
        elif isinstance(outcome, Ignored):
            self._session.reporter.count("ignored", outcome.payload_type.name)
        elif isinstance(outcome.payload, CommunityUserKicked):
            # It names no member, so that a removed one could pass it on: the description counts.
            self._session.reporter.count("kick_notices")
        elif isinstance(outcome.payload, CommunityRequestToJoinResponse):
            return [outcome, *self._enclosed(outcome, outcome.payload)]
        elif outcome.is_direct and isinstance(outcome.payload, CommunityRequestToJoin):
            # A client sends its request to the owner's own key as well, for owners' other devices.
            self._session.reporter.count("ignored", PayloadType.COMMUNITY_REQUEST_TO_JOIN.name)
        elif outcome.is_direct and self._session.direct is not None:
            return self._from_peer(outcome)
        elif outcome.is_direct or (
            # Nobody else hears it, so that it must not count as said in its chat.
            outcome.is_private and isinstance(outcome.payload, ChatPayload)
        ):
            self._refused(_direct(outcome))
        else:
            return [outcome]
        return []

    def _enclosed(
        self, received: Received, answer: CommunityRequestToJoinResponse
    ) -> list[Received]:
        """The description that an owner's answer brings, so that no member has to wait for it."""
        topic = Community(received.signer).description_topic
        outcome = read_again(answer.community_description_protocol_message, topic)
        if not isinstance(outcome, Received) or outcome.signer != received.signer:
            return []
        described = self._session.group_keys.describe(outcome)
        if isinstance(described, Refused):
            self._refused(described)
            return []
        return [described]

    def _from_peer(self, received: Received) -> list[Received]:
        """A direct message as what it is here: in the chat with its author, or in a group."""
        payload = received.payload
        if isinstance(payload, MembershipUpdateMessage) and self._session.groups is not None:
            outcome = self._session.groups.observe(received, payload)
            if isinstance(outcome, Refused):
                self._refused(outcome)
                return []
            return [outcome]
        is_in_group = isinstance(payload, ChatPayload) and (
            payload.message_type is MessageType.PRIVATE_GROUP
        )
        if is_in_group and self._session.groups is not None:
            refused = self._session.groups.forbids(received)
            if refused is not None:
                self._refused(refused)
                return []
        return [_from_peer(received)]

    def apply(self, received: Iterable[Received], *, is_live: bool) -> list[Arrival]:
        """Return the events that the payloads cause, in the same order."""
        now_ms = self._session.now_ms()
        in_order = sorted(received, key=lambda one: (clock_ms(one), one.message_id))
        happened = []
        for one in in_order:
            applied = (self._apply(e, now_ms, is_live) for e in self._with_what_waited(one))
            happened += [arrival for arrival in applied if arrival is not None]
        return happened

    def _with_what_waited(self, received: Received) -> Iterator[Received]:
        """A payload, and after it what waited for it."""
        yield received
        described, community = self._session.descriptions, Community(received.signer)
        if isinstance(received.payload, CommunityDescription) and described.of(community):
            yield from described.let_in(community)

    def _apply(self, received: Received, now_ms: int, is_live: bool) -> Arrival | None:
        if refused := review(received, now_ms) or self._session.descriptions.judge(received):
            self._refused(refused)
            self._forget(received)
            return None
        if isinstance(received.payload, CommunityEncryptionKeysRequest):
            if self._session.owned is not None:
                self._session.owned.take(received)
            return None  # it has no clock: the next one is the same
        outcome = self.conversation.apply(received, now_ms)
        if isinstance(outcome, Refused):
            if outcome.reason is not RefusalReason.OUTDATED or outcome.signer != self._me:
                self._refused(outcome)  # the bot's own come back in any order
            if outcome.reason is RefusalReason.REPEATED:
                self._session.settled(received)
            self._forget(received)
            return None
        if not isinstance(outcome, Applied):
            self._forget(received)
            return None  # an edit of what is not here: it counts when that comes
        for refused in outcome.refused:
            self._refused(refused)
        payload = received.payload
        if isinstance(payload, ChatPayload):
            self._session.memory.clock(payload.chat_id).observe(payload.clock, now_ms)
        owned = self._session.owned
        taken = None if owned is None else owned.take(received, is_live=is_live)
        self._session.learn(received)
        membership = self._session.memberships.observe(received)
        at_ms = min(clock_ms(received), now_ms)  # a fast clock is a time that has not been
        return Arrival(received, outcome, at_ms, is_live, membership, taken)

    def _forget(self, received: Received) -> None:
        """What waited for a key comes to nothing."""
        if received.waiting_id is not None:
            self._session.group_keys.done(received.waiting_id)

    def _refused(self, refused: Refused) -> None:
        self._session.reporter.count("refused", refused.reason.value)
        if refused.reason not in _ORDINARY:
            self._session.reporter.log(
                "refused",
                logging.DEBUG,
                reason=refused.reason.value,
                detail=refused.detail,
                signer=refused.signer and refused.signer.hex,
            )


def _from_peer(received: Received) -> Received:
    """A message one to one in the chat with its author; on the wire it names its receiver."""
    payload = received.payload
    if not isinstance(payload, ChatPayload) or payload.message_type is not MessageType.ONE_TO_ONE:
        return received
    payload = replace(payload, chat_id=received.signer.hex)
    return replace(received, signed=replace(received.signed, payload=payload))


def _direct(received: Received) -> Refused:
    detail = f"{type(received.payload).__name__}: it was encrypted for the bot alone"
    return Refused(
        RefusalReason.DIRECT_MESSAGE_NOT_SUPPORTED, detail, received.signer, received.message_id
    )


def clock_ms(received: Received) -> int:
    """Return the clock that the author signed (ms), or the Waku timestamp if the clock is not a
    time.

    A clock in seconds is taken as the last millisecond of that second. A request to join in the
    bot's first second therefore does not count as older than the bot.
    """
    payload = received.payload
    if isinstance(payload, ChatPayload):
        return payload.clock
    if isinstance(payload, CommunityRequestToJoin | CommunityRequestToLeave):
        return payload.clock * 1000 + 999
    return received.timestamp_ms
