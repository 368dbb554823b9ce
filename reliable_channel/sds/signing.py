"""Signatures that prove the sender of a message. A signature of `sender_id` is in the last field
of the message, which other peers skip.

The signature covers the whole wire message, from its ids to its content. The signed bytes are the
sent bytes, so no canonical form is needed. A message that another participant broadcasts again
(SDS-R) keeps the signature of its sender. The given `Signing` knows which keys belong to a
`sender_id`.
"""

from hashlib import sha256
from typing import Final, Protocol

from .dialects import sds_pb2
from .errors import ReliableChannelError
from .message import Message

SIGNATURE_DOMAIN: Final = b"reliable-channel signed message 1\0"
"""Prefix of the signed data. A signature that the same key made for another purpose therefore
proves nothing, and vice versa."""


class NotProven(ReliableChannelError):
    """The signature does not prove that the message comes from its `sender_id`. The text of the
    error gives the reason."""


class Signing(Protocol):
    """Interface of a signature scheme for a channel.

    The state machine calls both methods within a step. The methods must be fast, as Ed25519 is, and
    must not wait.
    """

    def sign(self, data: bytes) -> bytes:
        """Sign data in the name of this participant. `send` raises the errors of this method. If
        `sign` fails when a message leaves, the message leaves with the signature made by `send`.
        If `sign` fails for a sync message, the sync is left out."""
        ...

    def verify(self, sender_id: str, data: bytes, signature: bytes) -> None:
        """Check that `sender_id` signed `data`. The ids and the signature are unchecked input from
        the network.

        Raises:
            NotProven: it did not, or its keys are unknown.
        """
        ...


def sign_message(signing: Signing, data: bytes) -> bytes:
    """Return an encoded message with its signature added at the end."""
    return with_signature(data, signing.sign(signed_text(data)))


def signed_text(data: bytes) -> bytes:
    """Return the hash of an encoded message, because Ed25519 is slow for long input."""
    return SIGNATURE_DOMAIN + sha256(data).digest()


def check_signature(signing: Signing, message: Message, data: bytes) -> None:
    """Check that `message`, decoded from `data`, comes from the sender that it names.

    Raises:
        NotProven: it does not, or that is unknown.
    """
    if message.signature is None:
        raise NotProven("the message has no signature, but this channel has `require_signatures`")
    signed = signed_part(data, message.signature)
    if signed is None:
        raise NotProven(
            "the message has bytes after its signature, which covers only the bytes before it"
        )
    signing.verify(message.sender_id, signed_text(signed), message.signature)


def with_signature(data: bytes, signature: bytes) -> bytes:
    """Return an encoded message with a signature added at its end."""
    return data + _field(signature)


def signed_part(data: bytes, signature: bytes) -> bytes | None:
    """Return the part of `data` that its signature covers. Return None if the signature is not the
    last field, because it then does not cover all fields."""
    field = _field(signature)
    return data[: -len(field)] if data.endswith(field) else None


def _field(signature: bytes) -> bytes:
    # The number, and so the bytes, are the same in every dialect.
    return sds_pb2.Message(signature=signature).SerializeToString()
