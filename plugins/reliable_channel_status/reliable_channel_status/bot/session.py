"""One run of a bot, as its handlers see it: its identity, its chats, the users that it knows."""

import logging
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, replace
from typing import Final

import anyio

from reliable_channel.spi import MemoryStateStore, StateStore
from waku import WakuClient, WakuMessage

from ..application import unwrap, wrap
from ..chats import Community, partitioned_topic
from ..community_encryption import group_of_chat
from ..community_payloads import (
    CommunityDescription,
    CommunityEncryptionKeysRequest,
    CommunityRequestToJoin,
    CommunityRequestToLeave,
)
from ..control_node import NotControlNode
from ..direct.correspondence import Correspondence
from ..direct.groups import MembershipEventType
from ..enums import MessageType
from ..group_keys import TABLES as GROUP_TABLES
from ..group_keys import GroupKeys
from ..hash_ratchet import GroupKey, write_keys
from ..keys import PrivateKey, PublicKey, keccak256
from ..membership import join_request
from ..mentioning import mention, mentions
from ..outcomes import MessageId, Received, SignedPayload
from ..payloads import (
    AcceptContactRequest,
    ChatMessage,
    ChatPayload,
    EmojiReaction,
    MembershipUpdateMessage,
    RetractContactRequest,
)
from ..pipeline import Outgoing, Sealer
from ..recent import Recent
from ..rules import invalid
from .control_memory import ControlMemory
from .described import Described
from .direct import Contact, ContactState, DirectDesk, Kept
from .groups import Groups
from .languages import Languages
from .link import NS_PER_MS, Node
from .loops import LoopGuard, Pair
from .membership import Memberships, NotAMember
from .memory import BotMemory, OutboxFull, Said
from .options import BotOptions
from .owned import OwnedCommunity
from .owned_keys import HOLDERS, OwnedKeys
from .rooms import Room, Rooms, direct_room
from .sayings import Make, contact_request, message
from .watching import Watch

ASK_KEYS_MS: Final = 300_000
"""After which the control node is asked for a key that something waits for, and asked again; as
often as status-go asks."""
REMEMBERED_NAMES: Final = 10_000
REMEMBERED_SENT: Final = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What a run is given from outside: real ones by `StatusBot.run`, virtual ones by a test."""

    key: PrivateKey
    memory: BotMemory
    client: WakuClient | Node
    """The node's REST client, or another way to Waku."""
    now_ms: Callable[[], int]
    """Milliseconds since 1970."""
    pause: Callable[[float], Awaitable[None]] = anyio.sleep
    """Waits so many seconds between two looks into the node's cache, or until a look pays."""
    community_key: PrivateKey | None = None
    """Of a community that the bot runs."""
    open_control_store: Callable[[], StateStore] = MemoryStateStore
    """Where that community's control node keeps its state."""
    open_store: Callable[[Community], StateStore] = lambda community: MemoryStateStore()
    """Where the SDS channel of a community keeps its state."""


class Session:
    """What handlers act through; nothing here waits."""

    def __init__(
        self,
        surroundings: Surroundings,
        rooms: Rooms,
        options: BotOptions,
        moderators: Iterable[PublicKey],
        watch: Watch,
    ) -> None:
        self.rooms = rooms
        self.memory = surroundings.memory
        self.now_ms = surroundings.now_ms
        self.public_key = surroundings.key.public_key
        self.watch = watch
        self.has_mail = anyio.Event()
        """Set when there is something to publish; the task that waited puts a new one here."""
        self._options = options
        self._key = surroundings.key
        self._sealer = Sealer(self._key, waku_version=options.waku_version)
        self._guard = LoopGuard(options.loops)
        self._withheld: Recent[MessageId, None] = Recent(REMEMBERED_SENT)
        self._moderators = frozenset(moderators)
        self.languages = Languages(
            self.memory, options.language, {options.language: options.texts, **options.languages}
        )
        """What users chose, and the bot's own texts in it."""
        self.described = Described(rooms, self.public_key)
        self.memberships = Memberships(
            self.public_key,
            rooms.communities,
            self.memory,
            watch,
            self.now_ms,
            self.request_to_join if options.request_membership else None,
        )
        self._kept_keys = Kept(self.memory, GROUP_TABLES)
        self.group_keys = GroupKeys(
            self._key,
            rooms.communities,
            self._kept_keys,
            is_owner=lambda user, community: self.described.owns(user, community),
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
                watch,
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
        if surroundings.community_key is not None:
            self.owned = self._own(surroundings.community_key, surroundings.open_control_store())
        self._names: Recent[PublicKey, str] = Recent(REMEMBERED_NAMES)
        self._sent: Recent[str, MessageId] = Recent(REMEMBERED_SENT)
        self._acknowledged: Recent[MessageId, None] = Recent(REMEMBERED_SENT)

    # -- saying -----------------------------------------------------------------------------------

    def say(self, room: Room, make: Make, once: str) -> MessageId:
        """Sign, keep and publish a payload, unless that was said before.

        Raises:
            ValueError: the payload is none that clients take.
            OutboxFull: too much waits for the node.
            NotAMember: clients would drop it, as the bot is not a member of the community.
            NoGroupKey: the channel is encrypted, and its key has not come.
        """
        if (before := self.memory.said(once)) is not None:
            return before
        self.memberships.check(room.community)
        now_ms = self.now_ms()
        payload = self._payload(room, make, now_ms)
        self.memory.keep_clock(room.chat_id)
        if room.message_type is MessageType.PRIVATE_GROUP:
            return self._say_in_group(room, payload, once)
        if room.peer is not None:
            return self._send(once, self._desk.seal(wrap(payload, self._key), room.peer))
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
        description = self.described.of(room.community)
        if description is not None:
            return group_of_chat(description, room.community, room.chat_id)
        groups = room.chat_id.encode(), room.community.public_key.compressed
        return next((group for group in groups if self.group_keys.current(group)), None)

    def looked(self) -> None:
        """Take note that messages were opened: keep what they brought, and ask for what they
        lack."""
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
                self.watch.log("keys_not_requested", logging.WARNING, why=str(error))
            else:
                self.watch.count("keys_requested")

    def _payload(self, room: Room, make: Make, now_ms: int) -> ChatPayload:
        payload = make(self.memory.clock(room.chat_id).next(now_ms), now_ms)
        if isinstance(payload, ChatMessage) and not payload.display_name:
            payload = replace(payload, display_name=self._options.display_name)
        if why := invalid(payload):
            raise ValueError(f"{type(payload).__name__}: {why}")
        return payload

    def answer_join_request(self, requester: PublicKey, *, accepted: bool) -> None:
        """Let a requester in, or decline.

        Raises:
            NotControlNode: the bot does not run the community.
            ValueError: the request does not wait.
        """
        if self.owned is None:
            raise NotControlNode("the bot has no community's key; give community_key_file=")
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
            OwnedKeys(
                self.group_keys,
                key,
                self.public_key,
                Kept(self.memory, [HOLDERS]),
                self._send_keys,
            ),
            self.watch,
            self.now_ms,
        )

    def _send_for_community(self, once: str, outgoing: Outgoing, is_everywhere: bool) -> None:
        """Publish what the community's key signed, on each shard where a client may listen."""
        shards = (self._options.shard, *(self._options.also_listen if is_everywhere else ()))
        for shard in dict.fromkeys(shards):
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
        self.watch.count("keys_sent")

    def _own_changed(self, community: Community, description: CommunityDescription) -> None:
        self.described.learn(community, description)
        self.memberships.owns(community, description)

    def close(self) -> None:
        """Close what this run opened."""
        if self._control_memory is not None:
            self._control_memory.close()

    # -- groups -----------------------------------------------------------------------------------

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
        """Announce in a group that the bot joined, unless they know.

        Raises:
            ValueError: the bot is not in the group.
            OutboxFull: too much waits for the node.
        """
        if self.public_key not in self.private_groups.of(chat_id).joined:
            self.private_groups.change(chat_id, MembershipEventType.MEMBER_JOINED)

    @property
    def private_groups(self) -> Groups:
        """The bot's groups.

        Raises:
            ValueError: the bot has no function for direct messages.
        """
        if self.groups is None:
            raise ValueError("the bot has no function for direct messages or groups")
        return self.groups

    # -- contacts ---------------------------------------------------------------------------------

    @property
    def _desk(self) -> DirectDesk:
        if self.direct is None:
            raise ValueError(
                "the bot has no function for direct messages, such as on_direct_message"
            )
        return self.direct

    def is_contact(self, user: PublicKey) -> bool:
        """Whether a user and the bot are contacts."""
        if self.direct is None:
            return False
        return self.direct.contacts.of(user).state is ContactState.CONTACT

    def contacts(self) -> tuple[PublicKey, ...]:
        """The bot's contacts."""
        return self._desk.contacts.mutual

    def request_contact(self, user: PublicKey, text: str) -> MessageId:
        """Ask a user to be a contact, or repeat that.

        Raises:
            ValueError: no text, or the bot reads no direct messages.
            OutboxFull: too much waits for the node.
        """
        desk, room = self._desk, direct_room(user)
        once = f"contact {user.hex} {self.now_ms()}"
        message_id = self.say(room, contact_request(room, text), once)
        before, clock = desk.contacts.of(user).state, self.memory.clock(user.hex).last
        known = before in (ContactState.ASKED, ContactState.CONTACT)
        state = ContactState.CONTACT if known else ContactState.REQUESTED
        desk.contacts.put(user, Contact(state, clock, message_id))
        return message_id

    def accept_contact(self, peer: PublicKey, request_id: MessageId, once: str) -> None:
        """Accept a contact request.

        Raises:
            OutboxFull: too much waits for the node.
        """
        clock = self.memory.clock(peer.hex).next(self.now_ms())
        self._to_peer(peer, AcceptContactRequest(id=request_id, clock=clock), once)
        self._desk.contacts.put(peer, Contact(ContactState.CONTACT, clock, request_id))

    def remove_contact(self, peer: PublicKey) -> None:
        """End a contact.

        Raises:
            OutboxFull: too much waits for the node.
        """
        clock = self.memory.clock(peer.hex).next(self.now_ms())
        self._to_peer(peer, RetractContactRequest(clock=clock), f"retract {peer.hex} {clock}")
        self._desk.contacts.put(peer, Contact(ContactState.NONE, clock))

    def _to_peer(
        self, peer: PublicKey, payload: AcceptContactRequest | RetractContactRequest, once: str
    ) -> None:
        if self.memory.said(once) is None:
            self.memory.keep_clock(peer.hex)
            self._send(once, self._desk.seal(wrap(payload, self._key), peer))

    # -- communities ------------------------------------------------------------------------------

    def request_to_join(self, community: Community) -> None:
        """Ask the owner of a community to be let in.

        Raises:
            KeyError: the bot does not know the community.
            OutboxFull: too much waits for the node.
        """
        request = join_request(
            self._key, community, self.now_ms(), display_name=self._options.display_name
        )
        self._to_owner(community, request)
        self.memberships.requested(community)

    def leave(self, community: Community) -> None:
        """Notify the owner of a community that the bot has left it.

        Raises:
            KeyError: the bot does not know the community.
            OutboxFull: too much waits for the node.
        """
        leaving = CommunityRequestToLeave(
            clock=self.now_ms() // 1000, community_id=community.public_key.compressed
        )
        self._to_owner(community, leaving)
        self.memberships.left(community)

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

    def without_sds(self, said: Said) -> tuple[WakuMessage, ...]:
        """Encrypt a message for an SDS channel to go without it."""
        (carried,) = said.messages
        signed = unwrap(carried.payload)
        assert isinstance(signed, SignedPayload)  # the bot signed it
        assert isinstance(signed.payload, ChatPayload)
        chat_id = signed.payload.chat_id
        room = self.rooms.find(chat_id)  # None where the bot has left since
        topic = Community.parse(said.route).universal_topic if room is None else room.topic
        return self._sealer.seal_signed(signed, topic, self.now_ms()).messages

    def sent(self, sds_id: str, message_id: MessageId) -> None:
        """Take note of the id by which SDS knows a message."""
        self._sent.renew(sds_id, message_id)

    def acknowledged(self, sds_id: str) -> None:
        """Take note that another user has a message."""
        if (message_id := self._sent.get(sds_id)) is not None:
            self._acknowledged.renew(message_id, None)

    def is_acknowledged(self, message_id: MessageId) -> bool:
        """Whether another user is known to have a message of the bot's."""
        return message_id in self._acknowledged

    def _send(self, once: str, outgoing: Outgoing, route: str | None = None) -> MessageId:
        route = route or str(self._options.shard)
        self.memory.say(once, outgoing.message_id, route, outgoing.messages)
        self.has_mail.set()
        self.watch.count("said", type(outgoing.signed.payload).__name__)
        return outgoing.message_id

    # -- loops ------------------------------------------------------------------------------------

    def heard(self, pair: Pair, room: Room) -> None:
        """Take note of another's message, and of the loop that it may close: it is announced."""
        if not self._guard.heard(pair, self.now_ms()):
            return
        chat_id, user = pair
        limits = self._options.loops
        self.watch.count("loops_stopped")
        self.watch.log("loop_stopped", logging.WARNING, chat=chat_id, user=user.hex)
        text = self.languages.texts(user).render(
            "loop_stopped",
            user=self.name_of(user),
            minutes=-(-limits.silence_ms // 60_000),
            rounds=limits.turns,
        )
        try:
            self.say(room, message(room, text), f"loop {chat_id} {user.hex} {self.now_ms()}")
        except (OutboxFull, ValueError, NotAMember) as error:
            self.watch.log("loop_not_announced", logging.WARNING, why=str(error))

    def may_answer(self, pair: Pair) -> bool:
        """Take note of an answer; False if none may go out, as a loop was found."""
        if self._guard.is_silent(pair, self.now_ms()):
            return False
        self._guard.answered(pair, self.now_ms())
        return True

    def withhold(self, room: Room, make: Make) -> MessageId:
        """Do not say something; return the id that it would have had.

        Raises:
            ValueError: the payload is none that clients take.
        """
        signed = wrap(self._payload(room, make, self.now_ms()), self._key)
        self._withheld.renew(signed.message_id, None)
        self.watch.count("answers_withheld")
        self.watch.log("answer_withheld", chat=room.chat_id)
        return signed.message_id

    def was_withheld(self, message_id: str) -> bool:
        """Whether a message was withheld, so that no other user has it."""
        return message_id in self._withheld

    # -- people -----------------------------------------------------------------------------------

    def is_privileged(self, user: PublicKey, chat_id: str) -> bool:
        """Whether a user may delete messages of others, and pin: the moderators in the bot's
        configuration, and those of the community's description."""
        if user in self._moderators:
            return True
        room = self.rooms.find(chat_id)
        return room is not None and self.described.leads(user, room.community)

    def is_member(self, user: PublicKey, chat_id: str) -> bool:
        """Whether a user is a member of a chat's community; elsewhere, of one of the bot's."""
        room = self.rooms.find(chat_id)
        own = None if room is None else room.community
        return any(
            self.described.lists(user, community)
            for community in ([own] if own is not None else self.rooms.communities)
        )

    def language_of(self, user: PublicKey) -> str:
        """The language of a user."""
        return self.languages.of(user)

    def settled(self, received: Received) -> None:
        """Acknowledge a direct message, and forget what waited: it is handled, or there is nothing
        to do."""
        if received.waiting_id is not None:
            self.group_keys.done(received.waiting_id)
            self.memory.write()
        if self.direct is not None and received.is_direct:
            self.direct.settled(received)

    def learn(self, received: Received) -> None:
        """Take note of names, of contacts and of descriptions."""
        payload = received.payload
        if self.direct is not None and received.is_direct:
            self.direct.contacts.observe(received)
        if isinstance(payload, ChatMessage) and payload.display_name:
            self._names.renew(received.signer, payload.display_name)
        if isinstance(payload, CommunityDescription):
            self.described.learn(Community(received.signer), payload)

    def name_of(self, user: PublicKey) -> str:
        """The latest name of a user; else the start of the key."""
        return self._names.get(user) or f"{user.multibase[:12]}…"

    def with_names(self, text: str) -> str:
        """A text with names instead of keys in its mentions."""
        for user in mentions(text):
            for written in (mention(user), f"@{user.multibase}"):
                text = text.replace(written, f"@{self.name_of(user)}")
        return text
