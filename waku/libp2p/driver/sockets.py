"""TCP connections, by anyio or, on asyncio, by own sockets that need a fifth less CPU time to read.

A stream of anyio does not read between two calls of `receive`, and each call waits for a task. A
link reads all the time, and its connection limits the buffered bytes. `pump` passes on received
bytes from inside the event loop.
"""

from __future__ import annotations

import asyncio
import socket
import sys
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from ipaddress import ip_address
from typing import Any, Final, Never, cast

import anyio
from anyio.abc import ByteStream, SocketAttribute, SocketListener
from anyio.lowlevel import checkpoint

__all__ = ["AsyncioSocket", "accept", "connect", "pump"]

READ_BYTES: Final = 65_536
MAX_UNREAD_BYTES: Final = 65_536
"""Maximum number of bytes that are buffered before `pump` is called."""
OTHERS: Final = 4
"""Number of event loop rounds between two turns of one connection, so that others have a turn."""
NEXT_ADDRESS_S: Final = 0.25
"""Time (s) between attempts at the addresses of a host name (RFC 8305, section 8)."""

Take = Callable[[bytes], bool | None]
"""Function that receives the bytes of a connection. The function returns True if its turn ended
before it handled all bytes. After other connections had a turn, the function is then called again
without bytes."""


async def connect(host: str, port: int) -> ByteStream:
    """Connect to an address, or to the first address of a host name that answers.

    Raises:
        OSError: none answers.
    """
    loop = _asyncio_loop()
    if loop is None:
        return await anyio.connect_tcp(host, port)
    # With a delay, asyncio leaves a socket open where the caller is cancelled: for names alone.
    delay_s = None if _is_ip_address(host) else NEXT_ADDRESS_S
    _, pipe = await loop.create_connection(AsyncioSocket, host, port, happy_eyeballs_delay=delay_s)
    return pipe


async def accept(listener: SocketListener) -> ByteStream:
    """Wait for a new connection and return it.

    Raises:
        OSError: no file descriptor is left, or the peer is gone again.
    """
    loop = _asyncio_loop()
    if loop is None:
        return await listener.accept()
    accepted = await _accepted(listener.extra(SocketAttribute.raw_socket))
    try:
        accepted.setblocking(False)
        accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # asyncio misses some
    except BaseException:
        accepted.close()
        raise
    _, pipe = await loop.connect_accepted_socket(AsyncioSocket, accepted)
    return pipe


async def _accepted(listener: socket.socket) -> socket.socket:
    """Wait for a connection. asyncio's own `sock_accept` leaves it open where it is cancelled."""
    while True:
        await anyio.wait_readable(listener)
        with suppress(BlockingIOError, InterruptedError):  # the peer is gone again
            return listener.accept()[0]


def _is_ip_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


async def pump(pipe: ByteStream, take: Take) -> Never:
    """Call `take` with all received bytes until the connection ends.

    Raises:
        EndOfStream: the peer ended.
        BrokenResourceError, ClosedResourceError: the connection failed, or was closed here.
        Exception: what `take` raised.
    """
    if isinstance(pipe, AsyncioSocket):
        _asyncio_loop()
        await pipe.pump(take)
    while True:
        data = await pipe.receive(READ_BYTES)
        while take(data):
            data = b""
            for _ in range(OTHERS):
                await checkpoint()


def _asyncio_loop() -> asyncio.AbstractEventLoop | None:
    """The event loop of this task; None where that is trio's.

    anyio asks sniffio, where that is installed, and sniffio knows asyncio by its task: in a call of
    the event loop there is none. Calls are made in the context of the task that had them made.
    """
    try:
        if asyncio.current_task() is None:
            return None
    except RuntimeError:
        return None
    if (sniffio := sys.modules.get("sniffio")) is not None:
        sniffio.current_async_library_cvar.set("asyncio")
    return asyncio.get_running_loop()


class AsyncioSocket(ByteStream, asyncio.Protocol):
    """Connection that the event loop of asyncio creates.

    One task receives bytes, and another task sends bytes.
    """

    def __init__(self) -> None:
        self._unread: deque[bytes] = deque()
        self._unread_bytes = 0
        self._take: Take | None = None
        self._is_behind = False
        """True if `_take` is not through with what it got."""
        self._failure: BaseException | None = None
        """What `receive` and `pump` raise behind what was received."""
        self._reader: asyncio.Future[None] | None = None
        self._writable = asyncio.Event()
        self._writable.set()
        self._is_closed = False

    # asyncio's side

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport of asyncio, which reads from now on."""
        self._transport = cast("asyncio.Transport", transport)
        self._transport.set_write_buffer_limits(0)

    def data_received(self, data: bytes) -> None:
        """Pass on received bytes, or keep the bytes for `receive`."""
        if self._take is not None:
            try:
                self._is_behind = bool(self._take(data))
            except BaseException as error:  # `pump` raises it, in its task
                self._take = None
                self._transport.pause_reading()
                self._end(error)
            if self._is_behind:
                self._transport.pause_reading()
                self._wake()
            return
        self._unread.append(bytes(data))  # Windows' event loop has a bytearray
        self._unread_bytes += len(data)
        if self._unread_bytes > MAX_UNREAD_BYTES:
            self._transport.pause_reading()
        self._wake()

    def eof_received(self) -> bool:
        """Keep the socket open for sending, because only the peer's half has ended."""
        self._end(anyio.EndOfStream())
        return True

    def connection_lost(self, exc: Exception | None) -> None:
        failure = anyio.EndOfStream() if exc is None else anyio.BrokenResourceError()
        failure.__cause__ = exc
        self._end(failure)
        self._writable.set()

    def pause_writing(self) -> None:
        """Pause sending, because the socket accepts no more."""
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    def _end(self, failure: BaseException) -> None:
        if self._failure is None:
            self._failure = failure
        self._wake()

    def _wake(self) -> None:
        if self._reader is not None and not self._reader.done():
            self._reader.set_result(None)

    # The link's side

    async def receive(self, max_bytes: int = READ_BYTES) -> bytes:
        """Return the next received bytes of the connection. The docstring of `pump` lists the
        errors."""
        while not self._unread:
            self._transport.resume_reading()
            await self._next()
        data = self._unread.popleft()
        if len(data) > max_bytes:
            self._unread.appendleft(data[max_bytes:])
            data = data[:max_bytes]
        self._unread_bytes -= len(data)
        return data

    async def pump(self, take: Take) -> Never:
        """Pass on received bytes, as the function `pump` does."""
        while self._unread:
            self._is_behind = bool(take(self._unread.popleft()))
            await self._catch_up(take)
        self._unread_bytes = 0
        self._take = take
        self._transport.pause_reading()
        self._transport.resume_reading()  # asyncio calls in this context from now on
        try:
            while True:
                await self._next()
                await self._catch_up(take)
                self._transport.resume_reading()
        finally:
            self._take = None
            self._transport.pause_reading()

    async def _catch_up(self, take: Take) -> None:
        """Have what was read taken, a turn each time that the others had one."""
        while self._is_behind:
            for _ in range(OTHERS):
                await asyncio.sleep(0)
            self._is_behind = bool(take(b""))

    async def _next(self) -> None:
        """Wait until something happens.

        Raises:
            EndOfStream, BrokenResourceError, ClosedResourceError, Exception: nothing will.
        """
        if self._is_closed:
            raise anyio.ClosedResourceError
        if self._failure is not None:
            raise self._failure
        self._reader = asyncio.get_running_loop().create_future()
        try:
            await self._reader
        finally:
            self._reader = None

    async def send(self, item: bytes) -> None:
        """Send bytes, and return when the socket has accepted all of them."""
        self._raise_closed()
        self._transport.write(item)
        if not self._writable.is_set():
            await self._writable.wait()
            self._raise_closed()

    def _raise_closed(self) -> None:
        if self._is_closed:
            raise anyio.ClosedResourceError
        if self._transport.is_closing():
            raise anyio.BrokenResourceError from self._failure

    async def send_eof(self) -> None:
        if not self._transport.is_closing():
            self._transport.write_eof()

    async def aclose(self) -> None:
        """Close the socket of the connection. Bytes that the socket has not accepted are lost."""
        self._is_closed = True
        self._transport.abort()
        await asyncio.sleep(0)

    @property
    def extra_attributes(self) -> Mapping[Any, Callable[[], Any]]:
        """Return the socket, and the address of the peer as long as it is known."""
        found = (
            (SocketAttribute.raw_socket, self._transport.get_extra_info("socket")),
            (SocketAttribute.remote_address, self._transport.get_extra_info("peername")),
        )
        return {name: partial(_same, value) for name, value in found if value is not None}


def _same(value: Any) -> Any:
    return value
