"""One stream of a link, for tasks: wait for messages, send them, end, reset."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from types import TracebackType
from typing import Protocol

import anyio

from ..connection import Connection
from ..errors import InvalidInput, Libp2pError, LimitExceeded, StreamClosed
from ..keys import PeerId
from ..varint import MessageReader, prefixed

__all__ = ["Carrier", "Stream"]


class Carrier(Protocol):
    """What a stream needs of its link."""

    connection: Connection

    def __hash__(self) -> int: ...

    @property
    def peer_id(self) -> PeerId:
        """The peer, whose identity is proven."""

    @property
    def is_open(self) -> bool:
        """Whether the connection lives."""

    def open(self, protocols: Sequence[str]) -> Stream:
        """Open another stream to the same peer."""

    def close(self, reason: Libp2pError | None = None) -> None:
        """End the connection."""

    def wake_writer(self) -> None:
        """Have the writer look for bytes to send."""

    def consumed(self, stream_id: int, size_bytes: int) -> None:
        """Return credit for bytes that were read."""

    def forget(self, stream_id: int) -> None:
        """Reset a stream that is not used any more."""

    async def flush(self) -> None:
        """Wait until the socket has taken all that was sent so far."""


class Stream:
    """A stream as its two sides use it; one task reads, one task sends.

    As a context manager it is reset at the end, which does nothing if both sides have ended it.
    """

    def __init__(self, link: Carrier, stream_id: int, protocol: str | None = None) -> None:
        self.link = link
        self.protocol = protocol
        """What both sides agreed to speak; None until the peer has agreed."""
        self._id = stream_id
        self._chunks: deque[bytes] = deque()
        self._reader = MessageReader(0, "message_bytes")
        self._ended = False
        self._failure: Libp2pError | None = None
        self._changed: anyio.Event | None = None
        """What a task waits for, if one does."""

    async def agreed(self) -> str:
        """Wait until the peer agrees to a protocol, and return it.

        Raises:
            StreamClosed, ConnectionClosed: the peer refused, or is gone.
        """
        while self.protocol is None:
            self._raise_failure()
            await self._change()
        return self.protocol

    @property
    def is_ended(self) -> bool:
        """Whether the peer has ended its half; what it sent before may still be unread."""
        return self._ended

    async def readable(self) -> bool:
        """Wait until there is something to receive; False at the peer's end.

        Raises:
            StreamClosed, ConnectionClosed: it was reset, or the connection is over.
        """
        while not self._chunks:
            self._raise_failure()
            if self._ended:
                return False
            await self._change()
        return True

    async def receive(self) -> bytes:
        """Return the next bytes; none at the peer's end.

        Raises:
            StreamClosed, ConnectionClosed: it was reset, or the connection is over.
        """
        if not await self.readable():
            return b""
        data = self._chunks.popleft()
        self.link.consumed(self._id, len(data))
        return data

    async def receive_message(self, limit: int) -> bytes | None:
        """Return the next message behind its length; None at the peer's end.

        Bytes count as consumed as they come, so that messages above the window pass (T5).

        Raises:
            LimitExceeded: it is longer than `limit`; the stream is reset.
            StreamClosed, ConnectionClosed: as `receive`, or the peer ended within a message.
        """
        try:
            while (message := self._reader.next_message(limit)) is None:
                data = await self.receive()
                if not data:
                    if self._reader.rest:
                        raise StreamClosed("the peer ended the stream within a message")
                    return None
                self._reader.feed(data)
        except (InvalidInput, LimitExceeded):
            self.reset()
            raise
        return message

    async def receive_exactly(self, size_bytes: int) -> bytes | None:
        """Return so many bytes; None at the peer's end.

        Raises:
            StreamClosed, ConnectionClosed: as `receive`, or the peer ended within them.
        """
        data = b""
        while len(data) < size_bytes:
            if not (more := await self.receive()):
                if data:
                    raise StreamClosed("the peer ended the stream within a message")
                return None
            data += more
        if len(data) > size_bytes:
            self._chunks.appendleft(data[size_bytes:])
        return data[:size_bytes]

    async def send(self, data: bytes) -> None:
        """Send bytes; return when the peer has given credit and the socket has taken them.

        Raises:
            StreamClosed, ConnectionClosed: it was reset, or the connection is over.
        """
        self._raise_failure()
        connection = self.link.connection
        connection.send(self._id, data)
        await self.link.flush()
        while connection.waiting_bytes(self._id):
            self._raise_failure()
            await self._change()
        self._raise_failure()

    async def send_message(self, message: bytes) -> None:
        """Send a message behind its length.

        Raises:
            StreamClosed, ConnectionClosed: as `send`.
        """
        await self.send(prefixed(message))

    async def request(self, message: bytes, limit: int) -> bytes | None:
        """Send one message, end this half, and return the answer; None if the peer has none.

        Cheaper than its parts: message and end leave in one write, which is not waited for.

        Raises:
            LimitExceeded, StreamClosed, ConnectionClosed: as `receive_message`.
        """
        self._raise_failure()
        self.link.connection.send(self._id, prefixed(message))
        self.end()
        return await self.receive_message(limit)

    def end(self) -> None:
        """Send nothing more; what waits still goes."""
        self.link.connection.end(self._id)
        self.link.wake_writer()

    def reset(self) -> None:
        """Drop the stream, with all that waits on it."""
        self.link.forget(self._id)
        self.fail(StreamClosed("this side reset the stream"))

    async def __aenter__(self) -> Stream:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.reset()

    # What the link does

    def take(self, data: bytes) -> None:
        """Keep received bytes until they are asked for."""
        self._chunks.append(data)
        self._notify()

    def take_end(self) -> None:
        """The peer sends nothing more."""
        self._ended = True
        self._notify()

    def take_credit(self, protocol: str | None = None) -> None:
        """The peer agreed to a protocol, or gave credit."""
        self.protocol = protocol or self.protocol
        self._notify()

    def fail(self, failure: Libp2pError) -> None:
        """The stream is gone; what was received before can still be read."""
        if self._failure is None:
            self._failure = failure
            self._notify()

    async def _change(self) -> None:
        # Reader and sender may wait at once, for the same event.
        if self._changed is None:
            self._changed = anyio.Event()
        await self._changed.wait()

    def _notify(self) -> None:
        if self._changed is not None:
            self._changed.set()
            self._changed = None

    def _raise_failure(self) -> None:
        if self._failure is not None:
            raise self._failure
