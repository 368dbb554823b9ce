"""Outgoing path of a bot, from payloads to Waku messages. The module has no I/O and no clock.

Each payload is signed, in an `ApplicationMetadataMessage`. In communities, the signed payload may
be wrapped in SDS. The next layers are `ProtocolMessage`, segments, an envelope and a Waku message.
"""

import os
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from reliable_channel.segmentation import (
    Segmenter,
)
from waku import WakuMessage

from .application import in_protocol, to_protocol, wrap
from .enums import StatusType
from .envelope import (
    Random,
    seal_ecies,
    seal_symmetric,
)
from .keys import PrivateKey, PublicKey
from .outcomes import MessageId, SignedPayload
from .payloads import (
    Payload,
    StatusUpdate,
)
from .segments import STATUS_SEGMENTATION
from .topics import Topic

WakuVersion: TypeAlias = Literal[0, 1]
"""Field `version` of sent Waku messages, which Status clients set to 1 until 2.39 and to 0 from
2.40 on. Clients before 2.38 drop messages of version 0."""


MAX_MESSAGE_BYTES: Final = 150 * 1024
"""Maximum size of a message that Waku nodes relay."""


NS_PER_MS: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class Outgoing:
    """Payload that is ready to be published."""

    signed: SignedPayload
    messages: tuple[WakuMessage, ...]
    """Waku messages of the payload, one for each segment."""

    @property
    def message_id(self) -> MessageId:
        """Message id by which other users know the payload."""
        return self.signed.message_id


class Sealer:
    """Signs and encrypts the payloads of one author.

    Args:
        key: of the author; it signs payload and envelope.
        installation_id: names this device to clients that keep several apart; may be empty.
        max_message_bytes: of a Waku message. As by status-go, payloads above three quarters of it
            are split.
        waku_version: of the Waku messages; all clients read 1, those from 2.38 on also 0.
        random: gives iv and padding.

    Raises:
        ValueError: a `waku_version` that clients do not read.
    """

    def __init__(
        self,
        key: PrivateKey,
        *,
        installation_id: str = "",
        max_message_bytes: int = MAX_MESSAGE_BYTES,
        waku_version: WakuVersion = 1,
        random: Random = os.urandom,
    ) -> None:
        self._key = key
        self.waku_version: Final = checked_version(waku_version)
        self._installation_id = installation_id
        self._segmenter = Segmenter(
            STATUS_SEGMENTATION, segment_size_bytes=max_message_bytes // 4 * 3
        )
        self._random = random

    @property
    def public_key(self) -> PublicKey:
        """Public key of the payloads' author."""
        return self._key.public_key

    def seal(
        self,
        payload: Payload,
        topic: Topic,
        now_ms: int,
        *,
        receiver: PublicKey | None = None,
    ) -> Outgoing:
        """Sign and encrypt a payload for all readers of a topic, or for one receiver (ECIES).

        Raises:
            PayloadTooLarge: more than 256 segments would be needed.
            ValueError: a field that cannot be written.
            TypeError: a value of another type than its field's.
        """
        return self.seal_signed(wrap(payload, self._key), topic, now_ms, receiver=receiver)

    def seal_signed(
        self,
        signed: SignedPayload,
        topic: Topic,
        now_ms: int,
        *,
        receiver: PublicKey | None = None,
    ) -> Outgoing:
        """Encrypt a signed payload of this author, or forward one of another author.

        Raises:
            PayloadTooLarge: more than 256 segments would be needed.
        """
        plain = to_protocol(signed, self._installation_id)
        is_ephemeral = _is_ephemeral(signed.payload)
        messages = self._messages(plain, topic, now_ms * NS_PER_MS, is_ephemeral, receiver)
        return Outgoing(signed, messages)

    def seal_sds(
        self, data: bytes, topic: Topic, timestamp_ns: int, *, ephemeral: bool = False
    ) -> tuple[WakuMessage, ...]:
        """Encrypt an SDS message of a community.

        Raises:
            PayloadTooLarge: more than 256 segments would be needed.
        """
        plain = in_protocol(data, self._installation_id)
        return self._messages(plain, topic, timestamp_ns, ephemeral, None)

    def seal_protocol(
        self, data: bytes, topic: Topic, timestamp_ns: int, *, receiver: PublicKey | None = None
    ) -> tuple[WakuMessage, ...]:
        """Encrypt an encoded `ProtocolMessage`, such as a direct message for several devices.

        Raises:
            PayloadTooLarge: more than 256 segments would be needed.
        """
        return self._messages(data, topic, timestamp_ns, False, receiver)

    def _messages(
        self,
        plain: bytes,
        topic: Topic,
        timestamp_ns: int,
        ephemeral: bool,
        receiver: PublicKey | None,
    ) -> tuple[WakuMessage, ...]:
        is_whole = len(plain) <= self._segmenter.chunk_size_bytes
        return tuple(
            WakuMessage(
                payload=self._sealed(piece, topic, receiver),
                content_topic=topic.content_topic,
                version=self.waku_version,
                timestamp=timestamp_ns,
                ephemeral=ephemeral,
            )
            for piece in ([plain] if is_whole else self._segmenter.split(plain))
        )

    def _sealed(self, piece: bytes, topic: Topic, receiver: PublicKey | None) -> bytes:
        if receiver is not None:
            return seal_ecies(piece, receiver, self._key, random=self._random)
        return seal_symmetric(piece, topic.key, self._key, random=self._random)

    def __repr__(self) -> str:
        return f"Sealer({self._key!r})"


def checked_version(waku_version: WakuVersion) -> WakuVersion:
    """Return the message version, if clients read it.

    Raises:
        ValueError: it is neither 0 nor 1.
    """
    if waku_version not in (0, 1):
        raise ValueError(f"`waku_version` must be 0 or 1 (got {waku_version!r})")
    return waku_version


def _is_ephemeral(payload: Payload) -> bool:
    """status-go lets no store keep what it sends every few minutes."""
    return isinstance(payload, StatusUpdate) and payload.status_type is StatusType.AUTOMATIC
