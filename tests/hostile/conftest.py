"""Both event loops, as in `tests/channel`: on trio time is virtual."""

import pytest

from reliable_channel.sds import states
from tests.channel.conftest import anyio_backend, pytest_collection_modifyitems, virtual_time

__all__ = ["anyio_backend", "pytest_collection_modifyitems", "virtual_time"]


@pytest.fixture
def states_unchecked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Participants as applications run them, where a test counts what they cost."""
    monkeypatch.setattr(states, "check_transitions", False)
