"""One conversation with one node: sending, the limits of an answer, and repeating.

The API classes in `waku._api` say what to send and how to read the answer; everything that can go
wrong in between is here and leaves as a `WakuError`.
"""

from __future__ import annotations

import json
import logging
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

__all__ = ["LIMITS", "RetryPolicy", "Session"]

T = TypeVar("T")

_log = logging.getLogger("waku")

CLOSE_GRACE_S: Final = 1.0
"""How long closing may hold up a cancelled task: sockets close at once, TLS may say goodbye."""

MAX_CONNECTIONS: Final = 100
"""Requests of a session on their way at a time; further ones wait."""

LIMITS: Final = httpx.Limits(max_connections=None, max_keepalive_connections=20)
"""Limits of the HTTP client, which waits for nothing: the session does (`MAX_CONNECTIONS`)."""

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


class Session:
    """Sends requests to one node and hands back what its answers mean."""

    def __init__(
        self,
        http: httpx.AsyncClient,
        *,
        timeout_s: float,
        retries: RetryPolicy | None,
        max_answer_bytes: int,
        max_message_bytes: int = _failures.MAX_MESSAGE_BYTES,
    ) -> None:
        self._http = http
        self._node = str(http.base_url)
        self._timeout_s = timeout_s
        self._retries = retries or RetryPolicy(attempts=1)
        self._max_answer_bytes = max_answer_bytes
        self._max_message_bytes = max_message_bytes
        self._closed = False
        self._slots = anyio.Semaphore(MAX_CONNECTIONS, fast_acquire=True)
        self._url_of = lru_cache(URLS)(lambda path: http.build_request("GET", path).url)
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
                await self._http.aclose()

    async def _exchange(self, request: Request) -> Answer:
        """Send once and return a 2xx answer."""
        if self._closed:
            raise ClientClosed(request.name)
        # A call that is cancelled while it waits in httpx's pool would leave a slot taken there.
        async with self._slots:
            await anyio.lowlevel.checkpoint_if_cancelled()
            # httpx counts its timeout for each read anew; this one ends an answer that drips.
            with anyio.move_on_after(2 * self._timeout_s):
                return await self._transfer(request)
        detail = f"no whole answer in {2 * self._timeout_s:g} s"
        raise NodeUnreachable(request.name, detail=detail, timed_out=True)

    async def _transfer(self, request: Request) -> Answer:
        content = None if request.body is None else json.dumps(request.body).encode()
        headers = {} if content is None else {"Content-Type": "application/json"}
        try:
            with Quiet():
                async with self._http.stream(
                    request.method,
                    self._url_of(request.path),
                    params=request.params or None,
                    content=content,
                    headers=headers,
                ) as response:
                    body = await self._bounded_body(request, response)
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

    async def _bounded_body(self, request: Request, response: httpx.Response) -> bytes:
        # A few compressed bytes could swell to any size, and none were asked for.
        if response.headers.get("content-encoding", "identity") != "identity":
            raise BadAnswer(request.name, status=response.status_code, detail="compressed")
        chunks: list[bytes] = []
        size_bytes, limit = 0, self._max_answer_bytes
        try:
            async for chunk in response.aiter_bytes():
                chunks.append(chunk)
                size_bytes += len(chunk)
                if size_bytes > limit:
                    # Ends the iteration from inside: trio resents generators left halfway.
                    await response.aclose()
        except httpx.TransportError:
            if size_bytes <= limit:
                raise
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
