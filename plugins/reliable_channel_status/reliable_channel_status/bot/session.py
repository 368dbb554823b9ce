"""One run of a bot for its functions, with identity, chats and known users."""

import logging
from typing import Final

from ..wire.application import wrap
from ..wire.chats import Community, contact_code_topic
from ..wire.community_payloads import (
    ChatIdentity,
    CommunityDescription,
    CommunityRequestToLeave,
    ContactCodeAdvertisement,
    IdentityImage,
)
from ..wire.keys import PublicKey, keccak256
from ..wire.mentioning import mention, mentions
from ..wire.outcomes import MessageId, Received
from ..wire.payload_builders import Make, contact_request, image_format, message
from ..wire.payloads import (
    AcceptContactRequest,
    ChatMessage,
    ContactUpdate,
    RetractContactRequest,
)
from ..wire.rooms import Room, direct_room
from ..wire.sealing import NS_PER_MS, Outgoing
from ..wire.status_pb2 import ProtocolMessage
from .direct import Contact, ContactState
from .limits import Pair
from .membership import NotAMember
from .memory import OutboxFull
from .outbox import Outbox

DAY_MS: Final = 86_400_000


class Session(Outbox):
    """Actions of a bot's functions in one run. No action of a session waits for the network."""

    # -- contacts ----------------------------------------------------------------------------------

    def is_contact(self, user: PublicKey) -> bool:
        """Return True if a user is a contact of the bot."""
        if self.direct is None:
            return False
        return self.direct.contacts.of(user).state is ContactState.CONTACT

    def contacts(self) -> tuple[PublicKey, ...]:
        return self._desk.contacts.mutual

    def request_contact(self, user: PublicKey, text: str) -> MessageId:
        """Send a contact request to a user, or repeat it.

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
        """Accept a user's contact request.

        Raises:
            OutboxFull: too much waits for the node.
        """
        clock = self.memory.clock(peer.hex).next(self.now_ms())
        self._to_peer(peer, AcceptContactRequest(id=request_id, clock=clock), once)
        if name := self._options.display_name:
            self._to_peer(peer, ContactUpdate(clock=clock, display_name=name), f"{once} name")
        self._desk.contacts.put(peer, Contact(ContactState.CONTACT, clock, request_id))

    def remove_contact(self, peer: PublicKey) -> None:
        """End a contact with a user.

        Raises:
            OutboxFull: too much waits for the node.
        """
        clock = self.memory.clock(peer.hex).next(self.now_ms())
        self._to_peer(peer, RetractContactRequest(clock=clock), f"retract {peer.hex} {clock}")
        self._desk.contacts.put(peer, Contact(ContactState.NONE, clock))

    def _to_peer(
        self,
        peer: PublicKey,
        payload: AcceptContactRequest | ContactUpdate | RetractContactRequest,
        once: str,
    ) -> None:
        if self.memory.sent_before(once) is None:
            self.memory.keep_clock(peer.hex)
            self._send(once, self._desk.seal(wrap(payload, self._key), peer))

    def advertise(self, picture: bytes | None) -> None:
        """Publish the bot's name, picture and bundle as its contact code, as clients do each day.

        Raises:
            OutboxFull: too much waits for the node.
        """
        name, now_ms = self._options.display_name, self.now_ms()
        sessions = self.correspondence.sessions
        if not name and picture is None and sessions is None:
            return
        once = f"contact code {name} {keccak256(picture or b'').hex()[:16]} {now_ms // DAY_MS}"
        if self.memory.sent_before(once) is not None:
            return
        image = picture and IdentityImage(payload=picture, image_format=image_format(picture))
        images = {"thumbnail": image, "large": image} if image else {}
        identity = ChatIdentity(clock=now_ms, display_name=name, images=images)
        signed = wrap(ContactCodeAdvertisement(chat_identity=identity), self._key)
        message = ProtocolMessage(public_message=signed.data)
        if sessions is not None:
            message.installation_id = sessions.installation_id
            message.bundles.append(sessions.bundle(now_ms, self.public_key).encode())
        topic, data = contact_code_topic(self.public_key), message.SerializeToString()
        self._send(
            once, Outgoing(signed, self._sealer.seal_protocol(data, topic, now_ms * NS_PER_MS))
        )

    # -- communities -------------------------------------------------------------------------------

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

    def sent(self, sds_id: str, message_id: MessageId) -> None:
        """Note the SDS id of a message that was sent."""
        self._sent.renew(sds_id, message_id)

    def acknowledged(self, sds_id: str) -> None:
        """Note that another user has received a message."""
        if (message_id := self._sent.get(sds_id)) is not None:
            self._acknowledged.renew(message_id, None)

    def is_acknowledged(self, message_id: MessageId) -> bool:
        """Return True if another user is known to have received a message of the bot."""
        return message_id in self._acknowledged

    # -- loops -------------------------------------------------------------------------------------

    def heard(self, pair: Pair, room: Room) -> None:
        """Note that another user wrote a message. If the message completes a loop, the bot
        announces the loop."""
        if not self._guard.heard(pair, self.now_ms()):
            return
        chat_id, user = pair
        limits = self._options.loops
        self.reporter.count("loops_stopped")
        self.reporter.log("loop_stopped", logging.WARNING, chat=chat_id, user=user.hex)
        text = self.languages.texts(user).render(
            "loop_stopped",
            user=self.name_of(user),
            minutes=-(-limits.silence_ms // 60_000),
            rounds=limits.turns,
        )
        try:
            self.say(room, message(room, text), f"loop {chat_id} {user.hex} {self.now_ms()}")
        except (OutboxFull, ValueError, NotAMember) as error:
            self.reporter.log("loop_not_announced", logging.WARNING, why=str(error))

    def may_answer(self, pair: Pair) -> bool:
        """Note that the bot wants to answer a user. `may_answer` returns False if the answer may
        not be sent, because of a loop."""
        if self._guard.is_silent(pair, self.now_ms()):
            return False
        self._guard.answered(pair, self.now_ms())
        return True

    def withhold(self, room: Room, make: Make) -> MessageId:
        """Return the message id of a payload that the bot does not publish.

        Raises:
            ValueError: the payload is none that clients take.
        """
        signed = wrap(self._payload(room, make, self.now_ms()), self._key)
        self._withheld.renew(signed.message_id, None)
        self.reporter.count("answers_withheld")
        self.reporter.log("answer_withheld", chat=room.chat_id)
        return signed.message_id

    def was_withheld(self, message_id: str) -> bool:
        """Return True if a message was not published, so that no other user has it."""
        return message_id in self._withheld

    # -- people ------------------------------------------------------------------------------------

    def is_privileged(self, user: PublicKey, chat_id: str) -> bool:
        """Return True if a user may pin messages, and delete messages of others. Privileged users
        are moderators in the bot's configuration or in the community's description."""
        if user in self._moderators:
            return True
        room = self.rooms.find(chat_id)
        return room is not None and self.descriptions.leads(user, room.community)

    def may_pin(self, user: PublicKey, chat_id: str) -> bool:
        """Return True if clients show what a user pins in a chat."""
        room = self.rooms.find(chat_id)
        if room is not None and room.peer is not None:
            return True  # both write there alone
        if self.groups is not None and chat_id in self.rooms.groups:
            return user in self.groups.of(chat_id).admins
        community = None if room is None else room.community
        described = None if community is None else self.descriptions.of(community)
        settings = None if described is None else described.admin_settings
        all_may = settings is not None and settings.pin_message_all_members_enabled
        return (all_may and self.is_member(user, chat_id)) or self.is_privileged(user, chat_id)

    def is_member(self, user: PublicKey, chat_id: str) -> bool:
        """Return True if a user is a member of the chat's community (elsewhere, of any community of
        the bot)."""
        room = self.rooms.find(chat_id)
        own = None if room is None else room.community
        return any(
            self.descriptions.lists(user, community)
            for community in ([own] if own is not None else self.rooms.communities)
        )

    def language_of(self, user: PublicKey) -> str:
        """Return the language in which the bot answers a user."""
        return self.languages.of(user)

    def settled(self, received: Received) -> None:
        """Acknowledge a direct message that was handled, and remove its waiting entry."""
        if received.waiting_id is not None:
            self.group_keys.done(received.waiting_id)
            self.memory.write()
        if self.direct is not None and received.is_direct:
            self.direct.settled(received)

    def learn(self, received: Received) -> None:
        """Note the names, contacts and descriptions in a received message."""
        payload = received.payload
        if self.direct is not None and received.is_direct:
            self.direct.contacts.observe(received)
        if isinstance(payload, ChatMessage) and payload.display_name:
            self._names.renew(received.signer, payload.display_name)
        if isinstance(payload, CommunityDescription):
            self.descriptions.learn(Community(received.signer), payload)

    def name_of(self, user: PublicKey) -> str:
        """Return the latest display name of a user, or the start of the user's key."""
        return self._names.get(user) or f"{user.multibase[:12]}…"

    def with_names(self, text: str) -> str:
        """Return a text in which mentions show names instead of keys."""
        for user in mentions(text):
            for written in (mention(user), f"@{user.multibase}"):
                text = text.replace(written, f"@{self.name_of(user)}")
        return text
