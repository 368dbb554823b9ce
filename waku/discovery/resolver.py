"""DNS queries for texts, by the system's resolver or by HTTPS (RFC 8484)."""

from __future__ import annotations

import ssl
from functools import cached_property
from typing import Final, Protocol

import anyio
import dns.asyncbackend
import dns.asyncresolver
import dns.exception
import dns.message
import dns.rdatatype
import dns.rrset
import httpx

from waku._asgi import App
from waku.errors import NodeUnreachable, shorten

from .dns_tree import TreeWalk

__all__ = ["HttpsResolver", "LookupFailed", "Resolver", "SystemResolver", "read_tree", "texts_in"]

LOOKUP_S: Final = 5.0
AT_ONCE: Final = 8
"""Maximum number of DNS queries at a time. Resolvers in home routers handle only few queries at a
time."""
MAX_ANSWER_BYTES: Final = 65_535


class LookupFailed(Exception):
    """The DNS does not answer, or has no texts under the name."""


class Resolver(Protocol):
    """Source of the texts (TXT records) in the DNS."""

    async def texts(self, name: str) -> list[str]:
        """Return the TXT records under a name.

        Raises:
            LookupFailed: the name has no records, or no resolver answers.
        """


class SystemResolver:
    """Resolver that the operating system is configured to use."""

    async def texts(self, name: str) -> list[str]:
        """Return the TXT records under a name, as `Resolver.texts` describes."""
        try:
            # Its default backend is that of the first event loop of the process.
            backend = dns.asyncbackend.get_backend(dns.asyncbackend.sniff())
            resolver = dns.asyncresolver.Resolver()
            answer = await resolver.resolve(f"{name}.", "TXT", lifetime=LOOKUP_S, backend=backend)
        except (dns.exception.DNSException, OSError) as error:
            raise LookupFailed(shorten(str(error) or type(error).__name__)) from error
        return _texts(answer.rrset)


class HttpsResolver:
    """Resolver that is reached by HTTPS. The operator of the resolver can read every name that you
    query."""

    def __init__(
        self,
        url: str,
        *,
        app: App | None = None,
    ) -> None:
        """Args:
        url: of the service, such as `https://cloudflare-dns.com/dns-query`, which js-waku asks.
        app: an ASGI application that answers in its place, for tests. None asks the service,
            without the environment's proxy settings, and trusts the system's certificates.
        """
        self._url = url
        self._transport = None if app is None else httpx.ASGITransport(app=app)

    async def texts(self, name: str) -> list[str]:
        """Return the TXT records under a name, as `Resolver.texts` describes."""
        query = dns.message.make_query(f"{name}.", "TXT", id=0)  # RFC 8484: 0, for caches
        try:
            wire = await self._post(query.to_wire())
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise LookupFailed(shorten(str(error) or type(error).__name__)) from error
        return texts_in(wire)

    @cached_property
    def _trusted(self) -> ssl.SSLContext:
        return ssl.create_default_context()

    async def _post(self, question: bytes) -> bytes:
        kind = "application/dns-message"
        headers = {"accept": kind, "content-type": kind}
        received = b""
        client = httpx.AsyncClient(
            transport=self._transport, verify=self._trusted, timeout=LOOKUP_S, trust_env=False
        )
        async with (
            client,
            client.stream("POST", self._url, content=question, headers=headers) as response,
        ):
            response.raise_for_status()
            async for chunk in response.aiter_bytes():
                received += chunk
                if len(received) > MAX_ANSWER_BYTES:
                    # Ends the iteration from inside: trio resents generators left halfway.
                    await response.aclose()
        if len(received) > MAX_ANSWER_BYTES:
            raise LookupFailed(f"the answer has more than {MAX_ANSWER_BYTES} bytes")
        return received


async def read_tree(url: str, resolver: Resolver) -> TreeWalk:
    """Read all node records of a DNS tree.

    Raises:
        InvalidInput: the URL is not a tree's.
        NodeUnreachable: no node was found; the message names the first reason.
    """
    walk = TreeWalk(url)
    limiter = anyio.CapacityLimiter(AT_ONCE)

    async def look_up(name: str) -> None:
        async with limiter:
            try:
                texts = await resolver.texts(name)
            except LookupFailed as error:
                walk.fail(name, str(error))
            else:
                walk.receive(name, texts)
        start_all()

    def start_all() -> None:
        while (name := walk.next_name()) is not None:
            tasks.start_soon(look_up, name)

    async with anyio.create_task_group() as tasks:
        start_all()
    if not walk.records:
        reason = walk.problems[0] if walk.problems else "it names no node"
        raise NodeUnreachable("read_tree", detail=f"{url}: {reason}", sent=False)
    return walk


def texts_in(wire: bytes) -> list[str]:
    """Return the texts of the TXT records in a DNS answer in binary form.

    Raises:
        LookupFailed: it has none, or is no answer.
    """
    try:
        message = dns.message.from_wire(wire)
        if not isinstance(message, dns.message.QueryMessage):
            raise LookupFailed("the answer of the DNS does not belong to a question")
        answer = message.resolve_chaining().answer
    except dns.exception.DNSException as error:
        raise LookupFailed(shorten(str(error) or type(error).__name__)) from error
    return _texts(answer)


def _texts(answer: dns.rrset.RRset | None) -> list[str]:
    """A TXT record is a row of strings of at most 255 bytes, which belong together."""
    if answer is None or answer.rdtype != dns.rdatatype.TXT:
        raise LookupFailed("the answer of the DNS has no TXT record")
    return [b"".join(item.strings).decode("ascii", "replace") for item in answer]
