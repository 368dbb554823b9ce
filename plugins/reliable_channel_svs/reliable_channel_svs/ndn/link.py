"""Link to a forwarder, which carries whole packets over a unix socket, TCP or UDP.

This module replaces python-ndn, of which SVS needs only a small part. python-ndn knows only version
1 of SVS, runs only on asyncio, and depends on 14 packages.
"""

import socket
from dataclasses import dataclass
from typing import Final, Protocol, Self
from urllib.parse import urlsplit

import anyio
from anyio.abc import ByteStream, ConnectedUDPSocket

from ..errors import ForwarderError, TlvError
from ..packet import MAX_PACKET_BYTES
from ..tlv import read_number

DEFAULT_PORT: Final = 6363
"""TCP and UDP port on which forwarders listen (NFD, ndnd)."""
SEND_S: Final = 5.0
"""Maximum time for which a forwarder may leave a packet half received."""


class Link(Protocol):
    """Link that carries packets to and from one forwarder."""

    async def send(self, packet: bytes) -> None: ...

    async def receive(self) -> bytes:
        """Wait for the next packet, and return it.

        Raises:
            ForwarderError: the link is gone, or the bytes are no packet.
        """
        ...

    async def aclose(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Address:
    """Address of a forwarder, such as `unix:///run/nfd/nfd.sock`, `tcp://host:6363` or
    `udp://host:6363`."""

    url: str
    scheme: str
    path_or_host: str
    port: int = DEFAULT_PORT

    @classmethod
    def parse(cls, url: str) -> Self:
        """Return the forwarder's address in a URL.

        Raises:
            ValueError: the text is no such URL.
        """
        parts = urlsplit(url)
        if parts.scheme == "unix" and parts.path:
            return cls(url, parts.scheme, parts.path)
        if parts.scheme in ("tcp", "udp") and parts.hostname:
            return cls(url, parts.scheme, parts.hostname, parts.port or DEFAULT_PORT)
        raise ValueError(
            f"{url!r}: write the address of a forwarder as unix:///path, tcp://host:port or "
            "udp://host:port"
        )


async def connect(address: Address) -> Link:
    """Connect to a forwarder.

    Raises:
        ForwarderError: the forwarder is not there.
    """
    where, port = address.path_or_host, address.port
    try:
        if address.scheme == "unix":
            return StreamLink(UnixStream.connect(where))
        if address.scheme == "tcp":
            return StreamLink(await anyio.connect_tcp(where, port))
        return DatagramLink(await anyio.create_connected_udp_socket(where, port))
    except OSError as error:
        raise ForwarderError(f"{address.url}: {error}") from error


class UnixStream:
    """Unix socket as a stream of bytes.

    AnyIO's own stream (4.16) fails if bytes arrive while `receive` is being cancelled. This
    `InvalidStateError` of asyncio occurs whenever a busy node closes.
    """

    def __init__(self, connected: socket.socket) -> None:
        self._socket = connected

    @classmethod
    def connect(cls, path: str) -> Self:
        """Connect to a unix socket, without waiting.

        Raises:
            OSError: no forwarder listens, too many wait already, or the system has no such sockets.
        """
        if not hasattr(socket, "AF_UNIX"):
            raise OSError(
                f"{path}: this system has no Unix sockets; give the TCP address of the forwarder"
            )
        made = socket.socket(socket.AF_UNIX)
        try:
            made.setblocking(False)
            made.connect(path)
        except OSError:
            made.close()
            raise
        return cls(made)

    async def send(self, data: bytes) -> None:
        left = memoryview(data)
        while left:
            try:
                left = left[self._socket.send(left) :]
            except BlockingIOError:
                await anyio.wait_writable(self._socket)

    async def receive(self, max_bytes: int) -> bytes:
        """Wait for bytes of the stream, and return them.

        Raises:
            EndOfStream: the other side closed it.
        """
        await anyio.lowlevel.checkpoint()
        while True:
            try:
                data = self._socket.recv(max_bytes)
            except BlockingIOError:
                await anyio.wait_readable(self._socket)
            else:
                if not data:
                    raise anyio.EndOfStream
                return data

    async def aclose(self) -> None:
        anyio.notify_closing(self._socket)
        self._socket.close()


class StreamLink:
    """Link over a stream of bytes, in which packets are separated by their own lengths."""

    def __init__(self, stream: ByteStream | UnixStream) -> None:
        self._stream = stream
        self._buffer = bytearray()
        self._lock = anyio.Lock()

    async def send(self, packet: bytes) -> None:
        """Send one packet to the forwarder.

        Raises:
            ForwarderError: the link is gone.
        """
        try:
            async with self._lock:
                # A packet that is cut off would make nonsense of all that follow.
                with anyio.fail_after(SEND_S, shield=True):
                    await self._stream.send(packet)
        except TimeoutError as error:
            await self.aclose()
            raise ForwarderError(f"the forwarder accepted no packet for {SEND_S:g} s") from error
        except (OSError, anyio.BrokenResourceError, anyio.ClosedResourceError) as error:
            raise ForwarderError(f"the link to the forwarder is broken: {error}") from error

    async def receive(self) -> bytes:
        """Wait for the next packet, and return it.

        Raises:
            ForwarderError: the link is gone, or carries something other than packets.
        """
        while True:
            if packet := self._take():
                return packet
            try:
                self._buffer += await self._stream.receive(65_536)
            except (OSError, anyio.EndOfStream, anyio.ClosedResourceError) as error:
                raise ForwarderError("the forwarder closed the link") from error
            except anyio.BrokenResourceError as error:
                raise ForwarderError(f"the link to the forwarder broke: {error}") from error

    def _take(self) -> bytes | None:
        with memoryview(self._buffer) as view:
            try:
                _, after_type = read_number(view, 0)
                length, start = read_number(view, after_type)
            except TlvError:
                if len(view) < 18:  # the longest type and length there are
                    return None
                raise ForwarderError("the forwarder sent bytes that are not NDN packets") from None
        end = start + length
        # Room for what a link header (NDNLPv2) adds.
        if end > 2 * MAX_PACKET_BYTES:
            raise ForwarderError(
                f"the forwarder announced a packet of {end} bytes; at most {MAX_PACKET_BYTES} are "
                "allowed"
            )
        if len(self._buffer) < end:
            return None
        packet = bytes(self._buffer[:end])
        del self._buffer[:end]
        return packet

    async def aclose(self) -> None:
        await self._stream.aclose()


class DatagramLink:
    def __init__(self, socket: ConnectedUDPSocket) -> None:
        self._socket = socket

    async def send(self, packet: bytes) -> None:
        """Send one packet to the forwarder.

        Raises:
            ForwarderError: the socket refuses it.
        """
        try:
            await self._socket.send(packet)
        except (OSError, anyio.BrokenResourceError, anyio.ClosedResourceError) as error:
            raise ForwarderError(f"the link to the forwarder is broken: {error}") from error

    async def receive(self) -> bytes:
        """Wait for the next packet, and return it.

        Raises:
            ForwarderError: the socket is closed, or no forwarder listens there.
        """
        try:
            return await self._socket.receive()
        except (OSError, anyio.BrokenResourceError, anyio.ClosedResourceError) as error:
            raise ForwarderError(f"the link to the forwarder is broken: {error}") from error

    async def aclose(self) -> None:
        await self._socket.aclose()
