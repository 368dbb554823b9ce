"""Runs beside each other."""

import pytest

from reliable_channel_audit.group_reliability.figures import Figures
from reliable_channel_audit.group_reliability.runs import Run
from reliable_channel_audit.group_reliability.tables import (
    by_scenario,
    differences,
    shown,
    varied,
)


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
    found = {
        each.figure: each for each in differences(run("1", "s", "i", 90), run("2", "s", "i", 95))
    }
    assert found["deliveries"].change == 5
    assert found["delivery_rate"].change == pytest.approx(0.05)
    assert found["repaired"].change is None


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
