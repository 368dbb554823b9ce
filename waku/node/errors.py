"""Why a node does not publish a message, or does not listen."""

from __future__ import annotations

__all__ = ["CannotListen", "PublishRefused", "StoreUnavailable"]


class CannotListen(OSError):
    """The address is taken, or not one of this machine, or a file that it needs cannot be used."""


class PublishRefused(ValueError):
    """The node does not publish a message; the text is nwaku's."""


class StoreUnavailable(PublishRefused):
    """The node cannot keep a message in its store, and so does not publish it; try again later."""
