"""DuckDB gives the figures of `check`, on clean journals and others."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import Any

import pytest

from audit_tests.planted import plant
from bench.pipeline_cases import Shape, written
from reliable_channel_audit.check import check

pytest.importorskip("duckdb", reason="it comes with `make bench WHAT=pipeline`")


def figures(journals: Path, scratch: Path) -> dict[str, Any]:
    from bench.pipeline import by_duckdb

    return by_duckdb({}, journals, scratch)


def test_figures_are_those_of_check(tmp_path: Path) -> None:
    """Also where a journal is in several parts."""
    with written("4x60+2x20/1", Shape()) as journals:
        found = check([journals])
        counts = figures(journals, tmp_path)
        assert counts["participants"] == found.participants == 5
        assert counts["deliveries"] == found.deliveries == 4 * 60 + 20
        assert counts["messages"] == found.messages == 80
        assert counts["logs"] == found.logs == 2
        assert counts["delivered_twice"] == counts["never_delivered"] == 0


def test_a_missing_message_is_missing_for_both(tmp_path: Path) -> None:
    with written("4x60", Shape()) as journals:
        plant("missing", next(journals.rglob("p001.jsonl")), seed=1)
        found = check([journals])
        counts = figures(journals, tmp_path)
        assert counts["never_delivered"] == found.broken["delivery"] == 1
        assert counts["logs"] == found.logs == 2


def test_every_figure_is_the_same_also_without_a_journal(tmp_path: Path) -> None:
    """The view `latency` has only messages whose sender has a journal."""
    from bench.pipeline import Case, row

    case = Case("one journal is missing", "4x60+2x40/1", Shape())
    with written(case.groups, case.shape) as journals:
        row(case, journals, None, Namespace(duckdb=True, no_check=False))
        found = figures(journals, tmp_path)
    ways = [{each[0] for each in found[name]} for name in ("ways", "latency")]
    assert ways == [{"live", "store", "unknown"}, {"live", "store"}]
