"""How the harness describes a network; none is made of it."""

from typing import Any


class IPAMPool(dict[str, Any]):
    """A pool of addresses."""


class IPAMConfig(dict[str, Any]):
    """What pools a network has."""
