"""Quiet groups: the schedules behave as their sources say, and as the whole core does."""

from functools import partial

import pytest

from reliable_channel_lab.sim.quiet import QuietGroup, QuietResult, QuietSimulation, TimedMember
from reliable_channel_lab.sim.scenario import Conditions, Latency
from reliable_channel_lab.sweep.group import GroupRun
from reliable_channel_lab.sweep.quiet import QuietRun
from reliable_channel_lab.sweep.runs import Run
from reliable_channel_lab.sweep.svs_member import SvsMember
from reliable_channel_lab.sweep.tuned_member import TunedMember


def play(schedule: str, participants: int, *, loss: float = 0.1, rounds: int = 3) -> QuietResult:
    group = QuietGroup(1, participants, Conditions(Latency(20, 200), loss), rounds=rounds)
    if schedule == "svs":
        return QuietSimulation(group, partial(SvsMember, 30_000)).run()
    if schedule == "auto":
        return QuietSimulation(group, partial(TunedMember, 30_000)).run()
    return QuietSimulation(group, partial(TimedMember, schedule, 30_000)).run()


def per_second(result: QuietResult) -> float:
    return 1_000 * result.syncs / result.span_ms


def number(run: Run, measure: str) -> float:
    value = run.record()[measure]
    assert isinstance(value, (int, float))
    return value


@pytest.mark.parametrize("participants", [10, 50])
def test_under_js_waku_s_rule_each_participant_adds_its_share(participants: int) -> None:
    assert per_second(play("js-waku", participants)) == pytest.approx(participants / 30, rel=0.2)


def test_under_ours_and_that_of_svs_the_traffic_hardly_grows() -> None:
    for schedule in ("suppressed", "svs"):
        few, many = (per_second(play(schedule, participants)) for participants in (5, 100))
        assert few < many < 5 * few
        assert many < 0.25


@pytest.mark.parametrize("loss", [0.0, 0.2])
def test_whole_groups_send_as_many(loss: float) -> None:
    quiet = QuietRun(seed=1, participants=20, loss=loss, rounds=3, round_ms=600_000)
    whole = GroupRun.of(
        {
            "seed": 1,
            "participants": 20,
            "loss": loss,
            "latency_ms": quiet.latency_ms,
            "messages": 5,
            "idle_ms": 1_200_000,
        }
    )
    a_minute = 60 * number(quiet, "syncs_per_second")
    assert number(whole, "idle_messages_per_minute") == pytest.approx(a_minute, rel=0.15)


def test_without_loss_nobody_misses_anything() -> None:
    assert play("suppressed", 20, loss=0).missed == 0


def test_who_tunes_itself_notices_within_a_second_and_speaks_less_and_less() -> None:
    """Beside the default, which takes half an interval to notice; the copies are no syncs."""
    tuned, fixed = (play(schedule, 100, rounds=5) for schedule in ("auto", "suppressed"))
    assert len(tuned.noticed_after_ms) == tuned.missed
    assert tuned.noticed_after_ms[-1] < 1_000 < fixed.noticed_after_ms[0]
    assert per_second(tuned) < 3 * per_second(fixed)
    assert number(QuietRun(seed=1, sync_schedule="auto"), "sync_bytes") < 500


def test_whole_groups_that_tune_themselves_send_as_many() -> None:
    quiet = QuietRun(
        seed=1, participants=20, loss=0.2, sync_schedule="auto", rounds=3, round_ms=600_000
    )
    whole = GroupRun.of(
        {
            "seed": 1,
            "participants": 20,
            "loss": 0.2,
            "latency_ms": quiet.latency_ms,
            "self_tuning": True,
            "messages": 5,
            "idle_ms": 1_200_000,
        }
    )
    a_minute = 60 * number(quiet, "syncs_per_second")
    assert number(whole, "idle_messages_per_minute") == pytest.approx(a_minute, rel=0.3)


@pytest.mark.parametrize("schedule", ["suppressed", "js-waku", "svs", "auto"])
def test_who_missed_a_message_notices_by_a_sync_message(schedule: str) -> None:
    result = play(schedule, 30, loss=0.3)
    assert 30 * 3 * 0.15 < result.missed < 30 * 3 * 0.45
    assert len(result.noticed_after_ms) == result.missed
    assert result.noticed_after_ms[0] >= 20
    assert list(result.noticed_after_ms) == sorted(result.noticed_after_ms)


def test_one_who_is_told_in_vain_notices_nothing() -> None:
    """All copies of a whole round are lost to most: no participant can notice what none has."""
    group = QuietGroup(1, 3, Conditions(Latency(20, 20), loss=0.999), rounds=4, round_ms=30_000)
    result = QuietSimulation(group, partial(TimedMember, "suppressed", 30_000)).run()
    assert result.missed == 8
    assert not result.noticed_after_ms


def test_equal_runs_are_equal_and_seeds_are_not() -> None:
    first, again, other = (QuietRun(seed=seed, participants=20).record() for seed in (1, 1, 2))
    assert first == again
    assert first["id"] != other["id"]
    assert first["notice_p50_ms"] != other["notice_p50_ms"]


def test_who_does_not_notice_counts_with_the_length_of_the_round() -> None:
    record = QuietRun(seed=1, participants=3, loss=0.999, rounds=4, round_ms=30_000).record()
    assert record["noticed_share"] == 0
    assert record["notice_p50_ms"] == record["notice_p99_ms"] == 30_000
