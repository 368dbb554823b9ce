"""Figures of facts, and figures that add up."""

from collections import Counter, defaultdict
from typing import Any

from reliable_channel_audit.facts import Delivery
from reliable_channel_audit.group_reliability.figures import Figures, figures_of
from reliable_channel_audit.replay import Life

END_MS = 60_000


def facts_of(had: dict[str, list[int]]) -> dict[type, list[Any]]:
    """Eight messages of alice, one a second, and which of them others had 5 ms later."""
    facts: dict[type, list[Any]] = defaultdict(list)
    for name in ("alice", *had):
        about = "general", name, 0, "", 0, END_MS, 0, 10_000
        facts[Life].append(Life(*about, 0, "", True, 0, True, 0, ""))
        for number in had.get(name, range(1, 9)):
            own = str(number) if name == "alice" else None
            at_ms = 1_000 * number + 5 * (own is None)
            message = str(number), "alice", number, b"", at_ms, own
            facts[Delivery].append(Delivery("general", name, 0, *message, None, None, None, 0))
    return facts


def test_what_is_missing_between_others_is_a_hole_and_at_the_end_is_none() -> None:
    had = {"bob": [1, 4, 5, 7, 8], "carol": [1, 2, 3, 4, 5, 6]}
    figures, warnings = figures_of(facts_of(had), None)
    assert (figures.expected, figures.lost, figures.messages) == (16, 5, 8)
    assert (figures.holes, figures.longest_hole, figures.lost_at_the_end) == (2, 2, 2)
    assert figures.delays_ms == [5] * 11
    assert not warnings


def test_what_is_not_due_is_on_its_way() -> None:
    figures, _ = figures_of(facts_of({"bob": [1]}), END_MS - 4_500)
    assert (figures.lost, figures.on_the_way) == (3, 4)


def test_a_participant_without_a_message_has_a_warning() -> None:
    figures, warnings = figures_of(facts_of({"bob": []}), None)
    assert (figures.lost, figures.holes, figures.lost_at_the_end) == (8, 0, 8)
    assert warnings == ["1 participants had no message at all"]


def test_several_runs_are_as_one_of_all() -> None:
    one = Figures(lost=1, delays_ms=[5, 6], longest_hole=1, ways=Counter(live=1, store=1))
    one.add(Figures(lost=2, delays_ms=[9], longest_hole=2, ways=Counter(repair=1)))
    together = Figures(runs=2, lost=3, delays_ms=[5, 6, 9], longest_hole=2)
    together.ways.update(live=1, store=1, repair=1)
    assert one.values() == together.values()
    assert (one.values()["repaired"], one.values()["delivery_rate"]) == (2, 0.5)


def test_what_logs_do_not_show_is_unknown_and_not_zero() -> None:
    values = Figures().values()
    assert values["repaired"] is None
    assert values["delivery_rate"] is None
    assert values["latency_p50_ms"] is None
