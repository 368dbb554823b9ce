"""A community's owner in a test: lets in and refuses as a Status client does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol

from waku import PubsubTopic, WakuMessage

from ..chats import Community, partitioned_topic
from ..community_payloads import (
    CommunityDescription,
    CommunityMember,
    CommunityPermissions,
    CommunityRequestToJoin,
    CommunityRequestToJoinResponse,
    CommunityRequestToLeave,
)
from ..enums import Access
from ..keys import PrivateKey, PublicKey
from ..membership import why_refused
from ..outcomes import MessageId, Received
from ..payloads import ChatMessage
from ..pipeline import Opener, Sealer
from ..topics import Topic

NOT_A_MEMBER: Final = "user can't post in community"
OUTDATED: Final = "outdated request to join"


class Network(Protocol):
    """What the owner needs of the test: time, and somewhere to publish."""

    def now_ms(self) -> int:
        """The time, in milliseconds since 1970."""

    def next_clock(self) -> int:
        """The clock of what a user does now."""

    def publish(self, message: WakuMessage) -> None:
        """Publish a message where the bot writes."""


class KitOwner:
    """The owner's client: it has the community's key, publishes the description, and shows what
    members write.

    Args:
        kit: the test.
        key: of the community.
        topics: those on which members write.
        access: whether all requesters are accepted at once.
        shards: where the client listens; those before 2.40 to 64, those from 2.42 on to 32 alone.
    """

    def __init__(
        self,
        kit: Network,
        key: PrivateKey,
        topics: Sequence[Topic],
        *,
        access: Access,
        shards: Sequence[PubsubTopic],
    ) -> None:
        self.community = Community(key.public_key)
        self.members: dict[PublicKey, None] = {}
        """The members that the description lists, beside the owner."""
        self.requests: list[PublicKey] = []
        """The users whose requests to join are open."""
        self.refused: list[str] = []
        """Why something was dropped, as the client logs it."""
        self.shown: list[ChatMessage] = []
        """What the client shows."""
        self._kit = kit
        self._access = access
        self._shards = {str(shard) for shard in shards}
        self._sealer = Sealer(key)
        self._opener = Opener([*topics, self.community.requests_topic], private_keys=[key])
        self._seen: set[MessageId] = set()
        self._requested: dict[PublicKey, int] = {}

    def publishes(self) -> CommunityDescription:
        """Publish the description as it is now."""
        description = self._description()
        sealed = self._sealer.seal(
            description, self.community.description_topic, self._kit.now_ms()
        )
        self._kit.publish(sealed.messages[0])
        return description

    def lets_in(self, user: PublicKey) -> None:
        """Publish a description that lists a user, and send the answer that carries it."""
        self.members[user] = None
        self._answer(user, accepted=True)
        self.publishes()

    def rejects(self, user: PublicKey) -> None:
        """Answer that a user is not accepted."""
        self._answer(user, accepted=False)

    def removes(self, user: PublicKey) -> None:
        """Publish a description that does not list a user any more."""
        self.members.pop(user, None)
        self.publishes()

    def hear(self, message: WakuMessage, shard: str) -> None:
        """Take what a node relayed."""
        if shard not in self._shards or message.version != 1:  # as the client of 2024
            return
        for outcome in self._opener.receive(message, self._kit.now_ms()):
            if isinstance(outcome, Received) and outcome.message_id not in self._seen:
                self._seen.add(outcome.message_id)
                self._take(outcome)

    def _take(self, received: Received) -> None:
        payload, signer = received.payload, received.signer
        if isinstance(payload, CommunityRequestToJoin):
            self._request(payload, signer)
        elif isinstance(payload, CommunityRequestToLeave):
            self.removes(signer)
        elif isinstance(payload, ChatMessage):
            if signer in self.members:
                self.shown.append(payload)
            else:
                self.refused.append(NOT_A_MEMBER)

    def _request(self, request: CommunityRequestToJoin, signer: PublicKey) -> None:
        why = why_refused(request, signer, self.community)
        if why is None and request.clock <= self._requested.get(signer, 0):
            why = OUTDATED
        if why is not None:
            self.refused.append(why)
            return
        self._requested[signer] = request.clock
        if self._access is Access.AUTO_ACCEPT:
            self.lets_in(signer)
        else:
            self.requests.append(signer)

    def _description(self) -> CommunityDescription:
        return CommunityDescription(
            clock=self._kit.next_clock(),
            members={user.hex: CommunityMember() for user in self.members},
            permissions=CommunityPermissions(access=self._access),
            id=self.community.id,
        )

    def _answer(self, user: PublicKey, *, accepted: bool) -> None:
        now_ms = self._kit.now_ms()
        description = b""
        if accepted:
            topic = self.community.description_topic
            description = self._sealer.seal(self._description(), topic, now_ms).signed.data
        response = CommunityRequestToJoinResponse(
            clock=self._kit.next_clock(),
            accepted=accepted,
            community_id=self.community.public_key.compressed,
            community_description_protocol_message=description,
        )
        sealed = self._sealer.seal(response, partitioned_topic(user), now_ms, receiver=user)
        self._kit.publish(sealed.messages[0])
