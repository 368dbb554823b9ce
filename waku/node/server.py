"""HTTP server for an embedded node, which `reliable-channel node` uses."""

from __future__ import annotations

import asyncio
import signal
import socket
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Final

import anyio

try:
    import uvicorn
except ModuleNotFoundError as error:
    raise ImportError(
        "serving a node over HTTP needs uvicorn: pip install 'reliable-channel[node]'"
    ) from error

from waku.node.app import App
from waku.node.connections import HttpConnections
from waku.node.errors import CannotListen
from waku.node.listening import already_bound, listening_socket
from waku.node.node import EmbeddedNode
from waku.node.open_files import BACKLOG
from waku.node.options import NodeOptions
from waku.node.services import ServiceKind

if TYPE_CHECKING:
    from waku.node.libp2p import Listen

__all__ = ["serve", "serve_node"]

ACCEPTED_TURNS: Final = 3
"""Number of event loop turns until the server knows an accepted connection."""
GRACE_S: Final = 2
"""Time (s) for running requests when the server stops."""
STOP_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)


class _Server(uvicorn.Server):
    """uvicorn that reports when it is up, and passes signals on to the handlers of the program."""

    def __init__(self, config: uvicorn.Config, up: Callable[[], None]):
        super().__init__(config)
        self._up = up
        self._received: list[tuple[int, FrameType | None]] = []

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._up()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        # What was accepted and not handed over yet is lost, and its socket left open, where the
        # listener is closed first: asyncio asserts that its server still has sockets.
        loop = asyncio.get_running_loop()
        for listener in sockets or ():
            if listener.fileno() >= 0:  # closed already where serving was cancelled
                loop.remove_reader(listener)
        for _ in range(ACCEPTED_TURNS):
            await anyio.lowlevel.checkpoint()
        await super().shutdown(sockets)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self._received.append((sig, frame))
        super().handle_exit(sig, frame)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Stop at a signal, then call the program's own handler, such as that of another server.

        uvicorn raises the signal again instead, which ends a program that has no handler before it
        has closed anything.
        """
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {number: signal.signal(number, self.handle_exit) for number in STOP_SIGNALS}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
        for received, frame in self._received:
            handler = before[signal.Signals(received)]
            if callable(handler) and not _is_of_python(handler):
                handler(received, frame)


def _is_of_python(handler: Callable[..., object]) -> bool:
    """True if the handler only makes a KeyboardInterrupt: the default, or that of asyncio."""
    made_of = getattr(handler, "func", handler)
    return made_of is signal.default_int_handler or made_of.__module__ == "asyncio.runners"


async def serve(
    options: NodeOptions | None = None,
    *,
    host: str = "127.0.0.1",
    port: int = 8645,
    listen: Listen | Iterable[str] | None = None,
    relay_peers: Sequence[str] = (),
    service_nodes: Mapping[ServiceKind, str] | None = None,
    started: Callable[[str], None] | None = None,
    listening: Callable[[tuple[str, ...]], None] | None = None,
    bound: Iterable[socket.socket] = (),
) -> None:
    """Run a node and serve it until SIGINT or SIGTERM. The server needs asyncio, because uvicorn
    does.

    After the node ends, the signal goes to the handler that the program had installed before.
    Inside another server, such as uvicorn with your application, a signal ends both servers.

    Args:
        options: see `NodeOptions`.
        host: address to listen at.
        port: 0 takes a free one.
        listen: where to serve libp2p peers, see `EmbeddedNode`.
        relay_peers: peers to stay connected to for relay, see `EmbeddedNode`.
        service_nodes: the only peer to ask for a service, see `EmbeddedNode`.
        started: called with the URL once the node answers.
        listening: called with the multiaddresses for libp2p peers before that.
        bound: sockets that listen already; one at `host` and `port` is used, and closed in the end.

    Raises:
        CannotListen: a port is taken, or an address is not of this machine.
        ArchiveError: the store cannot be opened.
        BadAddress: an address of `service_nodes` cannot be read.
    """
    with _listen(host, port, bound) as listener:
        embedded = EmbeddedNode(
            options, listen=listen, relay_peers=relay_peers, service_nodes=service_nodes
        )
        async with embedded as node:
            if listening is not None and node.libp2p_addresses:
                listening(node.libp2p_addresses)
            await _serve(node, listener, _url(host, listener), started, node.app)


async def serve_node(
    node: EmbeddedNode,
    *,
    host: str = "127.0.0.1",
    port: int = 8645,
    app: App | None = None,
    started: Callable[[str], None] | None = None,
) -> None:
    """Serve a running node until SIGINT, SIGTERM (see `serve`) or cancellation.

    Args:
        node: runs, and goes on running afterwards.
        host: address to listen at.
        port: 0 takes a free one.
        app: serve this in place of `node.app`, which it calls, such as a middleware of yours.
        started: called with the URL once the node answers.

    Raises:
        CannotListen: as `serve`.
    """
    with _listen(host, port) as listener:
        await _serve(node, listener, _url(host, listener), started, app or node.app)


async def _serve(
    node: EmbeddedNode,
    listener: socket.socket,
    url: str,
    started: Callable[[str], None] | None,
    app: App,
) -> None:
    config = uvicorn.Config(
        app,
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=False,
        timeout_graceful_shutdown=GRACE_S,
        http=HttpConnections(node.options).protocol,  # type: ignore[arg-type]
        ws="none",  # the REST API has none; uvicorn would offer it where `websockets` is installed
        backlog=BACKLOG,
    )

    def up() -> None:
        if started is not None:
            started(url)

    server = _Server(config, up)
    try:
        await server.serve(sockets=[listener])
    except anyio.get_cancelled_exc_class():
        if server.started:
            with anyio.CancelScope(shield=True):
                await server.shutdown([listener])
        raise


def _url(host: str, listener: socket.socket) -> str:
    name = f"[{host}]" if ":" in host else host
    return f"http://{name}:{listener.getsockname()[1]}"


def _listen(host: str, port: int, bound: Iterable[socket.socket] = ()) -> socket.socket:
    """Raises `CannotListen`."""
    try:
        return already_bound(bound, host, port) or listening_socket(host, port)
    except socket.gaierror as error:
        raise CannotListen(f"cannot listen at {host!r}: {error.strerror}") from error
    except OSError as error:
        raise CannotListen(
            f"cannot listen at {host}:{port}: {error.strerror}; choose another with --port"
        ) from error
