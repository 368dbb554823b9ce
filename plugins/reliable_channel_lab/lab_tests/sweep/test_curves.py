"""Curves and answers: small tables in, small tables out."""

import pytest

from reliable_channel_lab.sweep.curves import Best, Figure, Target, best, curve, figure, select
from reliable_channel_lab.sweep.page import fill_in

TABLE = [
    {"size": size, "loss": loss, "seed": seed, "share": share, "bytes": size * 100 + seed}
    for loss in (0.1, 0.3)
    for size, shares in ((2, (0.5, 0.7)), (10, (0.9, 1.0)), (200, (1.0, 1.0)))
    for seed, share in enumerate(shares)
]


def test_a_curve_puts_seeds_together() -> None:
    assert curve(select(TABLE, {"loss": 0.1}), "size", "share") == [
        (2.0, Figure(0.6, 0.5, 0.7)),
        (10.0, Figure(0.95, 0.9, 1.0)),
        (200.0, Figure(1.0, 1.0, 1.0)),
    ]


def test_runs_without_a_figure_have_no_part_in_it() -> None:
    assert figure([{"a": 1}, {"a": None}], "a") == Figure(1, 1, 1)
    assert figure([{"a": None}], "a") is None
    assert figure([], "a") is None
    assert curve([{"x": 1, "a": None}, {"x": 0, "a": 2}], "x", "a") == [
        (0.0, Figure(2, 2, 2)),
        (1.0, None),
    ]


def test_the_best_reaches_the_target_at_the_least_cost() -> None:
    answers = best(
        TABLE, of=["size"], target=Target.parse("share >= 0.94"), least="bytes", each=["loss"]
    )
    assert answers == [
        Best({"loss": 0.1}, {"size": 10}, 1000.5),
        Best({"loss": 0.3}, {"size": 10}, 1000.5),
    ]


def test_where_nothing_reaches_the_target_nothing_is_best() -> None:
    [answer] = best(TABLE, of=["size"], target=Target.parse("share >= 1.1"), least="bytes")
    assert answer == Best({}, None, None)


@pytest.mark.parametrize("text", ["share", "share > 1", "share >= many", ">= 1", "a b >= 1"])
def test_what_is_no_target_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a target"):
        Target.parse(text)


def test_texts_are_filled_with_what_was_measured() -> None:
    text = "At 2 {share | size=2 | .0%}, {bytes | size=10, loss=0.1 | bytes}; {share | size=200}."
    assert fill_in(text, TABLE) == "At 2 60%, 1 kB; 1."


@pytest.mark.parametrize("gap", ["{share | size=3}", "{luck | size=2}", "{share | colour=red}"])
def test_a_text_that_asks_for_what_there_is_not_is_refused(gap: str) -> None:
    with pytest.raises(ValueError, match="records"):
        fill_in(gap, TABLE)
