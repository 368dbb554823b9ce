"""Double ratchet of 53/WAKU2-X3DH, for one session between two devices. The module has no I/O and
no clock.

The ratchet is Signal's without header encryption, with the cryptographic functions of status-go.
The cryptographic primitives are those of the package `cryptography`. No cryptographer has reviewed
the ratchet's state machine.
"""

import hmac
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Final

from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.ciphers.modes import CTR
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from ..keys import PrivateKey, PublicKey

MAX_SKIP: Final = 1_000
"""Maximum number of messages that may be missing in a chain (`MaxSkip` of status-go)."""
MAX_KEYS: Final = 2_000
"""Maximum number of stored message keys of a session (`MaxMessageKeysPerSession`). Beyond the
maximum, the oldest message key is evicted."""
KEY_BYTES: Final = 32
IV_BYTES: Final = 16
MAC_BYTES: Final = 32
_ROOT_INFO: Final = b"rsZUpEuXUqqwXBvSy3EcievAh4cMj6QL"
_MESSAGE_INFO: Final = b"pcwSByyx2CRdryCffXJwy7xgVZWtW5Sh"


class RatchetError(Exception):
    """Error that the session cannot decrypt a message, which leaves the session unchanged."""


class TooManySkipped(RatchetError):
    """Error that too many earlier messages are missing, so their keys are not computed."""


class KeyUsed(RatchetError):
    """Error that the message's key was already used, deleted or evicted."""


class NotAuthentic(RatchetError):
    """Error that the message was changed, or that another session encrypted it."""


@dataclass(frozen=True, slots=True)
class RatchetHeader:
    """Header of a message, which identifies the message's key."""

    key: bytes
    """Compressed ratchet key of the sender (33 bytes)."""
    n: int
    """Number of the message in its sending chain."""
    pn: int
    """Number of messages in the previous sending chain."""

    @property
    def associated_data(self) -> bytes:
        """Bytes that are authenticated in addition to the ciphertext."""
        return self.n.to_bytes(4, "little") + self.pn.to_bytes(4, "little") + self.key


def root_step(root: bytes, secret: bytes) -> tuple[bytes, bytes]:
    """Return the next root key, and the first key of a new chain."""
    derived = HKDF(SHA256(), 3 * KEY_BYTES, salt=root, info=_ROOT_INFO).derive(secret)
    return derived[:KEY_BYTES], derived[KEY_BYTES : 2 * KEY_BYTES]  # the rest is for header keys


def chain_step(chain: bytes) -> tuple[bytes, bytes]:
    """Return the next key of a chain, and the key of one message."""
    return hmac.digest(chain, b"\x0f", "sha256"), hmac.digest(chain, b"\x10", "sha256")


def encrypt_message(message_key: bytes, plain: bytes, associated_data: bytes) -> bytes:
    """Encrypt a message with its message key, which must be used only once. `encrypt_message`
    returns iv, ciphertext and MAC."""
    cipher_key, mac_key, iv = _message_keys(message_key)
    encryptor = Cipher(AES(cipher_key), CTR(iv)).encryptor()
    body = iv + encryptor.update(plain) + encryptor.finalize()
    return body + hmac.digest(mac_key, associated_data + body, "sha256")


def decrypt_message(message_key: bytes, sealed: bytes, associated_data: bytes) -> bytes:
    """Decrypt a message with its message key.

    Raises:
        NotAuthentic: another key encrypted it, or it was changed.
    """
    if len(sealed) < IV_BYTES + MAC_BYTES:
        raise NotAuthentic(f"the encrypted message has {len(sealed)} bytes, too few")
    cipher_key, mac_key, _ = _message_keys(message_key)
    body, mac = sealed[:-MAC_BYTES], sealed[-MAC_BYTES:]
    if not hmac.compare_digest(hmac.digest(mac_key, associated_data + body, "sha256"), mac):
        raise NotAuthentic("the message was encrypted with another key, or was changed afterwards")
    decryptor = Cipher(AES(cipher_key), CTR(body[:IV_BYTES])).decryptor()
    return decryptor.update(body[IV_BYTES:]) + decryptor.finalize()


def _message_keys(message_key: bytes) -> tuple[bytes, bytes, bytes]:
    hkdf = HKDF(SHA256(), 2 * KEY_BYTES + IV_BYTES, salt=bytes(KEY_BYTES), info=_MESSAGE_INFO)
    derived = hkdf.derive(message_key)
    return derived[:KEY_BYTES], derived[KEY_BYTES : 2 * KEY_BYTES], derived[2 * KEY_BYTES :]


@dataclass(frozen=True, slots=True)
class RatchetState:
    """Stored state of a session, without its message keys."""

    root: bytes = field(repr=False)
    own: PrivateKey
    peer: PublicKey | None
    """Ratchet key of the other side. Before the first message to the device's own bundle, `peer` is
    None."""
    sending: bytes = field(repr=False)
    receiving: bytes = field(repr=False)
    sent: int = 0
    received: int = 0
    previous: int = 0
    """Number of messages in the previous sending chain."""


class Ratchet:
    """Side of a ratchet session for one device.

    Args:
        state: where it is.
        keys: of messages that did not come, or were not confirmed: by ratchet key and number.
        new_key: gives ratchet keys.
    """

    def __init__(
        self,
        state: RatchetState,
        keys: OrderedDict[tuple[bytes, int], bytes] | None = None,
        *,
        new_key: Callable[[], PrivateKey] = PrivateKey.generate,
    ) -> None:
        self.state = state
        self.keys = OrderedDict() if keys is None else keys
        self._new_key = new_key

    @classmethod
    def initiator(
        cls,
        secret: bytes,
        pre_key: PublicKey,
        *,
        new_key: Callable[[], PrivateKey] = PrivateKey.generate,
    ) -> "Ratchet":
        """Return the side of a session that writes first, to the other side's bundle."""
        own = new_key()
        root, chain = root_step(secret, own.shared_secret(pre_key))
        return cls(RatchetState(root, own, pre_key, chain, secret), new_key=new_key)

    @classmethod
    def responder(
        cls,
        secret: bytes,
        pre_key: PrivateKey,
        *,
        new_key: Callable[[], PrivateKey] = PrivateKey.generate,
    ) -> "Ratchet":
        """Return the side of a session whose bundle the other side used."""
        return cls(RatchetState(secret, pre_key, None, secret, secret), new_key=new_key)

    def encrypt(self, plain: bytes) -> tuple[RatchetHeader, bytes]:
        """Encrypt the next message of the session. The caller stores the session before it sends
        the message."""
        state = self.state
        header = RatchetHeader(state.own.public_key.compressed, state.sent, state.previous)
        chain, message_key = chain_step(state.sending)
        self.state = replace(state, sending=chain, sent=state.sent + 1)
        return header, encrypt_message(message_key, plain, header.associated_data)

    def decrypt(self, header: RatchetHeader, sealed: bytes) -> bytes:
        """Decrypt a message of the session. The key of a decrypted message is kept until `confirm`.
        After a crash, a decrypted message that was not handled can be decrypted again.

        Raises:
            RatchetError: it does not open; nothing has changed.
        """
        if (kept := self.keys.get((header.key, header.n))) is not None:
            return decrypt_message(kept, sealed, header.associated_data)
        state, found = self.state, OrderedDict[tuple[bytes, int], bytes]()
        current = None if state.peer is None else state.peer.compressed
        if header.key != current:
            if current is not None and header.pn > state.received:
                state = _skip(state, current, header.pn, found)
            state = self._turned(state, header.key)
        if header.n < state.received:
            raise KeyUsed(
                f"message {header.n} was decrypted before: {state.received} messages of this "
                "chain have arrived"
            )
        state = _skip(state, header.key, header.n + 1, found)
        plain = decrypt_message(found[header.key, header.n], sealed, header.associated_data)
        self.state = state
        self.keys |= found
        while len(self.keys) > MAX_KEYS:
            self.keys.popitem(last=False)
        return plain

    def confirm(self, key: bytes, n: int) -> None:
        """Delete the key of a handled message, so that the message cannot be decrypted again."""
        self.keys.pop((key, n), None)

    def _turned(self, state: RatchetState, key: bytes) -> RatchetState:
        """Both chains anew, from the other's new ratchet key."""
        try:
            peer = PublicKey(key)
        except ValueError as error:
            raise NotAuthentic(str(error)) from None
        root, receiving = root_step(state.root, state.own.shared_secret(peer))
        own = self._new_key()
        root, sending = root_step(root, own.shared_secret(peer))
        return RatchetState(root, own, peer, sending, receiving, previous=state.sent)


def _skip(
    state: RatchetState, key: bytes, until: int, found: OrderedDict[tuple[bytes, int], bytes]
) -> RatchetState:
    """Compute the message keys of the receiving chain up to a number."""
    if until - state.received > MAX_SKIP + 1:
        missing = until - state.received - 1
        raise TooManySkipped(
            f"{missing} messages are missing before this message; at most {MAX_SKIP} may be skipped"
        )
    chain, number = state.receiving, state.received
    while number < until:
        chain, found[key, number] = chain_step(chain)
        number += 1
    return replace(state, receiving=chain, received=number)
