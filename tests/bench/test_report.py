from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from rich.console import Console

from bench.machine import Machine, this_machine
from bench.report import Comparison, Report, print_machine, print_tables, write_json
from bench.session import Row

ROW_KEYS = [
    "history",
    "causal_history",
    "unacknowledged",
    "ours_us",
    "js_waku_us",
    "ratio",
    "floor_ratio",
]
MACHINE = Machine("cpu", 2, "Linux", "CPython 3.11", "7 (upb)", "v22.0.0", 0.1)


def full_report(ours_us: float = 90.0, largest_us: float = 95.0) -> Report:
    return Report(
        MACHINE,
        quick=False,
        rows=[
            Row("receive", 10_000, 200, 0, 100, ours_us, 27_000.0, 60.0),
            Row("send", 10_000, 200, 0, 100, 60.0, 6_000.0, 60.0),
            Row("receive", 1_000_000, 200, 0, 100, largest_us, None, 60.0),
        ],
        primitives=[Comparison("decode", "µs", 50.0, 200.0)],
        memory=[Comparison("10,000 messages", "bytes", 700.0, None)],
    )


def written(report: Report, path: Path) -> dict[str, object]:
    write_json(report, path)
    result: dict[str, object] = json.loads(path.read_text(encoding="utf-8"))
    return result


def test_rows_have_exactly_the_keys_that_readers_expect(tmp_path: Path) -> None:
    result = written(full_report(), tmp_path / "results" / "latest.json")
    assert [list(row) for row in _list(result["receive"])] == [ROW_KEYS, ROW_KEYS]
    assert [list(row) for row in _list(result["send"])] == [ROW_KEYS]


def test_ratios_say_how_many_times(tmp_path: Path) -> None:
    row = _list(written(full_report(), tmp_path / "latest.json")["receive"])[0]
    assert row["ratio"] == 300.0
    assert row["floor_ratio"] == 1.5


def test_what_was_not_run_is_null(tmp_path: Path) -> None:
    row = _list(written(full_report(), tmp_path / "latest.json")["receive"])[1]
    assert row["js_waku_us"] is None
    assert row["ratio"] is None


def test_targets_are_judged_by_what_was_found() -> None:
    assert [target.met for target in full_report().targets()] == [True, True, True, True]
    slow = list(full_report(ours_us=200.0, largest_us=300.0).targets())
    assert [target.met for target in slow] == [False, False, False, True]


def test_targets_are_silent_about_what_was_not_run() -> None:
    assert not list(Report(MACHINE, quick=True).targets())


def test_tables_name_every_figure() -> None:
    console = Console(file=io.StringIO(), width=120)
    print_tables(full_report(), console)
    print_machine(MACHINE, console)
    text = _text(console)
    for expected in ("27,000", "1,000,000", "decode", "memory a message", "met", "v22.0.0"):
        assert expected in text


@pytest.mark.parametrize(("load_average", "busy"), [(0.2, False), (1.5, True)])
def test_a_busy_machine_is_mentioned(load_average: float, busy: bool) -> None:
    console = Console(file=io.StringIO(), width=120)
    machine = Machine("cpu", 2, "Linux", "CPython 3.11", "7 (upb)", None, load_average)
    print_machine(machine, console)
    assert ("busy" in _text(console)) is busy


def test_the_machine_describes_itself() -> None:
    machine = this_machine(None)
    assert machine.cpu
    assert machine.cpus >= 1
    assert machine.node is None


def _list(value: object) -> list[dict[str, object]]:
    assert isinstance(value, list)
    return value


def _text(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()
