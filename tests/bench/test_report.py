"""The report of `make bench`: rows that readers of its JSON expect, and targets that are judged."""

import io
import json
from pathlib import Path

from rich.console import Console

from bench.machine import this_machine
from bench.report import Comparison, Report, print_machine, print_tables, write_json
from bench.session import Row

ROW_KEYS = "history causal_history unacknowledged ours_us js_waku_us ratio floor_ratio".split()


def full_report(ours_us: float = 90.0, largest_us: float = 95.0) -> Report:
    return Report(
        this_machine(None),
        quick=False,
        rows=[
            Row("receive", 10_000, 200, 0, 100, ours_us, 27_000.0, 60.0),
            Row("send", 10_000, 200, 0, 100, 60.0, 6_000.0, 60.0),
            Row("receive", 1_000_000, 200, 0, 100, largest_us, None, 60.0),
        ],
        primitives=[Comparison("decode", "µs", 50.0, 200.0)],
        memory=[Comparison("10,000 messages", "bytes", 700.0, None)],
    )


def test_rows_have_the_keys_that_readers_expect_and_null_for_what_was_not_run(
    tmp_path: Path,
) -> None:
    write_json(full_report(), tmp_path / "results" / "latest.json")
    first, large = json.loads((tmp_path / "results" / "latest.json").read_text(encoding="utf-8"))[
        "receive"
    ]
    assert list(first) == list(large) == ROW_KEYS
    assert (first["ratio"], first["floor_ratio"]) == (300.0, 1.5)
    assert large["js_waku_us"] is large["ratio"] is None


def test_targets_are_judged_by_what_was_found() -> None:
    assert [target.met for target in full_report().targets()] == [True, True, True, True]
    slow = list(full_report(ours_us=200.0, largest_us=300.0).targets())
    assert [target.met for target in slow] == [False, False, False, True]
    assert not list(Report(this_machine(None), quick=True).targets())


def test_tables_name_every_figure() -> None:
    console = Console(file=io.StringIO(), width=120)
    print_tables(full_report(), console)
    print_machine(this_machine(None), console)
    assert isinstance(console.file, io.StringIO)
    text = console.file.getvalue()
    for expected in ("27,000", "1,000,000", "decode", "memory a message", "met"):
        assert expected in text
