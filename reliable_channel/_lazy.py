"""Packages whose names are loaded when they are used, so that an import costs what it needs."""

from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from typing import Any


def lazy_names(
    package: str, homes: Mapping[str, Iterable[str]]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return `__getattr__` and `__dir__` of a package. `homes` lists the names of each of its
    modules.

    Use it beside imports under `if TYPE_CHECKING`, in the `else`. A type checker otherwise accepts
    every name of a module that has a `__getattr__`.
    """
    home_of = {name: home for home, names in homes.items() for name in names}

    def load(name: str) -> Any:
        home = home_of.get(name)
        if home is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(f".{home}", package), name)

    return load, lambda: sorted(home_of)
