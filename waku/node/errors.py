"""Why a node does not publish a message, or does not listen."""

from __future__ import annotations

__all__ = ["CannotListen", "PublishRefused", "RelayFull", "StoreUnavailable"]


class CannotListen(OSError):
    """The address is taken, or not one of this machine, or a file that it needs cannot be used."""


class PublishRefused(ValueError):
    """The node does not publish a message; the text is nwaku's."""


class RelayFull(PublishRefused):
    """The queue to relay peers is full: they are away or slow; try again later."""


class StoreUnavailable(PublishRefused):
    """The node cannot keep a message in its store, and so does not publish it; try again later."""
