"""Values of which `make test` takes a few, and `make test-slow` or `make hunt` the others."""

from typing import Any

import pytest


def slow(*values: Any) -> list[Any]:
    """Mark values of a parameter as slow."""
    return [pytest.param(value, marks=pytest.mark.slow) for value in values]


def long(*values: Any) -> list[Any]:
    """Mark values of a parameter as long: `make hunt WHAT=long` takes them."""
    return [pytest.param(value, marks=pytest.mark.long) for value in values]
