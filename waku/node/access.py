"""Access rules of the node against requests from foreign web pages, and calls without its token.

A browser lets any page send requests to this machine. The browser names the page in `Origin` or
`Sec-Fetch-Site`. If a page made its own host name point to this machine (DNS rebinding), `Host` has
that name. Other programs send no `Origin`, no `Sec-Fetch-Site` and an honest `Host`, so the rules
allow them.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import socket
from collections.abc import Mapping
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from waku.client import CLIENT_ID_HEADER
from waku.node.http import HTML, OK, Response

if TYPE_CHECKING:
    from waku.node.options import NodeOptions

__all__ = ["Access"]

Headers: TypeAlias = Mapping[bytes, bytes]
Address: TypeAlias = IPv4Address | IPv6Address

ANY: Final = "*"
FOREIGN_SITES: Final = (b"cross-site", b"same-site")
"""Values of the header `Sec-Fetch-Site` for a page of another origin. A GET request for an image
has no `Origin`."""

_BAD_ORIGIN: Final = Response(403, b"Origin not allowed", HTML)
"""nwaku's answer, which it gives only where origins are configured."""


class Access:
    """Access decision by the headers of a request, and the headers that tell the decision to
    browsers."""

    def __init__(self, options: NodeOptions) -> None:
        self._any_origin = ANY in options.allow_origins
        self._origins = frozenset(origin.lower() for origin in options.allow_origins)
        self._hosts = frozenset(host.lower() for host in options.allow_hosts)
        self._token = None if options.token is None else options.token.encode()

    def refusal(self, method: str, server: Any, headers: Headers) -> Response | None:
        """Return the answer to a refused request, or None if the request is allowed.

        Args:
            method: of the request.
            server: host and port at which it arrived, as ASGI has them.
            headers: with names in lower case.
        """
        host = headers.get(b"host", b"").decode("latin-1").lower()
        if host and not self._is_ours(_without_port(host), server):
            name = _without_port(host)
            return Response.text(
                403,
                f"Host {name!r} is not a name of this node. If it should be, start the node with"
                f" --allow-host {name} (NodeOptions.allow_hosts)",
            )
        if not self._allows_page(headers, host):
            return self._bad_origin(headers)
        if method == "OPTIONS" and b"access-control-request-method" in headers and self._origins:
            return OK  # a browser asks without the token whether it may ask with it
        if self._token is not None and not self._has_token(headers):
            return Response.text(
                401,
                "This node wants its token: send the header Authorization: Bearer <token>, or"
                " write its address as http://:<token>@host:port",
            )
        return None

    def answer_headers(self, method: str, headers: Headers) -> list[tuple[bytes, bytes]]:
        """Return the response headers (CORS) that let a page of an allowed origin read the
        answer."""
        origin = headers.get(b"origin")
        if origin is None or not self._origins or not self._allows_origin(origin, b""):
            return []
        allowed = [
            (b"access-control-allow-origin", origin),
            (b"access-control-allow-headers", b"Content-Type"),
            (b"vary", b"Origin"),
        ]
        if method == "OPTIONS" and b"access-control-request-method" in headers:
            # DIVERGES: nwaku's answer to a preflight allows neither of our headers, nor DELETE.
            names = f"Content-Type, Authorization, {CLIENT_ID_HEADER}"
            allowed[1] = (b"access-control-allow-headers", names.encode())
            allowed.append((b"access-control-allow-methods", b"GET, POST, PUT, DELETE"))
        return allowed

    def _allows_page(self, headers: Headers, host: str) -> bool:
        if self._any_origin:
            return True
        origin = headers.get(b"origin")
        if origin is None:
            return headers.get(b"sec-fetch-site") not in FOREIGN_SITES
        return self._allows_origin(origin, host.encode("latin-1"))

    def _allows_origin(self, origin: bytes, host: bytes) -> bool:
        """Return True if a page may call: one that is allowed, or the node's own."""
        _, _, where = origin.lower().partition(b"://")
        own = bool(host) and where == host
        return self._any_origin or own or origin.decode("latin-1").lower() in self._origins

    def _bad_origin(self, headers: Headers) -> Response:
        if self._origins:
            return _BAD_ORIGIN
        page = headers.get(b"origin", b"").decode("latin-1") or "of another site"
        return Response.text(
            403,
            f"Origin not allowed: the web page {page} may not call this node. If it should, start"
            " the node with --allow-origin (NodeOptions.allow_origins)",
        )

    def _is_ours(self, name: str, server: Any) -> bool:
        """Return True if a name in `Host` cannot be one that a foreign page has made point here."""
        arrived = _address(server[0]) if server else None
        if arrived is None or ANY in self._hosts or name in self._hosts:
            return True  # no network between: in the process, or through a Unix socket
        address = _address(name)
        if arrived.is_loopback:
            if address is not None:
                return address.is_loopback or address.is_unspecified
            return _is_local(name)
        # Names with a dot are of the public DNS, others of this network.
        return address is not None or "." not in name or _is_local(name)

    def _has_token(self, headers: Headers) -> bool:
        assert self._token is not None
        kind, _, given = headers.get(b"authorization", b"").partition(b" ")
        if kind.lower() == b"basic":  # of an address with the token in it
            try:
                given = base64.b64decode(given).partition(b":")[2]
            except binascii.Error:
                return False
        elif kind.lower() != b"bearer":
            return False
        return hmac.compare_digest(given, self._token)


def _is_local(name: str) -> bool:
    return (
        name == "localhost" or name.endswith(".localhost") or name == socket.gethostname().lower()
    )


def _without_port(host: str) -> str:
    """Return the name of a `Host` header, without brackets and a final dot."""
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0].removesuffix(".")


def _address(text: str) -> Address | None:
    try:
        address = ip_address(text.partition("%")[0])
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return mapped or address
