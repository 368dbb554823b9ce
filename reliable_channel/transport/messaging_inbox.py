"""Inbox of a node's messaging layer, shared by the channels of this process.

A read removes all messages of all content topics from the node. If each channel read the node, the
channels would take each other's messages. The channels of one event loop therefore share one inbox
for each node.
"""

from collections import deque
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final

import anyio
from anyio.lowlevel import RunVar

from waku.client import WakuClient
from waku.messaging import MessagingMessage

from .polling import CACHE_CAPACITY

__all__ = ["MessagingInbox", "Tray", "shared_inbox"]

TRAY_CAPACITY: Final = 1000
"""Maximum number of messages that wait for one channel in this process. Further messages are
dropped, and can be fetched from Store."""
NODE_CAPACITY: Final = 50
"""Number of messages that logos-delivery keeps unread. logos-delivery drops the oldest messages
without notice."""


@dataclass(slots=True, eq=False)
class Tray:
    """Unread messages of one channel."""

    content_topic: str
    messages: deque[MessagingMessage] = field(default_factory=lambda: deque(maxlen=TRAY_CAPACITY))
    gap: str = ""
    """Reason why messages before the unread messages may be missing, or an empty text."""

    def put(self, messages: Collection[MessagingMessage]) -> None:
        """Add messages for the channel. If the tray is full, its oldest messages are dropped."""
        if len(self.messages) + len(messages) > TRAY_CAPACITY:
            self.gap = f"more than {TRAY_CAPACITY} messages waited for the channel"
        self.messages.extend(messages)

    def take(self) -> tuple[list[MessagingMessage], str]:
        """Remove and return all messages, and the reason why messages before them may be
        missing."""
        taken, gap = list(self.messages), self.gap
        self.messages.clear()
        self.gap = ""
        return taken, gap


class MessagingInbox:
    """Received messages of one node, sorted by content topic."""

    def __init__(self, client: WakuClient) -> None:
        self.client = client
        self.users = 0
        self._trays: list[Tray] = []
        self._looking = anyio.Lock()
        self._last_sequence: int | None = None

    def add(self, tray: Tray) -> None:
        """Add a channel, which gets its messages from now on."""
        self._trays.append(tray)

    def remove(self, tray: Tray) -> bool:
        """Remove a channel from the inbox. Return True if no other channel has its content
        topic."""
        if tray in self._trays:
            self._trays.remove(tray)
        return all(other.content_topic != tray.content_topic for other in self._trays)

    async def look(self) -> None:
        """Read the received messages from the node, for all channels.

        Raises:
            WakuError: the node does not answer.
        """
        async with self._looking:
            try:
                received = await self.client.messaging_received()
            except BaseException:  # the node may have given them all the same
                for tray in self._trays:
                    tray.gap = "a look at the node's messages was interrupted"
                raise
            gap = self._gap_in(received)
            for tray in self._trays:
                own = [one for one in received if one.message.content_topic == tray.content_topic]
                tray.gap = gap or tray.gap
                tray.put(own)

    def echo(self, sender: Tray, message: MessagingMessage) -> None:
        """Pass a sent message to the other channels of this process, because the node does not
        return it."""
        for tray in self._trays:
            if tray is not sender and tray.content_topic == message.message.content_topic:
                tray.put([message])

    def _gap_in(self, received: list[MessagingMessage]) -> str:
        """Why messages may be missing: later nodes number them; of others a full cache says it."""
        numbers = [one.sequence for one in received if one.sequence is not None]
        if not numbers:
            if len(received) >= CACHE_CAPACITY:
                return f"the node held {len(received)} messages, and keeps at most {NODE_CAPACITY}"
            return ""
        last, self._last_sequence = self._last_sequence, numbers[-1]
        expected = numbers[0] if last is None else last + 1
        for number in numbers:
            if number != expected:
                return f"the node dropped messages before number {number}"
            expected += 1
        return ""


_inboxes: RunVar[dict[str, MessagingInbox]] = RunVar("reliable_channel_messaging_inboxes")
"""For each event loop."""


@asynccontextmanager
async def shared_inbox(url: str, client: Callable[[], WakuClient]) -> AsyncIterator[MessagingInbox]:
    """Use the inbox of a node, which channels share. The first user creates the inbox, and the last
    user closes it."""
    inboxes = _inboxes.get({})
    _inboxes.set(inboxes)
    inbox = inboxes.get(url)
    if inbox is None:
        inbox = inboxes[url] = MessagingInbox(client())
    inbox.users += 1
    try:
        yield inbox
    finally:
        inbox.users -= 1
        if not inbox.users:
            del inboxes[url]
            with anyio.move_on_after(1, shield=True):
                await inbox.client.aclose()
