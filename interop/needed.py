"""What tests need that may not be here: in CI that is a failure, elsewhere one line says why. And
how long they wait for others."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import pytest

IN_CI: Final = os.environ.get("CI") == "true"
PATIENCE_S: Final = 600
"""A guard against hangs: no result depends on it, however busy the machine is."""


@contextmanager
def needed(what: str, *unavailable: type[Exception]) -> Iterator[None]:
    """Skip the test where the block raises one of these errors, unless this is CI."""
    try:
        yield
    except unavailable as reason:
        if IN_CI:
            raise
        pytest.skip(f"{what} is not run: {reason}")
