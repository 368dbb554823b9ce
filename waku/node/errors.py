"""Why a node does not publish a message."""

from __future__ import annotations

__all__ = ["PublishRefused", "StoreUnavailable"]


class PublishRefused(ValueError):
    """The node does not publish a message; the text is nwaku's."""


class StoreUnavailable(PublishRefused):
    """The node cannot keep a message in its store, and so does not publish it; try again later."""
