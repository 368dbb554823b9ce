"""Content topics, static shards, and autosharding.

The sources are 23/WAKU2-TOPICS ("Content topics", "Autosharding") and 51/WAKU2-RELAY-SHARDING.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from hashlib import sha256

from waku.errors import InvalidTopic

__all__ = ["ContentTopic", "InvalidTopic", "PubsubTopic", "pubsub_topic_for", "shard_for"]

MAX_INDEX = 0xFFFF
"""Maximum number of a cluster or shard, which has 16 bits (51/WAKU2-RELAY-SHARDING)."""

_STATIC_SHARD = re.compile(r"/waku/2/rs/([0-9]{1,5})/([0-9]{1,5})")


@dataclass(frozen=True, slots=True)
class ContentTopic:
    """Content topic `/application/version/name/encoding` of generation 0.

    The long form `/0/application/version/name/encoding` can be parsed too. `str()` returns the
    short form. An invalid content topic raises `InvalidTopic`.
    """

    application: str
    version: str
    name: str
    encoding: str
    generation: int = 0

    def __post_init__(self) -> None:
        if self.generation != 0:
            raise InvalidTopic(str(self), "only generation 0 is defined")
        for field in ("application", "version", "name", "encoding"):
            value: str = getattr(self, field)
            if not value or "/" in value:
                raise InvalidTopic(str(self), f"{field} must be a text without slashes, not empty")
            if not _is_utf8(value):
                raise InvalidTopic(repr(str(self)), f"{field} cannot be written as UTF-8")

    @classmethod
    def parse(cls, text: str) -> ContentTopic:
        """Parse a content topic in its short or long form.

        Raises:
            InvalidTopic: another number of parts, an empty part, or a generation that is not 0.
        """
        head, *parts = text.split("/")
        if head or len(parts) not in (4, 5):
            raise InvalidTopic(text, "not four or five parts, each after a slash")
        if len(parts) == 5:
            generation = parts.pop(0)
            if generation != "0":
                raise InvalidTopic(text, f"generation {generation!r} is not supported, only 0 is")
        application, version, name, encoding = parts
        return cls(application, version, name, encoding)

    def __str__(self) -> str:
        return f"/{self.application}/{self.version}/{self.name}/{self.encoding}"


@dataclass(frozen=True, slots=True)
class PubsubTopic:
    """Pubsub topic of a static shard, `/waku/2/rs/<cluster>/<shard>`."""

    cluster_id: int
    shard: int

    def __post_init__(self) -> None:
        if not (0 <= self.cluster_id <= MAX_INDEX and 0 <= self.shard <= MAX_INDEX):
            raise InvalidTopic(str(self), f"cluster and shard lie between 0 and {MAX_INDEX}")

    @classmethod
    def parse(cls, text: str) -> PubsubTopic:
        """Parse the pubsub topic of a static shard.

        Raises:
            InvalidTopic: a named topic such as `/waku/2/default-waku/proto`, or a number too large.
        """
        match = _STATIC_SHARD.fullmatch(text)
        if match is None:
            raise InvalidTopic(text, "not a static shard")
        return cls(int(match[1]), int(match[2]))

    def __str__(self) -> str:
        return f"/waku/2/rs/{self.cluster_id}/{self.shard}"


def shard_for(content_topic: str | ContentTopic, num_shards: int) -> int:
    """Return the shard number for a content topic.

    Only application and version count, so all topics of an application's version share a shard.

    Raises:
        InvalidTopic: the content topic has another shape.
        ValueError: `num_shards` is not between 1 and 65536.
    """
    if not 1 <= num_shards <= MAX_INDEX + 1:
        raise ValueError(f"num_shards must be between 1 and {MAX_INDEX + 1} (got {num_shards})")
    if isinstance(content_topic, str):
        content_topic = ContentTopic.parse(content_topic)
    digest = sha256(content_topic.application.encode() + content_topic.version.encode()).digest()
    return int.from_bytes(digest[-8:], "big") % num_shards


def pubsub_topic_for(content_topic: str, *, cluster_id: int = 1, num_shards: int = 8) -> str:
    """Return the pubsub topic for a content topic. The default cluster and number of shards are
    those of The Waku Network.

    Raises:
        InvalidTopic: the content topic has another shape, or the cluster is out of range.
        ValueError: `num_shards` is not between 1 and 65536.
    """
    return str(PubsubTopic(cluster_id, shard_for(content_topic, num_shards)))


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:  # a lone surrogate, which JSON can spell
        return False
    return True
