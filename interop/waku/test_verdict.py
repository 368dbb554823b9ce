"""The verdict can be a bad one: it is asked about participants whose logs are written here."""

from base64 import b64encode
from collections import deque
from typing import Any

import pytest

from . import verdict
from .cells import Cell, Scenario
from .container import Event
from .defects import LATE_JOIN, WRONG_HINT, Defect
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
    monkeypatch.setattr(verdict, "POLL_S", 0)


class Written:
    """A participant without a program."""

    def __init__(self, name: str, log: dict[str, bytes], emitted: list[str]) -> None:
        self.name, self.lives = name, 1
        self.accepted: dict[str, bytes] = {}
        self._entries = [entry(i, payload) for i, payload in sorted(log.items())]
        self.events = [
            entry(i, MESSAGES[i]) | {"event": "message_received", "redelivered": False}
            for i in emitted
        ]
        self.errors: deque[str] = deque()
        self.waits: list[str] = []
        self.sought: list[str] = []

    def command(self, op: str, **_: Any) -> Event:
        if op == "statistics":
            return {"waiting": self.waits, "to_request": [], "sought": self.sought}
        return {"entries": self._entries, "digest": digest(self._entries)}


class WrittenOurs(Written, OurPeer):
    """One of ours."""


class WrittenJs(Written, JsPeer):
    def requests(self, message_id: str, at_ms: int) -> None:
        """It asks Store for it without success, and the others once."""
        self.sought.append(message_id)
        self.events += [
            {"event": "store_queried", "at_ms": at_ms, "by": "hash", "asked": 1, "found": 0},
            {"event": "repair_requested", "at_ms": at_ms, "message_ids": [message_id]},
        ]


def stage(ours: WrittenOurs, js: WrittenJs, *may_miss: Defect) -> Stage:
    """Where one of ours said `a` and then js-waku `b`, which came after `a`."""
    scenario: Scenario[Stage] = Scenario("0", "written", lambda stage: None, js_may_miss=may_miss)
    network: Any = type("Network", (), {"has_store": True})
    made = Stage(Cell(scenario, "ours-js", "store", "light"), network)
    made.peers = [ours, js]
    ours.accepted, js.accepted = {"a": MESSAGES["a"]}, {"b": MESSAGES["b"]}
    made.accepted_at = {"a": JOINED_AT - 1, "b": JOINED_AT + 1}
    made.began_at = {"ours": 0.0, "js": JOINED_AT}
    return made


def ours(log: dict[str, bytes] = MESSAGES, emitted: tuple[str, ...] = ("b",)) -> WrittenOurs:
    return WrittenOurs("ours", log, list(emitted))


def js(log: dict[str, bytes] = MESSAGES, emitted: tuple[str, ...] = ("a",)) -> WrittenJs:
    return WrittenJs("js", log, list(emitted))


def test_all_have_all() -> None:
    verdict = judge(stage(ours(), js()))
    assert verdict.accepted == 2
    assert verdict.js_missed == {}


@pytest.mark.parametrize(
    ("log", "emitted", "complaint"),
    [
        ({"a": MESSAGES["a"]}, (), "ours misses 1 of 2 accepted messages: b b'from js'"),
        (MESSAGES | {"c": b"?"}, ("b",), "ours holds 1 messages that were not accepted"),
        (MESSAGES | {"b": b"changed"}, ("b",), "changed contents"),
        (MESSAGES, (), "ours did not emit b"),
        (MESSAGES, ("b", "b"), "ours emitted twice as new: b"),
    ],
)
def test_what_is_wrong_with_ours_fails(
    log: dict[str, bytes], emitted: tuple[str, ...], complaint: str
) -> None:
    with pytest.raises(AssertionError, match=complaint):
        judge(stage(ours(log, emitted), js()))


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


def stage_with_wrong_hint(ours: WrittenOurs) -> tuple[Stage, WrittenJs]:
    """Where `b` is of another of js-waku, and the first one has asked for it once."""
    lacks_b = js({"a": MESSAGES["a"]})
    made = stage(ours, lacks_b, WRONG_HINT)
    other = WrittenJs("js-2", MESSAGES, ["a"])
    lacks_b.accepted, other.accepted = {}, {"b": MESSAGES["b"]}
    made.peers.append(other)
    made.began_at["js-2"] = JOINED_AT
    lacks_b.requests("b", at_ms=1_000)
    return made, lacks_b


REACHED_OURS = {
    "event": "repair_request_received",
    "at_ms": 1_001,
    "sender_id": "js",
    "message_ids": ["b"],
}
OURS_ANSWERED = {"event": "repair_sent", "at_ms": 1_002, "message_id": "b"}


@pytest.mark.parametrize("happened", [[], [REACHED_OURS, OURS_ANSWERED]])
def test_a_wrong_hint_explains_what_one_request_did_not_bring(happened: list[Event]) -> None:
    one = ours()
    made, _ = stage_with_wrong_hint(one)
    one.events += happened
    assert judge(made).js_missed == {"js-wrong-hint": 1}


@pytest.mark.parametrize(
    ("happened", "became"),
    [
        ([REACHED_OURS], "ignored"),
        ([REACHED_OURS, OURS_ANSWERED | {"at_ms": 999}], "ignored"),  # somebody else's request
    ],
)
def test_a_request_that_ours_ignored_is_no_defect_of_js_waku(
    happened: list[Event], became: str
) -> None:
    one = ours()
    made, _ = stage_with_wrong_hint(one)
    one.events += happened
    with pytest.raises(AssertionError, match=f"request='{became}'"):
        judge(made)


@pytest.mark.parametrize("lacks", ["store_queried", "repair_requested"])
def test_a_wrong_hint_explains_nothing_that_was_not_asked_for(lacks: str) -> None:
    made, asker = stage_with_wrong_hint(ours())
    asker.events = [event for event in asker.events if event["event"] != lacks]
    if lacks == "store_queried":
        asker.sought.clear()
    with pytest.raises(AssertionError, match="no defect explains 1: b b'from js'"):
        judge(made)


def test_a_failure_says_what_js_waku_did_to_get_what_it_misses() -> None:
    one = ours()
    made, asker = stage_with_wrong_hint(one)
    one.events.append(REACHED_OURS)
    asker.events.append({"event": "push_failed", "at_ms": 1_003, "reason": "No peer available"})
    with pytest.raises(AssertionError) as failed:
        judge(made)
    for part in (
        "js misses 1 of 2 messages, from b b'from js' to b b'from js'; 0 of these came",
        "its log has 1",
        "no defect explains 1: b b'from js'",
        "Store by hash: 1 queries, 0 found, the last (asked, found, error) [(1, 0, '')]",
        "repair: 1 ids in 1 requests",
        "1 light pushes failed, the last [{'event': 'push_failed'",
    ):
        assert part in str(failed.value)


def test_logs_in_another_order_fail() -> None:
    other = js()
    other._entries.reverse()
    with pytest.raises(AssertionError, match="logs differ"):
        judge(stage(ours(), other))
