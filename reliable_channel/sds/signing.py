"""Signed senders: a proof of `sender_id` that travels with the message, in a field that peers that
do not know it skip.

What is signed is the message as it stands on the wire, all of it: ids, channel, Lamport timestamp,
causal history, bloom filter, repair request and content. So nothing has to be written in a
canonical form first, and a message that another participant broadcasts again as it was first sent
(SDS-R) still proves its sender. Which keys belong to a `sender_id` is for the given `Signing` to
know.
"""

from hashlib import sha256
from typing import Final, Protocol

from .dialects.signature import signed_part, with_signature
from .errors import ReliableChannelError
from .message import Message

SIGNATURE_DOMAIN: Final = b"reliable-channel signed message 1\0"
"""Stands before what is signed, so that a signature made for another purpose with the same key
proves nothing here, nor one made here anything elsewhere."""


class NotProven(ReliableChannelError):
    """A signature does not show that a message comes from its `sender_id`; the text says why."""


class Signing(Protocol):
    """What a channel needs of a signature scheme.

    Both are called within a step of the protocol: they must be quick, as Ed25519 is, and must not
    wait.
    """

    def sign(self, data: bytes) -> bytes:
        """Sign in the name of this participant. What it raises, `send` raises."""
        ...

    def verify(self, sender_id: str, data: bytes, signature: bytes) -> None:
        """Check that `sender_id` signed `data`. Both ids and signatures come from anybody.

        Raises:
            NotProven: it did not, or its keys are unknown.
        """
        ...


def sign_message(signing: Signing, data: bytes) -> bytes:
    """An encoded message with its signature behind it."""
    return with_signature(data, signing.sign(signed_text(data)))


def signed_text(data: bytes) -> bytes:
    """What is signed of an encoded message: its hash, as Ed25519 goes over what it signs twice, and
    with a slower hash."""
    return SIGNATURE_DOMAIN + sha256(data).digest()


def check_signature(signing: Signing, message: Message, data: bytes) -> None:
    """Check that `message`, which was decoded from `data`, comes from the sender it names.

    Raises:
        NotProven: it does not, or that is unknown.
    """
    if message.signature is None:
        raise NotProven("it is not signed, and this channel demands that")
    signed = signed_part(data, message.signature)
    if signed is None:
        raise NotProven("something follows its signature, which covers only what stands before it")
    signing.verify(message.sender_id, signed_text(signed), message.signature)
