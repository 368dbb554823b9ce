"""Small web server for one person on this machine.

The server listens only on 127.0.0.1. All paths of the server begin with a secret, so that other
users of the machine cannot find the page. Requests for another host name are refused, as a
protection against DNS rebinding. No answer allows requests from other origins. The page is static,
and loads nothing from elsewhere.
"""

import json
import secrets
from contextlib import suppress
from importlib.resources import files
from typing import Final, NamedTuple
from urllib.parse import parse_qs, urlsplit

import anyio
from anyio.abc import SocketStream, TaskStatus

from reliable_channel.health_server import serve_requests

from ..explaining import explain
from ..model import View
from .rows import Rows

HOST: Final = "127.0.0.1"
REQUEST_BYTES: Final = 8_192
REQUEST_S: Final = 5.0
SEND_S: Final = 30.0
"""Time after which a page that reads nothing is disconnected. A disconnected page connects again by
itself."""
AT_A_TIME: Final = 64
PAGES: Final = 16
"""Maximum number of open pages."""
EVERY_S: Final = 0.25
PAGE: Final = files(__package__) / "page"
FILES: Final = {
    "": ("index.html", "text/html; charset=utf-8"),
    "watch.js": ("watch.js", "text/javascript; charset=utf-8"),
    "picture.js": ("picture.js", "text/javascript; charset=utf-8"),
    "watch.css": ("watch.css", "text/css; charset=utf-8"),
}
_HEADERS: Final = (
    "Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'\r\n"
    "X-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer\r\n"
    "Cross-Origin-Resource-Policy: same-origin\r\nCache-Control: no-store\r\n"
    "Connection: close\r\n"
)
_REASONS: Final = {
    200: "OK",
    400: "Bad Request",
    403: "Forbidden",
    404: "Not Found",
    405: "Method Not Allowed",
    503: "Service Unavailable",
}


class Request(NamedTuple):
    """Request of a browser, of limited length."""

    method: str
    path: str
    query: str
    hosts: tuple[str, ...]


class WatchServer:
    """Serves the web page of a view while `run` runs."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._secret = secrets.token_urlsafe(16)
        self._pages: set[Rows] = set()
        self._port = 0

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self._port}/{self._secret}/"

    async def run(
        self, port: int = 0, *, task_status: TaskStatus[str] = anyio.TASK_STATUS_IGNORED
    ) -> None:
        """Serve the page until cancelled. `tasks.start` returns the URL of the page. With port 0,
        the server takes a free port.

        Raises:
            OSError: the port cannot be used.
        """
        slots = anyio.CapacityLimiter(AT_A_TIME)

        async def answer(stream: SocketStream) -> None:
            async with stream:
                with suppress(
                    anyio.WouldBlock, anyio.BrokenResourceError, anyio.ClosedResourceError
                ):
                    slots.acquire_nowait()
                    try:
                        await self._answer(stream)
                    finally:
                        slots.release()

        listener = await anyio.create_tcp_listener(local_host=HOST, local_port=port)
        async with listener, anyio.create_task_group() as tasks:
            self._port = listener.extra(anyio.abc.SocketAttribute.local_port)
            tasks.start_soon(self._spread)
            task_status.started(self.url)
            await serve_requests(listener, answer)

    async def _spread(self) -> None:
        """Note for every page what changed."""
        view = self._view
        while True:
            for page in self._pages:
                page.changed(view.changed_messages, view.changed_gaps)
            view.changed_messages.clear()
            view.changed_gaps.clear()
            await anyio.sleep(EVERY_S)

    async def _answer(self, stream: SocketStream) -> None:
        head = None
        with anyio.move_on_after(REQUEST_S):
            head = await _head(stream)
        if head is None:
            return
        request = _request(head)
        if request is None:
            status, kind, body = 400, "text/plain; charset=utf-8", b"this is no request"
        else:
            status, kind, body = self._found(request)
        if kind == "text/event-stream":
            await self._stream(stream)
            return
        answer = f"HTTP/1.1 {status} {_REASONS[status]}\r\nContent-Type: {kind}\r\n"
        answer += f"Content-Length: {len(body)}\r\n{_HEADERS}\r\n"
        is_head = request is not None and request.method == "HEAD"
        with anyio.move_on_after(SEND_S):
            await stream.send(answer.encode() + (b"" if is_head else body))

    def _found(self, request: Request) -> tuple[int, str, bytes]:
        plain = "text/plain; charset=utf-8"
        root = f"/{self._secret}/"
        names = {f"{HOST}:{self._port}", f"localhost:{self._port}"}
        if len(request.hosts) != 1 or request.hosts[0] not in names:
            return 403, plain, b"this page is for this machine alone"
        if request.method not in ("GET", "HEAD"):
            return 405, plain, b"only GET and HEAD"
        if not secrets.compare_digest(request.path[: len(root)].encode(), root.encode()):
            return 404, plain, b"open the address that the command printed"
        name = request.path[len(root) :]
        if name in FILES:
            file, kind = FILES[name]
            return 200, kind, (PAGE / file).read_bytes()
        if name == "message":
            return self._message(request.query)
        if name == "events" and request.method == "GET":
            if len(self._pages) >= PAGES:
                return 503, plain, b"too many pages are open"
            return 200, "text/event-stream", b""
        return 404, plain, b"not found"

    def _message(self, query: str) -> tuple[int, str, bytes]:
        number = parse_qs(query).get("number", [""])[0]
        message = self._view.messages.get(int(number) if number.isdecimal() else -1)
        if message is None:
            return 404, "application/json", b"{}"
        values = explain(self._view, message).to_dict()
        return 200, "application/json", json.dumps(values).encode()

    async def _stream(self, stream: SocketStream) -> None:
        """Send the full view, then each change."""
        rows = Rows(self._view)
        self._pages.add(rows)
        try:
            head = f"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n{_HEADERS}\r\n"
            await _send(stream, head)
            while True:
                piece = rows.take()
                # JSON has no newline, so that a piece is one line. A comment finds out who is gone.
                await _send(stream, ": \n\n" if piece is None else f"data: {piece}\n\n")
                await anyio.sleep(EVERY_S if piece is None or '"more":false' in piece else 0)
        finally:
            self._pages.discard(rows)


async def _send(stream: SocketStream, text: str) -> None:
    """Send, or give up on a page that does not read.

    Raises:
        anyio.BrokenResourceError: the page is gone.
    """
    try:
        with anyio.fail_after(SEND_S):
            await stream.send(text.encode())
    except TimeoutError as error:
        raise anyio.BrokenResourceError from error


async def _head(stream: SocketStream) -> bytes | None:
    """The head of a request; None where it is too long, or none."""
    head = b""
    while b"\r\n\r\n" not in head:
        if len(head) > REQUEST_BYTES:
            return None
        try:
            head += await stream.receive()
        except anyio.EndOfStream:
            return None
    return head.partition(b"\r\n\r\n")[0]


def _request(head: bytes) -> Request | None:
    """Read the head of a request; None if its target is no URL."""
    first, *lines = head.decode("latin-1").split("\r\n")
    method, _, rest = first.partition(" ")
    try:
        target = urlsplit(rest.partition(" ")[0])
    except ValueError:
        return None
    named = (line.partition(":") for line in lines)
    hosts = tuple(value.strip() for name, _, value in named if name.strip().lower() == "host")
    return Request(method, target.path, target.query, hosts)
