"""What the tests with ndnd share: its program."""

import os
from pathlib import Path

import pytest

from ..go_build import GoUnavailable, built

IN_CI = os.environ.get("CI") == "true"


@pytest.fixture(scope="session")
def program() -> Path:
    """The Go peer, built once."""
    try:
        return built(Path(__file__).parent / "go", install=IN_CI)
    except GoUnavailable as reason:
        if IN_CI:
            raise
        pytest.skip(str(reason))
