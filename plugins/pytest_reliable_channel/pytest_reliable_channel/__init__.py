"""Fixtures for tests of programs on reliable channels. `plugin` has them.

The types for annotations are `Channels`, `Participant` and `VirtualTime`: `async def
test_x(channels: Channels) -> None`. `waku_node` is a `str`.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .channels import Channels, Participant

__all__ = ["Channels", "Participant", "VirtualTime"]

VirtualTime = tuple[str, dict[str, Any]]
"""A backend for `anyio_backend`, with its options."""


def __getattr__(name: str) -> object:
    """Import what a test names, and not with each run of pytest."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from . import channels

    return getattr(channels, name)
