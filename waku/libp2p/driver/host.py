"""Host with one identity, the protocols that it serves, and its connections.

async with Host(identity, handlers={"/echo/1": echo}) as host:
    link = await host.dial(Multiaddr.parse("/dns4/node.example/tcp/8000/wss/p2p/16Uiu2…"))
    async with link.open(["/echo/1"]) as stream: …
"""

from __future__ import annotations

import os
import ssl
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, fields
from types import TracebackType
from typing import Final

import anyio
from anyio.abc import (
    ByteStream,
    Listener,
    SocketAttribute,
    SocketListener,
    SocketStream,
    TaskGroup,
)

from ..connection import Connection
from ..errors import ConnectionClosed, DialFailed, Libp2pError, LimitExceeded, PeerViolation
from ..keys import PeerId, PrivateKey
from ..limits import Limits
from ..multiaddr import DialTarget, Multiaddr
from ..noise import StaticKeys
from .framing import Framing, Plain, WebSocketClient, WebSocketServer
from .inlet import MessageSink
from .link import Handler, Link, now_ms
from .services import IDENTIFY, PING, answer_identify, answer_ping
from .sockets import READ_BYTES, accept, connect
from .stream import Stream

__all__ = ["Host", "HostLimits", "LinkEnded"]

RANDOM_BYTES: Final = 64
ACCEPT_PAUSE_S: Final = 0.1
"""Pause (s) before the host accepts again, after the process had no file descriptors left."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostLimits:
    """Limits of one host.

    Raises:
        ValueError: a bound is below 1; the message names it.
    """

    dial_ms: int = 15_000
    """Time (ms) from the start of a dial to the first byte of libp2p. The time includes DNS, TCP,
    TLS and WebSocket."""
    connections: int = 200
    """Maximum number of connections, including connections of peers that are not identified yet.
    The host closes further connections."""
    connections_by_address: int = 200
    """Maximum number of accepted connections from one IP address."""

    def __post_init__(self) -> None:
        for field in fields(self):
            if getattr(self, field.name) < 1:
                raise ValueError(
                    f"`{field.name}` must be at least 1 (got {getattr(self, field.name)})"
                )


@dataclass(frozen=True, slots=True)
class LinkEnded:
    peer_id: PeerId | None
    """Peer id, or None if the handshake failed."""
    reason: Libp2pError
    """Reason for the end of the connection. The reason is a `PeerViolation` if the peer broke a
    rule or exceeded a limit."""
    address: str = ""
    """IP address of a peer that dialled this host, or an empty text."""


class Host:
    """Host that dials other hosts and listens for connections. At the end of its `async with`
    block, the host closes every connection."""

    def __init__(
        self,
        identity: PrivateKey,
        *,
        handlers: Mapping[str, Handler | MessageSink] | None = None,
        agent: str = "py-waku",
        limits: Limits | None = None,
        host_limits: HostLimits | None = None,
        origins: Collection[str] = (),
        random_bytes: Callable[[int], bytes] = os.urandom,
        on_accepted: Callable[[Link], None] | None = None,
        on_ended: Callable[[LinkEnded], None] = lambda _: None,
    ) -> None:
        """Args:
        identity: own key.
        handlers: what serves the streams that peers open, by protocol; identify and ping are
            served always.
        agent: the name in identify.
        limits: bounds of each connection; None for the defaults.
        host_limits: bounds of the host; None for the defaults.
        origins: web pages that may connect by WebSocket, such as `https://app.example`; any if
            empty.
        random_bytes: source of the handshakes' keys.
        on_accepted: called with the connection of each peer that dialled, once its identity is
            proven.
        on_ended: called when a connection is over.
        """
        self.identity: Final = identity
        self.agent: Final = agent
        self.listen_addresses: list[Multiaddr] = []
        self.links: set[Link] = set()
        """Connections, those too that are still in their handshake."""
        self.dials: Counter[bool] = Counter()
        """Attempts to dial, by whether a peer answered."""
        self.handlers: Final[dict[str, Handler | MessageSink]] = {
            IDENTIFY: self._identify,
            PING: answer_ping,
            **(handlers or {}),
        }
        self._limits = limits or Limits()
        self._host_limits = host_limits or HostLimits()
        self._origins = origins
        self._random_bytes = random_bytes
        self._on_accepted = on_accepted
        self._on_ended = on_ended
        self._opening = 0
        """Accepted sockets that do not speak WebSocket yet."""
        self._by_address: Counter[str] = Counter()
        """Accepted connections, by IP address."""
        self._stack = AsyncExitStack()
        self._tasks: TaskGroup | None = None

    async def __aenter__(self) -> Host:
        self._tasks = await self._stack.enter_async_context(anyio.create_task_group())
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._tasks is not None
        self._tasks.cancel_scope.cancel()
        # Without the block's exception, which the task group would wrap in an ExceptionGroup.
        await self._stack.aclose()

    async def dial(self, address: Multiaddr, *, ssl_context: ssl.SSLContext | None = None) -> Link:
        """Connect to a peer by its address. If the address has a peer id, only that peer is
        accepted.

        Raises:
            InvalidInput: the address cannot be dialled.
            DialFailed: nothing answers there, or not with libp2p, or another peer.
        """
        target = address.dial_target
        self.dials[False] += 1
        try:
            with anyio.fail_after(self._host_limits.dial_ms / 1000):
                pipe, framing = await _reach(target, ssl_context)
        except TimeoutError:
            raise DialFailed(
                f"{address}: no answer within {self._host_limits.dial_ms} ms"
            ) from None
        except (OSError, ssl.SSLError, anyio.EndOfStream, anyio.BrokenResourceError) as error:
            raise DialFailed(f"{address}: {error or type(error).__name__}") from error
        except (ConnectionClosed, PeerViolation) as error:
            raise DialFailed(f"{address}: {error}") from error
        try:
            link = await self.connect(pipe, dialler=True, expected=target.peer_id, framing=framing)
        except ConnectionClosed as error:
            raise DialFailed(f"{address}: {error}") from error
        self.dials.update({False: -1, True: 1})
        return link

    async def connect(
        self,
        pipe: ByteStream,
        *,
        dialler: bool,
        expected: PeerId | None = None,
        framing: Framing | None = None,
    ) -> Link:
        """Connect by libp2p over a byte stream, which the host closes at the end. Return the link
        after the handshake.

        Raises:
            ConnectionClosed: the handshake failed, or there are too many connections.
        """
        assert self._tasks is not None, "a host connects within `async with`"
        if len(self.links) + self._opening >= self._host_limits.connections:
            await anyio.aclose_forcefully(pipe)
            raise ConnectionClosed(
                f"all {self._host_limits.connections} `connections` are in use; raise "
                "`connections` or close one"
            )
        link = self._link(pipe, dialler=dialler, expected=expected, framing=framing or Plain())
        self._tasks.start_soon(self._run, link)
        try:
            await link.ready()
        except BaseException:  # cancelled too: nobody else knows the link
            link.close()
            raise
        return link

    async def listen(
        self,
        address: Multiaddr,
        *,
        ssl_context: ssl.SSLContext | None = None,
        listener: SocketListener | None = None,
    ) -> Multiaddr:
        """Listen for connections at `/ip4/…/tcp/…`, `…/ws` or `…/wss`. Return the address with the
        port that is used.

        Args:
            address: where.
            ssl_context: certificate and key for `wss`.
            listener: one that listens there already, which the host closes; None makes one.

        Raises:
            InvalidInput: the address is of another kind.
            OSError: the port is taken.
        """
        assert self._tasks is not None, "a host listens within `async with`"
        target = address.dial_target
        listeners: Sequence[Listener[SocketStream]] = [listener] if listener else []
        if not listeners:
            made = await anyio.create_tcp_listener(local_host=target.host, local_port=target.port)
            listeners = made.listeners
        port = listeners[0].extra(SocketAttribute.local_port)
        (kind, host), _, *rest = address.parts
        bound = Multiaddr(((kind, host), ("tcp", str(port)), *rest)).with_peer_id(
            self.identity.peer_id
        )
        self.listen_addresses.append(bound)

        for one in listeners:
            self._tasks.start_soon(self._listen, one, target, ssl_context)
        return bound

    async def _identify(self, stream: Stream) -> None:
        await answer_identify(
            stream,
            public_key=self.identity.public_key.encoded,
            listen_addresses=self.listen_addresses,
            protocols=self.handlers,
            agent=self.agent,
        )

    async def _listen(
        self,
        listener: Listener[SocketStream],
        target: DialTarget,
        ssl_context: ssl.SSLContext | None,
    ) -> None:
        assert isinstance(listener, SocketListener)
        assert self._tasks is not None
        async with listener:
            while True:
                try:
                    pipe = await accept(listener)
                except OSError:  # no file descriptor is left, or the peer is gone again
                    await anyio.sleep(ACCEPT_PAUSE_S)
                    continue
                self._tasks.start_soon(self._accept, pipe, target, ssl_context)

    async def _accept(
        self, pipe: ByteStream, target: DialTarget, ssl_context: ssl.SSLContext | None
    ) -> None:
        """Take a connection, count it, and serve it until it ends."""
        address = _address_of(pipe)
        limits = self._host_limits
        full = None
        if len(self.links) + self._opening >= limits.connections:
            full = LimitExceeded("connections", limits.connections, "another connection")
        elif self._by_address[address] >= limits.connections_by_address:
            full = LimitExceeded(
                "connections_by_address", limits.connections_by_address, "another connection"
            )
        if full is not None:
            await anyio.aclose_forcefully(pipe)
            self._on_ended(LinkEnded(None, full, address))
            return
        self._by_address[address] += 1
        try:
            opened = await self._open(pipe, address, target, ssl_context)
            if opened is not None:
                link = self._link(opened[0], dialler=False, expected=None, framing=opened[1])
                if self._on_accepted is not None and self._tasks is not None:
                    self._tasks.start_soon(self._tell_accepted, link, self._on_accepted)
                await self._run(link, address)
        finally:
            self._by_address[address] -= 1
            if not self._by_address[address]:
                del self._by_address[address]

    async def _tell_accepted(self, link: Link, on_accepted: Callable[[Link], None]) -> None:
        with suppress(ConnectionClosed):
            await link.ready()
            on_accepted(link)

    async def _open(
        self,
        pipe: ByteStream,
        address: str,
        target: DialTarget,
        ssl_context: ssl.SSLContext | None,
    ) -> tuple[ByteStream, Framing] | None:
        """What lies below libp2p, of a connection that was accepted; None where that fails."""
        framing: Framing = Plain()
        self._opening += 1
        try:
            with anyio.fail_after(self._limits.handshake_ms / 1000):
                if target.server_name is not None:
                    pipe = await _wrap_tls(pipe, ssl_context)
                if target.websocket:
                    framing = await _upgrade(pipe, WebSocketServer(self._origins))
        except (
            TimeoutError, OSError, ssl.SSLError, anyio.EndOfStream, anyio.BrokenResourceError,
            ConnectionClosed, PeerViolation,
        ) as error:  # fmt: skip
            await anyio.aclose_forcefully(pipe)
            reason = error if isinstance(error, Libp2pError) else ConnectionClosed(str(error))
            self._on_ended(LinkEnded(None, reason, address))
            return None
        except BaseException:  # cancelled: nobody else knows the socket
            with anyio.CancelScope(shield=True):
                await anyio.aclose_forcefully(pipe)
            raise
        finally:
            self._opening -= 1
        return pipe, framing

    def _link(
        self, pipe: ByteStream, *, dialler: bool, expected: PeerId | None, framing: Framing
    ) -> Link:
        """A connection that counts among the others; `_run` serves it."""
        connection = Connection(
            dialler=dialler,
            identity=self.identity,
            keys=StaticKeys.from_random(self._random_bytes(RANDOM_BYTES)),
            now_ms=now_ms(),
            expected=expected,
            supports=self.handlers.__contains__,
            limits=self._limits,
        )
        link = Link(pipe, connection, framing, self.handlers)
        self.links.add(link)
        return link

    async def _run(self, link: Link, address: str = "") -> None:
        try:
            await link.run()
        except Exception as error:  # T8: the fault of one connection must not end the others
            link.failure = ConnectionClosed(f"a fault of this side: {_first(error)!r}")
        finally:
            self.links.discard(link)
            remote, reason = link.connection.remote, link.failure
            assert reason is not None
            self._on_ended(LinkEnded(None if remote is None else remote.peer_id, reason, address))


async def _reach(
    target: DialTarget, ssl_context: ssl.SSLContext | None
) -> tuple[ByteStream, Framing]:
    pipe = await connect(target.host, target.port)
    try:
        if target.server_name is not None:
            pipe = await _wrap_tls(
                pipe, ssl_context or ssl.create_default_context(), target.server_name
            )
        if not target.websocket:
            return pipe, Plain()
        host = target.server_name or target.host
        client = WebSocketClient(host, target.port, secure=target.server_name is not None)
        await pipe.send(client.send(b""))
        return pipe, await _upgrade(pipe, client)
    except BaseException:
        with anyio.CancelScope(shield=True):
            await anyio.aclose_forcefully(pipe)
        raise


async def _upgrade(pipe: ByteStream, side: WebSocketClient | WebSocketServer) -> Framing:
    while not side.opened:
        try:
            side.upgrade(await pipe.receive(READ_BYTES))
        finally:
            if answer := side.send(b""):
                await pipe.send(answer)
    return side


async def _wrap_tls(
    pipe: ByteStream, ssl_context: ssl.SSLContext | None, server_name: str | None = None
) -> ByteStream:
    """TLS over a connection: as the side that dialled, the server has the name."""
    from anyio.streams.tls import TLSStream

    assert ssl_context is not None, "listening with TLS needs an `ssl_context`"
    return await TLSStream.wrap(
        pipe,
        server_side=server_name is None,
        hostname=server_name,
        ssl_context=ssl_context,
        standard_compatible=False,
    )


def _address_of(pipe: ByteStream) -> str:
    try:
        return str(pipe.extra(SocketAttribute.remote_address)[0])
    except (OSError, anyio.TypedAttributeLookupError):  # gone again
        return ""


def _first(error: BaseException) -> BaseException:
    """The fault inside the groups of the tasks in which it happened."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
