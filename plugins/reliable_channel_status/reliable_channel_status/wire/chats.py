"""Ids and topics of public chats, communities and their channels.

DIVERGES from 56/STATUS-COMMUNITIES, which hashes other texts for topics and has no channel topics.
status-go of 2024 gives each channel a topic of its own. The ids in this module are those of
status-go's code.
"""

import re
from dataclasses import dataclass
from typing import Final, Literal, Self, TypeAlias

from .keys import COMPRESSED_BYTES, PublicKey
from .topics import Topic

Derivation: TypeAlias = Literal["universal", "per-channel"]
"""Kind of topic for a community's channels, either one for all channels or one for each channel."""

UNIVERSAL_SUFFIX: Final = "-memberUpdate"
COMMUNITY_ID_LENGTH: Final = 2 + 2 * COMPRESSED_BYTES
DISCOVERY_PARTITIONS: Final = 5000
_UUID: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


@dataclass(frozen=True, slots=True)
class Community:
    """Community, whose id is `0x` and its compressed public key in hex."""

    public_key: PublicKey

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the community with an id, a public key or an invite link. A public key is hex,
        compressed or not, with or without `0x`, or `zQ3sh…`. An invite link has the form
        `https://status.app/c/…#zQ3sh…`.

        Raises:
            ValueError: it is not a public key, or a link without one.
        """
        is_link = text.startswith("https://")
        try:
            return cls(PublicKey.parse(text.partition("#")[2] if is_link else text))
        except ValueError as error:
            raise ValueError(
                f"community {text[:150]!r}: {error}; "
                "its id is 0x02… or 0x03… and 64 digits, or zQ3sh…, as an invite link ends"
            ) from None

    @property
    def id(self) -> str:
        """Id of the community, which begins with `0x02` or `0x03`."""
        return f"0x{self.public_key.compressed.hex()}"

    def channel_id(self, channel: str) -> str:
        """Return the `chat_id` of a channel, which is the community's id followed by the channel's
        uuid.

        Raises:
            ValueError: no uuid in lower case, or a chat id of another community.
        """
        uuid = channel.removeprefix(self.id)
        if not _UUID.fullmatch(uuid):
            raise ValueError(
                f"channel {channel[:150]!r} is not a uuid such as "
                "1dc14fd8-9a8b-4df5-a358-2c3067be5439"
            )
        return self.id + uuid

    def owns(self, chat_id: str) -> bool:
        """Return True if a chat id is that of a channel of the community."""
        return chat_id.startswith(self.id) and bool(_UUID.fullmatch(chat_id, len(self.id)))

    def channel_topic(self, channel: str, derivation: Derivation = "universal") -> Topic:
        """Return the topic of a channel's messages.

        Raises:
            ValueError: `channel` is no uuid.
        """
        channel_id = self.channel_id(channel)
        return self.universal_topic if derivation == "universal" else Topic(channel_id)

    @property
    def universal_topic(self) -> Topic:
        """Topic of all channels and of membership messages."""
        return Topic(self.id + UNIVERSAL_SUFFIX)

    @property
    def description_topic(self) -> Topic:
        """Topic on which the community's owner publishes the description."""
        return Topic(self.id)

    @property
    def requests_topic(self) -> Topic:
        """Topic of requests to join, which ECIES encrypts for the community's key."""
        return Topic(self.public_key.uncompressed.hex())

    @property
    def ping_topic(self) -> Topic:
        """Topic of members' status updates."""
        return Topic(f"{self.id}-ping")

    @property
    def magnetlinks_topic(self) -> Topic:
        """Topic of links to archives of the community's history."""
        return Topic(f"{self.id}-magnetlinks")

    @property
    def shard_info_topic(self) -> Topic:
        """Topic of messages that tell the community's shard."""
        return Topic(f"{self.id}-shard-info")

    def __str__(self) -> str:
        return self.id


def carries(topic: Topic, chat_id: str) -> bool:
    """Return True if messages of a chat use the topic of the chat or the universal topic of its
    community."""
    if topic.id == chat_id:
        return True
    community_id, uuid = chat_id[:COMMUNITY_ID_LENGTH], chat_id[COMMUNITY_ID_LENGTH:]
    return topic.id == community_id + UNIVERSAL_SUFFIX and bool(_UUID.fullmatch(uuid))


def contact_code_topic(public_key: PublicKey) -> Topic:
    """Return the topic on which a user publishes contact codes and status updates."""
    return Topic(f"{public_key.hex}-contact-code")


def negotiated_topic_id(public_key: PublicKey) -> str:
    """Return the name under which clients store a negotiated topic. The name of the negotiated
    topic is not sent. The shared secret gives the content topic and the key, so listen to
    `Topic(secret.hex())`."""
    return f"{public_key.hex}-negotiated"


def personal_discovery_topic(public_key: PublicKey) -> Topic:
    """Return the topic of messages that ECIES encrypts for a user."""
    return Topic(f"contact-discovery-{public_key.uncompressed.hex()}")


def partitioned_topic(public_key: PublicKey) -> Topic:
    """Return the discovery topic of a user, one of 5,000 topics."""
    x = int.from_bytes(public_key.uncompressed[1:33])
    return Topic(f"contact-discovery-{x % DISCOVERY_PARTITIONS}")
