"""The verdict can be a bad one: it is asked about participants whose logs are written here."""

from base64 import b64encode
from collections import deque
from typing import Any

import pytest

from . import verdict
from .cells import Cell, Scenario
from .container import Event
from .defects import LATE_JOIN, Defect
from .peers import JsPeer, OurPeer, digest
from .stage import Stage
from .verdict import judge

MESSAGES = {"a": b"from ours", "b": b"from js"}
JOINED_AT = 100.0


def entry(message_id: str, payload: bytes) -> Event:
    """As a log has it."""
    return {
        "message_id": message_id,
        "sender_id": "x",
        "lamport_timestamp": ord(message_id[0]),
        "payload": b64encode(payload).decode(),
    }


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """A written log stands."""
    monkeypatch.setattr(verdict, "POLL_S", 0)


class Written:
    """A participant without a program."""

    def __init__(self, name: str, log: dict[str, bytes], told: list[str]) -> None:
        self.name, self.lives = name, 1
        self.accepted: dict[str, bytes] = {}
        self._entries = [entry(i, payload) for i, payload in sorted(log.items())]
        self.events = [
            entry(i, MESSAGES[i]) | {"event": "message_received", "redelivered": False}
            for i in told
        ]
        self.errors: deque[str] = deque()
        self.waits: list[str] = []

    def command(self, op: str, **_: Any) -> Event:
        if op == "statistics":
            return {"waiting": self.waits}
        return {"entries": self._entries, "digest": digest(self._entries)}


class WrittenOurs(Written, OurPeer):
    """One of ours."""


class WrittenJs(Written, JsPeer):
    """One of js-waku."""


def stage(ours: WrittenOurs, js: WrittenJs, *may_miss: Defect) -> Stage:
    """Where one of ours said `a` and then js-waku `b`, which came after `a`."""
    scenario = Scenario("0", "written", lambda stage: None, js_may_miss=may_miss)
    network: Any = type("Network", (), {"has_store": True})
    made = Stage(Cell(scenario, "ours-js", "store", "light"), network)
    made.peers = [ours, js]
    ours.accepted, js.accepted = {"a": MESSAGES["a"]}, {"b": MESSAGES["b"]}
    made.accepted_at = {"a": JOINED_AT - 1, "b": JOINED_AT + 1}
    made.began_at = {"ours": 0.0, "js": JOINED_AT}
    return made


def ours(log: dict[str, bytes] = MESSAGES, told: tuple[str, ...] = ("b",)) -> WrittenOurs:
    return WrittenOurs("ours", log, list(told))


def js(log: dict[str, bytes] = MESSAGES, told: tuple[str, ...] = ("a",)) -> WrittenJs:
    return WrittenJs("js", log, list(told))


def test_all_have_all() -> None:
    verdict = judge(stage(ours(), js()))
    assert verdict.accepted == 2
    assert verdict.js_missed == {}


@pytest.mark.parametrize(
    ("log", "told", "complaint"),
    [
        ({"a": MESSAGES["a"]}, (), "ours misses 1 of 2 accepted messages: b b'from js'"),
        (MESSAGES | {"c": b"?"}, ("b",), "ours holds 1 messages that nobody was given"),
        (MESSAGES | {"b": b"changed"}, ("b",), "changed contents"),
        (MESSAGES, (), "ours was not told of b"),
        (MESSAGES, ("b", "b"), "ours was told twice, without a warning, of b"),
    ],
)
def test_what_is_wrong_with_ours_fails(
    log: dict[str, bytes], told: tuple[str, ...], complaint: str
) -> None:
    with pytest.raises(AssertionError, match=complaint):
        judge(stage(ours(log, told), js()))


def test_what_js_misses_must_be_explained_by_a_defect_that_the_scenario_allows_for() -> None:
    without_a = {"b": MESSAGES["b"]}
    assert judge(stage(ours(), js(without_a), LATE_JOIN)).js_missed == {"js-late-join": 1}
    with pytest.raises(AssertionError, match="no defect explains"):
        judge(stage(ours(), js(without_a)))
    with pytest.raises(AssertionError, match="no defect explains"):
        judge(stage(ours(), js({"a": MESSAGES["a"]}), LATE_JOIN))


def test_waiting_explains_nothing_by_itself() -> None:
    waits = js({"b": MESSAGES["b"]})
    waits.waits = ["a"]
    with pytest.raises(AssertionError, match="waits for nothing that we know"):
        judge(stage(ours(), waits))


def test_logs_in_another_order_fail() -> None:
    other = js()
    other._entries.reverse()
    with pytest.raises(AssertionError, match="logs differ"):
        judge(stage(ours(), other))
