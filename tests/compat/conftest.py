"""Nodes of `NodeWrapper`, and both event loops for what lies below it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.channel.conftest import anyio_backend, pytest_collection_modifyitems, virtual_time

from .nodes import Nodes

__all__ = ["anyio_backend", "nodes", "pytest_collection_modifyitems", "virtual_time"]


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[Nodes]:
    made = Nodes(tmp_path)
    yield made
    made.end()
