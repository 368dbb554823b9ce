"""HTTP server for liveness and readiness probes of systemd, Docker and Kubernetes.

    GET /livez    200 while all channels run, else 503: start the program again
    GET /readyz   200 while all can send and receive, else 503: wait
    GET /health   both, with the health of every channel

The body of an answer is JSON. The server needs no package besides AnyIO. The server accepts
requests of up to 8 KiB within 5 s, and 64 requests at a time. If there are more connections, the
connection that was silent for longest is closed. If the function of a page raises an error, the
server answers 500. If the process has no free file descriptors, the server accepts connections
again later.

The server refuses (403) a `Host` with a dot, unless it is an address or in `allow_hosts`. Without
this check, a web page could make its own name point to this server (DNS rebinding).
"""

import json
import logging
import re
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any, Final, Protocol, cast

import anyio
from anyio.abc import Listener, SocketStream
from anyio.streams.stapled import MultiListener

from .health import ChannelHealth
from .transport.addresses import masked_text

if TYPE_CHECKING:
    from .hub import ChannelHub

__all__ = ["HasHealth", "health_of", "serve_health", "serve_requests"]

LOGGER: Final = logging.getLogger(__name__)
REQUEST_BYTES: Final = 8_192
REQUEST_S: Final = 5.0
PATHS: Final = ("/livez", "/readyz", "/health")
AT_A_TIME: Final = 64
ACCEPT_AGAIN_S: Final = 0.2
"""Pause (s) after a connection could not be accepted."""
_HOST: Final = re.compile(r"(?im)^host:(.*)$")
_REASONS: Final = {
    200: "OK",
    403: "Forbidden",
    404: "Not Found",
    405: "Method Not Allowed",
    500: "Internal Server Error",
    503: "Service Unavailable",
}


class HasHealth(Protocol):
    """Object with the method `health` of `ReliableChannel`."""

    def health(self) -> ChannelHealth:
        """Return the health of the channel, with reasons."""
        ...


async def serve_health(
    *sources: "HasHealth | ChannelHub",
    host: str = "127.0.0.1",
    port: int = 8080,
    pages: Mapping[str, Callable[[], str]] = {},
    allow_hosts: Collection[str] = (),
    task_status: anyio.abc.TaskStatus[int] = anyio.TASK_STATUS_IGNORED,
) -> None:
    """Serve the health of channels, or of a hub's open channels, until cancelled.

        async with ReliableChannel(…) as channel, anyio.create_task_group() as tasks:
            await tasks.start(partial(serve_health, channel, port=8080))

    `tasks.start` returns the port. With `port=0`, the server takes a free port. `pages` are further
    paths, each with a function that returns the text to serve. `allow_hosts` are names with a dot
    by which probes call this server, such as `bot.example`.

    Raises:
        OSError: the port cannot be used.
    """
    waiting: dict[anyio.CancelScope, None] = {}

    async def answer(stream: SocketStream) -> None:
        if len(waiting) >= AT_A_TIME:
            silent = next(iter(waiting))
            del waiting[silent]
            silent.cancel()
        async with stream:
            with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
                with anyio.move_on_after(REQUEST_S) as scope:
                    waiting[scope] = None
                    try:
                        head = await _head(stream)
                    finally:
                        waiting.pop(scope, None)
                    await stream.send(_answer(head, sources, pages, allow_hosts))

    listener = await anyio.create_tcp_listener(local_host=host, local_port=port)
    async with listener:
        task_status.started(listener.extra(anyio.abc.SocketAttribute.local_port))
        await serve_requests(listener, answer)


async def serve_requests(
    listener: MultiListener[SocketStream], answer: Callable[[SocketStream], Awaitable[None]]
) -> None:
    """Answer requests on all connections until cancelled.

    A fault of one connection does not end the server, nor does a failed accept. After a failed
    accept, the server accepts again after a pause.
    """

    async def answer_one(stream: SocketStream) -> None:
        try:
            await answer(stream)
        except Exception:
            LOGGER.exception("a request was not answered")

    async def accept(one: Listener[SocketStream]) -> None:
        accepts = True
        while True:
            try:
                stream = await one.accept()  # type: ignore[attr-defined]
            except (OSError, anyio.BrokenResourceError) as error:  # the latter on trio
                if accepts:
                    LOGGER.warning("no connection can be accepted: %s", error.__cause__ or error)
                accepts = False
                await anyio.sleep(ACCEPT_AGAIN_S)
            else:
                accepts = True
                tasks.start_soon(answer_one, stream)

    async with anyio.create_task_group() as tasks:
        for one in listener.listeners:
            tasks.start_soon(accept, one)


def health_of(sources: Iterable["HasHealth | ChannelHub"]) -> dict[str, Any]:
    """Return the health of several channels as plain values for JSON."""
    found = [one.health() for source in sources for one in _channels(source)]
    return {
        "live": all(one.live for one in found),
        "ready": all(one.ready for one in found),
        "channels": [one.as_dict() for one in found],
    }


def _channels(source: "HasHealth | ChannelHub") -> Iterator[HasHealth]:
    hub = cast("ChannelHub", source)
    yield from (cast("HasHealth", source),) if hasattr(source, "health") else hub.channels


async def _head(stream: SocketStream) -> bytes:
    """Return the head of a request, once it has arrived; empty if it is too long."""
    head = b""
    while b"\r\n\r\n" not in head:
        if len(head) > REQUEST_BYTES:
            return b""
        try:
            head += await stream.receive()
        except anyio.EndOfStream:
            break
    return head


def _is_foreign(host: str, allow_hosts: Collection[str]) -> bool:
    """Return True if a `Host` may be the name of a page that made it point here."""
    name = host.strip().lower()
    if name.startswith("["):
        return False  # an IPv6 address
    name = name.partition(":")[0].removesuffix(".")
    if "." not in name or name.endswith(".localhost") or name in allow_hosts:
        return False
    try:
        ip_address(name)
    except ValueError:
        return True
    return False


def _answer(
    request: bytes,
    sources: Iterable["HasHealth | ChannelHub"],
    pages: Mapping[str, Callable[[], str]],
    allow_hosts: Collection[str],
) -> bytes:
    head = request.decode("latin-1")
    method, _, rest = head.partition("\r\n")[0].partition(" ")
    path = rest.split(" ")[0].partition("?")[0]
    known = [*PATHS, *pages]
    kind, status, body = "application/json", 200, ""
    foreign = [host for host in _HOST.findall(head) if _is_foreign(host, allow_hosts)]
    if foreign:
        error = f"Host {foreign[0]!r} is not allowed; name it in allow_hosts"
        status, body = 403, json.dumps({"error": error})
    elif path not in known:
        status, body = 404, json.dumps({"error": f"GET {', '.join(known)}"})
    elif method not in ("GET", "HEAD"):
        status, body = 405, json.dumps({"error": "only GET and HEAD"})
    else:
        try:
            if path in pages:
                kind, body = "text/plain; version=0.0.4; charset=utf-8", pages[path]()
            else:
                health = health_of(sources)
                works = health["live"] if path == "/livez" else health["ready"]
                status, body = 200 if works else 503, json.dumps(health)
        except Exception as error:
            LOGGER.exception("%s cannot be served", path)
            status, body = 500, json.dumps({"error": f"{path}: {type(error).__name__}"})
    text = masked_text(body).encode()
    answer = (
        f"HTTP/1.1 {status} {_REASONS[status]}\r\n"
        f"Content-Type: {kind}\r\nContent-Length: {len(text)}\r\n"
        "Cache-Control: no-store\r\nConnection: close\r\n\r\n"
    )
    return answer.encode() + (b"" if method == "HEAD" else text)
