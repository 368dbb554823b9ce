"""SDS (LIP 109) in communities: the layer between the signed payload and `ProtocolMessage`.

As status-go has it since 2026: an SDS channel a community, named by the community's id; the dialect
of nim-sds; ids made of the content alone. 56/STATUS-COMMUNITIES only says that there is one.
DIVERGES: status-go leaves `sender_id` empty and believes whatever an SDS message says. Here it is
the author's key, and where one is given it must be: who passes on another's message (SDS-R) can
change neither its author, nor its content, nor its id.
"""

from collections import deque
from dataclasses import dataclass, field
from typing import Final

from reliable_channel.wire_profile import NIM, CodecError, HistoryEntry, Message

from .chats import COMMUNITY_ID_LENGTH
from .keys import PublicKey, keccak256
from .topics import Topic

HISTORY: Final = 10
"""Messages that each message of nim-sds refers to."""


@dataclass(frozen=True, slots=True)
class SdsArrival:
    """An SDS message that is what it says it is."""

    channel_id: str
    """The community's."""
    lamport_timestamp: int
    """In milliseconds; whole seconds from nim-sds."""
    message_id: str
    """Of SDS: `0x` and 64 digits, not the id by which Status calls its content."""
    sender_id: str
    """The author's public key, `0x04…`; empty from status-go."""
    content: bytes | None = field(repr=False)
    """An `ApplicationMetadataMessage`; None for a sync message, which only tells what its sender
    has."""
    data: bytes = field(repr=False)
    """The whole message as it came."""
    timestamp_ms: int = 0
    """Of the Waku message."""


def sds_message_id(sender_id: str, timestamp_ns: int, content: bytes) -> str:
    """The SDS id of a content, as status-go makes it: Keccak-256 of the content alone, which its
    author signed together with a clock that grows."""
    return f"0x{keccak256(content).hex()}"


def read_sds(data: bytes, timestamp_ms: int = 0) -> SdsArrival | None:
    """The SDS message that the bytes are, or None if they are none, as from those who speak plain:
    the two differ in the wire type of their second field."""
    if not NIM.codec.recognises(data):
        return None
    try:
        message = NIM.codec.decode(data)
    except CodecError:
        return None
    return SdsArrival(
        message.channel_id,
        message.lamport_timestamp or 0,
        message.message_id,
        message.sender_id,
        message.content,
        data,
        timestamp_ms,
    )


def what_is_forged(sds: SdsArrival, topic: Topic, author: PublicKey | None) -> str | None:
    """Why an SDS message is not what it says it is, or None.

    Args:
        sds: the message.
        topic: on which it came.
        author: who signed the content; whoever signed the envelope, where there is none.
    """
    channel_id = sds.channel_id
    if len(channel_id) != COMMUNITY_ID_LENGTH or not topic.id.startswith(channel_id):
        return f"of SDS channel {channel_id[:150]!r} on the topic of {topic.id[:150]!r}"
    if sds.sender_id and (author is None or sds.sender_id != author.hex):
        return f"its SDS sender is {sds.sender_id[:150]!r}, and it is of {author and author.hex}"
    # Under another's id it would keep that message from being taken.
    if sds.content is not None and sds.message_id != sds_message_id("", 0, sds.content):
        return f"its SDS id {sds.message_id[:150]!r} is not that of its content"
    return None


class SdsWrapper:
    """Wraps messages for one community as status-go does, and keeps nothing back for others: who
    uses it refers to what it heard last, and so acknowledges it, but repeats nothing.

    For scripts and tests. A bot has a whole channel.
    """

    def __init__(self, channel_id: str) -> None:
        self._channel_id = channel_id
        self._clock_ms = 0
        self._history: deque[HistoryEntry] = deque(maxlen=HISTORY)

    def heard(self, sds: SdsArrival) -> None:
        """Take note of a message of the channel."""
        if sds.channel_id == self._channel_id and sds.content is not None:
            self._took(sds.message_id, sds.lamport_timestamp)

    def wrap(self, content: bytes, now_ms: int) -> bytes:
        """The SDS message with a content, such as `wrap(…).data`."""
        message_id = sds_message_id("", 0, content)
        lamport_timestamp = 1000 * (max(now_ms, self._clock_ms) // 1000 + 1)
        history = tuple(self._history)
        self._took(message_id, lamport_timestamp)
        return NIM.codec.encode(
            Message("", message_id, self._channel_id, lamport_timestamp, history, content=content)
        )

    def _took(self, message_id: str, lamport_timestamp: int) -> None:
        self._clock_ms = max(self._clock_ms, lamport_timestamp)
        if all(entry.message_id != message_id for entry in self._history):
            self._history.append(HistoryEntry(message_id))
