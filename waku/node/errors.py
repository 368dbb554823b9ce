"""Errors of the node: publishing refused, listening or connecting failed."""

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
    """The address is in use or does not belong to this machine, or a needed file cannot be used."""


class DialFailed(ConnectionError):
    """No peer of our network answers at an address."""


class WrongCluster(DialFailed):
    """The peer there belongs to another cluster."""


class PublishRefused(ValueError):
    """The node does not publish a message. The text is nwaku's."""


class RelayFull(PublishRefused):
    """The queue to relay peers is full, because they are away or slow. Try again later."""


class StoreUnavailable(PublishRefused):
    """The node cannot store a message, and therefore does not publish it. Try again later."""
