"""Socket of a multicast group, for IPv4 and IPv6 on different systems."""

import socket
import struct
import sys
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Final, Self
from urllib.parse import parse_qsl, urlsplit

from .base import TransportError

RECEIVE_BUFFER_BYTES: Final = 4 * 1024 * 1024
"""Size of the requested receive buffer (bytes), which `net.core.rmem_max` limits in Linux. The
buffer holds datagrams while the program is busy."""
ALLOWED: Final = (
    "udp+multicast://group:port, such as udp+multicast://239.1.2.3:5007, with "
    "?interface=127.0.0.1 (IPv6: ?interface=eth0) and ?ttl=1"
)


@dataclass(frozen=True, slots=True)
class Group:
    """Multicast group, with its port and network interface."""

    address: IPv4Address | IPv6Address
    port: int
    interface: str = ""
    """Address (IPv4) or name (IPv6) of the network interface. If the text is empty, the system
    chooses the interface."""
    ttl: int = 1
    """Number of networks that a datagram may cross. The value 1 allows the local network only."""

    @classmethod
    def of_url(cls, url: str) -> Self:
        """Parse a URL `udp+multicast://group:port?interface=…&ttl=…`.

        Raises:
            ValueError: it is not of that form.
        """
        wrong = ValueError(f"`node` must be {ALLOWED} (got {url!r})")
        try:
            parts = urlsplit(url)
            values = dict(parse_qsl(parts.query, keep_blank_values=True))
            interface, ttl = values.pop("interface", ""), values.pop("ttl", "1")
            address, port = ip_address(parts.hostname or ""), parts.port
            if address.version == 4 and interface:
                IPv4Address(interface)
        except ValueError:
            raise wrong from None
        if not address.is_multicast or not port or values or parts.path not in ("", "/"):
            raise wrong
        if not ttl.isdecimal() or not 0 <= int(ttl) <= 255:
            raise wrong
        return cls(address, port, interface, int(ttl))

    @property
    def destination(self) -> tuple[str, int]:
        return str(self.address), self.port


def join(group: Group) -> socket.socket:
    """Return a non-blocking socket that receives all datagrams of the group, own ones included.

    Raises:
        TransportError: the system refuses; the text says what to try.
    """
    family = socket.AF_INET if group.address.version == 4 else socket.AF_INET6
    sock = socket.socket(family, socket.SOCK_DGRAM)
    try:
        sock.setblocking(False)
        _share(sock)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER_BYTES)
        if isinstance(group.address, IPv4Address):
            _join_4(sock, group.address, group)
        else:
            _join_6(sock, group.address, group)
    except OSError as error:
        sock.close()
        raise TransportError(
            f"the multicast group {group.address} port {group.port} cannot be joined: {error}; "
            "add ?interface=ADDRESS to choose the network (127.0.0.1: this machine alone)"
        ) from error
    return sock


def _share(sock: socket.socket) -> None:
    """Let several participants on one machine use the port; each gets each datagram."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if hasattr(socket, "SO_REUSEPORT"):  # macOS and the BSDs ask for it as well
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)


def _join_4(sock: socket.socket, address: IPv4Address, group: Group) -> None:
    interface = socket.inet_aton(group.interface or "0.0.0.0")
    sock.bind((_bound_to(address), group.port))
    sock.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, address.packed + interface)
    sock.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_LOOP, 1)
    sock.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, group.ttl)
    if group.interface:
        sock.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, interface)


def _join_6(sock: socket.socket, address: IPv6Address, group: Group) -> None:
    index = socket.if_nametoindex(group.interface) if group.interface else 0
    sock.bind((_bound_to(address), group.port, 0, index))
    member = address.packed + struct.pack("@I", index)
    sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_JOIN_GROUP, member)
    sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_LOOP, 1)
    sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_HOPS, group.ttl)
    if group.interface:
        sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_IF, index)


def _bound_to(address: IPv4Address | IPv6Address) -> str:
    """Bound to the group, a socket hears that group alone; Windows binds to own addresses only."""
    return "" if sys.platform == "win32" else str(address)
