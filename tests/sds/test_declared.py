"""An option is declared once: its default, its check and its text."""

from collections.abc import Callable, Sequence
from dataclasses import MISSING, dataclass, make_dataclass
from typing import Any

import pytest

from reliable_channel.sds.declared import (
    check,
    declared,
    given,
    number,
    positive,
    share,
    switch,
    texts,
    word,
)


@dataclass(frozen=True)
class Options:
    pause_ms: int = number(5, "ms", 0, 3600)
    """Pause between
    two lines."""
    tries: int | None = number(None, "tries", 1)
    """How often it is tried."""
    manner: str = word("kind", ("kind", "rough", "none"))
    loud: bool = switch(False)
    name: str = given("x", "a name", lambda value: isinstance(value, str) and bool(value))
    loss: float = share(0.1, of_all=False)
    kept: float = share(1.0)
    wait_s: float = positive(0.5, "s")
    note: str = "no option"

    def __post_init__(self) -> None:
        check(self)


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        ({"pause_ms": -5}, "`pause_ms` must be between 0 and 3600 (got -5)"),
        ({"pause_ms": 3601}, "`pause_ms` must be between 0 and 3600 (got 3601)"),
        ({"pause_ms": "six"}, "`pause_ms` must be a whole number (got 'six')"),
        ({"pause_ms": None}, "`pause_ms` must be a whole number (got None)"),
        ({"pause_ms": True}, "`pause_ms` must be a whole number (got True)"),
        ({"tries": 0}, "`tries` must be at least 1 (got 0)"),
        ({"manner": "wild"}, "`manner` must be 'kind', 'rough' or 'none' (got 'wild')"),
        ({"loud": 1}, "`loud` must be True or False (got 1)"),
        ({"name": ""}, "`name` must be a name (got '')"),
        ({"loss": 1.0}, "`loss` must be a share from 0 to below 1 (got 1.0)"),
        ({"loss": -0.1}, "`loss` must be a share from 0 to below 1 (got -0.1)"),
        ({"loss": "0"}, "`loss` must be a share from 0 to below 1 (got '0')"),
        ({"kept": 1.1}, "`kept` must be a share from 0 to 1 (got 1.1)"),
        ({"kept": -0.1}, "`kept` must be a share from 0 to 1 (got -0.1)"),
        ({"kept": True}, "`kept` must be a share from 0 to 1 (got True)"),
        ({"wait_s": 0}, "`wait_s` must be positive (got 0)"),
        ({"wait_s": False}, "`wait_s` must be positive (got False)"),
        ({"wait_s": float("nan")}, "`wait_s` must be positive (got nan)"),
    ],
)
def test_a_wrong_value_is_named_with_what_it_must_be(wrong: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError) as caught:
        Options(**wrong)
    assert str(caught.value) == text


@pytest.mark.parametrize(
    ("kind", "right", "wrong"),
    [
        (lambda: number(5, "ms", 0, 9), [0, 9], [-1, 10, 1.5, "5", None, True]),
        (lambda: number(5, "ms", 1), [1, 10**12], [0]),
        (lambda: number(None, "ms", 1, 9), [None, 1], [0]),
        (lambda: positive(0.5, "s"), [0.1, 7], [0, -1, "1", None, True]),
        (lambda: share(0.5), [0, 1], [-0.1, 1.1, "1", True]),
        (lambda: share(0.5, of_all=False), [0, 0.9], [1, -0.1, "0"]),
        (lambda: word("a", ("a", "b", "c")), ["a", "c"], ["d", None]),
        (lambda: switch(True), [True, False], [1, "true", None]),
    ],
)
def test_a_kind_of_option_takes_its_values_and_no_other(
    kind: Callable[[], Any], right: Sequence[object], wrong: Sequence[object]
) -> None:
    made = make_dataclass(
        "One", [("value", object, kind())], namespace={"__post_init__": check}, frozen=True
    )
    for value in right:
        assert made(value).value == value
    for value in wrong:
        with pytest.raises(ValueError, match="`value` must be "):
            made(value)


def test_defaults_and_bounds_are_allowed() -> None:
    assert Options() == Options(5, None, "kind", False, "x")
    Options(pause_ms=3600, tries=1, manner="none", loss=0, kept=0, wait_s=1)


def test_an_option_without_default_must_be_given() -> None:
    @dataclass(frozen=True)
    class Seeded:
        seed: int = number(MISSING, "", 0)

    assert Seeded(3).seed == 3
    with pytest.raises(TypeError, match="seed"):
        Seeded()


def test_a_declaration_has_default_and_unit_and_the_text_stands_below() -> None:
    options = declared(Options)
    assert list(options) == [
        *("pause_ms", "tries", "manner", "loud", "name", "loss", "kept", "wait_s")
    ]
    assert (options["pause_ms"].default, options["pause_ms"].unit) == (5, "ms")
    assert texts(Options)["pause_ms"] == "Pause between two lines."
