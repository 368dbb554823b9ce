"""Local network without any node, by UDP multicast. All participants are members of one UDP
multicast group.

A multicast group has no Store. Lost messages are broadcast again by other participants (SDS-R).
"""

import socket
from collections.abc import AsyncGenerator, Sequence
from errno import EMSGSIZE
from typing import Final

import anyio

from ..sds.ids import RecentSet
from .base import BaseTransport, Batch, Envelope, Received, StoreUnavailable, TransportError
from .framing import WakuFraming
from .multicast_frames import EXPIRES_S, Reassembly, decode, frames, topic_tag
from .multicast_socket import Group, join
from .settings import WakuSettings

SEEN_LIMIT: Final = 20_000
"""Number of remembered message hashes, by which a second copy is dropped."""
BURST: Final = 16
"""Number of datagrams that are sent at once (22 kB), a tenth of the receive buffer in Linux."""
PAUSE_S: Final = 0.001
"""Pause after a burst (s), in which receivers empty their buffers, so that 20 MB/s are possible."""
READ_AT_ONCE: Final = 256
"""Number of datagrams that are read before other tasks have a turn."""


class MulticastTransport(BaseTransport):
    """Transport of one content topic in one multicast group.

    Raises:
        ValueError: the URL is not `udp+multicast://group:port`.
    """

    def __init__(self, url: str, settings: WakuSettings) -> None:
        self.url = url
        self.group = Group.of_url(url)
        self._wrapping = WakuFraming(settings)
        self._tag = topic_tag(f"{settings.shard} {settings.content_topic}")
        self.mislabelled = 0
        """Messages that were not what their frames said."""
        self._socket: socket.socket | None = None
        self._reassembly = Reassembly(anyio.current_time)
        self._seen = RecentSet[bytes](SEEN_LIMIT)
        self._sending = anyio.Lock()

    @property
    def has_store(self) -> bool:
        """False, because a multicast group stores no messages."""
        return False

    async def open(self) -> None:
        """Join the multicast group of the address."""
        if self._socket is None:
            self._socket = join(self.group)

    async def aclose(self) -> None:
        """Leave the multicast group of the address."""
        sock, self._socket = self._socket, None
        if sock is not None:
            anyio.notify_closing(sock)
            sock.close()

    def envelope(
        self, payload: bytes, *, timestamp_ns: int, ephemeral: bool, meta: bytes = b""
    ) -> Envelope:
        """Make an envelope for bytes, with the hash that a Waku node would give them."""
        return self._wrapping.envelope(
            payload, timestamp_ns=timestamp_ns, ephemeral=ephemeral, meta=meta
        )

    async def publish(self, envelope: Envelope) -> None:
        """Send a message in as many datagrams as it needs."""
        try:
            body = self._wrapping.body(envelope)
            datagrams = frames(self._tag, envelope.message_hash, body)
        except ValueError as error:
            raise TransportError(f"the message is too long: {error}", retryable=False) from error
        async with self._sending:
            for number, datagram in enumerate(datagrams):
                if number % BURST == 0:
                    await anyio.sleep(PAUSE_S if number else 0)
                await self._send(datagram)

    async def receive(self) -> Batch:
        """Wait for datagrams, and return the messages that are complete."""
        given_up = self._reassembly.given_up
        messages: list[Received] = []
        with anyio.move_on_after(EXPIRES_S):
            while not messages:
                with _translated("receive"):
                    await anyio.wait_readable(self._opened())
                    messages = self._read()
        self._reassembly.expire()
        lost = self._reassembly.given_up - given_up
        return Batch(messages, gap=f"{lost} messages came in part" if lost else "")

    async def by_hash(self, hashes: Sequence[bytes]) -> list[Received]:
        """Raise an error, because a multicast group has no Store."""
        raise StoreUnavailable("a multicast group has no Store", retryable=False)

    async def by_time(self, start_ns: int, end_ns: int) -> AsyncGenerator[list[Received], None]:
        """Raise an error, because a multicast group has no Store."""
        yield await self.by_hash([])

    async def _send(self, datagram: bytes) -> None:
        with _translated("send"):
            while not self._is_sent(datagram):
                await anyio.wait_writable(self._opened())

    def _is_sent(self, datagram: bytes) -> bool:
        """Give the system a datagram; return False where it has no room."""
        try:
            self._opened().sendto(datagram, self.group.destination)
        except BlockingIOError:
            return False
        return True

    def _read(self) -> list[Received]:
        """Take what the system has for us, without waiting."""
        found = []
        for _ in range(READ_AT_ONCE):
            try:
                datagram, (source, *_) = self._opened().recvfrom(65_536)
            except BlockingIOError:
                break
            if (received := self._take(datagram, source)) is not None:
                found.append(received)
        return found

    def _take(self, datagram: bytes, source: str) -> Received | None:
        """The message that a datagram makes whole, if it does and the message is what it says."""
        frame = decode(datagram)
        if frame is None or frame.tag != self._tag or frame.message_hash in self._seen:
            return None
        body = self._reassembly.add(source, frame)
        if body is None:
            return None
        received = self._wrapping.received(body)
        if received is None or received.message_hash != frame.message_hash:
            self.mislabelled += 1
            return None
        self._seen.add(received.message_hash)
        return received

    def _opened(self) -> socket.socket:
        if self._socket is None:
            raise TransportError(f"{self.url} is not open")
        return self._socket


class _translated:
    """Turn the system's errors into the transport's."""

    def __init__(self, verb: str) -> None:
        self._verb = verb

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, raised: BaseException | None, traceback: object) -> None:
        if isinstance(raised, OSError | anyio.ClosedResourceError | anyio.BusyResourceError):
            lasting = isinstance(raised, OSError) and raised.errno == EMSGSIZE
            raise TransportError(
                f"the group's socket cannot {self._verb}: {raised!r}", retryable=not lasting
            ) from raised
