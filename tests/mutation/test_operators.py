"""Which defects are planted, and where none is."""

import ast
from textwrap import dedent

import pytest

from .operators import mutants


def changes(body: str) -> list[str]:
    source = "def f(a, b, c):\n" + "\n".join(f"    {line}" for line in dedent(body).splitlines())
    return [each.change for each in mutants(ast.parse(source))]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("if a < b: pass", ["a < b → a <= b"]),
        ("x = a is b", ["a is b → a is not b"]),
        ("x = a and b", ["a and b → a or b"]),
        ("x = not a", ["not a → a"]),
        ("x = a + b", ["a + b → a - b"]),
        ("x = True", ["True → False"]),
        ("x: int = 5", ["5 → 6"]),
        ("if a: pass", ["a → not a"]),
        ("while a(): pass", ["a() → not a()"]),
        ("return a", ["return a → return None"]),
        ("for x in a: continue", ["continue → break"]),
        ("a.forget()", ["a.forget() → pass"]),
        ("a.b = c", ["a.b = c → pass"]),
        ("a += b", ["a += b → pass", "a += b → a -= b"]),
        ("raise a", ["raise a → pass"]),
    ],
)
def test_a_place_is_changed(body: str, expected: list[str]) -> None:
    assert changes(body) == expected


@pytest.mark.parametrize(
    "body",
    [
        '"""Says 1 + 1."""',
        "x = a",
        "return None",
        "assert a < b",
        'x = f"{a + b}"',
        "x: Literal[5]",
    ],
)
def test_what_no_test_has_to_notice_is_left_alone(body: str) -> None:
    assert changes(body) == []


def test_messages_of_errors_are_left_alone() -> None:
    assert changes("raise ValueError(1 + 1)") == ["raise ValueError(1 + 1) → pass"]


def test_one_place_is_changed_at_a_time() -> None:
    planted = mutants(ast.parse("class A:\n  def f(self, a):\n    if a < 1:\n      return 2\n"))
    assert [(each.function, each.line, ast.unparse(each.node.body[0])) for each in planted] == [
        ("A.f", 3, "if a <= 1:\n    return 2"),
        ("A.f", 3, "if a < 2:\n    return 2"),
        ("A.f", 4, "if a < 1:\n    return None"),
        ("A.f", 4, "if a < 1:\n    return 3"),
    ]
