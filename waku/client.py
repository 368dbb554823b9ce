"""`WakuClient`, a client for the REST API of a Waku node, for asyncio and trio.

    async with WakuClient("http://127.0.0.1:8645") as node:
        await node.relay_subscribe(["/waku/2/rs/1/0"])
        await node.relay_publish("/waku/2/rs/1/0", WakuMessage(b"hello", "/app/1/chat/proto"))
        for message in await node.relay_messages("/waku/2/rs/1/0"):
            ...

The client works with nwaku and go-waku, and hides their differences. The modules in `waku._api`
describe the differences, protocol by protocol. Every failure is a `waku.errors.WakuError`.
"""

from __future__ import annotations

import logging
import ssl
from base64 import b64encode
from collections.abc import Callable, Mapping
from functools import partial
from types import TracebackType
from typing import Final, Self
from uuid import uuid4

import httpx

from waku._api.admin import AdminApi
from waku._api.filter import FilterApi
from waku._api.lightpush import LightPushApi
from waku._api.messaging import MessagingApi
from waku._api.node import NodeApi
from waku._api.relay import RelayApi
from waku._api.store import StoreApi
from waku._api.store_v1 import StoreV1Api
from waku._asgi import App
from waku._failures import MAX_MESSAGE_BYTES
from waku._session import KEEPALIVE_S, RetryPolicy, Session
from waku._userinfo import masked_address
from waku.models import Rejected

__all__ = ["CLIENT_ID_HEADER", "RetryPolicy", "WakuClient"]

CLIENT_ID_HEADER: Final = "Waku-Client-Id"
"""HTTP header that names the message cache to read on the embedded node. Other nodes ignore the
header."""

USUAL_HEADERS: Final = {"Accept": "*/*", "Connection": "keep-alive", "User-Agent": "py-waku"}
DEFAULT_RETRIES: Final = RetryPolicy()
MAX_ANSWER_BYTES: Final = 64 * 1024 * 1024
"""Maximum size of an answer (bytes). A page of 100 messages of 150 KiB has 20 MB in base64. A relay
cache of go-waku can be larger."""
MESSAGES_PER_ANSWER: Final = 150
"""Number of messages in a Store page with messages of the maximum size."""

_log = logging.getLogger("waku")


class WakuClient(
    RelayApi, LightPushApi, FilterApi, StoreApi, StoreV1Api, MessagingApi, NodeApi, AdminApi
):
    """Client for the REST API of one node.

    Use the client in `async with`, or call `aclose()` at the end. Several tasks may call the client
    at the same time. A call that publishes, filters or queries Store waits while too much is on its
    way to the node.

    Args:
        base_url: where the node serves REST, such as `http://127.0.0.1:8645`. A path is kept. A
            token before the host, `http://:TOKEN@127.0.0.1:8645`, goes into a header.
        timeout_s: for connecting and for each read. A whole request gets twice that.
            Waiting for a turn does not count.
        retries: how calls that are safe to repeat are repeated. None never repeats.
        app: an ASGI application that answers in this process, such as `app` of an `EmbeddedNode`.
            None sends requests to `base_url`, without the environment's proxy settings.
        ssl_context: certificates that are trusted for `https`. None trusts those of the system.
        headers: sent with every request, for a reverse proxy that wants a token.
        max_answer_bytes: a longer answer is refused. None is 64 MiB, or what a page of Store may
            take where `max_message_bytes` needs more.
        max_message_bytes: the network's limit of an encoded message (`Network.max_message_bytes`).
            A node's refusal without a text is then understood as one of size.
        client_id: what `Waku-Client-Id` says. Random by default.
        on_rejected: called with each item of a message list that could not be read. Logged by
            default. It must not raise: the rest of the list would be lost.

    Raises:
        ValueError: `base_url` is not an http or https address, or a limit is not positive.
    """

    def __init__(
        self,
        base_url: str,
        *,
        timeout_s: float = 5.0,
        retries: RetryPolicy | None = DEFAULT_RETRIES,
        app: App | None = None,
        ssl_context: ssl.SSLContext | None = None,
        headers: Mapping[str, str] | None = None,
        max_answer_bytes: int | None = None,
        max_message_bytes: int = MAX_MESSAGE_BYTES,
        client_id: str | None = None,
        on_rejected: Callable[[Rejected], None] | None = None,
    ) -> None:
        if max_answer_bytes is None:
            max_answer_bytes = max(MAX_ANSWER_BYTES, MESSAGES_PER_ANSWER * max_message_bytes)
        if timeout_s <= 0 or max_answer_bytes <= 0 or max_message_bytes <= 0:
            given = (timeout_s, max_answer_bytes, max_message_bytes)
            raise ValueError(
                "`timeout_s`, `max_answer_bytes` and `max_message_bytes` must be positive "
                f"(got {given})"
            )
        client_id = client_id or uuid4().hex
        url = _checked(base_url)
        sent = httpx.Headers({"Host": url.netloc.decode(), **USUAL_HEADERS})
        sent.update(headers)
        sent.update(_authorization(url))
        sent["Accept-Encoding"] = "identity"  # base64 of encrypted bytes hardly shrinks
        sent[CLIENT_ID_HEADER] = client_id
        session = Session(
            _transports(url, app, ssl_context),
            url.copy_with(userinfo=b""),
            sent,
            timeout_s=timeout_s,
            retries=retries,
            max_answer_bytes=max_answer_bytes,
            max_message_bytes=max_message_bytes,
        )
        super().__init__(session, client_id=client_id, on_rejected=on_rejected or _log_rejected)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the connections to the node. Later calls raise `ClientClosed`, but a second
        `aclose` does nothing."""
        await self._session.aclose()


def _checked(base_url: str) -> httpx.URL:
    address = masked_address(base_url)
    try:
        url = httpx.URL(base_url)
    except httpx.InvalidURL as error:
        # What httpx takes for the port may be the token.
        reason = str(error) if address == base_url else "percent-encode what stands before the @"
        raise ValueError(f"`base_url` {address!r} is invalid: {reason}") from None
    if url.scheme not in ("http", "https") or not url.host:
        raise ValueError(f"`base_url` must be an http or https address (got {address!r})")
    return url


def _authorization(url: httpx.URL) -> dict[str, str]:
    if not url.userinfo:
        return {}
    token = b64encode(f"{url.username}:{url.password}".encode()).decode()
    return {"Authorization": f"Basic {token}"}


def _transports(
    url: httpx.URL, app: App | None, ssl_context: ssl.SSLContext | None
) -> Callable[[], httpx.AsyncBaseTransport]:
    if app is not None:
        return partial(httpx.ASGITransport, app)
    trusted = ssl_context or _trusted(url)
    limits = httpx.Limits(keepalive_expiry=KEEPALIVE_S)
    return partial(httpx.AsyncHTTPTransport, verify=trusted, trust_env=False, limits=limits)


def _trusted(url: httpx.URL) -> ssl.SSLContext:
    """Return what trusts the system's certificates, as for `wss`; httpx would take certifi's."""
    if url.scheme == "https":
        return ssl.create_default_context()
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # trusts nobody, and costs no reading of files


def _log_rejected(rejected: Rejected) -> None:
    _log.warning("%s: one item left out: %s", rejected.call, rejected.reason)
