"""A loaded module gets its defects, and counts its steps."""

import sys
from collections import Counter
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from .target import Target

SOURCE = """
from dataclasses import dataclass
from functools import cached_property, lru_cache

@dataclass(frozen=True, slots=True)
class Pair:
    a: int
    b: int

    @property
    def larger(self) -> int:
        return self.a if self.a > self.b else self.b

class Child(Counter if False else dict):
    def get(self, key):
        return super().get(key, 0) + 1

    @cached_property
    def size(self):
        return sum(1 for _ in self)

@lru_cache
def counted(limit: int) -> int:
    found = 0
    for _ in range(limit):
        found += 1
    return found
"""


@pytest.fixture
def loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Target, Any]:
    path = tmp_path / "module_with_defects.py"
    path.write_text(SOURCE)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, path.stem, raising=False)
    return Target(path, tmp_path), import_module(path.stem)


def test_steps_are_entries_of_functions_and_iterations_of_loops(
    loaded: tuple[Target, Any],
) -> None:
    target, module = loaded
    steps: Counter[str] = Counter()
    target.count(lambda key: steps.update([key]))
    assert module.counted(5) == 5
    assert module.Pair(1, 2).larger == 2
    assert module.Child(a=1).get("a") == 2
    assert module.Child(a=1).size == 1
    prefix = "module_with_defects.py::"
    assert steps == {
        f"{prefix}counted": 6,
        f"{prefix}Pair.larger": 1,
        f"{prefix}Child.get": 1,
        f"{prefix}Child.size": 1,
    }


@pytest.mark.parametrize(
    ("change", "call", "result"),
    [
        ("self.a > self.b → self.a >= self.b", "Pair(1, 2).larger", 2),
        ("return self.a if self.a > self.b else self.b → return None", "Pair(1, 2).larger", None),
        ("super().get(key, 0) + 1 → super().get(key, 0) - 1", "Child(a=1).get('a')", 0),
        ("found += 1 → pass", "counted(5)", 0),
        ("0 → 1", "counted(5)", 6),
    ],
)
def test_a_defect_is_planted_where_the_function_is_used(
    loaded: tuple[Target, Any], change: str, call: str, result: object
) -> None:
    target, module = loaded
    found = [each for each in target.mutants() if each.change == change]
    target.count(lambda _: None)
    target.plant(found[-1])
    assert eval(call, vars(module)) == result
