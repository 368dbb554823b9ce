"""Values of which `make test` takes a few, and `make test-slow` or `make hunt` the others."""

from typing import Any

import pytest


def slow(*values: Any) -> list[Any]:
    """Mark values of a parameter as slow."""
    return [pytest.param(value, marks=pytest.mark.slow) for value in values]


def planted(*values: Any) -> list[Any]:
    """Mark values of a parameter as planted: `make hunt WHAT=planted` takes them."""
    return [pytest.param(value, marks=pytest.mark.planted) for value in values]
