from __future__ import annotations

import gc
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pytest

from bench.floor import Floor
from bench.memory import compare_memory
from bench.ours import Ours
from bench.primitives import our_primitives
from bench.session import Plan, measure
from bench.workload import WireMessage, history_ids, message_id, traffic

PLAN = Plan(50, rounds=3, batch=2)


@pytest.fixture(autouse=True)
def frozen_again() -> Iterator[None]:
    """`measure` unfreezes what `conftest.py` froze."""
    yield
    gc.freeze()


class FakeSide:
    """Costs what it is told, and remembers what was asked of it."""

    def __init__(self, costs: Sequence[float]) -> None:
        self._costs = iter(costs)
        self.received: list[tuple[int, int]] = []
        self.payloads: list[bytes] = []
        self.unacknowledged = 0
        self.traffic = 0

    def setup(self, history: int, causal_history: int, traffic: Sequence[WireMessage]) -> None:
        self.traffic = len(traffic)

    def receive(self, start: int, count: int) -> float:
        self.received.append((start, count))
        return next(self._costs)

    def send(self, payloads: Sequence[bytes]) -> float:
        self.payloads.extend(payloads)
        return next(self._costs)

    def leave_unacknowledged(self, payloads: Sequence[bytes]) -> None:
        self.payloads.extend(payloads)
        self.unacknowledged += len(payloads)


def test_a_row_is_the_middle_one_of_its_rounds() -> None:
    ours = FakeSide([1.0, 9.0, 2.0] * 4)
    theirs = FakeSide([10.0, 70.0, 20.0] * 4)
    rows = list(measure(PLAN, 2, ours, theirs))
    assert [(row.operation, row.unacknowledged) for row in rows] == [
        ("receive", 0),
        ("send", 0),
        ("receive", 100),
        ("send", 100),
    ]
    assert {(row.ours_us, row.js_waku_us, row.ratio) for row in rows} == {(2.0, 20.0, 10.0)}
    assert {row.messages for row in rows} == {6}


def test_each_message_is_received_once_and_each_payload_sent_once() -> None:
    ours, theirs = FakeSide([1.0] * 12), FakeSide([1.0] * 12)
    list(measure(PLAN, 2, ours, theirs))
    assert ours.received == theirs.received == [(start, 2) for start in range(0, 18, 3)]
    assert ours.traffic == 18
    assert len(set(ours.payloads)) == len(ours.payloads) == 18 + 100
    assert ours.unacknowledged == theirs.unacknowledged == 100


def test_without_js_waku_its_figures_are_none() -> None:
    rows = list(measure(Plan(10, rounds=1, batch=1, js_waku=False), 2, FakeSide([1.0] * 4), None))
    assert {(row.js_waku_us, row.ratio) for row in rows} == {(None, None)}


def test_our_side_receives_and_sends_all_it_is_given() -> None:
    with closing_ours() as ours:
        rows = list(measure(PLAN, 20, ours, None))
        # A round's messages, its acknowledgement, and the hundred that nobody acknowledged.
        assert len(ours.core.log) == 50 + 18 + 18 + 6 + 100
        assert len(ours.core.outgoing_buffer) == 100
    assert all(row.ours_us > 0 and row.floor_us > 0 for row in rows)


def test_the_floor_costs_more_where_there_is_more_to_look_up() -> None:
    def floor_us(causal_history: int) -> float:
        floor = Floor(history_ids(200), list(traffic(200, causal_history, 40)))
        return min(floor.receive(start, 9) for start in range(0, 40, 10))

    assert 0 < floor_us(2) < floor_us(200)


def test_every_primitive_is_measured() -> None:
    found = our_primitives(list(traffic(10, 2, 3)), [message_id(n) for n in range(3)])
    assert set(found) == {"encode", "decode", "bloom_insert", "bloom_lookup", "bloom_to_bytes"}
    assert all(us > 0 for us in found.values())


def test_memory_is_what_a_message_takes_beside_its_content() -> None:
    found = compare_memory(2_000, None)
    assert 100 < found.ours < 10_000
    assert found.js_waku is None


@contextmanager
def closing_ours() -> Iterator[Ours]:
    ours = Ours()
    try:
        yield ours
    finally:
        ours.close()
