"""Both event loops, as in `tests/channel`: on trio time is virtual."""

from tests.channel.conftest import anyio_backend, pytest_collection_modifyitems, virtual_time

__all__ = ["anyio_backend", "pytest_collection_modifyitems", "virtual_time"]
