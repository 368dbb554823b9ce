"""Errors of the node for publishing, listening and connecting."""

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
    """The address to listen at is in use or not of this machine, or a needed file cannot be
    used."""


class DialFailed(ConnectionError):
    """No peer of this node's network answers at an address."""


class WrongCluster(DialFailed):
    """The peer at an address belongs to another cluster."""


class PublishRefused(ValueError):
    """The node refuses to publish a message. The text of the error is nwaku's."""


class RelayFull(PublishRefused):
    """The queue of messages for relay peers is full, because the peers are away or slow. Publish
    the message again later."""


class StoreUnavailable(PublishRefused):
    """The node cannot store a message, and therefore does not publish it. Publish the message again
    later."""
