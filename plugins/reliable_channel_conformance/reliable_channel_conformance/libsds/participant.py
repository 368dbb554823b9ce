"""Parts of logos-delivery around nim-sds that a participant needs.

The library orders and acknowledges messages, and detects missing messages. The library does not
publish messages, repeat them, or query Store. In place of the library, this module publishes
messages, repeats them, and queries Store. Messages are delivered in the order in which the library
emits `message_ready`.
"""

import time
from base64 import b64encode
from dataclasses import dataclass, field
from typing import Any, Final

from reliable_channel.sds import NIM
from reliable_channel.sds.ids import reliable_channel_id
from reliable_channel.spi import CodecError, Message
from waku import WakuClient, WakuMessage
from waku.errors import WakuError

from .library import Library, LibraryEvent, LibraryRefused

MAX_RETRIES: Final = 5
"""Maximum number of retries, as in logos-delivery."""
HINT_BYTES: Final = 32

Line = dict[str, Any]


@dataclass(slots=True)
class Unacknowledged:
    """Own message that is sent again until the library emits `message_sent`."""

    data: bytes
    due_ms: int
    retries: int = 0


@dataclass(slots=True)
class Participant:
    """Participant of one channel, over one node. `step` does everything that is due."""

    library: Library
    node: WakuClient
    content_topic: str
    channel_id: str
    sender_id: str
    retry_ms: int
    retrieve_ms: int
    lines: list[Line] = field(default_factory=list)
    """Events that must be written as JSON lines."""
    entries: list[Line] = field(default_factory=list)
    """Sent and delivered messages in order, because the library has no log."""
    _contents: dict[str, Message] = field(default_factory=dict)
    """Messages that arrived and were not delivered."""
    _own: dict[str, Unacknowledged] = field(default_factory=dict)
    _wanted: dict[str, bytes] = field(default_factory=dict)
    """Hints of missing messages."""
    _looked_ms: int = 0

    async def start(self) -> None:
        await self.node.relay_auto_subscribe([self.content_topic])

    async def send(self, content: bytes) -> str:
        """Publish a message, and return the message's id.

        Raises:
            LibraryRefused: the message cannot be wrapped.
            WakuError: the node does not accept it. It is sent again in any case.
        """
        message_id = reliable_channel_id(self.sender_id, time.time_ns(), content)
        data = self.library.wrap(content, message_id, self.channel_id)
        self._own[message_id] = Unacknowledged(data, _now_ms() + self.retry_ms)
        self._note(NIM.codec.decode(data), self.sender_id)
        await self._publish(data)
        return message_id

    async def step(self) -> None:
        """Handle received messages and the library's events, and send messages again that are
        due."""
        for message in await self.node.relay_auto_messages(self.content_topic):
            self._take(message.payload)
        for event in self.library.events():
            await self._handle(event)
        await self._retry()
        await self._look()

    def _take(self, data: bytes) -> None:
        try:
            message = NIM.codec.decode(data)
        except CodecError:
            message = None
        if message is not None and message.channel_id != self.channel_id:
            return  # the library takes messages of every channel
        if message is not None and message.content and message.message_id not in self._own:
            self._contents.setdefault(message.message_id, message)
        try:
            unwrapped = self.library.unwrap(data)
        except LibraryRefused as error:
            self.lines.append({"event": "message_rejected", "reason": str(error)})
            return
        self._wanted |= {each.message_id: each.retrieval_hint for each in unwrapped.missing}

    async def _handle(self, event: LibraryEvent) -> None:
        if event.kind == "message_ready":
            self._wanted.pop(event.message_id, None)
            if (message := self._contents.pop(event.message_id, None)) is not None:
                payload = b64encode(message.content or b"").decode()
                line = {"message_id": event.message_id, "payload": payload}
                self.lines.append({"event": "message_received", **line})
                self._note(message, message.sender_id)
        elif event.kind == "message_sent":
            if self._own.pop(event.message_id, None) is not None:
                line = {"event": "message_acknowledged", "message_id": event.message_id}
                self.lines.append(line)
        elif event.kind == "missing_dependencies":
            self._wanted |= {each.message_id: each.retrieval_hint for each in event.missing}
        elif event.kind == "repair_ready":
            await self._publish(event.data)

    async def _retry(self) -> None:
        now_ms = _now_ms()
        for message in tuple(self._own.values()):  # one may be sent meanwhile
            if message.due_ms <= now_ms and message.retries < MAX_RETRIES:
                message.retries += 1
                message.due_ms = now_ms + self.retry_ms
                await self._publish(message.data)

    async def _look(self) -> None:
        """Ask Store by retrieval hint, as logos-delivery and status-go do."""
        hints = [hint for hint in self._wanted.values() if len(hint) == HINT_BYTES]
        if not hints or _now_ms() < self._looked_ms + self.retrieve_ms:
            return
        self._looked_ms = _now_ms()
        for entry in await self.node.store_by_hash(hints):
            if entry.message is not None:
                self._take(entry.message.payload)

    async def _publish(self, data: bytes) -> None:
        message = WakuMessage(
            data, self.content_topic, timestamp=time.time_ns(), meta=NIM.marker or b""
        )
        try:
            await self.node.relay_auto_publish(message)
        except WakuError as error:
            self.lines.append({"event": "transport_degraded", "reason": str(error)})

    def _note(self, message: Message, sender_id: str) -> None:
        self.entries.append(
            {
                "message_id": message.message_id,
                "sender_id": sender_id,
                "lamport_timestamp": message.lamport_timestamp,
                "payload": b64encode(message.content or b"").decode(),
            }
        )


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
