"""Autosharding from content topics to the shards of the node's cluster, with nwaku's error
texts."""

from __future__ import annotations

import re
from typing import Final

from waku.topics import InvalidTopic, pubsub_topic_for

__all__ = ["GENERATION", "NoShard", "Sharding"]

GENERATION: Final = "Generation > 0 are not supported yet"
"""Error text for a content topic of a generation that has no shards yet."""
_PARTS: Final = ("generation", "application", "version", "topic-name", "encoding")


class NoShard(ValueError):
    """A content topic belongs to no shard. The text of the error is nwaku's."""


class Sharding:
    """Autosharding in one cluster (51/WAKU2-RELAY-SHARDING)."""

    def __init__(self, cluster_id: int, num_shards: int) -> None:
        self._cluster_id = cluster_id
        self._num_shards = num_shards

    def pubsub_topic_of(self, content_topic: str) -> str:
        """Return the pubsub topic for a content topic.

        Raises:
            NoShard: the content topic has another shape.
        """
        try:
            return pubsub_topic_for(
                content_topic, cluster_id=self._cluster_id, num_shards=self._num_shards
            )
        except InvalidTopic as error:
            raise NoShard(_reason(content_topic)) from error


def _reason(content_topic: str) -> str:
    """Return why nwaku cannot read a content topic, in its words and its order."""
    if not content_topic.startswith("/"):
        return f"invalid format: content-topic '{content_topic}' must start with slash"
    parts = content_topic[1:].split("/")
    if len(parts) not in (4, 5):
        return (
            "invalid format: Invalid content topic structure. Expected either"
            " /<application>/<version>/<topic-name>/<encoding> or"
            " /<gen>/<application>/<version>/<topic-name>/<encoding>"
        )
    for name, part in zip(_PARTS[-len(parts) :], parts, strict=True):
        if not part:
            return f"missing part: {name}"
        if name == "generation" and not re.fullmatch(r"[+-]?[0-9]+(_[0-9]+)*", part):
            return "invalid format: generation should be a numeric value"
    return GENERATION
