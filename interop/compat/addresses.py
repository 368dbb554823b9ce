"""Where the nodes of this process really answer.

The harness gives each container an address of a Docker network, which is not there; other nodes,
those of the bindings among them, get that address to dial.
"""

from __future__ import annotations

from threading import Lock
from typing import Final

__all__ = ["ADDRESSES", "HERE", "Addresses", "at_port", "host_and_port"]

HERE: Final = "127.0.0.1"


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

    def real(self, multiaddr: str) -> str:
        """Return where a peer is reached; an address that stands for nothing is taken as it is."""
        port = self.port_of(*host_and_port(multiaddr))
        return multiaddr if port is None else at_port(multiaddr, port)


def host_and_port(multiaddr: str) -> tuple[str, int]:
    """Return what a multiaddress names; the node has checked it."""
    _, _, host, _, port, *_ = multiaddr.split("/")
    return host, int(port)


def at_port(multiaddr: str, port: int) -> str:
    """Return the same peer at a port of this machine."""
    rest = multiaddr.split("/")[5:]
    return "/".join(("", "ip4", HERE, "tcp", str(port), *rest))


ADDRESSES: Final = Addresses()
"""Those of the process: the bindings and the containers do not know of each other."""
