"""SDS (LIP 109) in communities, a layer between the signed payload and `ProtocolMessage`.

The layer follows status-go since 2026. Each community has one SDS channel, whose name is the
community's id. Status uses the dialect of nim-sds with other hints, and message ids that hash only
the content. 56/STATUS-COMMUNITIES only mentions the SDS layer, without details. DIVERGES from
status-go, which leaves `sender_id` empty and does not check SDS messages. Bots write the author's
key as `sender_id`, and refuse a wrong `sender_id`. A participant that forwards a message (SDS-R)
therefore cannot change author, content or id.
"""

import re
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Final

from reliable_channel.spi import NIM, CodecError, HistoryEntry, Message, WireProfile

from . import status_pb2
from .application import message_id
from .chats import COMMUNITY_ID_LENGTH, Community
from .codec import parsed
from .keys import PublicKey, keccak256
from .topics import Topic

HISTORY: Final = 10
"""Number of earlier messages to which each message of nim-sds refers."""
_HASH: Final = re.compile(rb"0x[0-9a-fA-F]{64}")


@dataclass(frozen=True, slots=True)
class SdsArrival:
    """Received SDS message that passed all checks."""

    channel_id: str
    """Id of the community, which is the id of the SDS channel."""
    lamport_timestamp: int
    """Lamport timestamp of the message (ms), which nim-sds rounds to seconds."""
    message_id: str
    """SDS message id, `0x` and 64 hexadecimal digits. The content of the SDS message has another
    message id in Status."""
    sender_id: str
    """Public key of the message's author, `0x04…`. In messages of status-go, `sender_id` is
    empty."""
    content: bytes | None = field(repr=False)
    """Encoded `ApplicationMetadataMessage` in the SDS message. For a sync message, which only lists
    its sender's messages, `content` is None."""
    data: bytes = field(repr=False)
    """Whole encoded SDS message, as it arrived."""
    timestamp_ms: int = 0
    """Timestamp of the Waku message (ms)."""


def sds_message_id(sender_id: str, timestamp_ns: int, content: bytes) -> str:
    """Return the SDS id of a content, which is Keccak-256 of the content as in status-go. The
    author signs each content with a growing clock, so two contents have different ids."""
    return f"0x{keccak256(content).hex()}"


class StatusSdsCodec:
    """Codec of nim-sds' dialect, with the hints of status-go. A `RetrievalHint` has a hash for each
    segment as text, while a `HistoryEntry` has 32 bytes.

    Of several segment hashes only the last is kept, with which the message cannot be fetched. A
    message whose hash is unknown is found in Store by its time.
    """

    def recognises(self, data: bytes) -> bool:
        """Return True if the bytes look like a message in this dialect."""
        return NIM.codec.recognises(data)

    def decode(self, data: bytes) -> Message:
        """Return the SDS message in the bytes.

        Raises:
            CodecError: it is none, or a field is beyond its limit.
        """
        return _with_hints(NIM.codec.decode(data), _read_hint)

    def encode(self, message: Message) -> bytes:
        """Return the bytes of an SDS message.

        Raises:
            CodecError: the dialect cannot express it.
        """
        return NIM.codec.encode(_with_hints(message, _write_hint))

    def assemble(self, message: Message, causal_history: bytes) -> bytes:
        """Return the bytes of a message, given the encoded causal history.

        Raises:
            CodecError: the dialect cannot express it.
        """
        without_history = replace(message, causal_history=())
        return NIM.codec.assemble(_with_hints(without_history, _write_hint), causal_history)

    def encode_causal_entry(self, entry: HistoryEntry) -> bytes:
        """Return the bytes of a causal history entry."""
        return NIM.codec.encode_causal_entry(_with_hint(entry, _write_hint))


STATUS_SDS: Final[WireProfile] = replace(
    NIM,
    name="status",
    codec=StatusSdsCodec(),
    id_function=sds_message_id,
    segmentation=None,  # status-go's segments are outside SDS
    marker=None,
)
"""Wire format of a community's SDS channel."""


def read_sds(data: bytes, timestamp_ms: int = 0) -> SdsArrival | None:
    """Return the SDS message of the bytes, or None for other bytes, such as those of plain clients.
    SDS messages are recognized by the wire type of their second field."""
    if not STATUS_SDS.codec.recognises(data):
        return None
    try:
        message = STATUS_SDS.codec.decode(data)
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
    """Return the reason why an SDS message is invalid, or None.

    Args:
        sds: the message.
        topic: on which it came.
        author: signer of the content; of the envelope, where there is no content.
    """
    channel_id = sds.channel_id
    if not _is_of(topic, channel_id):
        return f"of SDS channel {channel_id[:150]!r} on the topic of {topic.id[:150]!r}"
    if sds.sender_id and (author is None or sds.sender_id != author.hex):
        return f"its SDS sender is {sds.sender_id[:150]!r}, and it is of {author and author.hex}"
    # Under another's id it would keep that message from being taken.
    if sds.content is not None and not _proves_itself(sds.message_id, sds.content, author):
        return f"its SDS id {sds.message_id[:150]!r} is not that of its content"
    return None


class SdsWrapper:
    """Wraps a community's messages in SDS as status-go does, without a message log. Wrapped
    messages refer to received messages and so acknowledge them, but are never repeated.

    `SdsWrapper` is for scripts and tests. A bot uses a whole SDS channel instead of `SdsWrapper`.
    """

    def __init__(self, channel_id: str) -> None:
        self._channel_id = channel_id
        self._clock_ms = 0
        self._history: deque[HistoryEntry] = deque(maxlen=HISTORY)

    def heard(self, sds: SdsArrival) -> None:
        """Note a received message of the SDS channel."""
        if sds.channel_id == self._channel_id and sds.content is not None:
            self._took(sds.message_id, sds.lamport_timestamp)

    def wrap(self, content: bytes, now_ms: int) -> bytes:
        """Return an SDS message that contains the given content."""
        message_id = sds_message_id("", 0, content)
        lamport_timestamp = 1000 * (max(now_ms, self._clock_ms) // 1000 + 1)
        history = tuple(self._history)
        self._took(message_id, lamport_timestamp)
        return STATUS_SDS.codec.encode(
            Message("", message_id, self._channel_id, lamport_timestamp, history, content=content)
        )

    def _took(self, message_id: str, lamport_timestamp: int) -> None:
        self._clock_ms = max(self._clock_ms, lamport_timestamp)
        if all(entry.message_id != message_id for entry in self._history):
            self._history.append(HistoryEntry(message_id))


def _is_of(topic: Topic, channel_id: str) -> bool:
    """Return True if a topic is one of the community that a channel is of."""
    if len(channel_id) == COMMUNITY_ID_LENGTH and topic.id.startswith(channel_id):
        return True
    try:  # status-go wraps requests to join, too
        return topic == Community.parse(channel_id).requests_topic
    except ValueError:
        return False


def _proves_itself(sds_id: str, content: bytes, author: PublicKey | None) -> bool:
    """Return True if an id is made of the content. status-go takes the hash of it; a proposed
    change takes the Status message id, which hashes author and content."""
    ids = [sds_message_id("", 0, content)]
    if author is not None:
        ids.append(message_id(author, content))
    return sds_id in ids


def _with_hints(message: Message, change: Callable[[bytes], bytes | None]) -> Message:
    if not (message.causal_history or message.repair_request):
        return message
    return replace(
        message,
        causal_history=tuple(_with_hint(entry, change) for entry in message.causal_history),
        repair_request=tuple(_with_hint(entry, change) for entry in message.repair_request),
    )


def _with_hint(entry: HistoryEntry, change: Callable[[bytes], bytes | None]) -> HistoryEntry:
    if entry.retrieval_hint is None:
        return entry
    return replace(entry, retrieval_hint=change(entry.retrieval_hint))


def _read_hint(hint: bytes) -> bytes | None:
    message = status_pb2.RetrievalHint()
    if not parsed(message, hint) or not message.envelope_hashes:
        return None
    last = message.envelope_hashes[-1]
    return bytes.fromhex(last[2:].decode()) if _HASH.fullmatch(last) else None


def _write_hint(hint: bytes) -> bytes:
    return status_pb2.RetrievalHint(
        envelope_hashes=[f"0x{hint.hex()}".encode()]
    ).SerializeToString()
