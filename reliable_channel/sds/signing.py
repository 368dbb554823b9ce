"""Signed senders. A proof of `sender_id` travels in a field of the message that other peers skip.

The signature covers the whole wire message: ids, channel, Lamport timestamp, causal history, bloom
filter, repair request and content. No canonical form is needed. A message that another participant
broadcasts again (SDS-R) still proves its sender. The given `Signing` knows which keys belong to a
`sender_id`.
"""

from hashlib import sha256
from typing import Final, Protocol

from .dialects.signature import signed_part, with_signature
from .errors import ReliableChannelError
from .message import Message

SIGNATURE_DOMAIN: Final = b"reliable-channel signed message 1\0"
"""Prefix of the signed data. A signature made for another purpose with the same key thus proves
nothing here, and the reverse."""


class NotProven(ReliableChannelError):
    """A signature does not show that a message comes from its `sender_id`. The text gives the
    reason."""


class Signing(Protocol):
    """Interface of a signature scheme for a channel.

    Both methods run within a step of the protocol. They must be quick, as Ed25519 is, and must not
    wait.
    """

    def sign(self, data: bytes) -> bytes:
        """Sign in the name of this participant. `send` raises its errors. If the message waits, and
        signing fails when it leaves, it leaves as `send` signed it."""
        ...

    def verify(self, sender_id: str, data: bytes, signature: bytes) -> None:
        """Check that `sender_id` signed `data`. Anybody may have sent the ids and the signature.

        Raises:
            NotProven: it did not, or its keys are unknown.
        """
        ...


def sign_message(signing: Signing, data: bytes) -> bytes:
    """Return an encoded message with its signature at the end."""
    return with_signature(data, signing.sign(signed_text(data)))


def signed_text(data: bytes) -> bytes:
    """Return the signed value of an encoded message: its hash, because Ed25519 reads its input
    twice and hashes more slowly."""
    return SIGNATURE_DOMAIN + sha256(data).digest()


def check_signature(signing: Signing, message: Message, data: bytes) -> None:
    """Check that `message`, which was decoded from `data`, comes from the sender that it names.

    Raises:
        NotProven: it does not, or that is unknown.
    """
    if message.signature is None:
        raise NotProven("it is not signed, and this channel demands that")
    signed = signed_part(data, message.signature)
    if signed is None:
        raise NotProven("something follows its signature, which covers only what stands before it")
    signing.verify(message.sender_id, signed_text(signed), message.signature)
