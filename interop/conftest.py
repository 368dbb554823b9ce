"""The bench of a run, for all tests here; where there can be none, one line says why."""

import os
from collections.abc import Iterator

import pytest

from .go_build import GoUnavailable
from .waku.bench import Bench
from .waku.engine import EngineUnavailable


@pytest.fixture(scope="session")
def bench() -> Iterator[Bench]:
    opened = Bench.open()
    try:
        made = opened.__enter__()
    except (EngineUnavailable, GoUnavailable) as reason:
        if os.environ.get("CI") == "true":
            raise
        pytest.skip(f"interop in containers is not run: {reason}")
    yield made
    opened.__exit__(None, None, None)
