"""One conversation with one node: sending, the limits of an answer, and repeating.

The API classes in `waku._api` say what to send and how to read the answer; everything that can go
wrong in between is here and leaves as a `WakuError`.
"""

from __future__ import annotations

import json
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, TypeVar

import anyio
import anyio.lowlevel
import httpx
from tenacity import (
    AsyncRetrying,
    retry_if_exception,
    stop_after_attempt,
    wait_exponential,
    wait_random,
)

from waku import _failures
from waku._gate import passing
from waku._quiet import Quiet
from waku._request import Answer, Flavour, Repeat, Request
from waku.errors import BadAnswer, BadRequest, ClientClosed, NodeUnreachable, WakuError

__all__ = ["RetryPolicy", "Session"]

T = TypeVar("T")

_log = logging.getLogger("waku")

CLOSE_GRACE_S: Final = 1.0
"""How long closing may hold up a cancelled task: sockets close at once, TLS may say goodbye."""

MAX_CONNECTIONS: Final = 100
"""Requests of a session on their way at a time; further ones wait."""

MAX_IDLE_CONNECTIONS: Final = 20
"""Connections that are kept for the next requests; the one unused longest is closed first."""
KEEPALIVE_S: Final = 3.0
"""How long an idle connection is kept. Servers usually keep one for 5 s, and a request on one that
the server is closing fails."""

URLS: Final = 64
"""Maximum number of parsed URLs of a session; the one used least recently is evicted. A channel
polls the same few paths again and again."""


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often and how soon a call is repeated: exponential with jitter, bounded.

    Raises:
        ValueError: fewer than one attempt, or a negative time.
    """

    attempts: int = 3
    """Requests at most, the first one included."""
    initial_ms: int = 100
    max_ms: int = 2000
    jitter_ms: int = 100
    """Up to this much, at random, is added to each wait so that clients do not march in step."""
    sleep: Callable[[float], Awaitable[None]] = anyio.sleep
    """Waits a number of seconds; tests put their own here."""

    def __post_init__(self) -> None:
        if self.attempts < 1:
            raise ValueError(f"`attempts` must be at least 1 (got {self.attempts})")
        if min(self.initial_ms, self.max_ms, self.jitter_ms) < 0:
            raise ValueError("times must not be negative")


class Connections:
    """Connections to one node, each a transport of httpx.

    A single transport would look at the sockets of all its connections for each request, which
    costs more than the request.

    Args:
        connect: makes a transport, which opens its connection with the first request.
    """

    def __init__(self, connect: Callable[[], httpx.AsyncBaseTransport]) -> None:
        self._connect = connect
        self._all: dict[httpx.AsyncBaseTransport, None] = {}
        self._idle: deque[tuple[httpx.AsyncBaseTransport, float]] = deque()
        """Each since when; the one used last is used first, so that the others may end."""

    def take(self) -> httpx.AsyncBaseTransport:
        """Return a connection that no other request uses. `give_back` must follow."""
        if self._idle:
            return self._idle.pop()[0]
        transport = self._connect()
        self._all[transport] = None
        return transport

    async def give_back(self, transport: httpx.AsyncBaseTransport) -> None:
        """Keep a connection for the next request, and close those that none needed lately."""
        if transport not in self._all:  # closed meanwhile
            return
        now_s = anyio.current_time()
        self._idle.append((transport, now_s))
        # Another request may take the last one while one is being closed.
        while self._idle and (
            len(self._idle) > MAX_IDLE_CONNECTIONS or self._idle[0][1] + KEEPALIVE_S < now_s
        ):
            await self._close(self._idle.popleft()[0])

    async def aclose(self) -> None:
        """Close all connections, also those in use."""
        self._idle.clear()
        while self._all:
            await self._close(next(iter(self._all)))

    async def _close(self, transport: httpx.AsyncBaseTransport) -> None:
        del self._all[transport]
        await transport.aclose()


class Session:
    """Sends requests to one node and hands back what its answers mean.

    Args:
        connect: makes a transport for one connection.
        base_url: where the node serves REST.
        headers: sent with every request; `Host` among them.
    """

    def __init__(
        self,
        connect: Callable[[], httpx.AsyncBaseTransport],
        base_url: httpx.URL,
        headers: httpx.Headers,
        *,
        timeout_s: float,
        retries: RetryPolicy | None,
        max_answer_bytes: int,
        max_message_bytes: int = _failures.MAX_MESSAGE_BYTES,
    ) -> None:
        self._connections = Connections(connect)
        self._base_url = base_url
        self._node = str(base_url).rstrip("/")
        self._headers = headers
        self._json_headers = headers.copy()
        self._json_headers["Content-Type"] = "application/json"
        self._timeout_s = timeout_s
        self._extensions = {"timeout": httpx.Timeout(timeout_s).as_dict()}
        self._retries = retries or RetryPolicy(attempts=1)
        self._max_answer_bytes = max_answer_bytes
        self._max_message_bytes = max_message_bytes
        self._closed = False
        self._slots = anyio.Semaphore(MAX_CONNECTIONS, fast_acquire=True)
        self._url_of = lru_cache(URLS)(self._below_base)
        self.flavour: Flavour | None = None
        """Known once the node was asked (`Api.flavour`)."""
        self.store_flavour: Flavour | None = None
        """Whose Store answers look like this node's; known from the first one."""

    async def call(self, request: Request, read: Callable[[Answer], T]) -> T:
        """Send a request, repeat it as its kind allows, and read the answer.

        `read` raises `ValueError` for an answer that it does not understand.

        Raises:
            WakuError: of the last attempt.
        """
        policy = self._retries

        async def attempt() -> T:
            if request.load is None:
                return _understand(await self._exchange(request), read)
            async with passing(self._node, request.load):
                return _understand(await self._exchange(request), read)

        # Setting up the repetition takes a quarter of the time of a call, and few calls need it.
        try:
            return await attempt()
        except WakuError as error:
            if policy.attempts == 1 or not _may_repeat(request, error):
                raise
            failed = [error]

        async def first_known() -> T:
            if failed:
                raise failed.pop()
            return await attempt()

        retrying = AsyncRetrying(
            sleep=policy.sleep,
            stop=stop_after_attempt(policy.attempts),
            wait=wait_exponential(multiplier=policy.initial_ms / 1000, max=policy.max_ms / 1000)
            + wait_random(0, policy.jitter_ms / 1000),
            retry=retry_if_exception(lambda error: _may_repeat(request, error)),
            reraise=True,
        )
        return await retrying(first_known)

    async def aclose(self) -> None:
        """Close the connections; a second call does nothing."""
        if not self._closed:
            self._closed = True
            with anyio.move_on_after(CLOSE_GRACE_S, shield=True):
                await self._connections.aclose()

    async def _exchange(self, request: Request) -> Answer:
        """Send once and return a 2xx answer."""
        async with self._slots:
            await anyio.lowlevel.checkpoint_if_cancelled()
            if self._closed:
                raise ClientClosed(request.name)
            # httpx counts its timeout for each read anew; this one ends an answer that drips.
            with anyio.move_on_after(2 * self._timeout_s):
                return await self._transfer(request)
        detail = f"no whole answer in {2 * self._timeout_s:g} s"
        raise NodeUnreachable(request.name, detail=detail, timed_out=True)

    async def _transfer(self, request: Request) -> Answer:
        try:
            sent = self._outgoing(request)
            with Quiet():
                transport = self._connections.take()
                try:
                    # A client of httpx on top would cost as much again: cookies, redirects, a log.
                    response = await transport.handle_async_request(sent)
                    body = await self._bounded_body(request, response)
                finally:
                    await self._connections.give_back(transport)
        except (httpx.ConnectError, httpx.ConnectTimeout) as error:
            raise NodeUnreachable(request.name, detail=_describe(error), sent=False) from error
        except httpx.TransportError as error:
            raise _broken_off(request, error) from error
        except httpx.InvalidURL as error:  # a query of more hashes than a URL can hold
            raise BadRequest(request.name, detail=_describe(error)) from error
        _log.debug("%s %s: status %d", request.method, request.path, response.status_code)
        if not response.is_success:
            raise _failures.from_answer(
                request,
                response.status_code,
                body,
                is_page="html" in response.headers.get("content-type", ""),
                max_message_bytes=self._max_message_bytes,
            )
        return Answer(request, response.status_code, body)

    def _below_base(self, path: str) -> httpx.URL:
        return self._base_url.copy_with(
            raw_path=self._base_url.raw_path.rstrip(b"/") + path.encode()
        )

    def _outgoing(self, request: Request) -> httpx.Request:
        url = self._url_of(request.path)
        if request.params:
            url = url.copy_merge_params(request.params)
        content = b"" if request.body is None else json.dumps(request.body).encode()
        sent = httpx.Request(
            request.method,
            url,
            headers=self._json_headers if content else self._headers,
            stream=httpx.ByteStream(content),
            extensions=self._extensions,
        )
        if content or request.method == "POST":
            sent.headers["Content-Length"] = str(len(content))
        return sent

    async def _bounded_body(self, request: Request, response: httpx.Response) -> bytes:
        stream = response.stream
        assert isinstance(stream, httpx.AsyncByteStream)
        chunks: list[bytes] = []
        size_bytes, limit = 0, self._max_answer_bytes
        try:
            # A few compressed bytes could swell to any size, and none were asked for.
            if response.headers.get("content-encoding", "identity") != "identity":
                raise BadAnswer(request.name, status=response.status_code, detail="compressed")
            async for chunk in stream:
                chunks.append(chunk)
                size_bytes += len(chunk)
                if size_bytes > limit:
                    # Ends the iteration from inside: trio resents generators left halfway.
                    await stream.aclose()
        except httpx.TransportError:
            if size_bytes <= limit:
                raise
        finally:
            await stream.aclose()
        if size_bytes > limit:
            detail = f"the answer is longer than {limit} bytes"
            raise BadAnswer(request.name, status=response.status_code, detail=detail)
        return b"".join(chunks)


def _understand(answer: Answer, read: Callable[[Answer], T]) -> T:
    try:
        return read(answer)
    except WakuError:
        raise
    except ValueError as error:
        detail = f"{error} in {answer.text[:200]!r}"
        raise BadAnswer(answer.request.name, status=answer.status, detail=detail) from error


def _may_repeat(request: Request, error: BaseException) -> bool:
    if isinstance(error, NodeUnreachable):
        safe = request.repeat is Repeat.SAFE
        return not error.sent or safe or (request.repeat is Repeat.ANSWERED and not error.timed_out)
    may_pass = isinstance(error, WakuError) and error.retryable
    return may_pass and request.repeat is not Repeat.UNSENT


def _broken_off(request: Request, error: httpx.TransportError) -> WakuError:
    """Distinguish a node that went away from one that does not speak HTTP, and from our own
    mistake."""
    detail = _describe(error)
    if isinstance(error, httpx.LocalProtocolError):  # such as a header with a line break
        return BadRequest(request.name, detail=detail)
    gone = "disconnected" in detail or "closed" in detail
    if isinstance(error, httpx.RemoteProtocolError) and not gone:
        return BadAnswer(request.name, detail=detail)
    timed_out = isinstance(error, httpx.TimeoutException)
    return NodeUnreachable(request.name, detail=detail, timed_out=timed_out)


def _describe(error: Exception) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
