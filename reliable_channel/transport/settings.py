"""Settings of a channel's transport on Waku."""

import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

from waku._failures import MAX_MESSAGE_BYTES
from waku.errors import InvalidTopic
from waku.topics import PubsubTopic, pubsub_topic_for

from .._option_values import Service
from ..options import ChannelOptions
from ..sds.declared import Like, check

__all__ = ["Service", "WakuSettings", "trusting"]

_OF_CHANNEL: Final = Like(ChannelOptions)


@dataclass(frozen=True, slots=True)
class WakuSettings:
    """Network and topic of a channel, with the options that a transport needs.

    Raises:
        ValueError: a value is not allowed. The text names it and the allowed values.
    """

    content_topic: str
    pubsub_topic: Annotated[str | None, _OF_CHANNEL] = None
    cluster_id: Annotated[int, _OF_CHANNEL] = 1
    num_shards: Annotated[int, _OF_CHANNEL] = 8
    service: Annotated[Service, _OF_CHANNEL] = "auto"
    store_peer: Annotated[str | None, _OF_CHANNEL] = None
    network: Annotated[str | None, _OF_CHANNEL] = None
    max_message_bytes: int = MAX_MESSAGE_BYTES
    """Maximum size of an encoded Waku message (bytes) in the named network, or by default."""
    redundancy: int = 1
    """Number of service peers to which a message is pushed over libp2p."""
    ca_file: Annotated[str | Path | None, _OF_CHANNEL] = None
    poll_min_interval_ms: int = 10
    poll_max_interval_ms: int = 100

    def __post_init__(self) -> None:
        check(self)

    @property
    def shard(self) -> str:
        """Pubsub topic of the channel, which each message hash covers.

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
    """Return TLS settings that trust the certificates in a file, or None for the system's settings.

    Raises:
        ValueError: the file cannot be read, or has no certificates.
    """
    if ca_file is None:
        return None
    try:
        return ssl.create_default_context(cafile=ca_file)
    except (OSError, ssl.SSLError) as error:
        raise ValueError(f"`ca_file` must be a PEM file of certificates: {error}") from error
