"""Self-describing network addresses (multiaddresses), such as `/dns4/node.example/tcp/8000/wss`.

The specification is https://github.com/libp2p/specs/blob/master/addressing/README.md. The protocol
numbers are in https://github.com/multiformats/multicodec (table.csv).
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from dataclasses import dataclass
from ipaddress import AddressValueError, IPv4Address, IPv6Address
from typing import Final

from . import varint
from .errors import InvalidInput
from .keys import PeerId

__all__ = ["DialTarget", "Multiaddr"]

MAX_TEXT: Final = 2_048
MAX_PARTS: Final = 32
MAX_NAME_BYTES: Final = 253
"""Maximum length of a DNS name (bytes, RFC 1035)."""

_NAME = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9_.-]*[A-Za-z0-9_])?\Z")


@dataclass(frozen=True, slots=True)
class _Protocol:
    code: int
    size_bytes: int
    """-1: a length precedes the value. 0: there is no value."""
    to_bytes: Callable[[str], bytes] = lambda _: b""
    to_text: Callable[[bytes], str] = lambda _: ""


def _port(text: str) -> bytes:
    if not (text.isascii() and text.isdigit() and len(text) <= 5 and int(text) < 65_536):
        raise InvalidInput(f"{text!r} is not a port")
    return int(text).to_bytes(2, "big")


def _port_text(data: bytes) -> str:
    return str(int.from_bytes(data, "big"))


def _ip4(text: str) -> bytes:
    return IPv4Address(text).packed


def _ip6(text: str) -> bytes:
    if "%" in text:
        raise InvalidInput(
            f"{text!r}: write the zone of an IPv6 address before the address, as "
            "/ip6zone/eth0/ip6/…"
        )
    return IPv6Address(text).packed


def _name(text: str) -> bytes:
    if len(text) > MAX_NAME_BYTES or not _NAME.match(text):
        raise InvalidInput(f"{text[:100]!r} is not a name of the DNS")
    return text.encode()


def _name_text(data: bytes) -> str:
    text = data.decode("ascii")
    _name(text)
    return text


def _multibase(text: str) -> bytes:
    if not text.startswith("u"):
        raise InvalidInput(f"{text[:100]!r} is not base64url with the prefix u")
    return base64.urlsafe_b64decode(text[1:] + "=" * (-len(text[1:]) % 4))


def _multibase_text(data: bytes) -> str:
    return "u" + base64.urlsafe_b64encode(data).decode().rstrip("=")


_DNS: Final = (_name, _name_text)

_PROTOCOLS: Final = {
    "ip4": _Protocol(4, 4, _ip4, lambda data: str(IPv4Address(data))),
    "tcp": _Protocol(6, 2, _port, _port_text),
    "ip6": _Protocol(41, 16, _ip6, lambda data: str(IPv6Address(data))),
    "ip6zone": _Protocol(42, -1, *_DNS),
    "dns": _Protocol(53, -1, *_DNS),
    "dns4": _Protocol(54, -1, *_DNS),
    "dns6": _Protocol(55, -1, *_DNS),
    "dnsaddr": _Protocol(56, -1, *_DNS),
    "udp": _Protocol(273, 2, _port, _port_text),
    "webrtc-direct": _Protocol(280, 0),
    "p2p-circuit": _Protocol(290, 0),
    "p2p": _Protocol(
        421, -1, lambda text: PeerId.parse(text).multihash, lambda data: str(PeerId(data))
    ),
    "https": _Protocol(443, 0),
    "tls": _Protocol(448, 0),
    "sni": _Protocol(449, -1, *_DNS),
    "quic": _Protocol(460, 0),
    "quic-v1": _Protocol(461, 0),
    "webtransport": _Protocol(465, 0),
    "certhash": _Protocol(466, -1, _multibase, _multibase_text),
    "ws": _Protocol(477, 0),
    "wss": _Protocol(478, 0),
    "http": _Protocol(480, 0),
}
_ALIASES: Final = {"ipfs": "p2p"}
_NAMES: Final = {protocol.code: name for name, protocol in _PROTOCOLS.items()}
_HOSTS: Final = frozenset({"ip4", "ip6", "dns", "dns4", "dns6"})


@dataclass(frozen=True, slots=True)
class DialTarget:
    """Parts of an address that a dialler needs."""

    host: str
    port: int
    websocket: bool
    server_name: str | None
    """Host name that the TLS certificate must have, or None without TLS."""
    peer_id: PeerId | None


@dataclass(frozen=True, slots=True)
class Multiaddr:
    """Address as a sequence of protocols and their values."""

    parts: tuple[tuple[str, str], ...]
    """Pairs of protocol and value, outermost first. If a protocol has no value, the text is
    empty."""

    @classmethod
    def parse(cls, text: str) -> Multiaddr:
        """Parse a multiaddress in text form.

        Raises:
            InvalidInput: an unknown protocol, or a value that does not fit; the message names it.
        """
        if not text.startswith("/") or len(text) > MAX_TEXT:
            raise InvalidInput(
                f"{text[:100]!r} is not a multiaddress: write /ip4/1.2.3.4/tcp/60000 "
                "or /dns4/node.example/tcp/443/wss"
            )
        words = text.rstrip("/").split("/")[1:]
        parts = []
        while words:
            name = _ALIASES.get(words[0], words.pop(0))
            protocol = _PROTOCOLS.get(name)
            if protocol is None:
                raise InvalidInput(f"{text!r}: unknown protocol {name!r}")
            value = ""
            if protocol.size_bytes:
                if not words:
                    raise InvalidInput(f"{text!r} ends where the value of {name!r} is expected")
                value = words.pop(0)
            parts.append((name, _normal(name, value, text)))
        return cls(_bounded(parts))

    @classmethod
    def decode(cls, data: bytes) -> Multiaddr:
        """Decode a multiaddress in binary form.

        Raises:
            InvalidInput: cut off, an unknown protocol, or a value that does not fit.
        """
        parts: list[tuple[str, str]] = []
        offset = 0
        while offset < len(data) and len(parts) <= MAX_PARTS:
            code, offset = _number(data, offset)
            name = _NAMES.get(code)
            if name is None:
                raise InvalidInput(f"the multiaddress has the unknown protocol {code}")
            size = _PROTOCOLS[name].size_bytes
            if size < 0:
                size, offset = _number(data, offset)
            if offset + size > len(data):
                raise InvalidInput(f"the multiaddress ends within the value of {name!r}")
            value = data[offset : offset + size]
            offset += size
            try:
                parts.append((name, _PROTOCOLS[name].to_text(value)))
            except ValueError as error:
                raise InvalidInput(
                    f"the value of {name!r} in the multiaddress is invalid: {error}"
                ) from error
        return cls(_bounded(parts))

    def encode(self) -> bytes:
        """Return the binary form of the address."""
        out = bytearray()
        for name, text in self.parts:
            protocol = _PROTOCOLS[name]
            value = protocol.to_bytes(text)
            out += varint.encode(protocol.code)
            out += varint.prefixed(value) if protocol.size_bytes < 0 else value
        return bytes(out)

    def __str__(self) -> str:
        return "".join(f"/{name}/{value}" if value else f"/{name}" for name, value in self.parts)

    @property
    def peer_id(self) -> PeerId | None:
        """Peer id at the end of the address, or None."""
        name, value = self.parts[-1]
        return PeerId.parse(value) if name == "p2p" else None

    def with_peer_id(self, peer_id: PeerId) -> Multiaddr:
        """Return the address with the given peer id at its end."""
        parts = self.parts[:-1] if self.parts[-1][0] == "p2p" else self.parts
        return Multiaddr((*parts, ("p2p", str(peer_id))))

    @property
    def dial_target(self) -> DialTarget:
        """Return the host, the port and the transport to dial.

        Raises:
            InvalidInput: not TCP or WebSocket over an IP address or name; the message says what
                is supported.
        """
        rest = self.parts[2:]
        match self.parts[:2]:
            case ((kind, host), ("tcp", port)) if kind in _HOSTS:
                shape = [name for name, _ in rest if name not in ("sni", "p2p")]
            case _:
                host, port, shape = "", "", ["none"]
        if shape not in ([], ["ws"], ["wss"], ["tls", "ws"], ["tls", "wss"]):
            raise InvalidInput(
                f"{self} cannot be dialled: supported are /tcp, /tcp/…/ws and /tcp/…/wss "
                "over an IP address or a name"
            )
        names = dict(rest)
        server_name = names.get("sni", host) if {"wss", "tls"} & set(shape) else None
        return DialTarget(host, int(port), bool(shape), server_name, self.peer_id)


def _normal(name: str, value: str, text: str) -> str:
    """The value as it is always written, so that equal addresses are equal."""
    protocol = _PROTOCOLS[name]
    try:
        return protocol.to_text(protocol.to_bytes(value))
    except (ValueError, AddressValueError) as error:
        raise InvalidInput(f"{text!r}: the value of {name!r} is invalid: {error}") from error


def _bounded(parts: list[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    if not 0 < len(parts) <= MAX_PARTS:
        raise InvalidInput(f"a multiaddress must have 1 to {MAX_PARTS} parts (got {len(parts)})")
    return tuple(parts)


def _number(data: bytes, offset: int) -> tuple[int, int]:
    header = varint.decode(data, offset)
    if header is None:
        raise InvalidInput("the multiaddress ends within a number")
    return header
