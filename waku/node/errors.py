"""Why a node does not publish a message, does not listen, or does not reach a peer."""

from __future__ import annotations

__all__ = [
    "CannotListen",
    "DialFailed",
    "PublishRefused",
    "RelayFull",
    "StoreUnavailable",
    "WrongCluster",
]


class CannotListen(OSError):
    """The address is taken, or not one of this machine, or a file that it needs cannot be used."""


class DialFailed(ConnectionError):
    """No peer of our network answers at an address."""


class WrongCluster(DialFailed):
    """The peer there belongs to another cluster."""


class PublishRefused(ValueError):
    """The node does not publish a message; the text is nwaku's."""


class RelayFull(PublishRefused):
    """The queue to relay peers is full: they are away or slow; try again later."""


class StoreUnavailable(PublishRefused):
    """The node cannot keep a message in its store, and so does not publish it; try again later."""
