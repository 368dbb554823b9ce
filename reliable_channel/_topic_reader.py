"""A content topic for a reader that does not participate: the messages on the wire, and those in
Store.

`watch --sniff` and `audit-store` read with it. It publishes nothing.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from ._plugins.loading import process_registry
from ._plugins.resolve import make_encryption, make_transport
from .sds.dialects import CodecError
from .sds.message import Message
from .sds.profile import NIM, SPEC
from .transport.addresses import checked_addresses, default_content_topic
from .transport.base import Transport
from .transport.connect import on_network
from .transport.pool import PoolTransport
from .transport.settings import WakuSettings

DEFAULT_CHANNEL: Final = "general"
"""A name for unnamed things, where only a content topic is given."""
_SETTINGS: Final = (
    "ca_file",
    "cluster_id",
    "num_shards",
    "pubsub_topic",
    "redundancy",
    "service",
    "store_peer",
)
_PROFILES: Final = (SPEC, NIM)
Decrypt = Callable[[bytes], Awaitable[bytes]]


def topic_transport(given: Mapping[str, Any], reader_id: str) -> Transport:
    """Return a transport to the content topic of a channel, from the arguments of that channel
    (`config.channel_settings`): `node`, `network`, `channel_id`, `content_topic` and those that say
    where the topic is.

    Raises:
        ValueError: an unusable argument.
        PluginError: a plugin failed.
    """
    name = given.get("channel_id") or DEFAULT_CHANNEL
    topic = given.get("content_topic") or default_content_topic(name)
    settings = WakuSettings(topic, **{each: given[each] for each in _SETTINGS if each in given})
    node = given.get("node") or None
    if "network" in given:
        settings, entry = on_network(given["network"], settings)
        node = node or entry
    registry = process_registry()
    return PoolTransport(
        [
            make_transport(registry, url, name, reader_id, settings)
            for url in checked_addresses(node)
        ],
        wait_for_node=True,
    )


def topic_decryption(given: Mapping[str, Any], reader_id: str) -> Decrypt | None:
    """Return the encryption that decrypts the payloads of a channel, or None if it has no
    `encryption`.

    Raises:
        ValueError, PluginError: as `topic_transport`.
    """
    if "encryption" not in given:
        return None
    name = given.get("channel_id") or DEFAULT_CHANNEL
    return make_encryption(process_registry(), given["encryption"], name, reader_id).decrypt


def sds_message(payload: bytes) -> tuple[Message, str] | None:
    """Return the SDS message in a payload with the name of its wire profile, or None for anything
    else."""
    for profile in _PROFILES:
        if profile.codec.recognises(payload):
            try:
                return profile.codec.decode(payload), profile.name
            except CodecError:
                return None
    return None
