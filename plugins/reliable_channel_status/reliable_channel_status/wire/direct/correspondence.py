"""Direct messages of one device, with encryption and MVDS.

From the outside, the layers are `ProtocolMessage`, an encrypted message per device, MVDS, and
payload. The module takes and returns bytes, without I/O.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from .. import status_pb2
from ..codec import parsed
from ..envelope import Random
from ..keys import PrivateKey, PublicKey
from ..outcomes import MessageKeyId, RefusalReason, Refused
from .datasync import DataSyncMessage, DataSyncPayload, read_datasync
from .dh import ANY_DEVICE, decrypt_dh, encrypt_dh
from .sessions import Sessions

MAX_BUNDLES: Final = 3
"""Maximum number of bundles that are read from one message. Clients send one bundle in a
message."""
MAX_DEVICES: Final = 64
"""Maximum number of devices for which one message is encrypted. status-go encrypts each message for
three devices."""


@dataclass(frozen=True, slots=True)
class DirectPayload:
    """Content of a direct message, with signed payloads and the sender's acknowledgements."""

    bodies: tuple[tuple[bytes, bytes | None], ...]
    """Signed payloads, each with the id by which it is acknowledged."""
    datasync: DataSyncPayload | None = None
    ratchet_key: MessageKeyId | None = None
    """Id of the session key that decrypted the message. `Correspondence.confirm` deletes the
    session key."""
    refused: tuple[Refused, ...] = ()
    """Refusals of bundles in the message."""
    group_id: bytes = b""
    """Id of the group whose keys the message carries."""
    group_keys: status_pb2.HRKeys | None = None
    """Keys of a group, sent to one member."""


class Correspondence:
    """Direct messages of one device, encrypted and decrypted.

    Args:
        key: of the device's owner.
        sessions: of the device, for forward secrecy; None publishes no bundle and reads no
            ratchet.
        now_ms: the time, for own bundles.
        random, new_key: give iv and ephemeral keys.
    """

    def __init__(
        self,
        key: PrivateKey,
        *,
        sessions: Sessions | None = None,
        now_ms: Callable[[], int] = lambda: 0,
        random: Random = os.urandom,
        new_key: Callable[[], PrivateKey] = PrivateKey.generate,
    ) -> None:
        self._key = key
        self.public_key: Final = key.public_key
        self.sessions: Final = sessions
        self._now_ms = now_ms
        self._random = random
        self._new_key = new_key

    def encrypt(self, plain: bytes, peer: PublicKey) -> bytes:
        """Return the `ProtocolMessage` that carries a payload to all devices of a user."""
        message = status_pb2.ProtocolMessage()
        if self.sessions is not None:
            message.installation_id = self.sessions.installation_ids(peer)[0]
            message.bundles.append(self.sessions.bundle(self._now_ms(), peer).encode())
            for device, encoded in self.sessions.encrypt(plain, peer).items():
                message.encrypted_message[device].ParseFromString(encoded)
            if message.encrypted_message:
                return message.SerializeToString()
        ephemeral = self._new_key()
        encrypted = message.encrypted_message[ANY_DEVICE]
        encrypted.dh_header.key = ephemeral.public_key.compressed
        encrypted.payload = encrypt_dh(plain, peer, ephemeral, random=self._random)
        return message.SerializeToString()

    def open(
        self, data: bytes, sender: PublicKey | None, timestamp_ms: int = 0
    ) -> DirectPayload | Refused | None:
        """Decrypt a `ProtocolMessage`. If nothing in the message is encrypted for devices, `open`
        returns None.

        Args:
            data: its bytes.
            sender: the signer of the envelope.
            timestamp_ms: of the Waku message. What is later than all that was read in a session and
                does not open there shows that the session is lost.
        """
        message = status_pb2.ProtocolMessage()
        if not parsed(message, data) or not message.encrypted_message or message.public_message:
            return None
        for_devices = message.encrypted_message
        if all(_is_for_group(one) for one in for_devices.values()):
            return None
        if sender is None:
            return Refused(RefusalReason.UNSIGNED_ENVELOPE, "a direct message without a sender")
        if len(for_devices) > MAX_DEVICES:
            detail = f"for {len(for_devices)} devices; at most {MAX_DEVICES} are read"
            return Refused(RefusalReason.TOO_LARGE, detail, sender)
        refused = self._learn(message, sender)
        own = () if self.sessions is None else self.sessions.installation_ids(sender)
        device = next((one for one in own if one in for_devices), ANY_DEVICE)
        if device not in for_devices:
            if self.sessions is not None:
                self.sessions.lost(sender)
            names = ", ".join(sorted(for_devices))[:150]
            detail = f"for the devices {names}"
            return Refused(RefusalReason.NOT_FOR_THIS_DEVICE, detail, sender)
        encrypted, key_id = for_devices[device], None
        if encrypted.HasField("dr_header") and self.sessions is not None:
            found = self.sessions.decrypt(
                encrypted, sender, message.installation_id, device, timestamp_ms
            )
            if isinstance(found, Refused):
                return found
            plain, key_id = found
        else:
            decrypted = self._decrypt(encrypted, sender)
            if isinstance(decrypted, Refused):
                return decrypted
            plain = decrypted
        return replace(_opened(encrypted, plain), ratchet_key=key_id, refused=refused)

    def encrypt_keys(self, group_id: bytes, keys: status_pb2.HRKeys, peer: PublicKey) -> bytes:
        """Return the `ProtocolMessage` that carries keys of a group to all devices of a member.

        DIVERGES from status-go, which also writes the keys into the header, protected only by the
        envelope. status-go reads messages that carry the keys only in the encrypted payload (its
        older form).
        """
        message = status_pb2.ProtocolMessage()
        message.ParseFromString(self.encrypt(keys.SerializeToString(), peer))
        for encrypted in message.encrypted_message.values():
            encrypted.hr_header.group_id = group_id
        return message.SerializeToString()

    def confirm(self, key_id: MessageKeyId) -> None:
        """Delete the encryption key of a handled message."""
        if self.sessions is not None:
            self.sessions.confirm(key_id)

    def _learn(self, message: status_pb2.ProtocolMessage, sender: PublicKey) -> tuple[Refused, ...]:
        if self.sessions is None:
            return ()
        found = (self.sessions.learn(raw, sender) for raw in message.bundles[:MAX_BUNDLES])
        return tuple(one for one in found if one is not None)

    def _decrypt(
        self, encrypted: status_pb2.EncryptedMessageProtocol, sender: PublicKey
    ) -> bytes | Refused:
        if not encrypted.HasField("dh_header"):
            detail = "a ratchet message, and this device has published no bundle"
            return Refused(RefusalReason.UNKNOWN_SESSION, detail, sender)
        try:
            ephemeral = PublicKey(encrypted.dh_header.key)
        except ValueError as error:
            return Refused(RefusalReason.BAD_CIPHERTEXT, str(error)[:150], sender)
        plain = decrypt_dh(encrypted.payload, ephemeral, self._key)
        if plain is None:
            detail = "AES-GCM: the key is wrong, or bytes were changed"
            return Refused(RefusalReason.BAD_CIPHERTEXT, detail, sender)
        return plain


def _is_for_group(encrypted: status_pb2.EncryptedMessageProtocol) -> bool:
    """Return True if only a group's key opens it, or it brings such a key for all members."""
    has_device = encrypted.HasField("dh_header") or encrypted.HasField("dr_header")
    return encrypted.HasField("hr_header") and not has_device


def _opened(encrypted: status_pb2.EncryptedMessageProtocol, plain: bytes) -> DirectPayload:
    """What a message holds; number 0 in the header of a group says that it brings keys."""
    header = encrypted.hr_header
    if not encrypted.HasField("hr_header") or header.seq_no:
        return _read(plain)
    if header.HasField("keys"):
        keys, body = header.keys, plain
        if status_pb2.HRKeys(keys=keys.keys).SerializeToString() == plain:
            body = b""
        return replace(_read(body), group_id=header.group_id, group_keys=keys)
    keys = status_pb2.HRKeys()
    if not parsed(keys, plain):
        keys.Clear()
    return DirectPayload((), group_id=header.group_id, group_keys=keys)


def _read(plain: bytes) -> DirectPayload:
    payload = read_datasync(plain)
    if payload is None:
        return DirectPayload(((plain, None),) if plain else ())
    return DirectPayload(tuple(map(_body, payload.messages)), payload)


def _body(message: DataSyncMessage) -> tuple[bytes, bytes | None]:
    return message.body, message.id
