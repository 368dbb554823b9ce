"""Direct messages of a scripted user, as written and read by a client without bundles."""

from dataclasses import replace
from typing import Protocol

from waku import WakuMessage

from ..wire import payload_builders
from ..wire.application import wrap
from ..wire.chats import partitioned_topic
from ..wire.direct.correspondence import Correspondence, DirectPayload
from ..wire.direct.datasync import DataSync, DataSyncPayload
from ..wire.direct.groups import Group
from ..wire.direct.session_store import RatchetSession
from ..wire.direct.sessions import Sessions
from ..wire.enums import MessageType, Reaction
from ..wire.keys import PrivateKey, PublicKey
from ..wire.opening import Opener, Outcome
from ..wire.outcomes import MessageId, Received, Refused
from ..wire.payload_builders import Make
from ..wire.payloads import (
    AcceptContactRequest,
    ChatMessage,
    MembershipUpdateMessage,
    Payload,
    RetractContactRequest,
)
from ..wire.rooms import direct_room
from ..wire.sealing import NS_PER_MS, Sealer
from ..wire.status_pb2 import EncryptedMessageProtocol


class Surrounding(Protocol):
    """Parts of a test that a scripted user needs."""

    @property
    def public_key(self) -> PublicKey:
        """Public key of the bot."""

    def now_ms(self) -> int:
        """Return the current virtual time (ms since 1970)."""

    def next_clock(self) -> int:
        """Return the logical clock for a user's next action."""

    def publish(self, message: WakuMessage, *, settle: bool = True) -> None:
        """Publish a Waku message in the test."""


class StatusGoSessions(Sessions):
    """Sessions as status-go keeps them, one for each bundle and installation id.

    Nothing replaces a session, and a message uses the first session of an installation. Like
    status-go, the class does not notice that the other side lost a session.
    """

    def _of_message(
        self,
        message: EncryptedMessageProtocol,
        sender: PublicKey,
        session_id: str,
        own: str,
        is_new: bool,
    ) -> RatchetSession | Refused:
        if session_id in self._raw:
            return self._session(session_id)
        return super()._of_message(message, sender, session_id, own, is_new)

    def _current(self, peer: PublicKey, own: str, device: str) -> str | None:
        return next(iter(self._of_device.get(f"{peer.compressed.hex()} {own} {device}", ())), None)

    def lost(self, peer: PublicKey, own: str | None = None) -> None:
        """Do nothing, because the class does not notice lost sessions."""


class FakeDirect:
    """Direct messages between one scripted user and the bot.

    Args:
        tester: the test.
        name: what the user calls itself.
        key: the user's.
        correspondence: the user's device, for tests that want another one.
    """

    acknowledges = True
    """True if the user's client is online and acknowledges messages."""

    def __init__(
        self,
        tester: Surrounding,
        name: str,
        key: PrivateKey,
        correspondence: Correspondence | None = None,
    ) -> None:
        self._tester = tester
        self._name = name
        self._key = key
        self.correspondence = correspondence or Correspondence(key)
        self.datasync = DataSync(key.public_key)
        self._sealer = Sealer(key)
        self._opener = Opener(
            [partitioned_topic(key.public_key)],
            private_keys=[key],
            direct=self.correspondence,
            on_direct=self._heard,
        )
        self.outcomes: list[Outcome] = []
        """What came, repetitions too."""
        self.delivered: set[MessageId] = set()
        """What the bot acknowledged: a client shows it as delivered."""
        self.payloads: list[DataSyncPayload] = []
        """What the bot sent by MVDS: messages and acknowledgements."""
        self._acks: list[DataSyncPayload] = []

    @property
    def heard(self) -> list[Received]:
        """Messages of the bot that the user received, each once."""
        found = [one for one in self.outcomes if isinstance(one, Received)]
        return list({one.message_id: one for one in found}.values())

    @property
    def texts(self) -> list[str]:
        """Texts of the bot's messages to the user."""
        payloads = [received.payload for received in self.heard]
        return [one.text for one in payloads if isinstance(one, ChatMessage)]

    def says(self, text: str, *, to: str = "") -> MessageId:
        """Write a direct message to the bot, and return the message's id."""
        room = direct_room(self._tester.public_key)
        return self.does(payload_builders.message(room, text, response_to=to))

    def asks_to_be_contact(self, text: str) -> MessageId:
        return self.does(
            payload_builders.contact_request(direct_room(self._tester.public_key), text)
        )

    def accepts(self, request_id: str) -> MessageId:
        """Accept the bot's contact request."""
        return self.sends(AcceptContactRequest(id=request_id, clock=self._tester.next_clock()))

    def retracts(self) -> MessageId:
        return self.sends(RetractContactRequest(clock=self._tester.next_clock()))

    def reacts(self, message_id: str, reaction: Reaction | str) -> MessageId:
        room = direct_room(self._tester.public_key)
        return self.does(payload_builders.reaction(room, message_id, reaction, False))

    def does(self, make: Make) -> MessageId:
        """Write a direct message with any payload to the bot."""
        payload: Payload = make(self._tester.next_clock(), self._tester.now_ms())
        if isinstance(payload, ChatMessage):
            payload = replace(payload, display_name=self._name)
        return self.sends(payload)

    def sends(self, payload: Payload) -> MessageId:
        """Send any payload to the bot once. `repeat` sends the payload again."""
        signed = wrap(payload, self._key)
        one, _ = self.datasync.send(
            self._tester.public_key, signed.message_id, signed.data, self._tester.now_ms()
        )
        self.publish(DataSyncPayload(messages=(one.message,)).encode())
        return signed.message_id

    def in_group(self, group: Group, text: str) -> MessageId:
        """Write a message in a private group, which the bot receives."""
        now_ms = self._tester.now_ms()
        message = ChatMessage(
            clock=self._tester.next_clock(),
            timestamp=now_ms,
            text=text,
            chat_id=group.chat_id,
            message_type=MessageType.PRIVATE_GROUP,
            display_name=self._name,
        )
        return self.sends(_update(group, message))

    def shows(self, group: Group) -> MessageId:
        """Send the bot the membership events of a private group."""
        return self.sends(_update(group, None))

    def repeat(self) -> None:
        """Send messages again that are due for a retry."""
        again, _ = self.datasync.take_due(self._tester.now_ms())
        for one in again:
            self.publish(DataSyncPayload(messages=(one.message,)).encode())

    def publish(self, plain: bytes, *, settle: bool = True) -> None:
        """Publish plaintext bytes, encrypted for the bot."""
        self.publish_protocol(
            self.correspondence.encrypt(plain, self._tester.public_key), settle=settle
        )

    def publish_protocol(self, protocol: bytes, *, settle: bool = True) -> None:
        """Publish an encoded `ProtocolMessage`, such as a damaged message for a test."""
        bot, timestamp_ns = self._tester.public_key, self._tester.now_ms() * NS_PER_MS
        topic = partitioned_topic(bot)
        for message in self._sealer.seal_protocol(protocol, topic, timestamp_ns, receiver=bot):
            self._tester.publish(message, settle=settle)

    def hear(self, message: WakuMessage) -> None:
        """Read a Waku message, if it is addressed to this user."""
        if message.content_topic in self._opener.content_topics:
            self.outcomes += self._opener.receive(message, self._tester.now_ms())

    def answer(self) -> bool:
        """Acknowledge received messages, if the client is online. If no message waited for an
        acknowledgement, `answer` returns False."""
        acks, self._acks = self._acks, []
        for one in acks if self.acknowledges else ():
            self.publish(one.encode(), settle=False)
        return bool(acks)

    def _heard(self, sender: PublicKey, payload: DirectPayload) -> None:
        if payload.datasync is None or sender != self._tester.public_key:
            return
        self.payloads.append(payload.datasync)
        for one in self.datasync.receive(sender, payload.datasync):
            self.delivered.add(one.message_id)
        if payload.datasync.messages:
            ids = tuple(one.id for one in payload.datasync.messages)
            self._acks.append(DataSyncPayload(acks=ids))


def _update(group: Group, message: ChatMessage | None) -> MembershipUpdateMessage:
    events = tuple(event.data for event in group.events)
    return MembershipUpdateMessage(chat_id=group.chat_id, events=events, message=message)
