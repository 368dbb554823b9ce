"""Listening sockets, made by the server or bound by the program before the node is ready.

A client whose connection is refused does not come back for a while (js-waku for a minute). If a
socket already listens, the client waits for the node. This module imports few modules, so that a
program can bind its socket first.
"""

from __future__ import annotations

import socket
import sys
from collections.abc import Iterable
from typing import Any

from waku.node.open_files import BACKLOG

__all__ = ["already_bound", "listening_socket"]


def listening_socket(host: str, port: int, *, v6_only: bool = False) -> socket.socket:
    """Bind a TCP socket and listen for connections. New connections wait until the server accepts
    them.

    Args:
        host: an address, or a name of this machine.
        port: 0 takes a free one.
        v6_only: an IPv6 socket of all interfaces leaves IPv4 to another.

    Raises:
        OSError: the name is unknown, the port is taken, or the address is not of this machine.
        OverflowError: the port is beyond 65535.
    """
    family, _, _, _, (address, _, *scope) = _resolved(host, port)
    # The protocol is named, for asyncio turns Nagle off only on sockets that say TCP.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        if sys.platform == "win32":  # where SO_REUSEADDR would share the port with any program
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_EXCLUSIVEADDRUSE, 1)
        else:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if v6_only and family == socket.AF_INET6:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        listener.bind((address, port, *scope))  # getaddrinfo takes a port modulo 65536
        listener.listen(BACKLOG)
    except BaseException:
        listener.close()
        raise
    return listener


def already_bound(bound: Iterable[socket.socket], host: str, port: int) -> socket.socket | None:
    """Return the given socket that listens at an address, or None.

    Raises:
        OSError: the name is unknown.
    """
    address = _resolved(host, port)[4][:2]
    open_ones = (one for one in bound if one.fileno() != -1)
    return next((one for one in open_ones if one.getsockname()[:2] == address), None)


def _resolved(host: str, port: int) -> tuple[Any, ...]:
    return socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
