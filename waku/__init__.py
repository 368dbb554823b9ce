"""py-waku: a typed client of a Waku node's REST API, and the words it speaks in."""

from waku.client import RetryPolicy, WakuClient
from waku.errors import WakuError
from waku.hashing import message_hash
from waku.models import StoreQuery, WakuMessage
from waku.topics import ContentTopic, PubsubTopic, pubsub_topic_for, shard_for

__all__ = [
    "ContentTopic",
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
