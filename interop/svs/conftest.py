"""What the tests with ndnd share: its program."""

from pathlib import Path

import pytest

from ..go_build import GoUnavailable, built
from ..needed import IN_CI, needed


@pytest.fixture(scope="session")
def program() -> Path:
    """The Go peer, built once."""
    with needed("ndnd", GoUnavailable):
        return built(Path(__file__).parent / "go", install=IN_CI)
