"""Group keys, and the hash ratchet that encrypts with them, as in status-go. The module has no I/O
and no clock.

A group is a community or a channel of a community. AES-256-GCM encrypts the n-th message with the
group key, hashed n times. Members keep the group key, so the encryption has no forward secrecy.
Only a new group key protects messages from owners of the old key.

Tests check the module with recorded bytes of a real client (`tests/vectors/data/status-ratchet`).
"""

import json
import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from reliable_channel.errors import ReliableChannelError

from . import status_pb2
from .envelope import IV_BYTES, TAG_BYTES, Random
from .keys import KEY_BYTES, PrivateKey, PublicKey, keccak256

MAX_SEQ_NO: Final = 100_000
"""Maximum number of messages encrypted with one key (`maxHashRatchetSeqNoDelta` of status-go).
Message numbers above the maximum are refused."""
STRIDE: Final = 256
"""Number of hash steps between stored hashes of a chain, which limits the cost of an old
message."""
TIMESTAMP_STEP_MS: Final = 10
"""Time by which a new key's timestamp is ahead of the clock (`keyBumpValue`)."""
MAX_KEYS: Final = 64
"""Maximum number of stored keys of one group, those with the latest timestamps. status-go makes a
new key every 48 hours, and at each removal of a member."""
_SEALED_KEY_BYTES: Final = IV_BYTES + KEY_BYTES + TAG_BYTES
_MAX_TIMESTAMP: Final = 2**63 - 1


class NoGroupKey(ReliableChannelError, RuntimeError):
    """Error that the key of an encrypted community or channel is missing or used up."""


@dataclass(frozen=True, slots=True)
class GroupKey:
    """Encryption key of a group.

    Raises:
        ValueError: not 32 bytes, or no timestamp.
    """

    group_id: bytes
    """Id of the group, which is a community's compressed public key or a channel's `chat_id` in
    UTF-8."""
    timestamp_ms: int
    """Time when the key was created. New messages are encrypted with the key that was created
    last."""
    key: bytes = field(repr=False)
    id: bytes = field(init=False)
    """Id of the key in messages, Keccak-256 of group, timestamp and key."""

    def __post_init__(self) -> None:
        if len(self.key) != KEY_BYTES:
            raise ValueError(f"a group key must have {KEY_BYTES} bytes (got {len(self.key)})")
        if not 0 < self.timestamp_ms <= _MAX_TIMESTAMP:
            raise ValueError(
                "the time of a group key must be positive and at most 63 bits (got "
                f"{self.timestamp_ms})"
            )
        timestamp = self.timestamp_ms.to_bytes(8, "little")
        object.__setattr__(self, "id", keccak256(self.group_id + timestamp + self.key))

    @property
    def deprecated_id(self) -> int:
        """Id of the key for the oldest clients."""
        return self.timestamp_ms % 2**32


def next_key(
    group_id: bytes, before: GroupKey | None, now_ms: int, *, random: Random = os.urandom
) -> GroupKey:
    """Return a new key of a group, with a later timestamp than the previous key."""
    timestamp_ms = now_ms + TIMESTAMP_STEP_MS
    if before is not None:
        timestamp_ms = max(timestamp_ms, before.timestamp_ms + 1)
    return GroupKey(group_id, timestamp_ms, random(KEY_BYTES))


@dataclass(slots=True)
class HeldKey:
    """Group key that this participant stores."""

    key: GroupKey
    sender: PublicKey | None
    """User that sent the key. For a key that this participant created, `sender` is None."""
    is_trusted: bool
    written: int = 0
    """Number of messages that this participant encrypted with the key."""

    def encode(self) -> bytes:
        """Return the key in a stored form."""
        document = {
            "group_id": self.key.group_id.hex(),
            "timestamp_ms": self.key.timestamp_ms,
            "key": self.key.key.hex(),
            "sender": self.sender and self.sender.compressed.hex(),
            "is_trusted": self.is_trusted,
            "written": self.written,
        }
        return json.dumps(document).encode()

    @classmethod
    def decode(cls, value: bytes) -> "HeldKey":
        """Read a key from its stored form."""
        document: dict[str, Any] = json.loads(value)
        group_id, key = bytes.fromhex(document["group_id"]), bytes.fromhex(document["key"])
        sender = document["sender"]
        return cls(
            GroupKey(group_id, document["timestamp_ms"], key),
            None if sender is None else PublicKey(bytes.fromhex(sender)),
            document["is_trusted"],
            document["written"],
        )


class Chain:
    """Chain of hashes of one group key."""

    def __init__(self, key: GroupKey) -> None:
        self._marks = [key.key]
        self._last = 0, key.key

    def hash_at(self, seq_no: int) -> bytes:
        """Return the key of the message with the given number, in at most `STRIDE` steps for
        earlier numbers.

        Raises:
            ValueError: a number that no message of a key has.
        """
        if not 0 < seq_no <= MAX_SEQ_NO:
            raise ValueError(
                f"a group key must have message numbers from 1 to {MAX_SEQ_NO} (got {seq_no})"
            )
        mark = min(seq_no // STRIDE, len(self._marks) - 1)
        number, value = mark * STRIDE, self._marks[mark]
        if number < self._last[0] <= seq_no:
            number, value = self._last
        while number < seq_no:
            number, value = number + 1, keccak256(value)
            if number == len(self._marks) * STRIDE:
                self._marks.append(value)
        self._last = number, value
        return value

    def encrypt(self, seq_no: int, plain: bytes, *, random: Random = os.urandom) -> bytes:
        """Encrypt a message of the chain. `Chain.encrypt` returns ciphertext, tag and iv.

        Raises:
            ValueError: a number that no message of a key has.
        """
        iv = random(IV_BYTES)
        return AESGCM(self.hash_at(seq_no)).encrypt(iv, plain, None) + iv

    def decrypt(self, seq_no: int, sealed: bytes) -> bytes | None:
        """Decrypt a message of the chain. If the message was changed or another key encrypted it,
        `Chain.decrypt` returns None.

        Raises:
            ValueError: a number that no message of a key has.
        """
        if len(sealed) < IV_BYTES + TAG_BYTES:
            return None
        cipher = AESGCM(self.hash_at(seq_no))
        try:
            return cipher.decrypt(sealed[-IV_BYTES:], sealed[:-IV_BYTES], None)
        except InvalidTag:
            return None


# -- on the wire ----------------------------------------------------------------------------------


def write_keys(keys: Iterable[GroupKey]) -> status_pb2.HRKeys:
    """Return the protobuf message with keys of a group, for one member."""
    return status_pb2.HRKeys(
        keys=[
            status_pb2.HRKey(
                deprecated_key_id=one.deprecated_id, key=one.key, timestamp=one.timestamp_ms
            )
            for one in keys
        ]
    )


def read_keys(group_id: bytes, raw: status_pb2.HRKeys) -> list[GroupKey]:
    """Return the latest group keys in a message to a member, at most `MAX_KEYS`.

    Raises:
        ValueError: one of another length, or without a timestamp.
    """
    keys = [GroupKey(group_id, one.timestamp or one.deprecated_key_id, one.key) for one in raw.keys]
    return sorted(keys, key=lambda one: one.timestamp_ms)[-MAX_KEYS:]


def seal_for_members(
    key: GroupKey, sender: PrivateKey, members: Iterable[PublicKey], *, random: Random = os.urandom
) -> status_pb2.RekeyGroup:
    """Return a message with a group key, encrypted for each member by Diffie-Hellman with the
    sender."""
    rekey = status_pb2.RekeyGroup(timestamp=key.timestamp_ms)
    for member in members:
        iv = random(IV_BYTES)
        cipher = AESGCM(sender.shared_secret(member))
        rekey.keys[_place(member)] += iv + cipher.encrypt(iv, key.key, None)
    return rekey


def open_for_member(
    group_id: bytes, rekey: status_pb2.RekeyGroup, sender: PublicKey, member: PrivateKey
) -> GroupKey | None:
    """Return the group key in a message to several members, or None if this member has no part.

    Raises:
        ValueError: what was encrypted for the member is no key.
    """
    found = rekey.keys.get(_place(member.public_key), b"")
    if not found:
        return None
    cipher = AESGCM(member.shared_secret(sender))
    for first in range(0, min(len(found), MAX_KEYS * _SEALED_KEY_BYTES), _SEALED_KEY_BYTES):
        sealed = found[first : first + _SEALED_KEY_BYTES]
        try:
            key = cipher.decrypt(sealed[:IV_BYTES], sealed[IV_BYTES:], None)
        except (InvalidTag, ValueError):  # of another member whose key begins alike; too short
            continue
        return GroupKey(group_id, rekey.timestamp, key)
    return None


def _place(member: PublicKey) -> int:
    """Where a member finds its key: the first four bytes of x, shared by few."""
    return int.from_bytes(member.uncompressed[1:5], "little")
