"""Options: checked at construction, by keyword or as an object, each wrong one by its name."""

import json
import pickle
from dataclasses import asdict, fields, replace
from typing import Any, get_args

import pytest

from reliable_channel import ChannelOptions, ReliableChannel
from reliable_channel.options import (
    OPTION_NAMES,
    PRESETS,
    OptionValues,
    PresetName,
    option_texts,
)
from reliable_channel.sds.options import DAY_MS, SdsOptions
from reliable_channel.transport import MemoryNetwork

WHOLE_NUMBERS = [field.name for field in fields(ChannelOptions) if field.type is int]
SWITCHES = [field.name for field in fields(ChannelOptions) if field.type is bool]
TEXTS = [name for name in OPTION_NAMES if isinstance(getattr(ChannelOptions(), name), str)]
OPTIONAL = [name for name in OPTION_NAMES if getattr(ChannelOptions(), name) is None]


def make(**values: Any) -> ReliableChannel:
    arguments: dict[str, Any] = {"channel_id": "general", "sender_id": "alice", **values}
    return ReliableChannel(transport=MemoryNetwork().transport(), **arguments)


@pytest.mark.conformance("LD-RATE-3")
@pytest.mark.parametrize("name", WHOLE_NUMBERS)
@pytest.mark.parametrize("wrong", [-1, 1.5, "1", None, True])
def test_a_wrong_whole_number_is_named_with_what_is_allowed(name: str, wrong: object) -> None:
    with pytest.raises(ValueError, match=rf"^`{name}` must be .* \(got {wrong!r}\)$"):
        make(**{name: wrong})


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("wrong", ["", "BOTH", None, 1, []])
def test_a_wrong_choice_is_named_with_the_choices(name: str, wrong: object) -> None:
    with pytest.raises(ValueError, match=rf"^`{name}` must be .* \(got"):
        make(**{name: wrong})


@pytest.mark.parametrize("wrong", [0, 1, -0.1, 1.5, float("nan"), 1e-300, "0.1", None, True])
def test_a_wrong_error_rate_is_named(wrong: object) -> None:
    with pytest.raises(ValueError, match=r"^`bloom_error_rate` must be a number from 1e-09"):
        make(bloom_error_rate=wrong)


@pytest.mark.parametrize("name", SWITCHES)
@pytest.mark.parametrize("wrong", [1, "no", None])
def test_a_switch_takes_true_and_false_alone(name: str, wrong: object) -> None:
    with pytest.raises(ValueError, match=rf"^`{name}` must be True or False \(got {wrong!r}\)$"):
        make(**{name: wrong})


@pytest.mark.parametrize("name", OPTIONAL)
def test_what_may_be_left_out_is_checked_where_it_is_given(name: str) -> None:
    with pytest.raises(ValueError, match=rf"^`{name}` must be .* \(got \[\]\)$"):
        make(**{name: []})


def test_the_history_has_an_upper_bound() -> None:
    with pytest.raises(
        ValueError, match=r"^`causal_history_size` must be between 0 and 1000 \(got"
    ):
        make(causal_history_size=1001)


def test_the_latest_repair_time_is_not_before_the_earliest() -> None:
    with pytest.raises(ValueError, match=r"^`repair_t_max_ms` must be at least .*, 20 \(got 10"):
        make(repair_t_min_ms=20, repair_t_max_ms=10)


def test_every_option_is_covered_here() -> None:
    assert set(OPTION_NAMES) == {*WHOLE_NUMBERS, *TEXTS, *SWITCHES, *OPTIONAL, "bloom_error_rate"}


def test_keywords_go_over_an_options_object() -> None:
    options = ChannelOptions(log_limit=5, max_retry_attempts=3)
    channel = make(options=options, max_retry_attempts=4)
    assert channel.options == ChannelOptions(log_limit=5, max_retry_attempts=4)


def test_keywords_alone_go_over_the_defaults() -> None:
    assert make(log_limit=7).options == ChannelOptions(log_limit=7)


def test_an_unknown_option_fails() -> None:
    with pytest.raises(TypeError, match="`retry_interval`; did you mean"):
        make(retry_interval=3)


@pytest.mark.parametrize("name", ["channel_id", "sender_id"])
@pytest.mark.parametrize("wrong", ["", "x" * 1025, None, b"alice"])
def test_a_wrong_id_is_named(name: str, wrong: object) -> None:
    with pytest.raises(ValueError, match=rf"^`{name}` must be a text of 1 to 1024"):
        make(**{name: wrong})


@pytest.mark.parametrize("wrong", [-0.1, 1.1, float("nan")])
def test_a_wrong_share_to_drop_is_named(wrong: float) -> None:
    with pytest.raises(ValueError, match=r"^`drop_incoming` must be a share from 0 to 1"):
        make(drop_incoming=wrong)


@pytest.mark.parametrize(
    "wrong",
    [
        {"content_topic": "general"},
        {"cluster_id": -1},
        {"num_shards": 0},
        {"pubsub_topic": "nonsense"},
    ],
)
def test_a_wrong_topic_fails_at_construction(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=str(next(iter(wrong.values())))):
        make(**wrong)


def test_a_wrong_service_is_named() -> None:
    with pytest.raises(ValueError, match=r"^`service` must be 'auto', 'relay' or 'light'"):
        make(service="x")


def test_a_wrong_node_address_fails_at_construction() -> None:
    with pytest.raises(ValueError, match=r"^`node` must be an http .*; write 'http://nonsense'$"):
        ReliableChannel("nonsense", channel_id="general", sender_id="alice")


def test_every_option_is_a_keyword_of_the_same_name_and_type() -> None:
    assert list(OptionValues.__annotations__) == list(OPTION_NAMES)
    for field in fields(ChannelOptions):
        assert OptionValues.__annotations__[field.name] == field.type


def test_every_option_says_what_it_does() -> None:
    for name, text in option_texts().items():
        assert text.endswith("."), name
        assert "The same" not in text


def test_the_core_and_the_channel_have_one_declaration() -> None:
    core = SdsOptions()
    assert ChannelOptions().sds_options() == replace(
        core, possibly_acknowledged_retry_interval_ms=60_000
    )
    changed = ChannelOptions(repair_t_max_ms=7, repair_t_min_ms=3, log_limit=9, bloom_capacity=5)
    sds = changed.sds_options()
    assert (sds.repair.t_min_ms, sds.repair.t_max_ms) == (3, 7)
    assert (sds.limits.log_entries, sds.bloom.capacity) == (9, 5)


def test_the_core_takes_every_default() -> None:
    core = ChannelOptions().sds_options()
    assert core.limits.incoming_bytes == ChannelOptions().incoming_buffer_limit_bytes
    assert core.repair.enabled


@pytest.mark.parametrize(
    ("strategy", "asks_store", "repairs"),
    [
        ("both", True, True),
        ("store-only", True, False),
        ("sds-r-only", False, True),
        ("none", False, False),
    ],
)
def test_the_retrieval_strategy_switches_store_and_repair(
    strategy: Any, asks_store: bool, repairs: bool
) -> None:
    options = ChannelOptions(retrieval_strategy=strategy)
    assert (options.asks_store, options.sds_options().repair.enabled) == (asks_store, repairs)


def test_a_filter_that_would_fill_the_message_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^`bloom_capacity` must make a filter .* \(got 50000"):
        make(bloom_capacity=50_000)
    with pytest.raises(ValueError, match=r"^`bloom_capacity` must be between 1 and 50000 "):
        make(bloom_capacity=10**9)
    with pytest.raises(ValueError, match=r"^`max_message_bytes` must be between 512 and"):
        make(max_message_bytes=10)


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("drop_incoming", "x"),
        ("drop_incoming", 1.5),
        ("journal", 5),
        ("seed", "x"),
        ("sender_id", "\ud800"),
        ("channel_id", ""),
    ],
)
def test_a_wrong_argument_is_named(name: str, wrong: object) -> None:
    with pytest.raises(ValueError, match=rf"^`{name}` must be "):
        make(**{name: wrong})


NIM_FAMILY = {
    "causal_history_size": 10,
    "max_lamport_ahead_ms": 365 * DAY_MS,
    "repair_t_max_ms": 300_000,
    "sync_min_interval_ms": 0,
}


@pytest.mark.parametrize(
    "arguments",
    [
        {"wire_profile": "nim"},
        {"options": ChannelOptions(wire_profile="nim")},
        {"options": ChannelOptions(history="none"), "wire_profile": "nim"},
        {"options": ChannelOptions.of_profile("nim")},
    ],
    ids=["keyword", "options", "both", "of_profile"],
)
def test_a_profile_brings_the_limits_of_its_family_however_it_is_named(
    arguments: dict[str, Any],
) -> None:
    options = make(**arguments).options
    assert {name: getattr(options, name) for name in NIM_FAMILY} == NIM_FAMILY


def test_what_is_given_stands_in_any_family() -> None:
    # 200 is what `spec` has by default: given is given.
    options = make(
        options=ChannelOptions(causal_history_size=200), wire_profile="nim", repair_t_max_ms=40_000
    ).options
    assert (options.causal_history_size, options.repair_t_max_ms) == (200, 40_000)
    assert options.max_lamport_ahead_ms == 365 * DAY_MS


def test_a_family_is_left_as_it_was_entered() -> None:
    assert replace(ChannelOptions(wire_profile="nim"), wire_profile="spec") == ChannelOptions()
    copied = pickle.loads(pickle.dumps(ChannelOptions(wire_profile="nim")))
    assert replace(copied, wire_profile="spec") == ChannelOptions()
    assert json.loads(json.dumps(asdict(ChannelOptions())))["causal_history_size"] == 200


def test_the_documented_preset_is_exactly_the_defaults() -> None:
    assert PRESETS["documented"] == {}
    assert make(preset="documented").options == make().options == ChannelOptions()


@pytest.mark.parametrize("preset", [name for name in PRESETS if name != "documented"])
def test_a_single_option_overrides_a_preset(preset: PresetName) -> None:
    channel = make(preset=preset, sync_min_interval_ms=7)
    expected = {**PRESETS[preset], "sync_min_interval_ms": 7}
    assert {name: getattr(channel.options, name) for name in expected} == expected
    assert channel.options == ChannelOptions.of_preset(preset, sync_min_interval_ms=7)


def test_a_preset_stands_in_any_family() -> None:
    options = make(preset="small-group", wire_profile="nim").options
    assert options.causal_history_size == PRESETS["small-group"]["causal_history_size"]
    assert options.max_lamport_ahead_ms == 365 * DAY_MS


def test_a_wrong_preset_is_named() -> None:
    with pytest.raises(ValueError, match=r"^`preset` must be .* or 'auto' \(got 'x'\)"):
        make(preset="x")
    with pytest.raises(ValueError, match=r"^`preset` and `options` exclude each other; write"):
        make(preset="lan", options=ChannelOptions())


def test_the_names_of_presets_are_typed() -> None:
    assert get_args(PresetName) == tuple(PRESETS)


@pytest.mark.parametrize("name", ["channel_id", "sender_id"])
@pytest.mark.parametrize("end", ["\r", "\n", "\0", "\x85", "\ufeff"])
def test_an_id_with_an_invisible_end_is_refused(name: str, end: str) -> None:
    for given in ("orders" + end, end + "orders"):
        ids = {"channel_id": "c", "sender_id": "s", name: given}
        with pytest.raises(ValueError, match=f"`{name}` must not begin or end with control"):
            make(**ids)


@pytest.mark.parametrize("name", ["channel_id", "sender_id"])
def test_two_forms_of_one_name_are_told_apart(name: str, caplog: pytest.LogCaptureFixture) -> None:
    for given, lines in (("caf\u00e9", 0), ("cafe\u0301", 1)):
        ids = {"channel_id": "c", "sender_id": "s", name: given}
        make(**ids)
        assert len(caplog.messages) == lines
    assert caplog.messages[0].startswith(f"`{name}` is 'cafe\\u0301': 'caf\\xe9' looks the same")
