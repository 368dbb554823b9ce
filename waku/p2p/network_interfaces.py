"""Noticing that the machine slept, or that its address changed.

Connections are dead then without a word: nothing was sent when the other side gave them up.
"""

from __future__ import annotations

import socket
from dataclasses import dataclass
from typing import Final

__all__ = ["LOOK_S", "NetworkInterfaces", "local_address"]

LOOK_S: Final = 5.0
"""Interval of looks."""
SLEPT_S: Final = 20.0
"""A look that comes so much too late follows a sleep. A busy machine is late by less."""

_SOMEWHERE: Final = ((socket.AF_INET, "192.0.2.1"), (socket.AF_INET6, "2001:db8::1"))
"""Addresses without an owner (RFC 5737, RFC 3849). No packet is sent there."""
_PORT: Final = 9


@dataclass(frozen=True, slots=True)
class NetworkInterfaces:
    """What was seen at one look."""

    monotonic_s: float
    """Stands still while Linux and macOS sleep."""
    wall_s: float
    """Goes on while the machine sleeps."""
    address: str
    """Own addresses towards the world, of IPv4 and IPv6. Empty where there is no way out."""

    def change_since(self, before: NetworkInterfaces) -> str | None:
        """Say what happened since an earlier look. None if nothing did."""
        passed_s = max(self.monotonic_s - before.monotonic_s, self.wall_s - before.wall_s)
        if passed_s > LOOK_S + SLEPT_S:
            return f"the machine slept for about {passed_s:.0f} s"
        if self.address != before.address:
            return (
                f"the own address is {self.address or 'none'}, no longer {before.address or 'none'}"
            )
        return None


def local_address() -> str:
    """The addresses that connections leave from, by the routing table. No packet is sent."""
    return " and ".join(filter(None, (_address_towards(*each) for each in _SOMEWHERE)))


def _address_towards(family: socket.AddressFamily, address: str) -> str:
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect((address, _PORT))
            return str(probe.getsockname()[0])
    except OSError:  # no route, or no such family here
        return ""
