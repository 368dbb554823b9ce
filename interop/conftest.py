"""The bench of a run, for all tests here; where there can be none, one line says why."""

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from .go_build import GoUnavailable
from .needed import needed
from .waku.bench import Bench
from .waku.engine import EngineUnavailable


@pytest.fixture(scope="session")
def bench() -> Iterator[Bench]:
    with ExitStack() as stack:
        with needed("interop in containers", EngineUnavailable, GoUnavailable):
            made = stack.enter_context(Bench.open())
        yield made
