"""How long all are waited for: ours until a guard, js-waku while it moves."""

from collections.abc import Callable
from typing import Any

import pytest

from . import stage as stage_module
from .container import Event
from .defects import LATE_JOIN, Defect
from .stage import GUARD_S, JS_PAST_S
from .test_verdict import MESSAGES, WrittenJs, WrittenOurs, entry, js, ours, stage

SLOW_S = 1_000.0


class Time:
    """It goes on where a participant waits."""

    def __init__(self) -> None:
        self.now_s = 5_000.0
        self.then: dict[float, Callable[[], None]] = {}
        """What happens, by time."""

    def sleep(self, seconds: float) -> None:
        self.now_s += seconds
        for at_s in [at_s for at_s in self.then if at_s <= self.now_s]:
            self.then.pop(at_s)()


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> Time:
    made = Time()
    monkeypatch.setattr(stage_module, "monotonic", lambda: made.now_s)
    monkeypatch.setattr(stage_module, "sleep", made.sleep)
    return made


class LateOurs(WrittenOurs):
    """One of ours, which gets something late."""

    def gets(self, message_id: str) -> None:
        self._entries.append(entry(message_id, MESSAGES[message_id]))


def test_one_of_ours_that_is_slow_is_waited_for(time: Time) -> None:
    slow = LateOurs("ours", {"a": MESSAGES["a"]}, [])
    time.then[time.now_s + SLOW_S] = lambda: slow.gets("b")
    began_s = time.now_s
    stage(slow, js()).converge()
    assert SLOW_S <= time.now_s - began_s < SLOW_S + 10


def test_one_of_ours_that_never_gets_it_fails_by_the_guard(time: Time) -> None:
    began_s = time.now_s
    with pytest.raises(TimeoutError, match=r"ours lacks 1 messages: b b'from js'"):
        stage(ours({"a": MESSAGES["a"]}), js()).converge()
    assert time.now_s - began_s > GUARD_S


class Asking(WrittenJs):
    """One of js-waku that always has something to ask the others for, so that it never stands."""

    def command(self, op: str, **fields: Any) -> Event:
        answer = super().command(op, **fields)
        return answer | {"to_request": ["a"]} if op == "statistics" else answer


@pytest.mark.parametrize(
    ("may_miss", "log", "waits", "takes_s"),
    [
        ([LATE_JOIN], {"b": MESSAGES["b"]}, [], JS_PAST_S),
        ([LATE_JOIN], {}, ["b"], JS_PAST_S),  # it waits for what was said before
        ([LATE_JOIN], {}, [], GUARD_S),
        ([], {"b": MESSAGES["b"]}, [], GUARD_S),
    ],
)
def test_a_late_js_waku_is_not_waited_for_without_end(
    time: Time, may_miss: list[Defect], log: dict[str, bytes], waits: list[str], takes_s: float
) -> None:
    asking = Asking("js", log, [])
    asking.waits += waits
    began_s = time.now_s
    stage(ours(), asking, *may_miss).converge()
    assert takes_s < time.now_s - began_s < takes_s + 10
