"""Journals of simulated participants."""

from __future__ import annotations

from pathlib import Path

import pytest

from reliable_channel_lab.journals import journals_in
from reliable_channel_lab.sim import Simulation, draw_scenario
from tests.journal_lines import json_lines

SEED = 7
"""Three participants, of which two are killed, a partition, and a Store that is away."""


def test_journals_say_what_the_simulator_knows_and_change_nothing(tmp_path: Path) -> None:
    scenario = draw_scenario(SEED)
    simulation = Simulation(scenario, journals=journals_in(tmp_path, scenario))
    result = simulation.run()
    assert result == Simulation(scenario).run()
    assert result.violation is None
    for watch in simulation.watches:
        lines = json_lines(tmp_path / f"{watch.name}.jsonl")
        logged = [line["message_id"] for line in lines if line["event"] == "message_logged"]
        assert set(logged) == set(watch.window)
        assert lines[-1]["event"] == "journal_closed"
        sessions = [line for line in lines if line["event"] == "journal_opened"]
        assert all(line["has_store"] for line in sessions)
        assert sessions[0]["wanted_from_ms"] is not None
    assert watch.window


def test_journals_of_before_are_not_continued(tmp_path: Path) -> None:
    (tmp_path / "p0.jsonl").write_text("")
    with pytest.raises(FileExistsError, match="name an empty directory"):
        journals_in(tmp_path, draw_scenario(SEED))
