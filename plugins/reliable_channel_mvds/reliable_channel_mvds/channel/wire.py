"""Envelopes that a channel passes to its transport. Each envelope names its receiver."""

from dataclasses import dataclass
from typing import Final

from google.protobuf.message import DecodeError

from . import mvds_channel_pb2

MAX_ID_BYTES: Final = 256
"""Maximum length of a channel's or participant's id, so that an envelope has room for its
payload."""
ENVELOPE_ROOM_BYTES: Final = 3 * MAX_ID_BYTES + 32
"""Maximum number of bytes that an envelope adds to its payload."""


class EnvelopeError(ValueError):
    """Error that bytes are no envelope, or that a body is no content."""


@dataclass(frozen=True, slots=True)
class Envelope:
    """Envelope with a payload or an ephemeral message, and with its receiver."""

    channel_id: str
    sender_id: str
    recipient_id: str = ""
    """Id of the receiver, or an empty text for all participants."""
    payload: bytes = b""
    ephemeral: bytes = b""
    nonce: bytes = b""
    """Bytes that make equal ephemeral messages distinct."""

    @property
    def is_hello(self) -> bool:
        """True if the envelope only announces its sender."""
        return not (self.recipient_id or self.payload or self.ephemeral)

    def encode(self) -> bytes:
        return mvds_channel_pb2.Envelope(
            channel_id=self.channel_id,
            sender_id=self.sender_id,
            recipient_id=self.recipient_id,
            payload=self.payload,
            ephemeral=self.ephemeral,
            nonce=self.nonce,
        ).SerializeToString()

    @classmethod
    def decode(cls, data: bytes) -> "Envelope":
        """Return the envelope in the bytes.

        Raises:
            EnvelopeError: the bytes are no envelope, or an id is empty or too long.
        """
        try:
            read = mvds_channel_pb2.Envelope.FromString(data)
        except DecodeError as error:
            raise EnvelopeError(
                f"the {len(data)} bytes are not an MVDS envelope: {error}"
            ) from None
        ids = (read.channel_id, read.sender_id, read.recipient_id)
        if not read.channel_id or not read.sender_id:
            raise EnvelopeError("the MVDS envelope names no channel or no sender")
        if any(len(text.encode()) > MAX_ID_BYTES for text in ids):
            raise EnvelopeError(f"an id in the MVDS envelope is longer than {MAX_ID_BYTES} bytes")
        return cls(*ids, read.payload, read.ephemeral, read.nonce)


@dataclass(frozen=True, slots=True)
class Content:
    """Body of a message, with its content, its sender, and its Lamport timestamp."""

    sender_id: str
    lamport_timestamp: int
    content: bytes

    def encode(self) -> bytes:
        return mvds_channel_pb2.Content(
            sender_id=self.sender_id,
            lamport_timestamp=self.lamport_timestamp,
            content=self.content,
        ).SerializeToString()

    @classmethod
    def decode(cls, data: bytes) -> "Content":
        """Return the content in a body.

        Raises:
            EnvelopeError: the bytes are no body, or a field is missing or impossible.
        """
        try:
            read = mvds_channel_pb2.Content.FromString(data)
        except DecodeError as error:
            raise EnvelopeError(
                f"the {len(data)} bytes are not the content of an MVDS message: {error}"
            ) from None
        if not read.sender_id or len(read.sender_id.encode()) > MAX_ID_BYTES:
            raise EnvelopeError(
                f"the sender of an MVDS message must have 1 to {MAX_ID_BYTES} bytes: another "
                "length is refused"
            )
        if not read.content or read.lamport_timestamp < 0:
            raise EnvelopeError("the MVDS message has no content, or a negative Lamport timestamp")
        return cls(read.sender_id, read.lamport_timestamp, read.content)
