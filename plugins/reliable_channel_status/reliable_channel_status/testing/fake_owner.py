"""Scripted owner of a community in a test, which admits and refuses members as a Status client
does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from waku import PubsubTopic, WakuMessage

from ..community.control_node import MAX_PENDING, REQUEST_LIFE_S
from ..community.edits import CommunityProfile, described, with_channel
from ..community.encryption import hide
from ..community.group_keys import TABLES, GroupKeys
from ..community.join_requests import why_refused
from ..wire.application import wrap
from ..wire.chats import Community, partitioned_topic
from ..wire.community_payloads import (
    CommunityDescription,
    CommunityMember,
    CommunityRequestToJoin,
    CommunityRequestToJoinResponse,
    CommunityRequestToLeave,
    CommunityTokenPermission,
)
from ..wire.direct.correspondence import Correspondence
from ..wire.direct.dh import ANY_DEVICE
from ..wire.direct.session_store import MemorySessionStore
from ..wire.enums import Access, Role, TokenPermissionType
from ..wire.hash_ratchet import seal_for_members, write_keys
from ..wire.keys import PrivateKey, PublicKey
from ..wire.opening import Opener
from ..wire.outcomes import Received, SignedPayload
from ..wire.sealing import NS_PER_MS, Sealer
from ..wire.status_pb2 import ProtocolMessage
from ..wire.topics import Topic
from .fake_client import FakeClient, Network

OUTDATED: Final = "outdated request to join"
BANNED: Final = "can't request access"
EXPIRED: Final = "request is expired"
TOO_MANY: Final = "max number of requests to join reached"


class FakeOwner(FakeClient):
    """Scripted client of a community's owner. The owner has the community's key, publishes the
    description, and shows messages of members.

    Args:
        tester: the test.
        key: of the community.
        topics: those on which members write.
        channels: uuids of the community's channels.
        access: whether all are let in at once.
        shards: where the client listens; those before 2.40 to 64, those from 2.42 on to 32 alone.
        token_permissions: what its description asks of members.
        identity: the owner's own key. With it the community is encrypted, and the owner's client
            publishes and sends keys as status-go does: from this key, not from the community's.
    """

    def __init__(
        self,
        tester: Network,
        key: PrivateKey,
        topics: Sequence[Topic],
        *,
        channels: Sequence[str],
        access: Access,
        shards: Sequence[PubsubTopic],
        token_permissions: Sequence[CommunityTokenPermission] = (),
        identity: PrivateKey | None = None,
    ) -> None:
        community = Community(key.public_key)
        super().__init__(tester, community, topics, shards=shards)
        self.members: dict[PublicKey, None] = {}
        """Users that the description lists, beside the owner."""
        self.requests: list[PublicKey] = []
        """Users that wait to be let in."""
        self.banned: set[PublicKey] = set()
        """Users whose requests are refused."""
        self._access = access
        self._channels = tuple(channels)
        self._token_permissions = {one.id: one for one in token_permissions}
        self._key = key
        self._identity = identity
        self._sealer = Sealer(identity or key)
        self.own_keys = GroupKeys(
            key, [community], MemorySessionStore(TABLES), is_owner=lambda *_: False
        )
        """Group keys that this owner made."""
        if identity is not None:
            gate = CommunityTokenPermission(id="all", type=TokenPermissionType.BECOME_MEMBER)
            self._token_permissions["all"] = gate
            self.rekeys()
        self._clock = 1
        self._opener = Opener(
            [*topics, community.requests_topic], private_keys=[key], groups=self.own_keys
        )
        self._requested: dict[PublicKey, int] = {}

    def rekeys(self) -> None:
        """Make a new key for the members of the community. `publishes` sends the new key to the
        members."""
        self.own_keys.generate(self.community.public_key.compressed, self._tester.now_ms())

    @property
    def description(self) -> CommunityDescription:
        """Present description of the community, published or not."""
        profile = CommunityProfile(name="test", description="a test", access=self._access)
        description = described(profile)(
            CommunityDescription(
                clock=self._clock,
                members=self._members,
                ban_list=tuple(user.hex for user in self.banned),
                id=self.community.id,
                token_permissions=self._token_permissions,
            )
        )
        for number, channel in enumerate(self._channels):
            description = with_channel(channel, f"channel {number}")(description)
        return description

    @property
    def _members(self) -> dict[str, CommunityMember]:
        listed = {user.hex: CommunityMember() for user in self.members}
        if self._identity is not None:
            owner = CommunityMember(roles=(Role.ROLE_OWNER,))
            listed[self._identity.public_key.hex] = owner
        return listed

    def publishes(self) -> CommunityDescription:
        """Publish the present description of the community."""
        self._clock = self._tester.next_clock()
        description, topic = self.description, self.community.description_topic
        signed = self._signed(description)
        plain = signed.data
        if self._identity is not None:  # inside a message that brings the key for all members
            group = self.community.public_key.compressed
            current = self.own_keys.current(group)
            assert current is not None
            message = ProtocolMessage()
            encrypted = message.encrypted_message[ANY_DEVICE]
            encrypted.payload = plain
            encrypted.hr_header.group_id = group
            encrypted.hr_header.keys.rekey_group.CopyFrom(
                seal_for_members(current, self._identity, self.members)
            )
            plain = message.SerializeToString()
        for sealed in self._sealer.seal_protocol(plain, topic, self._tester.now_ms() * NS_PER_MS):
            self._tester.publish(sealed)
        return description

    def _signed(self, description: CommunityDescription) -> SignedPayload:
        if self._identity is not None:
            description = hide(description, self.community, self.own_keys.encrypt_part)
        return wrap(description, self._key)

    def lets_in(self, user: PublicKey) -> None:
        """Publish a description that lists a user, and send an answer with the description to the
        user."""
        self.members[user] = None
        self._answer(user, accepted=True)
        self.publishes()

    def rejects(self, user: PublicKey) -> None:
        """Send a user the answer that the user is not admitted."""
        self._answer(user, accepted=False)

    def removes(self, user: PublicKey) -> None:
        """Publish a description that does not list a user any more."""
        self.members.pop(user, None)
        if self._identity is not None:
            self.rekeys()
        self.publishes()

    def hear(self, message: WakuMessage, shard: str) -> None:
        """Receive a Waku message that a node relayed, except the owner's own messages."""
        if message.content_topic != self.community.description_topic.content_topic:
            super().hear(message, shard)

    def _take(self, received: Received) -> None:
        payload, signer = received.payload, received.signer
        if isinstance(payload, CommunityRequestToJoin):
            self._request(payload, signer)
        elif isinstance(payload, CommunityRequestToLeave):
            self.removes(signer)
        else:
            super()._take(received)

    def _request(self, request: CommunityRequestToJoin, signer: PublicKey) -> None:
        why = why_refused(request, signer, self.community)
        if why is None and signer in self.banned:
            why = BANNED
        if why is None and request.clock + REQUEST_LIFE_S <= self._tester.now_ms() // 1000:
            why = EXPIRED
        if why is None and len(self.requests) >= MAX_PENDING:
            why = TOO_MANY
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

    def _answer(self, user: PublicKey, *, accepted: bool) -> None:
        now_ms = self._tester.now_ms()
        description = b""
        if accepted:
            self._clock = self._tester.next_clock()
            description = self._signed(self.description).data
        response = CommunityRequestToJoinResponse(
            clock=self._tester.next_clock(),
            accepted=accepted,
            community_id=self.community.public_key.compressed,
            community_description_protocol_message=description,
        )
        plain, topic = wrap(response, self._key).data, partitioned_topic(user)
        if self._identity is not None and accepted:
            plain = self._with_keys(plain, user)
        for sealed in self._sealer.seal_protocol(plain, topic, now_ms * NS_PER_MS, receiver=user):
            self._tester.publish(sealed)

    def _with_keys(self, plain: bytes, user: PublicKey) -> bytes:
        """An answer that brings the community's keys in its header, as status-go sends it."""
        assert self._identity is not None
        group = self.community.public_key.compressed
        message = ProtocolMessage.FromString(Correspondence(self._identity).encrypt(plain, user))
        for encrypted in message.encrypted_message.values():
            encrypted.hr_header.group_id = group
            encrypted.hr_header.keys.CopyFrom(write_keys(self.own_keys.keys_of(group)))
        return message.SerializeToString()
