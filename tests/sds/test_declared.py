"""An option is declared once: its type, bound, unit, text and default."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, make_dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest

from reliable_channel.sds.declared import (
    POSITIVE,
    SHARE,
    SHARE_BELOW_1,
    UNSET,
    Bound,
    Doc,
    Fits,
    Like,
    Unit,
    UnsetType,
    check,
    declared,
    known,
)


@dataclass(frozen=True)
class Group:
    pause_ms: Annotated[int, Bound(1), Doc("Pause.")] = 1


@dataclass(frozen=True)
class Options:
    pause_ms: Annotated[
        int,
        Bound(0, 3600),
        Doc("""Pause between
        two lines."""),
    ] = 5
    tries: Annotated[int | None, Bound(1), Unit("tries"), Doc("Maximum number of tries.")] = None
    manner: Annotated[Literal["kind", "rough", "none"], Doc("Manner of speaking.")] = "kind"
    loud: Annotated[bool, Doc("True if it shouts.")] = False
    name: Annotated[str, Fits("a name", bool)] = "x"
    loss: Annotated[float, SHARE_BELOW_1] = 0.1
    kept: Annotated[float, SHARE] = 1.0
    wait_s: Annotated[float, POSITIVE] = 0.5
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
        (Annotated[int, Bound(0, 9)], [0, 9], [-1, 10, 1.5, "5", None, True]),
        (Annotated[int, Bound(1)], [1, 10**12], [0]),
        (Annotated[int, Doc("")], [-1, 0], [1.5, None, True]),
        (Annotated[int | None, Bound(1, 9)], [None, 1], [0, UNSET]),
        (Annotated[int | UnsetType, Bound(1)], [UNSET, 1], [0, None]),
        (Annotated[float, Doc("")], [0.1, -7], ["1", None, True]),
        (Annotated[float, POSITIVE], [0.1, 7], [0, -1, "1", None, True]),
        (Annotated[float, SHARE], [0, 1], [-0.1, 1.1, "1", True]),
        (Annotated[float, SHARE_BELOW_1], [0, 0.9], [1, -0.1, "0"]),
        (Annotated[Literal["a", "b", "c"], Doc("")], ["a", "c"], ["d", None]),
        (Annotated[bool, Doc("")], [True, False], [1, "true", None]),
        (Annotated[str, Doc("")], ["", "a"], [1, None, b""]),
        (Annotated[str | Path, Doc("")], ["a", Path("a")], [1, None]),
        (Annotated[Group, Doc("")], [Group()], [1, None, {}]),
        (Annotated[Group | Mapping[str, int], Doc("")], [Group(), {}], [1, None]),
        (Annotated[int, Like(Group, "pause_ms")], [1], [0]),
        (Annotated[int, Bound(5), Like(Group, "pause_ms")], [5], [4]),
    ],
)
def test_a_kind_of_option_takes_its_values_and_no_other(
    kind: Any, right: Sequence[object], wrong: Sequence[object]
) -> None:
    made: Callable[[object], Any] = make_dataclass(
        "One", [("value", kind)], namespace={"__post_init__": check}, frozen=True
    )
    for value in right:
        assert made(value).value == value
    for value in wrong:
        with pytest.raises(ValueError, match="`value` must be "):
            made(value)


def test_defaults_and_bounds_are_allowed() -> None:
    assert Options() == Options(5, None, "kind", False, "x")
    Options(pause_ms=3600, tries=1, manner="none", loss=0, kept=0, wait_s=1)


def test_a_declaration_has_kind_default_unit_and_text() -> None:
    @dataclass(frozen=True)
    class More(Options):
        group: Annotated[Group, Doc("A group.")] = field(default_factory=Group)
        pause_ms: Annotated[int, Like(Options)] = 7
        seed: Annotated[int, Bound(0)] = field(kw_only=True)

    options = declared(More)
    assert list(options) == [
        *("pause_ms", "tries", "manner", "loud", "name", "loss", "kept", "wait_s", "group", "seed")
    ]
    pause, tries, group = options["pause_ms"], options["tries"], options["group"]
    assert (pause.kind, pause.default, pause.unit) == (int, 7, "ms")
    assert pause.doc == "Pause between two lines."
    assert (tries.kind, tries.default, tries.unit) == (int, None, "tries")
    assert (group.kind, group.default) == (Group, Group())
    assert options["manner"].kind == Literal["kind", "rough", "none"]
    assert options["seed"].default is MISSING


def test_a_type_without_a_check_is_refused() -> None:
    @dataclass(frozen=True)
    class Odd:
        mark: Annotated[bytes, Doc("Bytes.")] = b""

    with pytest.raises(TypeError, match=r"mark has the type .* needs a mark `Fits`"):
        declared(Odd)


def test_a_value_that_was_not_given_is_the_default() -> None:
    assert (known(3, 5), known(UNSET, 5), known(None, 5)) == (3, 5, None)
    assert repr(UNSET) == "UNSET"
