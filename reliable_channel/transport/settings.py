"""Where on Waku a channel lives."""

import ssl
from dataclasses import dataclass
from pathlib import Path

from waku._failures import MAX_MESSAGE_BYTES
from waku.errors import InvalidTopic
from waku.topics import PubsubTopic, pubsub_topic_for

from ..option_values import Service

__all__ = ["Service", "WakuSettings", "trusting"]


@dataclass(frozen=True, slots=True)
class WakuSettings:
    """Where on which network a channel lives.

    Raises:
        ValueError: an unknown service.
    """

    content_topic: str
    pubsub_topic: str | None = None
    """A static shard; where None, autosharding derives it from content topic, cluster and number of
    shards."""
    cluster_id: int = 1
    num_shards: int = 8
    service: Service = "auto"
    """`relay` publishes and reads through relay, `light` through light push and filter, `auto`
    takes relay where the node offers it."""
    store_peer: str | None = None
    """Multiaddress of the Store node that the node asks; where None the node chooses. go-waku
    cannot choose."""
    network: str | None = None
    """Name of a preset, or path of a TOML file, for peers that are reached over libp2p."""
    max_message_bytes: int = MAX_MESSAGE_BYTES
    """Limit of an encoded Waku message: the network's, or that of a network that is not named."""
    redundancy: int = 1
    """Service peers that a message is pushed to over libp2p."""
    ca_file: str | Path | None = None
    """PEM file of the certificates that are trusted in place of the system's."""
    poll_min_interval_ms: int = 10
    poll_max_interval_ms: int = 100

    def __post_init__(self) -> None:
        if self.service not in ("auto", "relay", "light"):
            raise ValueError(f"`service` must be 'auto', 'relay' or 'light' (got {self.service!r})")

    @property
    def shard(self) -> str:
        """The pubsub topic, which takes part in each message's hash.

        Raises:
            ValueError: a topic is not what Waku takes for one.
        """
        try:
            if self.pubsub_topic is not None:
                return str(PubsubTopic.parse(self.pubsub_topic))
            return pubsub_topic_for(
                self.content_topic, cluster_id=self.cluster_id, num_shards=self.num_shards
            )
        except InvalidTopic as error:
            name = "content_topic" if self.pubsub_topic is None else "pubsub_topic"
            raise ValueError(f"`{name}`, `cluster_id` or `num_shards`: {error}") from error


def trusting(ca_file: str | Path | None) -> ssl.SSLContext | None:
    """Return the TLS settings that trust a file's certificates; None for the system's.

    Raises:
        ValueError: the file cannot be read, or has no certificates.
    """
    if ca_file is None:
        return None
    try:
        return ssl.create_default_context(cafile=ca_file)
    except (OSError, ssl.SSLError) as error:
        raise ValueError(f"`ca_file` must be a PEM file of certificates: {error}") from error
