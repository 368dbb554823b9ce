"""Groups with wrong clocks, and groups in which all are deaf now and then."""

from itertools import pairwise

import pytest

from reliable_channel_lab.commands import compare
from reliable_channel_lab.sim.comparison import Cell, ComparedCell, run_cell, self_tuning
from reliable_channel_lab.sim.hardships import HARDSHIPS, bursts
from reliable_channel_lab.sim.measures import Measures
from reliable_channel_lab.sim.scenario import Partition, Scenario, Write


def measured(scenario: str, participants: int, loss: float) -> Measures:
    figure: ComparedCell = run_cell(Cell(scenario, participants, loss, "auto", 1001), compare._make)
    assert figure.measures is not None
    return figure.measures


def test_each_is_measured() -> None:
    measured_ones = {cell.scenario.partition(", ")[2] for cell in self_tuning(range(1, 2))}
    assert measured_ones == set(HARDSHIPS)


@pytest.mark.parametrize(("scenario", "participants"), [("1:1", 2), ("group", 5)])
def test_wrong_clocks_change_little(scenario: str, participants: int) -> None:
    right = measured(scenario, participants, 0.2)
    wrong = measured(f"{scenario}, wrong clocks", participants, 0.2)
    assert wrong.is_kept and wrong.messages == right.messages
    assert wrong.latency_p95_ms is not None and right.latency_p95_ms is not None
    assert wrong.latency_p95_ms < 2 * right.latency_p95_ms
    assert wrong.bytes_per_message < 2 * right.bytes_per_message


def test_everybody_is_deaf_a_fifth_of_the_time() -> None:
    writes = tuple(Write(at_ms, 0) for at_ms in range(0, 150_000, 10_000))
    faults = bursts(Scenario(1, 4, writes)).faults
    for number in range(4):
        mine = [f for f in faults if isinstance(f, Partition) and f.island == (number,)]
        assert all(fault.direction == "in" for fault in mine)
        pauses = {after.at_ms - before.at_ms for before, after in pairwise(mine)}
        assert pauses == {15_000} and {f.until_ms - f.at_ms for f in mine} == {3_000}
        assert mine[0].at_ms < 15_000 and mine[-1].at_ms >= 140_000
    assert len({fault.at_ms % 15_000 for fault in faults}) == 4


def test_bursts_lose_nothing_and_are_repaired_soon_after() -> None:
    found = measured("group, bursts", 5, 0.0)
    assert found.is_kept
    # Without them everything is there within 0.3 s.
    assert found.latency_p95_ms is not None and 1_000 < found.latency_p95_ms < 10_000
