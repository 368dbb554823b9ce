"""Where the nodes of this process really answer.

The harness gives each container an address of a Docker network, which is not there; other nodes,
those of the bindings among them, get that address to dial.
"""

from __future__ import annotations

from dataclasses import replace
from threading import Lock
from typing import Final

from waku.node import NodeAddress

__all__ = ["ADDRESSES", "Addresses"]


class Addresses:
    """Ports of the loopback interface by the address that stands for them; for all threads."""

    def __init__(self) -> None:
        self._ports: dict[tuple[str, int], int] = {}
        self._lock = Lock()

    def lead(self, host: str, port: int, to: int) -> None:
        """Let an address stand for a port of this machine."""
        with self._lock:
            self._ports[host, port] = to

    def forget(self, host: str, port: int) -> None:
        """Let it stand for nothing."""
        with self._lock:
            self._ports.pop((host, port), None)

    def port_of(self, host: str, port: int) -> int | None:
        """Return the port of this machine that an address stands for."""
        with self._lock:
            return self._ports.get((host, port))

    def real(self, multiaddr: str) -> NodeAddress:
        """Return where a node is reached; an address that stands for nothing is taken as it is.

        Raises:
            BadAddress: it is none.
        """
        address = NodeAddress.parse(multiaddr)
        port = self.port_of(address.host, address.port)
        return address if port is None else replace(address, host="127.0.0.1", port=port)


ADDRESSES: Final = Addresses()
"""Those of the process: the bindings and the containers do not know of each other."""
