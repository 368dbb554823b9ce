"""Runs as they lie on disk, against what is known of them."""

import json
from pathlib import Path

import pytest

from reliable_channel_audit.check import check
from reliable_channel_audit.group_reliability.figures import Figures
from reliable_channel_audit.group_reliability.runs import (
    Run,
    by_scenario,
    differences,
    find_runs,
    measure,
    shown,
    varied,
)

from ..generated import write_group
from ..planted import plant
from ..plants import Cell, Sources
from .samples import (
    KnownRun,
    relay_lines,
    status_lines,
    write_dump,
    write_files,
)

LOST = {2: {10, 11, 12, 30}, 4: {49}}


def only(path: Path, settle_ms: int = 10_000) -> Run:
    ((name, files, metadata),) = find_runs([path])
    return measure(name, files, metadata, settle_ms=settle_ms)


@pytest.mark.parametrize("kind", ["relay", "relay as JSON", "status"])
@pytest.mark.parametrize("is_dump", [False, True], ids=["files", "dump"])
def test_figures_of_field_logs_are_what_happened(tmp_path: Path, kind: str, is_dump: bool) -> None:
    run = KnownRun(lost=LOST)
    lines = {
        "relay": relay_lines(run),
        "relay as JSON": relay_lines(run, as_json=True),
        "status": status_lines(run),
    }[kind]
    if is_dump:
        write_dump(tmp_path / "dump.json", run, lines)
    else:
        write_files(tmp_path, run, lines)
    measured = only(tmp_path)
    figures = measured.figures
    # The origin of 10 is node 4, of 11 node 5, of 12 node 0, of 30 node 0, of 49 node 1.
    assert (figures.messages, figures.lost, figures.expected) == (60, 5, 300)
    assert (figures.holes, figures.longest_hole, figures.lost_at_the_end) == (3, 3, 0)
    exact = sorted(ms // 1000 for ms in run.latencies_us)
    assert sorted(figures.delays_ms) == pytest.approx(exact, abs=1)
    assert figures.values()["repaired"] is None
    assert not measured.warnings


def test_a_node_that_logged_nothing_is_expected_to_have_everything(tmp_path: Path) -> None:
    run = KnownRun(lost={5: set(range(60))})
    lines = ((at, node, text) for at, node, text in relay_lines(run) if node != 5)
    write_dump(tmp_path / "dump.json", run, lines)
    without = only(tmp_path).figures
    stack = {"stateful_sets": ["nodes-0"], "nodes_per_statefulset": [6]}
    (tmp_path / "metadata.json").write_text(json.dumps({"stack": stack}))
    measured = only(tmp_path)
    assert (without.participants, measured.figures.participants) == (5, 6)
    assert measured.figures.expected > without.expected
    assert "1 participants had no message at all" in measured.warnings


def test_metadata_of_an_experiment_names_it(tmp_path: Path) -> None:
    run = KnownRun()
    write_files(tmp_path / "a" / "log", run, relay_lines(run))
    metadata = {
        "experiment": {"name": "churn", "class": "NodeChurn"},
        "params": {"image_repo": "wakuorg/nwaku", "image_tag": "v0.38", "churn": {"at": 30}}
        | {"num_messages": 600},
    }
    (tmp_path / "a" / "metadata.json").write_text(json.dumps(metadata))
    (tmp_path / "a" / "out.log").write_text("run_finished\n")
    measured = only(tmp_path)
    assert (measured.name, measured.scenario) == ("a", "churn")
    assert measured.implementation == "wakuorg/nwaku:v0.38"
    assert measured.settings["churn.at"] == "30"
    assert measured.figures.participants == 6


def test_directories_of_runs_are_a_sweep(tmp_path: Path) -> None:
    for name in ("b", "a"):
        run = KnownRun(messages=20)
        write_files(tmp_path / "sweep" / name, run, relay_lines(run))
    assert [name for name, _, _ in find_runs([tmp_path])] == ["a", "b"]
    with pytest.raises(FileNotFoundError):
        list(find_runs([tmp_path / "does not exist"]))
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match="no logs in"):
        list(find_runs([tmp_path / "empty"]))


def test_logs_without_a_message_measure_nothing(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text("INF Node started\n")
    (tmp_path / "b.log").write_text("")
    measured = only(tmp_path)
    assert measured.figures.participants == 2
    assert measured.figures.values()["delivery_rate"] is None
    assert measured.warnings[0].startswith("nothing was measured")


@pytest.mark.parametrize("seed", range(1, 4))
def test_journals_agree_with_the_verdict(tmp_path: Path, seed: int) -> None:
    paths = write_group(tmp_path, seed=seed, loss=0.3)
    plant("missing", paths[seed], seed)
    verdict, measured = check([tmp_path]), only(tmp_path)
    figures = measured.figures
    assert verdict.broken == {"delivery": 1}
    assert verdict.delivered == (len(figures.delays_ms), figures.expected)
    assert (figures.participants, figures.lost, figures.holes) == (4, 1, 1)
    assert figures.values()["latency_p99_ms"] == verdict.rates[0].p99_ms
    assert measured.implementation == "reliable-channel"
    # 30 % of the copies came from Store, two to five seconds late.
    assert figures.values()["repaired"] == figures.ways["store"]
    assert 0.2 < figures.ways["store"] / len(figures.delays_ms) < 0.4
    assert measured.settings["bloom_capacity"] == "60"


def test_a_wrong_clock_is_corrected(tmp_path: Path) -> None:
    paths = write_group(tmp_path, loss=0, seed=2)
    plant("a clock 15 s ahead", paths[1], 2)
    assert max(only(tmp_path).figures.delays_ms) < 20_000


@pytest.mark.parametrize(
    "fault", ["a clock set two hours forward", "unreadable: 40 lines of others"]
)
def test_a_participant_whose_journal_does_not_show_it_is_left_out(
    tmp_path: Path, fault: str
) -> None:
    """Otherwise a latency of two hours, or losses that there were not, would be among the rest."""
    name = Sources(tmp_path / "sources").plant(Cell(fault, "group", True), tmp_path / "run")
    measured = only(tmp_path / "run")
    assert any(each.startswith(f"{name} is left out: ") for each in measured.warnings)
    assert measured.figures.participants == 3
    assert not measured.figures.lost
    assert max(measured.figures.delays_ms) < 20_000


def run(name: str, scenario: str, implementation: str, delivered: int, **options: str) -> Run:
    figures = Figures(delays_ms=[1] * delivered, lost=100 - delivered, participants=5)
    return Run(name, scenario, implementation, options, figures, [])


def test_implementations_stand_beside_each_other_by_scenario() -> None:
    runs = [
        run("1", "churn", "js", 90),
        run("2", "baseline", "js", 100),
        run("3", "churn", "ours", 100),
        run("4", "churn", "js", 80),
    ]
    rows = by_scenario(runs)
    assert [(row.scenario, row.implementation) for row in rows] == [
        ("churn", "js"),
        ("churn", "ours"),
        ("baseline", "js"),
    ]
    assert rows[0].figures.values()["delivery_rate"] == 0.85
    assert len(runs[0].figures.delays_ms) == 90


def test_settings_that_differ_are_columns() -> None:
    runs = [
        run("1", "s", "i", 1, loss="0.1", size="5"),
        run("2", "s", "i", 1, loss="0.3", size="5"),
    ]
    assert varied(runs) == ["loss"]
    assert varied([*runs, run("3", "s", "i", 1, loss="0.1")]) == ["loss", "size"]


def test_the_difference_of_two_runs() -> None:
    both = differences(run("1", "s", "i", 90), run("2", "s", "i", 95))
    change = {each["figure"]: each["change"] for each in both}
    assert change["deliveries"] == 5
    assert change["delivery_rate"] == pytest.approx(0.05)
    assert change["repaired"] is None


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("delivery_rate", 1.0, "100 %"),
        ("delivery_rate", 0.9999999, "99.99 %"),
        ("delivery_rate", -0.98765, "-98.76 %"),
        ("latency_p50_ms", 12.345, "12.3 ms"),
        ("latency_p50_ms", 1_500, "1.5 s"),
        ("latency_p50_ms", -150_000, "-150 s"),
        ("holes", 12_345, "12,345"),
        ("holes", None, "-"),
    ],
)
def test_a_figure_as_text(name: str, value: float | None, text: str) -> None:
    assert shown(name, value) == text
