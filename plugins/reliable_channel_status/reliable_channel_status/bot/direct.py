"""Direct messages of a bot (encrypted, acknowledged, repeated), and the bot's contacts."""

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Final
from uuid import uuid4

import anyio

from reliable_channel.spi import Table
from waku import WakuMessage
from waku.errors import WakuError

from ..wire.chats import partitioned_topic
from ..wire.direct.correspondence import Correspondence, DirectPayload
from ..wire.direct.datasync import DataSync, DataSyncMessage, DataSyncPayload, Pending
from ..wire.direct.session_store import TABLES
from ..wire.direct.sessions import Sessions
from ..wire.enums import ContentType
from ..wire.keys import PrivateKey, PublicKey
from ..wire.outcomes import MessageId, Received, SignedPayload
from ..wire.payloads import (
    AcceptContactRequest,
    ChatMessage,
    EmojiReaction,
    RetractContactRequest,
)
from ..wire.recent import Recent
from ..wire.sealing import NS_PER_MS, Outgoing, Sealer
from .link import Link
from .memory import BotMemory
from .options import DirectEncryption
from .reporting import Reporter

CONTACTS: Final = 10_000
"""Maximum number of remembered contacts and contact requests. Beyond the maximum, the oldest
contact is evicted."""
RENEGOTIATE_MS: Final = 60_000
"""Minimum time between two new sessions with a user whose messages cannot be decrypted."""
MAIL_RETRY_S: Final = 5.0
"""Pause before the bot sends acknowledgements again that the node did not accept."""

_PENDING: Final = Table(
    "direct_pending",
    (
        ("datasync_id", "BLOB"),
        ("peer", "TEXT"),
        ("message_id", "TEXT"),
        ("group_id", "BLOB"),
        ("timestamp_s", "INTEGER"),
        ("body", "BLOB"),
        ("sends", "INTEGER"),
        ("due_ms", "INTEGER"),
    ),
)
_CONTACTS: Final = Table(
    "direct_contacts",
    (("peer", "TEXT"), ("state", "TEXT"), ("clock", "INTEGER"), ("request_id", "TEXT")),
)


_DEVICE: Final = Table("direct_device", (("name", "TEXT"), ("value", "TEXT")))


class ContactState(Enum):
    """State of the contact between the bot and another user."""

    NONE = "none"
    """No contact request is open, or the contact was ended."""
    REQUESTED = "requested"
    """The bot sent a contact request."""
    ASKED = "asked"
    """The other user sent a contact request, and the bot has not accepted."""
    CONTACT = "contact"
    """Both users are contacts, because one accepted a request or both sent one."""


@dataclass(frozen=True, slots=True)
class Contact:
    """State and clock of a contact."""

    state: ContactState = ContactState.NONE
    clock: int = 0
    """Clock of the latest message about the contact. Messages about the contact with an older clock
    are ignored."""
    request_id: str = ""
    """Message id of the last contact request."""


class Contacts:
    """Contacts of a bot, stored on disk."""

    def __init__(self, memory: BotMemory) -> None:
        self._memory = memory
        self._contacts: Recent[PublicKey, Contact] = Recent(CONTACTS)
        for peer, state, clock, request_id in memory.rows(_CONTACTS):
            known = Contact(ContactState(state), clock, request_id)
            self._contacts[PublicKey.parse(peer)] = known

    def of(self, peer: PublicKey) -> Contact:
        """Return the contact of the bot with a user."""
        return self._contacts.get(peer) or Contact()

    @property
    def mutual(self) -> tuple[PublicKey, ...]:
        """Users that are contacts of the bot."""
        is_contact = ContactState.CONTACT
        return tuple(peer for peer, one in self._contacts.items() if one.state is is_contact)

    def observe(self, received: Received) -> None:
        """Change the contact that a received message is about."""
        payload, peer = received.payload, received.signer
        before = self.of(peer)
        if is_contact_request(received) and isinstance(payload, ChatMessage):
            known = before.state in (ContactState.REQUESTED, ContactState.CONTACT)
            state = ContactState.CONTACT if known else ContactState.ASKED
            self.put(peer, Contact(state, payload.clock, received.message_id))
        elif isinstance(payload, AcceptContactRequest):
            # Who was not asked accepts nothing.
            if before.state in (ContactState.REQUESTED, ContactState.CONTACT):
                self.put(peer, Contact(ContactState.CONTACT, payload.clock, before.request_id))
        elif isinstance(payload, RetractContactRequest):
            self.put(peer, Contact(ContactState.NONE, payload.clock))

    def put(self, peer: PublicKey, contact: Contact) -> None:
        """Store a change of a contact, unless a later change is known."""
        if contact.clock < self.of(peer).clock:
            return
        if peer not in self._contacts and len(self._contacts) >= CONTACTS:
            self._memory.erase(_CONTACTS, next(iter(self._contacts)).hex)
        self._contacts.renew(peer, contact)
        self._memory.put(
            _CONTACTS, peer.hex, contact.state.value, contact.clock, contact.request_id
        )
        self._memory.write()


def is_contact_request(received: Received) -> bool:
    """Return True if a user requests to be a contact."""
    payload = received.payload
    return (
        received.is_direct
        and isinstance(payload, ChatMessage)
        and payload.content_type is ContentType.CONTACT_REQUEST
    )


class DirectDesk:
    """Encrypts direct messages, and repeats each message until it is acknowledged.

    Args:
        key: the bot's.
        sealer: encrypts envelopes.
        memory: keeps what is not acknowledged.
        reporter: counts and logs what is delivered and what is not.
        now_ms: the time.
        on_acknowledged: called with the id of each acknowledged message.
        encryption: `dh`, or `ratchet` with sessions in the memory.
    """

    def __init__(
        self,
        key: PrivateKey,
        sealer: Sealer,
        memory: BotMemory,
        reporter: Reporter,
        now_ms: Callable[[], int],
        on_acknowledged: Callable[[MessageId], None],
        encryption: DirectEncryption = "dh",
    ) -> None:
        sessions = None
        if encryption == "ratchet":
            sessions = Sessions(key, _installation_id(memory), Kept(memory, TABLES))
        self.correspondence = Correspondence(key, sessions=sessions, now_ms=now_ms)
        self._renegotiated: Recent[PublicKey, int] = Recent(CONTACTS)
        self.contacts = Contacts(memory)
        self._datasync = DataSync(key.public_key, map(_pending, memory.rows(_PENDING)))
        self._sealer = sealer
        self._memory = memory
        self._reporter = reporter
        self._now_ms = now_ms
        self._on_acknowledged = on_acknowledged
        self._news = anyio.Event()
        self._beginnings: list[PublicKey] = []

    def seal(self, signed: SignedPayload, peer: PublicKey) -> Outgoing:
        """Return the encrypted messages for a user. The caller of `seal` writes the memory.

        Raises:
            PayloadTooLarge: more than 256 segments would be needed.
        """
        plain = signed.data
        if not isinstance(signed.payload, EmojiReaction):  # clients send those without MVDS
            one, dropped = self._datasync.send(peer, signed.message_id, plain, self._now_ms())
            plain = DataSyncPayload(messages=(one.message,)).encode()
            self._give_up(dropped)
            self._keep(one)
            self._news.set()
        return Outgoing(signed, self._sealed(plain, peer))

    def heard(self, sender: PublicKey, payload: DirectPayload) -> None:
        if payload.ratchet_key is not None and not payload.bodies:
            self.correspondence.confirm(payload.ratchet_key)
        for refused in payload.refused:
            self._reporter.count("refused", refused.reason.value)
        if payload.datasync is None:
            return
        delivered = self._datasync.receive(sender, payload.datasync)
        for one in delivered:
            self._memory.erase(_PENDING, one.message.id)
            self._on_acknowledged(one.message_id)
            self._reporter.count("delivered")
        if delivered:
            self._memory.write()
        if payload.datasync.requests:
            self._news.set()

    def settled(self, received: Received) -> None:
        """Acknowledge a handled message, and delete its encryption key."""
        if received.ratchet_key is not None:
            self.correspondence.confirm(received.ratchet_key)
            self._memory.write()
        if received.datasync_id is not None:
            self._datasync.acknowledge(received.signer, received.datasync_id)
            self._news.set()

    async def run(self, link: Link, shard: str) -> None:
        """Publish acknowledgements and repeated messages until cancelled."""
        while True:
            self._news = anyio.Event()
            wait_s = None
            try:
                await self.mail(link, shard)
            except WakuError as error:
                self._reporter.log("mail_failed", logging.WARNING, why=str(error))
                wait_s = MAIL_RETRY_S
            due_ms = self._datasync.next_deadline_ms()
            if wait_s is None and due_ms is not None:
                wait_s = max(0.0, (due_ms - self._now_ms()) / 1000)
            with anyio.move_on_after(wait_s):
                await self._news.wait()

    def looked(self) -> None:
        """Note that a batch of messages was decrypted, because lost sessions may have been
        found."""
        sessions = self.correspondence.sessions
        if sessions is None:
            return
        now_ms = self._now_ms()
        for peer, is_current in sessions.take_lost().items():
            if now_ms - self._renegotiated.get(peer, -RENEGOTIATE_MS) >= RENEGOTIATE_MS:
                if is_current:
                    sessions.renew(peer, now_ms)
                self._renegotiated.renew(peer, now_ms)
                self._beginnings.append(peer)
                self._reporter.count("sessions_renegotiated")
                self._news.set()

    async def mail(self, link: Link, shard: str) -> None:
        """Publish all acknowledgements and repeated messages that are due.

        Raises:
            WakuError: the node did not take it; the peer repeats what was not acknowledged.
        """
        again, given_up = self._datasync.take_due(self._now_ms())
        self._give_up(given_up)
        for one in again:
            self._keep(one)
        if again or given_up:
            self._memory.write()
        beginnings, self._beginnings = self._beginnings, []
        for peer in beginnings:  # an empty message, which begins a new session
            await self._publish(b"", peer, link, shard)
        letters = [(one.peer, DataSyncPayload(messages=(one.message,))) for one in again]
        for peer, payload in (*letters, *self._datasync.take_acks()):
            await self._publish(payload.encode(), peer, link, shard)

    async def _publish(self, plain: bytes, peer: PublicKey, link: Link, shard: str) -> None:
        messages = self._sealed(plain, peer)
        self._memory.write()  # a ratchet must not use a key twice, after a crash neither
        for message in messages:
            await link.publish(shard, message)

    def _sealed(self, plain: bytes, peer: PublicKey) -> tuple[WakuMessage, ...]:
        protocol = self.correspondence.encrypt(plain, peer)
        timestamp_ns = self._now_ms() * NS_PER_MS
        topic = partitioned_topic(peer)
        return self._sealer.seal_protocol(protocol, topic, timestamp_ns, receiver=peer)

    def _give_up(self, given_up: list[Pending]) -> None:
        for one in given_up:
            self._memory.erase(_PENDING, one.message.id)
            self._reporter.count("not_delivered")
            self._reporter.log(
                "not_delivered", logging.WARNING, message_id=one.message_id, user=one.peer.hex
            )

    def _keep(self, one: Pending) -> None:
        message = one.message
        self._memory.put(
            _PENDING,
            message.id,
            one.peer.hex,
            one.message_id,
            message.group_id,
            message.timestamp_s,
            message.body,
            one.sends,
            one.due_ms,
        )


class Kept:
    """Tables of sessions or group keys in the bot's memory. The caller of `put` or `delete` also
    calls `write`."""

    def __init__(self, memory: BotMemory, tables: Iterable[str]) -> None:
        self._memory = memory
        self._is_changed = False
        self._tables = {name: Table(name, (("name", "TEXT"), ("value", "BLOB"))) for name in tables}

    def rows(self, table: str) -> Iterable[tuple[str, bytes]]:
        return ((name, value) for name, value in self._memory.rows(self._tables[table]))

    def put(self, table: str, key: str, value: bytes) -> None:
        """Insert or replace a row."""
        self._is_changed = True
        self._memory.put(self._tables[table], key, value)

    def delete(self, table: str, key: str) -> None:
        """Delete a row, if it exists."""
        self._is_changed = True
        self._memory.erase(self._tables[table], key)

    def write(self) -> None:
        """Write the memory if a table changed."""
        if self._is_changed:
            self._is_changed = False
            self._memory.write()


def _installation_id(memory: BotMemory) -> str:
    """The name of the bot's device; a new one where nothing is remembered."""
    for _, value in memory.rows(_DEVICE):
        return str(value)
    installation_id = str(uuid4())
    memory.put(_DEVICE, "installation_id", installation_id)
    memory.write()
    return installation_id


def _pending(row: tuple[object, ...]) -> Pending:
    _, peer, message_id, group_id, timestamp_s, body, sends, due_ms = row
    assert isinstance(peer, str) and isinstance(message_id, str)
    assert isinstance(group_id, bytes) and isinstance(body, bytes)
    assert isinstance(timestamp_s, int) and isinstance(sends, int) and isinstance(due_ms, int)
    message = DataSyncMessage(group_id, timestamp_s, body)
    return Pending(PublicKey.parse(peer), MessageId(message_id), message, sends, due_ms)
