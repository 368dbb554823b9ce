"""Both event loops in virtual time, and participants that can be killed."""

from tests.conversation.conftest import (
    anyio_backend,
    channels,
    pytest_collection_modifyitems,
    virtual_time,
)

__all__ = ["anyio_backend", "channels", "pytest_collection_modifyitems", "virtual_time"]
