"""Names and addresses of nodes: libp2p's peer ids, and multiaddresses of HTTP listeners.

The embedded node speaks no libp2p; it uses the notation so that clients see what they know.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import Final
from urllib.parse import unquote, urlsplit

import httpx

from waku import _base58
from waku._userinfo import masked_address

__all__ = ["BadAddress", "NodeAddress", "is_peer_id", "new_peer_id"]

_SECP256K1_PREFIX: Final = bytes.fromhex("00250802122102")
"""Identity multihash of 37 bytes, key type 2, 33 bytes of public key, the first of which is 02."""


class BadAddress(ValueError):
    """Neither an http address nor a multiaddress with an IP address or name and a TCP port."""


@dataclass(frozen=True, slots=True)
class NodeAddress:
    """Where a node answers HTTP, and which node is expected there."""

    host: str
    port: int
    peer_id: str | None = None
    path: str = ""
    scheme: str = "http"
    token: str | None = field(default=None, repr=False, compare=False)
    """What the node there wants every request to carry; no part of `url`, which is logged."""

    @classmethod
    def parse(cls, text: str) -> NodeAddress:
        """Read `http://[:token@]host:port` or `/ip4/<host>/tcp/<port>[/http][/p2p/<peer id>]`.

        Raises:
            BadAddress: the text is neither; its message is nwaku's where it has one.
        """
        is_url = text.startswith(("http://", "https://"))
        address = cls._parse_url(text) if is_url else cls._parse_multiaddress(text)
        try:
            reachable = bool(httpx.URL(address.url).host)
        except (httpx.InvalidURL, UnicodeEncodeError) as error:  # such as 127.0.0444.1
            raise BadAddress(f"{masked_address(text)!r}: {error}") from error
        if not reachable:
            raise BadAddress(f"no host in {masked_address(text)!r}")
        return address

    @classmethod
    def _parse_multiaddress(cls, text: str) -> NodeAddress:
        if not text.startswith("/"):
            raise BadAddress(
                "MultiAddress.init [multiaddress: Invalid MultiAddress, must start with `/`]"
            )
        match text[1:].split("/"):
            case [("ip4" | "ip6" | "dns" | "dns4" | "dns6"), host, "tcp", port, *rest]:
                peer_id = rest[-1] if len(rest) >= 2 and rest[-2] == "p2p" else None
                if peer_id is not None and not is_peer_id(peer_id):
                    raise BadAddress(f"{peer_id!r} is not a peer id")
            case [("ip4" | "ip6"), _, protocol, *_] if protocol not in ("tcp", "udp"):
                raise BadAddress(
                    f"MultiAddress.init [multiaddress: Unsupported protocol '{protocol}']"
                )
            case _:
                raise BadAddress(f"no IP address and TCP port in {text!r}")
        if not (port.isascii() and port.isdigit() and 0 < int(port) < 65536):
            raise BadAddress(f"{port!r} is not a port")
        return cls(host, int(port), peer_id)

    @classmethod
    def _parse_url(cls, text: str) -> NodeAddress:
        try:
            url = urlsplit(text)
            host, port = url.hostname, url.port
        except ValueError as error:
            # What urlsplit takes for the port may be the token.
            reason = error if (address := masked_address(text)) == text else "percent-encode it"
            raise BadAddress(f"{address!r}: {reason}") from None
        port = port or (443 if url.scheme == "https" else 80)
        token = None if url.password is None else unquote(url.password)
        return cls(host or "", port, None, url.path.rstrip("/"), url.scheme, token)

    @property
    def url(self) -> str:
        """The address as a URL without a slash at the end."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}{self.path}"

    @property
    def multiaddr(self) -> str:
        """The address as a multiaddress without the peer id."""
        try:
            kind = f"ip{ip_address(self.host).version}"
        except ValueError:
            kind = "dns"
        return f"/{kind}/{self.host}/tcp/{self.port}/http"


def new_peer_id() -> str:
    """Return a random name in the form of a libp2p peer id; no key belongs to it."""
    return _base58.encode(_SECP256K1_PREFIX + secrets.token_bytes(32))


def is_peer_id(text: str) -> bool:
    """Whether a text has the form of a libp2p peer id (an identity or SHA-256 multihash)."""
    try:
        data = _base58.decode(text)
    except ValueError:
        return False
    if len(data) < 3 or len(data) != 2 + data[1]:
        return False
    return data[0] == 0x00 or (data[0] == 0x12 and data[1] == 32)
