"""Streams of a link, by which tasks send and receive messages."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Protocol

import anyio

from ..connection import Connection
from ..errors import InvalidInput, Libp2pError, LimitExceeded, StreamClosed
from ..keys import PeerId
from ..varint import decode, prefixed

__all__ = ["Carrier", "Stream"]


class Carrier(Protocol):
    """Interface of a link for its streams."""

    connection: Connection

    def __hash__(self) -> int: ...

    @property
    def peer_id(self) -> PeerId:
        """Peer id with a proven identity."""

    @property
    def is_open(self) -> bool:
        """True if the connection is open."""

    def open(self, protocols: Sequence[str]) -> Stream:
        """Open another stream to the peer."""

    def close(self, reason: Libp2pError | None = None) -> None:
        """End the connection without waiting, with a reason."""

    def charge(self, price: int, what: str) -> None:
        """Charge the price of a peer's action to the budget of the connection. If the peer exceeds
        its budget, the connection ends."""

    def resume(self, go_on: Callable[[], None]) -> None:
        """Schedule a function for the next turn of the connection."""

    def wake_writer(self) -> None:
        """Wake the writing task, which looks for bytes to send."""

    def consumed(self, stream_id: int, size_bytes: int) -> None:
        """Give the peer credit for received bytes that were read."""

    def forget(self, stream_id: int) -> None:
        """Reset a stream that is not used any more."""

    async def flush(self) -> None:
        """Wait until the socket has accepted everything sent so far."""


class Stream:
    """Stream of one side, on which one task reads and one task sends.

    At the end of its `async with` block, the stream is reset unless both sides have ended it.
    """

    def __init__(self, link: Carrier, stream_id: int, protocol: str | None = None) -> None:
        self.link = link
        self.protocol = protocol
        """What both sides agreed to speak; None until the peer has agreed."""
        self.id = stream_id
        self._unread = bytearray()
        """What was received: joined, as an object for each tiny piece would be ten times that."""
        self._consumed = 0
        """Of these, bytes of an unfinished message, for which the peer has credit already (T5)."""
        self._ended = False
        self._failure: Libp2pError | None = None
        self.serving: anyio.CancelScope | None = None
        """The task that serves the stream, where the peer opened it."""
        self._changed: anyio.Event | None = None
        """What a task waits for, if one does."""

    async def agreed(self) -> str:
        """Wait until the peer agrees to a protocol, and return the protocol.

        Raises:
            StreamClosed, ConnectionClosed: the peer refused, or is gone.
        """
        while self.protocol is None:
            self._raise_failure()
            await self._change()
        return self.protocol

    @property
    def is_ended(self) -> bool:
        """True if the peer has ended its half of the stream. Data that arrived before the end may
        still be unread."""
        return self._ended

    async def readable(self) -> bool:
        """Wait until there is data to receive. Return False if the peer has ended its half.

        Raises:
            StreamClosed, ConnectionClosed: it was reset, or the connection is over.
        """
        while not self._unread:
            self._raise_failure()
            if self._ended:
                return False
            await self._change()
        return True

    async def receive(self) -> bytes:
        """Return the next received bytes, or no bytes after the peer's end.

        Raises:
            StreamClosed, ConnectionClosed: it was reset, or the connection is over.
        """
        if not await self.readable():
            return b""
        return self._pop(len(self._unread))

    async def receive_message(self, limit: int) -> bytes | None:
        """Return the next length-prefixed message, or None at the peer's end.

        Bytes count as read when they arrive, so that a message longer than the window passes (T5).

        Raises:
            LimitExceeded: it is longer than `limit`; the stream is reset.
            StreamClosed, ConnectionClosed: as `receive`, or the peer ended within a message.
        """
        try:
            while (header := decode(self._unread)) is None:
                if not await self._more():
                    return None
            size, begin = header
            if size > limit:
                raise LimitExceeded("message_bytes", limit, f"a message of {size} bytes")
        except (InvalidInput, LimitExceeded):
            self.reset()
            raise
        while len(self._unread) < begin + size:
            await self._more()
        return self._pop(begin + size)[begin:]

    async def receive_exactly(self, size_bytes: int) -> bytes | None:
        """Return the given number of bytes, or None at the peer's end.

        Raises:
            StreamClosed, ConnectionClosed: as `receive`, or the peer ended within them.
        """
        while len(self._unread) < size_bytes:
            if not await self._more():
                return None
        return self._pop(size_bytes)

    async def receive_pieces(self, size_bytes: int, most: int) -> bytes | None:
        """Return 1 to `most` whole pieces of the given size, or None at the peer's end.

        Raises:
            StreamClosed, ConnectionClosed: as `receive_exactly`.
        """
        first = await self.receive_exactly(size_bytes)
        if first is None:
            return None
        return first + self._pop(min(len(self._unread) // size_bytes, most - 1) * size_bytes)

    async def _more(self) -> bool:
        """Wait for more bytes of a message that is not whole; False at the peer's end before it.

        Raises:
            StreamClosed, ConnectionClosed: as `receive`, or the peer ended within the message.
        """
        had = len(self._unread)
        self._consume(had)
        while len(self._unread) == had:
            self._raise_failure()
            if self._ended:
                if had:
                    raise StreamClosed("the peer ended the stream within a message")
                return False
            await self._change()
        return True

    def _pop(self, size_bytes: int) -> bytes:
        """Take bytes off, which count as received until now."""
        self._consume(size_bytes)
        self._consumed -= size_bytes
        data = bytes(memoryview(self._unread)[:size_bytes])
        del self._unread[:size_bytes]
        return data

    def _consume(self, size_bytes: int) -> None:
        """Give the peer credit for the first bytes, once."""
        if size_bytes > self._consumed:
            self.link.consumed(self.id, size_bytes - self._consumed)
            self._consumed = size_bytes

    async def send(self, data: bytes) -> None:
        """Send bytes on the stream. Return when the peer has given credit and the socket has
        accepted the bytes.

        Raises:
            StreamClosed, ConnectionClosed: it was reset, or the connection is over.
        """
        self._raise_failure()
        connection = self.link.connection
        connection.send(self.id, data)
        await self.link.flush()
        while connection.waiting_bytes(self.id):
            self._raise_failure()
            await self._change()
            if not connection.waiting_bytes(self.id):
                await self.link.flush()
        self._raise_failure()

    async def send_message(self, message: bytes) -> None:
        """Send a message after its length.

        Raises:
            StreamClosed, ConnectionClosed: as `send`.
        """
        await self.send(prefixed(message))

    async def request(self, message: bytes, limit: int) -> bytes | None:
        """Send one message, end this half, and return the answer (None if the peer sends no
        answer).

        The message and the end of the half leave in one write, which saves time.

        Raises:
            LimitExceeded, StreamClosed, ConnectionClosed: as `receive_message`.
        """
        self._raise_failure()
        self.link.connection.send(self.id, prefixed(message))
        self.end()
        return await self.receive_message(limit)

    def end(self) -> None:
        """End this half of the stream, after all waiting data is sent."""
        self.link.connection.end(self.id)
        self.link.wake_writer()

    def reset(self) -> None:
        """Drop the stream, with all its waiting data."""
        self.link.forget(self.id)
        self._unread.clear()
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
        """Keep received bytes until they are read."""
        self._unread += data
        self._notify()

    def take_end(self) -> None:
        """Note that the peer sends no more data."""
        self._ended = True
        self._notify()

    def take_credit(self, protocol: str | None = None) -> None:
        """Note that the peer agreed to a protocol, or gave credit for more data."""
        self.protocol = protocol or self.protocol
        self._notify()

    def fail(self, failure: Libp2pError) -> None:
        """Note that the stream is closed by a failure. Data that was received before can still be
        read, except by a handler."""
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
