"""Who had what, counted."""

from random import Random

from reliable_channel_audit.group_reliability.tally import Tally

S = 1_000_000


def test_what_is_missing_between_others_is_a_hole_and_at_the_end_is_none() -> None:
    tally = Tally()
    had = {"b": [1, 4, 5, 7, 8], "c": [1, 2, 3, 4, 5, 6]}
    for number in range(1, 9):
        tally.entered("a", str(number), number * S)
        for name, numbers in had.items():
            if number in numbers:
                tally.had(name, str(number), number * S + 1000)
    figures = tally.figures(settle_us=0)
    assert (figures.expected, figures.delivered) == (16, 11)
    assert (figures.holes, figures.longest_hole, figures.in_holes) == (2, 2, 3)
    assert figures.values()["missing_at_the_end"] == 2
    assert (figures.messages, figures.complete) == (8, 3)
    assert figures.latency.at_ms(1) == 1


def test_the_order_of_lines_makes_no_difference() -> None:
    calls = [("entered", "a", 10), ("had", "b", 20), ("entered", "b", 21), ("had", "c", 30)]
    seen = set()
    for seed in range(24):
        Random(seed).shuffle(calls)
        tally = Tally()
        for what, name, at in calls:
            getattr(tally, what)(name, "m", at)
        figures = tally.figures(settle_us=0)
        seen.add((figures.expected, figures.delivered, figures.latency.at_ms(1)))
    assert seen == {(2, 2, 0.02)}


def test_a_relay_is_not_the_origin_of_what_it_received() -> None:
    tally = Tally()
    for name, at in (("b", 20), ("c", 30)):
        tally.had(name, "m", at)
        tally.entered(name, "m", at + 1)
    figures = tally.figures(settle_us=0)
    assert figures.without_origin == 1
    assert (figures.expected, figures.delivered) == (2, 2)


def test_what_is_not_due_is_in_no_figure_but_its_own() -> None:
    tally = Tally()
    for number in range(10):
        tally.entered("a", str(number), (number + 1) * S)
        tally.had("b", str(number), (number + 1) * S + 5)
    figures = tally.figures(settle_us=3 * S)
    assert (figures.messages, figures.expected, figures.not_due) == (7, 7, 3)


def test_failed_messages_are_expected_nowhere() -> None:
    tally = Tally()
    tally.participant("b")
    for number in range(2):
        tally.entered("a", str(number), S)
    tally.failed("0")
    tally.failed("of another run")
    figures = tally.figures(settle_us=0)
    assert (figures.expected, figures.delivered, figures.failed) == (1, 0, 1)


def test_a_participant_is_owed_what_was_sent_while_it_was_there() -> None:
    tally = Tally()
    for number in range(10):
        tally.entered("a", str(number), (number + 1) * S)
    tally.participant("b", from_us=3 * S, until_us=8 * S)
    figures = tally.figures(settle_us=S)
    assert (figures.expected, figures.silent) == (5, 1)


def test_shards_are_groups() -> None:
    tally = Tally()
    for shard in ("0", "1"):
        tally.entered(f"a-{shard}", f"m-{shard}", S, group=shard)
        tally.had(f"b-{shard}", f"m-{shard}", 2 * S, group=shard)
    figures = tally.figures(settle_us=0)
    assert (figures.participants, figures.expected, figures.delivered) == (4, 2, 2)


def test_clocks_that_disagree_are_counted_and_in_no_percentile() -> None:
    tally = Tally()
    tally.sent("m", 5 * S, name="a")
    tally.had("b", "m", 4 * S)
    figures = tally.figures(settle_us=0)
    assert (figures.delivered, figures.latency.negative) == (1, 1)
    assert figures.latency.at_ms(0.5) is None
