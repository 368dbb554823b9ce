"""Detection that the machine slept, or that its network address changed.

After sleep or a change of address, connections may be dead without notice.
"""

from __future__ import annotations

import socket
from dataclasses import dataclass
from typing import Final

__all__ = ["LOOK_S", "NetworkInterfaces", "local_address"]

LOOK_S: Final = 5.0
"""Interval between two checks for sleep or a new address (s)."""
SLEPT_S: Final = 20.0
"""Delay of a check (s) that means that the machine slept. A busy machine delays a check by less."""

_SOMEWHERE: Final = ((socket.AF_INET, "192.0.2.1"), (socket.AF_INET6, "2001:db8::1"))
"""Addresses without an owner (RFC 5737, RFC 3849). No packet is sent there."""
_PORT: Final = 9


@dataclass(frozen=True, slots=True)
class NetworkInterfaces:
    """Clocks and addresses of the machine at the time of one check."""

    monotonic_s: float
    """Time by a clock that stops while Linux and macOS sleep (s)."""
    wall_s: float
    """Time by a clock that continues while the machine sleeps (s)."""
    address: str
    """Own IPv4 and IPv6 addresses for outgoing connections, or an empty text without a route."""

    def change_since(self, before: NetworkInterfaces) -> str | None:
        """Return a text about the change since an earlier check, or None."""
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
