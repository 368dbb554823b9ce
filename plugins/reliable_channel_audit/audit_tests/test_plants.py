"""What docs/facts.md promises of a verdict, fault by fault."""

from __future__ import annotations

from pathlib import Path

import pytest

from reliable_channel_audit.check import check
from reliable_channel_audit.findings import NOBODY_HAS_IT
from reliable_channel_audit.verdict import Value
from reliable_channel_lab.journals import journals_in
from reliable_channel_lab.sim import Simulation, draw_scenario
from reliable_channel_lab.sim.scenario import ClockJump, Hostile
from tests.slow import long, slow

from . import simulated
from .live_audit.growing import Growing, judged, live
from .plants import EMPTY, GROUP_FAULTS, SETTINGS, Cell, Sources, cells, read, shown, table, write

PAGE = Path(__file__).parents[3] / "docs" / "facts.md"


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Sources:
    return Sources(tmp_path_factory.mktemp("sources"))


def on_page(setting: str) -> dict[str, str]:
    """The cells of a setting, by fault."""
    _, _, rest = PAGE.read_text().partition("| planted fault |")
    rows = [line.strip("| ").split(" | ") for line in rest.split("\n\n")[0].splitlines()[2:]]
    column = list(SETTINGS).index(setting) + 1
    return {row[0]: row[column] for row in rows if row[column] != EMPTY}


@pytest.mark.parametrize("setting", ["two", *slow("group"), *long("parts", "simulated")])
def test_the_page_has_what_is_found_of_each_fault(
    sources: Sources, tmp_path: Path, setting: str
) -> None:
    """A broken promise is never found kept, and nothing that holds is found broken; no participant
    is accused of what another one did."""
    found = {}
    for number, cell in enumerate(each for each in cells() if each.setting == setting):
        place = tmp_path / str(number)
        name = sources.plant(cell, place)
        verdict = check([place])
        assert verdict.value is not (Value.KEPT if cell.is_broken else Value.BROKEN), cell
        if cell.fault in GROUP_FAULTS and cell.fault != "half of the clocks three hours behind":
            found_here = (each for each in verdict.findings if each.detail != NOBODY_HAS_IT)
            accused = {each.participant_id for each in found_here}
            assert accused <= {name, ""}, cell
        found[cell.fault] = shown(verdict)
    assert found == on_page(setting)


def test_the_table_has_at_least_150_faults() -> None:
    assert len(cells()) >= 150
    assert sum(len(on_page(setting)) for setting in SETTINGS) == len(cells())


@pytest.mark.slow  # in `make test` other faults are found live
@pytest.mark.parametrize("fault", sorted(GROUP_FAULTS.keys() - {"no journal", "an empty journal"}))
def test_a_live_audit_finds_the_same(sources: Sources, tmp_path: Path, fault: str) -> None:
    sources.plant(Cell(fault, "group", True), tmp_path / "whole")
    growing = Growing(tmp_path / "whole", tmp_path / "live")
    with live(tmp_path, tmp_path / "live") as judge:
        found = judged(judge, growing)
    verdict = check([tmp_path / "whole"])
    assert found == {
        (each.audit, each.participant_id, each.message_id) for each in verdict.findings
    }


def test_a_healthy_group_has_no_finding_whenever_it_is_collected(tmp_path: Path) -> None:
    """At 25 moments of a run with losses that are repaired, and followed live. With 10 s for a
    repair 10 of them have a finding."""
    simulated.run(3, tmp_path / "whole")
    whole = read(tmp_path / "whole")
    times = sorted(line["at_ms"] for lines in whole.values() for line in lines)
    for moment in range(1, 26):
        end_ms = times[len(times) * moment // 26]
        write(
            tmp_path / "cut",
            {name: [x for x in lines if x["at_ms"] <= end_ms] for name, lines in whole.items()},
        )
        assert check([tmp_path / "cut"]).findings == []
    with live(tmp_path, tmp_path / "live") as judge:
        assert judged(judge, Growing(tmp_path / "whole", tmp_path / "live")) == set()


def test_a_live_finding_is_taken_back_if_the_message_was_late(tmp_path: Path) -> None:
    simulated.run(3, tmp_path / "whole")
    growing = Growing(tmp_path / "whole", tmp_path / "live")
    reports: list[dict[str, object]] = []
    with live(tmp_path, tmp_path / "live", settle_ms=1_000) as judge:
        for now_ms in growing.steps(100):
            reports += judge.step(now_ms)
    found = sorted(str(each["id"]) for each in reports if each["kind"] == "finding")
    assert found
    assert found == sorted(str(each["id"]) for each in reports if each["kind"] == "withdrawn")


@pytest.mark.parametrize("seed", [9005, 9016, 9020, 9024])
def test_of_any_simulated_group_it_finds_what_the_ledger_has(tmp_path: Path, seed: int) -> None:
    """With all faults that the simulator draws: hostile members, wrong clocks, nine in ten lost."""
    scenario = draw_scenario(seed)
    simulation = Simulation(scenario, journals=journals_in(tmp_path, scenario))
    assert simulation.run().violation is None
    logs = {watch.name: watch.window for watch in simulation.watches}
    sent = {each.message_id for each in simulation.ledger}
    faults = {type(fault) for fault in scenario.faults}
    for finding in check([tmp_path]).findings:
        if finding.audit == "delivery":
            assert finding.message_id in sent
            assert finding.message_id not in logs[finding.participant_id]
        elif finding.audit == "ids":
            assert Hostile in faults and finding.participant_id == ""
        else:
            assert finding.audit == "clock" and ClockJump in faults


def test_a_row_of_the_table() -> None:
    assert table({("a loss", "two"): "kept"}).endswith("\n| a loss | - | - | kept | - |\n")
