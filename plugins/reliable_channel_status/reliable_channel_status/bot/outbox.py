"""Outgoing messages of a bot, which are signed, encrypted and stored before the bot publishes
them."""

import logging
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, replace
from typing import Final

import anyio

from reliable_channel.spi import MemoryStateStore, StateStore
from waku import WakuClient, WakuMessage

from ..community.control_memory import ControlMemory
from ..community.control_node import NotControlNode
from ..community.descriptions import Descriptions
from ..community.encryption import group_of_chat
from ..community.group_keys import TABLES as GROUP_TABLES
from ..community.group_keys import GroupKeys
from ..community.join_requests import join_request
from ..community.member_keys import HOLDERS, MemberKeys
from ..wire.application import unwrap, wrap
from ..wire.chats import Community, partitioned_topic
from ..wire.community_payloads import (
    CommunityDescription,
    CommunityEncryptionKeysRequest,
    CommunityRequestToJoin,
    CommunityRequestToLeave,
)
from ..wire.direct.correspondence import Correspondence
from ..wire.direct.groups import MembershipEventType
from ..wire.enums import MessageType
from ..wire.hash_ratchet import GroupKey, write_keys
from ..wire.keys import PrivateKey, PublicKey, keccak256
from ..wire.outcomes import MessageId, SignedPayload
from ..wire.payload_builders import Make
from ..wire.payloads import (
    ChatMessage,
    ChatPayload,
    EmojiReaction,
    MembershipUpdateMessage,
)
from ..wire.recent import Recent
from ..wire.rooms import Room, Rooms
from ..wire.rules import invalid
from ..wire.sealing import Outgoing, Sealer
from ..wire.topics import Topic
from .direct import DirectDesk, Kept
from .groups import Groups
from .limits import LoopGuard
from .link import NS_PER_MS, Node
from .membership import Memberships
from .memory import BotMemory, OutboxEntry, OutboxFull
from .options import BotOptions
from .owned import OwnedCommunity
from .reporting import Reporter
from .texts import Languages

ASK_KEYS_MS: Final = 300_000
"""Minimum time between two requests to the control node for a missing key, as in status-go."""
REMEMBERED_NAMES: Final = 10_000
REMEMBERED_SENT: Final = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class BotContext:
    """External resources of a bot's run, which are real in `StatusBot.run` and virtual in tests."""

    key: PrivateKey
    memory: BotMemory
    client: WakuClient | Node
    """REST client of the node, or another link to Waku."""
    now_ms: Callable[[], int]
    """Function that returns the current time (ms since 1970)."""
    pause: Callable[[float], Awaitable[None]] = anyio.sleep
    """Function that waits between two reads of the node's cache, at most the given number of
    seconds."""
    community_key: PrivateKey | None = None
    """Private key of the community that the bot runs."""
    open_control_store: Callable[[], StateStore] = MemoryStateStore
    """Function that opens the state of the community's control node."""
    open_store: Callable[[Community], StateStore] = lambda community: MemoryStateStore()
    """Function that opens the state of a community's SDS channel."""


class Outbox:
    """Messages that a bot sends in a run. No method of `Outbox` waits for the network."""

    def __init__(
        self,
        context: BotContext,
        rooms: Rooms,
        options: BotOptions,
        moderators: Iterable[PublicKey],
        reporter: Reporter,
    ) -> None:
        self.rooms = rooms
        self.memory = context.memory
        self.now_ms = context.now_ms
        self.public_key = context.key.public_key
        self.reporter = reporter
        self.has_mail = anyio.Event()
        """Set when there is something to publish; the task that waited puts a new one here."""
        self._options = options
        self._key = context.key
        self._sealer = Sealer(self._key, waku_version=options.waku_version)
        self._guard = LoopGuard(options.loops)
        self._withheld: Recent[MessageId, None] = Recent(REMEMBERED_SENT)
        self._moderators = frozenset(moderators)
        self.on_direct: Callable[[SignedPayload, Topic], None] = lambda signed, topic: None
        """Given what is said to a user alone."""
        self.languages = Languages(
            self.memory, options.language, {options.language: options.texts, **options.languages}
        )
        """What users chose, and the bot's own texts in it."""
        self.descriptions = Descriptions(rooms, self.public_key)
        self.memberships = Memberships(
            self.public_key,
            rooms.communities,
            self.memory,
            reporter,
            self.now_ms,
            self.request_to_join if options.request_membership else None,
        )
        self._kept_keys = Kept(self.memory, GROUP_TABLES)
        self.group_keys = GroupKeys(
            self._key,
            rooms.communities,
            self._kept_keys,
            is_owner=lambda user, community: self.descriptions.owns(user, community),
        )
        """Of encrypted communities and channels."""
        self._asked_keys: dict[Community, int] = {}
        self.direct: DirectDesk | None = None
        self.groups: Groups | None = None
        if rooms.has_direct:
            self.direct = DirectDesk(
                self._key,
                self._sealer,
                self.memory,
                reporter,
                self.now_ms,
                lambda message_id: self._acknowledged.renew(message_id, None),
                options.direct_encryption,
            )
            self.groups = Groups(self._key, self.memory, rooms, self.now_ms, self._to_members)
        self.correspondence = (
            Correspondence(self._key) if self.direct is None else self.direct.correspondence
        )
        """Opens what is encrypted for the bot; without functions for direct messages, group keys
        alone."""
        self._control_memory: ControlMemory | None = None
        self.owned: OwnedCommunity | None = None
        """The community that the bot runs, if it has one's key."""
        if context.community_key is not None:
            self.owned = self._own(context.community_key, context.open_control_store())
        self._names: Recent[PublicKey, str] = Recent(REMEMBERED_NAMES)
        self._sent: Recent[str, MessageId] = Recent(REMEMBERED_SENT)
        self._acknowledged: Recent[MessageId, None] = Recent(REMEMBERED_SENT)

    # -- chats -------------------------------------------------------------------------------------

    def say(self, room: Room, make: Make, once: str) -> MessageId:
        """Sign, store and publish a payload, unless this was done before for the same cause.

        Raises:
            ValueError: the payload is none that clients take.
            OutboxFull: too much waits for the node.
            NotAMember: clients would drop it, as the bot is not a member of the community.
            NoGroupKey: the channel is encrypted, and its key has not come.
        """
        if (before := self.memory.sent_before(once)) is not None:
            return before
        self.memberships.check(room.community)
        now_ms = self.now_ms()
        payload = self._payload(room, make, now_ms)
        self.memory.keep_clock(room.chat_id)
        if room.message_type is MessageType.PRIVATE_GROUP:
            return self._say_in_group(room, payload, once)
        if room.peer is not None:
            signed = wrap(payload, self._key)
            self.on_direct(signed, room.topic)
            return self._send(once, self._desk.seal(signed, room.peer))
        if room.community is not None and (group := self._group_of(room)) is not None:
            signed = wrap(payload, self._key)
            data, timestamp_ns = self.group_keys.encrypt(group, signed.data), now_ms * NS_PER_MS
            messages = self._sealer.seal_protocol(data, room.topic, timestamp_ns)
            return self._send(once, Outgoing(signed, messages))
        if room.community is None or self._options.reliability == "plain":
            return self._send(once, self._sealer.seal(payload, room.topic, now_ms))
        signed = wrap(payload, self._key)
        carried = WakuMessage(signed.data, room.topic.content_topic, timestamp=now_ms * NS_PER_MS)
        return self._send(once, Outgoing(signed, (carried,)), room.community.id)

    def _group_of(self, room: Room) -> bytes | None:
        """The group for which a channel is encrypted; None for one in the clear. Without a
        description, as after a restart, it is encrypted if there is a key for it."""
        assert room.community is not None
        description = self.descriptions.of(room.community)
        if description is not None:
            return group_of_chat(description, room.community, room.chat_id)
        groups = room.chat_id.encode(), room.community.public_key.compressed
        return next((group for group in groups if self.group_keys.current(group)), None)

    def looked(self) -> None:
        """Store the keys of decrypted messages, and request missing keys."""
        self._kept_keys.write()
        self._ask_for_keys()
        if self.direct is not None:
            self.direct.looked()

    def _ask_for_keys(self) -> None:
        """Ask the control nodes for keys that something waits for."""
        for community in self.group_keys.lacking:
            now_ms = self.now_ms()
            due_ms = self._asked_keys.setdefault(community, now_ms) + ASK_KEYS_MS
            if now_ms < due_ms or self.memberships.standing(community) != "member":
                continue
            self._asked_keys[community] = now_ms
            request = CommunityEncryptionKeysRequest(community_id=community.public_key.compressed)
            try:
                self._to_owner(community, request)
            except OutboxFull as error:  # the next look is another chance
                self.reporter.log("keys_not_requested", logging.WARNING, why=str(error))
            else:
                self.reporter.count("keys_requested")

    def _payload(self, room: Room, make: Make, now_ms: int) -> ChatPayload:
        payload = make(self.memory.clock(room.chat_id).next(now_ms), now_ms)
        if isinstance(payload, ChatMessage) and not payload.display_name:
            payload = replace(payload, display_name=self._options.display_name)
        if why := invalid(payload):
            raise ValueError(f"{type(payload).__name__}: {why}")
        return payload

    def answer_join_request(self, requester: PublicKey, *, accepted: bool) -> None:
        """Admit a user that requested to join the community, or decline the request.

        Raises:
            NotControlNode: the bot does not run the community.
            ValueError: the request does not wait.
        """
        if self.owned is None:
            raise NotControlNode(
                "the bot does not have the key of a community; give `community_key_file`"
            )
        self.owned.decide(requester, accepted=accepted)

    def _own(self, key: PrivateKey, store: StateStore) -> OwnedCommunity:
        self._control_memory = ControlMemory(store, key)
        return OwnedCommunity(
            self._control_memory,
            key,
            self.public_key,
            Sealer(key, waku_version=self._options.waku_version),
            self._send_for_community,
            lambda description: self._own_changed(Community(key.public_key), description),
            MemberKeys(
                self.group_keys,
                key,
                self.public_key,
                Kept(self.memory, [HOLDERS]),
                self._send_keys,
            ),
            self.reporter,
            self.now_ms,
        )

    def _send_for_community(self, once: str, outgoing: Outgoing, is_everywhere: bool) -> None:
        """Publish what the community's key signed, on each shard where a client may listen."""
        shards = (self._options.shard, *(self._options.also_listen if is_everywhere else ()))
        for shard in dict.fromkeys(shards):
            if self.memory.sent_before(f"{once} on {shard}") is None:
                self._send(f"{once} on {shard}", outgoing, str(shard))

    def _send_keys(
        self, once: str, user: PublicKey, group_id: bytes, keys: tuple[GroupKey, ...]
    ) -> None:
        """Send keys of a group to a member, encrypted for its devices."""
        data = self.correspondence.encrypt_keys(group_id, write_keys(keys), user)
        timestamp_ns = self.now_ms() * NS_PER_MS
        messages = self._sealer.seal_protocol(
            data, partitioned_topic(user), timestamp_ns, receiver=user
        )
        message_id = MessageId(f"0x{keccak256(data).hex()}")
        self.memory.say(once, message_id, str(self._options.shard), messages)
        self.has_mail.set()
        self.reporter.count("keys_sent")

    def _own_changed(self, community: Community, description: CommunityDescription) -> None:
        self.descriptions.learn(community, description)
        self.memberships.owns(community, description)

    def close(self) -> None:
        """Close the resources that this run opened."""
        if self._control_memory is not None:
            self._control_memory.close()

    # -- groups ------------------------------------------------------------------------------------

    def _say_in_group(self, room: Room, payload: ChatPayload, once: str) -> MessageId:
        """Send a message to each member; its id is the same for all."""
        groups = self.private_groups
        said: ChatPayload | MembershipUpdateMessage = payload
        if isinstance(payload, ChatMessage | EmojiReaction):
            said = groups.carrying(room, payload)
        signed = wrap(said, self._key)
        others = list(enumerate(groups.others(room.chat_id)))
        for number, member in reversed(others):  # `once` itself last: then all have it
            self._send(once if not number else f"{once} {number}", self._desk.seal(signed, member))
        return signed.message_id

    def _to_members(
        self, update: MembershipUpdateMessage, members: Iterable[PublicKey], once: str
    ) -> None:
        signed = wrap(update, self._key)
        for member in members:
            self._send(f"{once} {member.hex}", self._desk.seal(signed, member))

    def join_group(self, chat_id: str) -> None:
        """Announce to a private group that the bot joined it, unless the bot announced that before.

        Raises:
            ValueError: the bot is not in the group.
            OutboxFull: too much waits for the node.
        """
        if self.public_key not in self.private_groups.of(chat_id).joined:
            self.private_groups.change(chat_id, MembershipEventType.MEMBER_JOINED)

    @property
    def private_groups(self) -> Groups:
        """Private groups of the bot.

        Raises:
            ValueError: the bot has no function for direct messages.
        """
        if self.groups is None:
            raise ValueError(
                "the bot has no handler for direct messages or groups, such as on_direct_message"
            )
        return self.groups

    @property
    def _desk(self) -> DirectDesk:
        if self.direct is None:
            raise ValueError(
                "the bot has no handler for direct messages, such as on_direct_message"
            )
        return self.direct

    # -- communities -------------------------------------------------------------------------------

    def request_to_join(self, community: Community) -> None:
        """Request membership from the owner of a community.

        Raises:
            KeyError: the bot does not know the community.
            OutboxFull: too much waits for the node.
        """
        request = join_request(
            self._key, community, self.now_ms(), display_name=self._options.display_name
        )
        self._to_owner(community, request)
        self.memberships.requested(community)

    def _to_owner(
        self,
        community: Community,
        payload: CommunityRequestToJoin | CommunityRequestToLeave | CommunityEncryptionKeysRequest,
    ) -> None:
        """Send something to the owner on each shard: which one the owner listens to is unknown."""
        self.memberships.standing(community)
        signed, now_ms = wrap(payload, self._key), self.now_ms()
        owner, topic = community.public_key, community.requests_topic
        for shard in dict.fromkeys((self._options.shard, *self._options.also_listen)):
            outgoing = self._sealer.seal_signed(signed, topic, now_ms, receiver=owner)
            self._send(f"{signed.message_id} {now_ms} on {shard}", outgoing, str(shard))

    def without_sds(self, said: OutboxEntry) -> tuple[WakuMessage, ...]:
        """Encrypt a message of an SDS channel so that it can be sent without SDS."""
        (carried,) = said.messages
        signed = unwrap(carried.payload)
        assert isinstance(signed, SignedPayload)  # the bot signed it
        assert isinstance(signed.payload, ChatPayload)
        chat_id = signed.payload.chat_id
        room = self.rooms.find(chat_id)  # None where the bot has left since
        topic = Community.parse(said.route).universal_topic if room is None else room.topic
        return self._sealer.seal_signed(signed, topic, self.now_ms()).messages

    def _send(self, once: str, outgoing: Outgoing, route: str | None = None) -> MessageId:
        route = route or str(self._options.shard)
        self.memory.say(once, outgoing.message_id, route, outgoing.messages)
        self.has_mail.set()
        self.reporter.count("said", type(outgoing.signed.payload).__name__)
        return outgoing.message_id
