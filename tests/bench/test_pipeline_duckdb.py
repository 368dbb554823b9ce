"""The yardstick of the pipeline gives the figures of `check`, on clean journals and others."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from bench.pipeline_cases import Shape, written
from reliable_channel_audit.check import check
from tests.plugins.audit.planted import plant

pytest.importorskip("duckdb", reason="it comes with `make bench-pipeline`")


@contextmanager
def figures(journals: Path, scratch: Path) -> Iterator[dict[str, int]]:
    from bench.pipeline_duckdb import Yardstick

    yardstick = Yardstick(journals, scratch)
    yardstick.read()
    yield yardstick.verdict()
    yardstick.close()


def test_figures_are_those_of_check(tmp_path: Path) -> None:
    """Also where a journal is in several parts."""
    with written("4x60+2x20/1", Shape()) as journals:
        found = check([journals])
        with figures(journals, tmp_path) as counts:
            assert counts["participants"] == found.participants == 5
            assert counts["deliveries"] == found.deliveries == 4 * 60 + 20
            assert counts["messages"] == found.messages == 80
            assert counts["logs"] == found.logs == 2
            assert counts["delivered_twice"] == counts["never_delivered"] == 0


def test_a_missing_message_is_missing_for_both(tmp_path: Path) -> None:
    with written("4x60", Shape()) as journals:
        plant("missing", next(journals.rglob("p001.jsonl")), seed=1)
        found = check([journals])
        with figures(journals, tmp_path) as counts:
            assert counts["never_delivered"] == found.broken["delivery"] == 1
            assert counts["logs"] == found.logs == 2
