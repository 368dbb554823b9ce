from collections.abc import Callable
from dataclasses import fields

import pytest

from reliable_channel.sds import JS_WAKU, Behaviour, CoreLimits, RepairOptions, SdsOptions


def test_the_defaults_are_those_that_js_waku_documents() -> None:
    options = SdsOptions()
    assert (options.causal_history_size, options.possible_acks_threshold) == (200, 2)
    assert (options.bloom.capacity, options.bloom.error_rate) == (10_000, 0.001)
    assert (options.retry_interval_ms, options.max_retry_attempts) == (30_000, 10)
    assert options.sync_min_interval_ms == 30_000
    repair = options.repair
    assert (repair.t_min_ms, repair.t_max_ms, repair.num_response_groups) == (30_000, 120_000, 1)
    assert (repair.buffer_size, repair.max_requests_per_message) == (1_000, 3)


@pytest.mark.parametrize(
    ("name", "least"),
    [
        ("causal_history_size", 0),
        ("possible_acks_threshold", 1),
        ("retry_interval_ms", 1),
        ("possibly_acknowledged_retry_interval_ms", 1),
        ("sweep_in_buf_interval_ms", 1),
        ("max_message_bytes", 1),
        ("max_retry_attempts", 0),
        ("sync_min_interval_ms", 0),
        ("timeout_for_lost_messages_ms", 0),
        ("max_lamport_ahead_ms", 0),
    ],
)
def test_each_option_has_a_least_value(name: str, least: int) -> None:
    make: Callable[..., SdsOptions] = SdsOptions
    make(**{name: least})
    for wrong in (least - 1, 1.5, "3", True):
        with pytest.raises(ValueError, match=f"`{name}` must be (at least|between|a whole)"):
            make(**{name: wrong})


def test_a_causal_history_has_at_most_a_thousand_entries() -> None:
    SdsOptions(causal_history_size=1_000)
    with pytest.raises(ValueError, match="between 0 and 1000"):
        SdsOptions(causal_history_size=1_001)


def test_an_unknown_schedule_is_refused() -> None:
    with pytest.raises(ValueError, match="must be 'suppressed' or 'js-waku'"):
        SdsOptions(sync_schedule="never")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "least"),
    [
        ("t_min_ms", 0),
        ("t_max_ms", 1),
        ("num_response_groups", 1),
        ("max_requests_per_message", 1),
        ("buffer_size", 1),
        ("max_request_attempts", 1),
        ("cache_bytes", 0),
        ("sweep_interval_ms", 0),
    ],
)
def test_each_repair_option_has_a_least_value(name: str, least: int) -> None:
    make: Callable[..., RepairOptions] = RepairOptions
    others = {"t_min_ms": 0} if name == "t_max_ms" else {}
    make(**others, **{name: least})
    with pytest.raises(ValueError, match=rf"`{name}` must be .* \(got {least - 1}\)"):
        make(**others, **{name: least - 1})


def test_t_max_is_not_below_t_min() -> None:
    RepairOptions(t_min_ms=5, t_max_ms=5)
    with pytest.raises(ValueError, match=r"`t_max_ms` must be at least `t_min_ms`, 6 \(got 5\)"):
        RepairOptions(t_min_ms=6, t_max_ms=5)


NO_AGE = "retention_ms"


@pytest.mark.parametrize("name", [f.name for f in fields(CoreLimits) if f.name != NO_AGE])
def test_each_limit_is_at_least_one(name: str) -> None:
    CoreLimits(**{name: 1})
    with pytest.raises(ValueError, match=name):
        CoreLimits(**{name: 0})


def test_possibly_acknowledged_messages_wait_twice_as_long() -> None:
    assert SdsOptions(retry_interval_ms=7).possibly_acknowledged_interval_ms == 14
    given = SdsOptions(possibly_acknowledged_retry_interval_ms=9)
    assert given.possibly_acknowledged_interval_ms == 9


def test_js_waku_is_the_other_end_of_every_choice() -> None:
    ours = Behaviour()
    for field in fields(Behaviour):
        assert getattr(ours, field.name) != getattr(JS_WAKU, field.name)
