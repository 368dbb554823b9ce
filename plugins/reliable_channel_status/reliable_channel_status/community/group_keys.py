"""Group keys of one participant, and messages that wait for a group key.

A key from any sender may decrypt a message, because the author signed the message's content. A key
encrypts messages only if the community vouches for the key. The community vouches for keys that its
own key or an owner sent, or a signed description names. A message that arrives before its key waits
for the key. Methods put changes into a store before they return, and the caller makes the store
durable. The module has no I/O and no clock.
"""

import os
from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Final

from ..wire import status_pb2
from ..wire.chats import COMMUNITY_ID_LENGTH, Community
from ..wire.codec import parsed
from ..wire.community_payloads import CommunityDescription
from ..wire.direct.dh import ANY_DEVICE
from ..wire.direct.session_store import SessionStore
from ..wire.envelope import Random
from ..wire.hash_ratchet import (
    MAX_KEYS,
    MAX_SEQ_NO,
    Chain,
    GroupKey,
    HeldKey,
    NoGroupKey,
    next_key,
    open_for_member,
    read_keys,
)
from ..wire.keys import COMPRESSED_BYTES, PrivateKey, PublicKey, keccak256
from ..wire.outcomes import Received, RefusalReason, Refused
from ..wire.recent import Recent
from ..wire.waiting import WaitingMessage, WaitingMessages
from .encryption import is_hidden, read_name, show

MAX_GROUPS: Final = 2_000
"""Maximum number of groups whose keys are stored. Beyond the maximum, keys of further groups are
refused."""
MAX_CANDIDATES: Final = 256
"""Maximum number of keys for which no authority vouches yet. Beyond the maximum, the oldest key is
evicted."""
MAX_CHAINS: Final = 256
"""Maximum number of keys whose hash chains are in memory."""
MAX_ID_BYTES: Final = COMMUNITY_ID_LENGTH + 36
"""Length of a channel's group id, which is the community's id and a uuid."""
TABLES: Final = ("group_keys", "group_waiting")


class GroupKeys:
    """Group keys that one participant has.

    Args:
        key: the participant's: opens keys that were encrypted for it.
        communities: whose keys are taken.
        store: what is kept.
        is_owner: whether a user is an owner of a community, as far as that is known.
        random: gives keys and ivs.
    """

    def __init__(
        self,
        key: PrivateKey,
        communities: Iterable[Community],
        store: SessionStore,
        *,
        is_owner: Callable[[PublicKey, Community], bool],
        random: Random = os.urandom,
    ) -> None:
        self._key = key
        self._by_key = {one.public_key.compressed: one for one in communities}
        self._by_id = {one.id: one for one in self._by_key.values()}
        self._store = store
        self._is_owner = is_owner
        self._random = random
        self._held: dict[bytes, HeldKey] = {}
        self._groups: dict[bytes, list[HeldKey]] = {}
        """The keys of each group, the latest last."""
        self._candidates: OrderedDict[bytes, None] = OrderedDict()
        self._chains: Recent[bytes, Chain] = Recent(MAX_CHAINS)
        self._named: dict[Community, frozenset[bytes]] = {}
        self._clocks: dict[Community, int] = {}
        """Of the latest description of each community."""
        self._excluded: set[bytes] = set()
        """Groups whose latest key was made for others."""
        for _, value in sorted(store.rows("group_keys")):
            self._insert(HeldKey.decode(value))
        self._waiting = WaitingMessages(store, lambda key_id: key_id in self._held)

    # -- keys -------------------------------------------------------------------------------------

    def community_of(self, group_id: bytes) -> Community | None:
        """Return the community of a group, or None if the participant is not a member."""
        if len(group_id) == COMPRESSED_BYTES:
            return self._by_key.get(group_id)
        if len(group_id) > MAX_ID_BYTES or not group_id.isascii():
            return None
        text = group_id.decode()
        found = self._by_id.get(text[:COMMUNITY_ID_LENGTH])
        return found if found is not None and found.owns(text) else None

    def keys_of(self, group_id: bytes) -> tuple[GroupKey, ...]:
        """Return the keys of a group for which an authority vouches, the latest last."""
        return tuple(one.key for one in self._groups.get(group_id, ()) if self._trusts(one))

    def current(self, group_id: bytes) -> GroupKey | None:
        """Return the key that encrypts new messages of a group, or None."""
        return next(reversed(self.keys_of(group_id)), None)

    def learn(self, group_id: bytes, raw: status_pb2.HRKeys, sender: PublicKey) -> Refused | None:
        """Accept keys of a group that another user sent, for example to a new member."""
        try:
            keys = read_keys(group_id, raw)
        except ValueError as error:
            return Refused(RefusalReason.BAD_GROUP_KEY, str(error)[:150], sender)
        return self._learn(group_id, keys, sender)

    def generate(self, group_id: bytes, now_ms: int) -> GroupKey:
        """Return a new key for a group of a community that this participant runs."""
        before = self._groups.get(group_id)
        last = before[-1].key if before else None
        key = next_key(group_id, last, now_ms, random=self._random)
        self._add(HeldKey(key, None, True))
        return key

    def name(self, community: Community, key_ids: Iterable[bytes]) -> None:
        """Note the keys that a description, signed by the community's key, names."""
        self._named[community] = frozenset(key_ids)
        for key_id in self._named[community] & self._candidates.keys():
            held = self._held[key_id]
            if self.community_of(held.key.group_id) == community:
                del self._candidates[key_id]
                held.is_trusted = True
                self._keep(held)

    def _learn(self, group_id: bytes, keys: list[GroupKey], sender: PublicKey) -> Refused | None:
        community = self.community_of(group_id)
        if community is None:
            detail = f"a key of the group {group_id[:MAX_ID_BYTES]!r}, which is unknown here"
            return Refused(RefusalReason.UNKNOWN_KEY_GROUP, detail, sender)
        is_known = group_id in self._groups
        is_trusted = sender == community.public_key or self._is_owner(sender, community)
        if not is_known and len(self._groups) >= MAX_GROUPS:
            detail = f"keys of more than {MAX_GROUPS} groups"
            return Refused(RefusalReason.UNKNOWN_KEY_GROUP, detail, sender)
        for key in keys:
            if key.id in self._held:
                continue
            vouched = is_trusted or key.id in self._named.get(community, ())
            self._add(HeldKey(key, sender, vouched))
        if is_trusted and keys:
            self._excluded.discard(group_id)
        return None

    def _trusts(self, held: HeldKey) -> bool:
        if not held.is_trusted and held.sender is not None:
            community = self.community_of(held.key.group_id)
            if community is not None and self._is_owner(held.sender, community):
                self._candidates.pop(held.key.id, None)
                held.is_trusted = True
                self._keep(held)
        return held.is_trusted

    def _add(self, held: HeldKey) -> None:
        self._insert(held)
        if held.key.id not in self._held:
            return  # older than all that are kept
        self._keep(held)
        self._waiting.key_came(held.key.id)

    def _insert(self, held: HeldKey) -> None:
        same = self._groups.setdefault(held.key.group_id, [])
        same.append(held)
        same.sort(key=lambda one: one.key.timestamp_ms)
        self._held[held.key.id] = held
        if not held.is_trusted:
            self._candidates[held.key.id] = None
        trusted = [one for one in same if one.is_trusted]
        if len(trusted) > MAX_KEYS:
            self._drop(trusted[0])
        if len(self._candidates) > MAX_CANDIDATES:
            self._drop(self._held[next(iter(self._candidates))])

    def _drop(self, held: HeldKey) -> None:
        key = held.key
        self._groups[key.group_id].remove(held)
        if not self._groups[key.group_id]:
            del self._groups[key.group_id]
        self._candidates.pop(key.id, None)
        self._chains.pop(key.id, None)
        del self._held[key.id]
        self._store.delete("group_keys", key.id.hex())

    def _keep(self, held: HeldKey) -> None:
        self._store.put("group_keys", held.key.id.hex(), held.encode())

    # -- reading ----------------------------------------------------------------------------------

    def open(
        self,
        data: bytes,
        topic_id: str,
        timestamp_ms: int,
        signer: PublicKey | None,
        is_ephemeral: bool,
    ) -> bytes | Refused | None:
        """Decrypt a `ProtocolMessage` that is encrypted for a group, or accept the group keys in
        it. For other messages, `open` returns None. A message whose key is missing waits for the
        key.

        Args:
            data: its bytes.
            topic_id: the topic that it came on.
            timestamp_ms: of the Waku message.
            signer: of the envelope.
            is_ephemeral: whether stores do not keep it.
        """
        message = status_pb2.ProtocolMessage()
        if not parsed(message, data) or message.public_message:
            return None
        encrypted = message.encrypted_message.get(ANY_DEVICE)
        if encrypted is None or not encrypted.HasField("hr_header"):
            return None
        if encrypted.HasField("dh_header") or encrypted.HasField("dr_header"):
            return None  # keys for one device
        header = encrypted.hr_header
        if header.seq_no == 0:
            refused = self._take_rekey(header, signer)
            return encrypted.payload if refused is None else refused
        community = self.community_of(header.group_id)
        if community is None or not topic_id.startswith(community.id):
            detail = f"for the group {header.group_id[:MAX_ID_BYTES]!r} on {topic_id[:150]!r}"
            return Refused(RefusalReason.ENCRYPTED, detail, signer)
        if header.seq_no > MAX_SEQ_NO:
            detail = f"message {header.seq_no} of a key; at most {MAX_SEQ_NO} are read"
            return Refused(RefusalReason.TOO_MANY_SKIPPED, detail, signer)
        held = self._of_header(header)
        if held is None:
            waiting = WaitingMessage(
                keccak256(data),
                (header.key_id,),
                community.public_key.compressed,
                topic_id,
                timestamp_ms,
                signer,
                is_ephemeral,
                data,
            )
            return self._waiting.wait(waiting)
        plain = self._chain(held).decrypt(header.seq_no, encrypted.payload)
        if plain is None:
            detail = "AES-GCM: another group key, or changed bytes"
            return Refused(RefusalReason.BAD_CIPHERTEXT, detail, signer)
        return plain

    def open_part(self, key_id: bytes, seq_no: int, sealed: bytes) -> bytes | None:
        """Decrypt a part of a description. If the key is missing or the part was changed,
        `open_part` returns None."""
        held = self._held.get(key_id)
        if held is None or not 0 < seq_no <= MAX_SEQ_NO:
            return None
        return self._chain(held).decrypt(seq_no, sealed)

    def _of_header(self, header: status_pb2.HRHeader) -> HeldKey | None:
        if header.key_id:
            held = self._held.get(header.key_id)
            return held if held is not None and held.key.group_id == header.group_id else None
        of_group = self._groups.get(header.group_id, ())  # the oldest clients name it so
        old = header.deprecated_key_id
        return next((one for one in of_group if one.key.deprecated_id == old), None)

    def _take_rekey(self, header: status_pb2.HRHeader, signer: PublicKey | None) -> Refused | None:
        """Take the key that a message brings for all members. One that a community or its owner
        sends without a part for this participant shows that it is excluded."""
        community, rekey = self.community_of(header.group_id), header.keys.rekey_group
        if signer is None or community is None:
            detail = f"a key of the group {header.group_id[:MAX_ID_BYTES]!r}"
            return Refused(RefusalReason.UNKNOWN_KEY_GROUP, detail, signer)
        if signer == self._key.public_key:
            return None
        try:
            key = open_for_member(header.group_id, rekey, signer, self._key)
        except ValueError as error:
            return Refused(RefusalReason.BAD_GROUP_KEY, str(error)[:150], signer)
        if key is not None:
            return self._learn(header.group_id, [key], signer)
        if signer == community.public_key or self._is_owner(signer, community):
            last = self._groups.get(header.group_id)
            if last is None or rekey.timestamp > last[-1].key.timestamp_ms:
                self._excluded.add(header.group_id)
        return None

    def _chain(self, held: HeldKey) -> Chain:
        chain = self._chains.get(held.key.id) or Chain(held.key)
        self._chains.renew(held.key.id, chain)
        return chain

    # -- waiting ----------------------------------------------------------------------------------

    def take_ready(self) -> list[WaitingMessage]:
        """Return waiting messages that can be decrypted now, as `WaitingMessages.take_ready`
        does."""
        return self._waiting.take_ready()

    def done(self, waiting_id: bytes) -> None:
        """Remove a waiting message, because it was handled or refused."""
        self._waiting.done(waiting_id)

    @property
    def lacking(self) -> frozenset[Community]:
        """Communities that have messages waiting for a key."""
        waits = self._waiting.communities
        return frozenset(self._by_key[one] for one in waits if one in self._by_key)

    # -- descriptions -----------------------------------------------------------------------------

    def describe(self, received: Received) -> Received | Refused:
        """Return a description with all parts that the participant's keys decrypt. If parts stay
        encrypted, the description waits, and is read again with the next key.

        A description with unreadable members is refused if the participant has a group key and was
        not excluded. In that case, the next group key is on its way to the participant.
        """
        description = received.payload
        community = self._by_key.get(received.signer.compressed)
        if not isinstance(description, CommunityDescription) or not description.private_data:
            return received
        if community is None:
            return received
        if description.clock < self._clocks.get(community, 0):
            detail = f"a description of clock {description.clock}"
            return Refused(RefusalReason.OUTDATED, detail, received.signer, received.message_id)
        self._clocks[community] = description.clock
        names = [read_name(name) for name in description.private_data]
        self.name(community, (one[0] for one in names if one is not None))
        shown = show(description, self.open_part)
        waiting_id = keccak256(b"description" + community.public_key.compressed)
        lacking = [one for name in shown.private_data if (one := read_name(name)) is not None]
        if not lacking:
            self.done(waiting_id)
        else:
            signed, group = received.signed, community.public_key.compressed
            refused = self._waiting.wait(
                WaitingMessage(
                    waiting_id,
                    tuple(key_id for key_id, _ in lacking),
                    group,
                    received.topic.id,
                    received.timestamp_ms,
                    received.envelope_signer,
                    received.is_ephemeral,
                    signed.data,
                )
            )
            if is_hidden(shown) and group in self._groups and group not in self._excluded:
                return refused
        parts = b"".join(sorted(name.encode() for name in shown.private_data))
        fingerprint = keccak256(received.signed.fingerprint + parts)
        return replace(
            received, signed=replace(received.signed, payload=shown, fingerprint=fingerprint)
        )

    # -- writing ----------------------------------------------------------------------------------

    def encrypt(self, group_id: bytes, plain: bytes, installation_id: str = "") -> bytes:
        """Return the `ProtocolMessage` that carries a payload to a group.

        Raises:
            NoGroupKey: no key is here that an authority vouches for, or it is used up.
        """
        key_id, seq_no, sealed = self.encrypt_part(group_id, plain)
        message = status_pb2.ProtocolMessage(installation_id=installation_id)
        encrypted = message.encrypted_message[ANY_DEVICE]
        encrypted.payload = sealed
        encrypted.hr_header.group_id = group_id
        encrypted.hr_header.key_id = key_id
        encrypted.hr_header.seq_no = seq_no
        encrypted.hr_header.deprecated_key_id = self._held[key_id].key.deprecated_id
        return message.SerializeToString()

    def encrypt_part(self, group_id: bytes, plain: bytes) -> tuple[bytes, int, bytes]:
        """Encrypt bytes with the key of a group. `encrypt_part` returns the key's id, the message's
        number and the ciphertext.

        Raises:
            NoGroupKey: as `encrypt`.
        """
        if (key := self.current(group_id)) is None:
            raise NoGroupKey(
                f"no key of {_called(group_id)} has arrived; wait, or ask the owner of the "
                "community"
            )
        held = self._held[key.id]
        # DIVERGES: status-go counts on from the highest number that it saw, so that one member with
        # the last number silences all others. The iv is random, so a number may come twice.
        if held.written >= MAX_SEQ_NO:
            raise NoGroupKey(
                f"the key of {_called(group_id)} encrypted its maximum of messages; the owner of "
                "the community can make another key"
            )
        sealed = self._chain(held).encrypt(held.written + 1, plain, random=self._random)
        held.written += 1
        self._keep(held)
        return key.id, held.written, sealed


def _called(group_id: bytes) -> str:
    is_community = len(group_id) == COMPRESSED_BYTES
    return f"community 0x{group_id.hex()}" if is_community else group_id.decode(errors="replace")
