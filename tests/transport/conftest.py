"""Both event loops, as in `tests/channel`: on trio time is virtual."""

import pytest

from tests.channel.conftest import anyio_backend, pytest_collection_modifyitems, virtual_time
from tests.slow import slow
from waku.node.options import Behaviour

from .nodes import Mode

__all__ = ["anyio_backend", "mode", "pytest_collection_modifyitems", "virtual_time"]


@pytest.fixture(params=[None, "nwaku", *slow("go-waku")], ids=["ours", "nwaku", "go-waku"])
def mode(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Behaviour | None:
    """Runs a test over nodes that behave as ours, as nwaku and as go-waku do; the last of these in
    `make test-slow`."""
    monkeypatch.setattr(Mode, "behave_as", request.param)
    return Mode.behave_as
