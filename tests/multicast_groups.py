"""Multicast groups that no other process of the tests uses: several run side by side."""

from itertools import count
from os import getpid
from typing import Final

FIRST_PORT: Final = 20_000
STRIDE: Final = 389
"""Between the ports of processes that were started one after the other."""

_ports = count(FIRST_PORT + getpid() * STRIDE % 40_000)


def new_port() -> int:
    """A port of a group that is new in this process, and another one in the next process."""
    return next(_ports)


def group_url(**query: object) -> str:
    """The URL of a new group on the loopback interface."""
    pid = getpid()  # at most 22 bits
    address = f"239.{pid >> 16 & 255}.{pid >> 8 & 255}.{pid & 255}"
    values = {"interface": "127.0.0.1", "ttl": 0} | query
    pairs = "&".join(f"{name}={value}" for name, value in values.items())
    return f"udp+multicast://{address}:{new_port()}?{pairs}"
