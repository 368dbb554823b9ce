"""py-waku: a typed client of a Waku node's REST API, and a light client without a node."""

from typing import TYPE_CHECKING

from waku.client import RetryPolicy, WakuClient
from waku.errors import WakuError
from waku.hashing import message_hash
from waku.models import StoreQuery, WakuMessage
from waku.topics import ContentTopic, PubsubTopic, pubsub_topic_for, shard_for

if TYPE_CHECKING:
    from waku.p2p import LightClient

__all__ = [
    "ContentTopic",
    "LightClient",
    "PubsubTopic",
    "RetryPolicy",
    "StoreQuery",
    "WakuClient",
    "WakuError",
    "WakuMessage",
    "message_hash",
    "pubsub_topic_for",
    "shard_for",
]


def __getattr__(name: str) -> object:
    """Load the light client when it is used: it needs an extra."""
    if name != "LightClient":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        from waku.p2p import LightClient
    except ModuleNotFoundError as error:
        if error.name not in ("cryptography", "websockets"):
            raise
        raise ImportError(
            f"`LightClient` needs {error.name}: pip install 'reliable-channel[libp2p]'"
        ) from error
    return LightClient
