"""Values of which `make test` takes a few and `make test-slow` the others."""

from typing import Any

import pytest


def slow(*values: Any) -> list[Any]:
    """Mark values of a parameter as slow."""
    return [pytest.param(value, marks=pytest.mark.slow) for value in values]
