"""The envelope of questions and answers (`proto/ask.proto`); all other payloads are plain."""

from dataclasses import dataclass
from typing import Final

from google.protobuf.message import DecodeError

from ..errors import ReliableChannelError
from .ask_pb2 import Envelope as _Envelope

MAGIC: Final = 0xA1514352
VERSION: Final = 1
QUESTION_ID_BYTES: Final = 16
_BEGINNING: Final = b"\x0d" + MAGIC.to_bytes(4, "little")
"""The tag of field 1 and its value."""


class UnreadableEnvelope(ReliableChannelError):
    """A payload begins as an envelope and is none that this version reads."""


@dataclass(frozen=True, slots=True)
class Envelope:
    """A question, or an answer to one."""

    question_id: bytes
    content: bytes
    asker_id: str = ""
    """The participant that asked; empty in a question."""

    @property
    def is_answer(self) -> bool:
        """True if it answers a question."""
        return bool(self.asker_id)


def is_envelope(payload: bytes) -> bool:
    """Return whether a payload is a question or an answer, of any version."""
    return payload.startswith(_BEGINNING)


def encode(envelope: Envelope) -> bytes:
    """Return the payload that carries an envelope."""
    return _Envelope(
        magic=MAGIC,
        version=VERSION,
        question_id=envelope.question_id,
        asker_id=envelope.asker_id,
        content=envelope.content,
    ).SerializeToString(deterministic=True)


def decode(payload: bytes) -> Envelope:
    """Return the envelope in a payload.

    Raises:
        UnreadableEnvelope: it is damaged, or of another version.
    """
    try:
        found = _Envelope.FromString(payload)
    except DecodeError as error:
        raise UnreadableEnvelope(f"the envelope is damaged: {error}") from error
    if found.version != VERSION:
        raise UnreadableEnvelope(f"the envelope has version {found.version}, not {VERSION}")
    if len(found.question_id) != QUESTION_ID_BYTES:
        raise UnreadableEnvelope(f"a question id has {QUESTION_ID_BYTES} bytes")
    return Envelope(found.question_id, found.content, found.asker_id)
