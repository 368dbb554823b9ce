"""Envelope for the payloads of questions and answers (`proto/ask.proto`). All other payloads have
no envelope."""

from typing import Final

from google.protobuf.message import DecodeError

from ..errors import ReliableChannelError
from .ask_pb2 import Envelope

MAGIC: Final = 0xA1514352
VERSION: Final = 1
QUESTION_ID_BYTES: Final = 16
_BEGINNING: Final = b"\x0d" + MAGIC.to_bytes(4, "little")
"""The tag of field 1 and its value."""


class UnreadableEnvelope(ReliableChannelError):
    """The payload begins like an envelope, but this version cannot read the envelope."""


def is_envelope(payload: bytes) -> bool:
    """Return True if a payload is a question or an answer, of any version."""
    return payload.startswith(_BEGINNING)


def encode(question_id: bytes, content: bytes, asker_id: str = "") -> bytes:
    """Return the payload of a question, or of an answer to the asker `asker_id`."""
    return Envelope(
        magic=MAGIC, version=VERSION, question_id=question_id, asker_id=asker_id, content=content
    ).SerializeToString(deterministic=True)


def decode(payload: bytes) -> Envelope:
    """Return the envelope that a payload contains.

    Raises:
        UnreadableEnvelope: it is damaged, or of another version.
    """
    try:
        found = Envelope.FromString(payload)
    except DecodeError as error:
        raise UnreadableEnvelope(f"the envelope is damaged: {error}") from error
    if found.version != VERSION:
        raise UnreadableEnvelope(f"the envelope must have version {VERSION} (got {found.version})")
    if len(found.question_id) != QUESTION_ID_BYTES:
        raise UnreadableEnvelope(
            f"the question id of an envelope must have {QUESTION_ID_BYTES} bytes: this envelope "
            "is damaged"
        )
    return found
