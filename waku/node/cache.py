"""Message cache of the REST API, which behaves like nwaku's cache.

One limited cache holds the unread messages of one client on all its topics. A message can be read
by its pubsub topic or by its content topic. Reading a message removes it for both topics. The
source is `waku_api/message_cache.nim` of nwaku.
"""

from __future__ import annotations

from collections.abc import Iterable

from waku.models import WakuMessage

__all__ = ["UnreadMessages"]


class UnreadMessages:
    """Unread messages of one client. A full cache drops the message with the oldest timestamp."""

    __slots__ = ("_by_content", "_by_pubsub", "_messages", "capacity", "dropped")

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.dropped = 0
        """Messages lost because the reader was slow."""
        self._messages: dict[bytes, tuple[str, WakuMessage]] = {}
        self._by_pubsub: dict[str, dict[bytes, None]] = {}
        self._by_content: dict[str, dict[bytes, None]] = {}

    def __len__(self) -> int:
        return len(self._messages)

    def subscribe_pubsub(self, pubsub_topic: str) -> None:
        """Start to keep the messages of a pubsub topic."""
        self._by_pubsub.setdefault(pubsub_topic, {})

    def subscribe_content(self, content_topic: str) -> bool:
        """Start to keep the messages of a content topic. Return True if the topic is new."""
        is_new = content_topic not in self._by_content
        self._by_content.setdefault(content_topic, {})
        return is_new

    def unsubscribe_pubsub(self, pubsub_topic: str) -> None:
        """Stop keeping a pubsub topic, and delete its unread messages."""
        self._remove(self._by_pubsub.pop(pubsub_topic, ()))

    def unsubscribe_content(self, content_topic: str) -> None:
        """Stop keeping a content topic, and delete its unread messages."""
        self._remove(self._by_content.pop(content_topic, ()))

    def clear(self) -> None:
        """Delete all topics and all unread messages."""
        self._messages.clear()
        self._by_pubsub.clear()
        self._by_content.clear()

    def add(self, message_hash: bytes, pubsub_topic: str, message: WakuMessage) -> None:
        """Keep a message of a subscribed topic, unless the cache has it already.

        As in nwaku, a subscription to the pubsub topic or to the content topic is enough. A kept
        message can be read by either of its topics.
        """
        if message_hash in self._messages:
            return
        content_topic = message.content_topic
        if pubsub_topic not in self._by_pubsub and content_topic not in self._by_content:
            return
        if len(self._messages) >= self.capacity:
            self._remove([min(self._messages, key=self._timestamp)])
            self.dropped += 1
        self._messages[message_hash] = pubsub_topic, message
        self._by_pubsub.setdefault(pubsub_topic, {})[message_hash] = None
        self._by_content.setdefault(content_topic, {})[message_hash] = None

    def take_pubsub(self, pubsub_topic: str) -> list[WakuMessage] | None:
        """Remove and return the messages of a pubsub topic, in order of arrival. Return None if the
        cache does not keep the topic."""
        return self._take(self._by_pubsub.get(pubsub_topic))

    def take_content(self, content_topic: str) -> list[WakuMessage] | None:
        """Remove and return the messages of a content topic, in order of arrival. Return None if
        the cache does not keep the topic."""
        return self._take(self._by_content.get(content_topic))

    def take_all(self) -> list[tuple[bytes, WakuMessage]]:
        """Remove and return all messages with their hashes, in order of arrival."""
        taken = [(found, message) for found, (_, message) in self._messages.items()]
        self._remove(list(self._messages))
        return taken

    def _take(self, hashes: dict[bytes, None] | None) -> list[WakuMessage] | None:
        if hashes is None:
            return None
        messages = [self._messages[message_hash][1] for message_hash in hashes]
        self._remove(hashes)
        return messages

    def _remove(self, hashes: Iterable[bytes]) -> None:
        for message_hash in list(hashes):
            pubsub_topic, message = self._messages.pop(message_hash)
            self._by_pubsub.get(pubsub_topic, {}).pop(message_hash, None)
            self._by_content.get(message.content_topic, {}).pop(message_hash, None)

    def _timestamp(self, message_hash: bytes) -> int:
        return self._messages[message_hash][1].timestamp
