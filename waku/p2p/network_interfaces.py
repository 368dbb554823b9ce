"""Detection of sleep of the machine, and of changes of its address.

Connections are then dead without notice, because nothing was sent when the other side closed them.
"""

from __future__ import annotations

import socket
from dataclasses import dataclass
from typing import Final

__all__ = ["LOOK_S", "NetworkInterfaces", "local_address"]

LOOK_S: Final = 5.0
"""Interval between two checks (s)."""
SLEPT_S: Final = 20.0
"""Lateness of a check that means sleep. A busy machine is late by less."""

_SOMEWHERE: Final = ((socket.AF_INET, "192.0.2.1"), (socket.AF_INET6, "2001:db8::1"))
"""Addresses without an owner (RFC 5737, RFC 3849). No packet is sent there."""
_PORT: Final = 9


@dataclass(frozen=True, slots=True)
class NetworkInterfaces:
    """Clocks and addresses at the time of one check."""

    monotonic_s: float
    """Clock that stands still while Linux and macOS sleep."""
    wall_s: float
    """Clock that goes on while the machine sleeps."""
    address: str
    """Own addresses of outgoing connections, IPv4 and IPv6. Empty without a route."""

    def change_since(self, before: NetworkInterfaces) -> str | None:
        """Describe what happened since an earlier check, or return None."""
        passed_s = max(self.monotonic_s - before.monotonic_s, self.wall_s - before.wall_s)
        if passed_s > LOOK_S + SLEPT_S:
            return f"the machine slept for about {passed_s:.0f} s"
        if self.address != before.address:
            return (
                f"the own address is {self.address or 'none'}, no longer {before.address or 'none'}"
            )
        return None


def local_address() -> str:
    """Return the addresses of outgoing connections by the routing table, without sending a
    packet."""
    return " and ".join(filter(None, (_address_towards(*each) for each in _SOMEWHERE)))


def _address_towards(family: socket.AddressFamily, address: str) -> str:
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect((address, _PORT))
            return str(probe.getsockname()[0])
    except OSError:  # no route, or no such family here
        return ""
