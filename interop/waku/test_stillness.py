"""js-waku stands where nothing comes any more, and not where the machine is slow."""

from collections.abc import Callable
from typing import Any, cast

import pytest

from .peers import JsPeer, JsState
from .stillness import VAIN_QUERIES, Stillness

PATIENCE_S = 40.0
WANTED = {"a", "b", "own"}
Lacks = dict[str, set[str]]


class Moving:
    """A participant that is written here, and its clock."""

    def __init__(self) -> None:
        self.accepted = {"own": b"own"}
        self.log: list[dict[str, Any]] = []
        self.lacks: Lacks = {}
        self.answered = 0
        self.now_s = 1_000.0

    def state(self) -> JsState:
        return JsState(*(frozenset(self.lacks.get(name, ())) for name in JsState.__slots__))

    def queries(self) -> int:
        return self.answered


@pytest.fixture
def moving() -> Moving:
    return Moving()


@pytest.fixture
def stands(moving: Moving) -> Callable[[], bool]:
    """Whether it stands, after one look that has seen it as it is now."""
    stillness = Stillness(
        cast("JsPeer", moving), PATIENCE_S, has_store=True, clock=lambda: moving.now_s
    )
    return lambda: stillness.look(moving.log, WANTED)


def test_it_stands_once_nothing_came_for_longer_than_it_is_waited_for(
    moving: Moving, stands: Callable[[], bool]
) -> None:
    assert not stands()
    moving.now_s += PATIENCE_S
    assert not stands()
    moving.now_s += 1
    assert stands()


@pytest.mark.parametrize(
    "move",
    [
        lambda moving: moving.log.append({"message_id": "a"}),
        lambda moving: moving.lacks.update(waiting={"a"}),
    ],
)
def test_what_comes_moves_it(
    moving: Moving, stands: Callable[[], bool], move: Callable[[Moving], None]
) -> None:
    stands()
    moving.now_s += PATIENCE_S + 1
    move(moving)
    assert not stands()
    moving.now_s += PATIENCE_S + 1
    assert stands()


def test_a_sync_message_that_waits_is_nothing_that_came(
    moving: Moving, stands: Callable[[], bool]
) -> None:
    stands()
    moving.now_s += PATIENCE_S + 1
    moving.lacks["waiting"] = {"sync-1"}
    assert stands()


def test_it_does_not_stand_before_it_has_asked_for_all_that_it_lacks(
    moving: Moving, stands: Callable[[], bool]
) -> None:
    moving.lacks["to_request"] = {"a", "b"}
    stands()
    moving.now_s += 10 * PATIENCE_S
    assert not stands()
    moving.lacks["to_request"] = {"own"}  # which nothing brings
    assert not stands()
    moving.now_s += PATIENCE_S + 1
    assert stands()


def test_it_does_not_stand_before_store_has_answered_in_vain(
    moving: Moving, stands: Callable[[], bool]
) -> None:
    moving.lacks["sought"] = {"a"}
    moving.answered = 7
    stands()
    moving.now_s += 10 * PATIENCE_S
    moving.answered += VAIN_QUERIES - 1
    assert not stands()
    moving.answered += 1
    assert stands()


def test_no_answer_of_store_is_waited_for_where_there_is_none(moving: Moving) -> None:
    moving.lacks["sought"] = {"a"}
    stillness = Stillness(
        cast("JsPeer", moving), PATIENCE_S, has_store=False, clock=lambda: moving.now_s
    )
    assert not stillness.look(moving.log, WANTED)
    moving.now_s += PATIENCE_S + 1
    assert stillness.look(moving.log, WANTED)
