"""Options: checked at construction, by keyword or as an object, each wrong one by its name."""

import json
import os
import pickle
import re
import subprocess
import sys
import zipfile
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any, Final, get_args, get_type_hints

import pytest

from reliable_channel import ChannelOptions, ReliableChannel
from reliable_channel.config import SETTINGS, flat, nested
from reliable_channel.options import (
    GROUPS,
    PRESETS,
    BloomParameters,
    Limits,
    OptionValues,
    PresetName,
    RepairOptions,
)
from reliable_channel.sds.declared import declared
from reliable_channel.sds.options import DAY_MS, SdsOptions
from reliable_channel.transport import MemoryNetwork

ROOT: Final = Path(__file__).parents[2]
DEFAULTS: Final = flat(ChannelOptions())
WHOLE_NUMBERS = [name for name, value in DEFAULTS.items() if type(value) is int]
SWITCHES = [name for name, value in DEFAULTS.items() if isinstance(value, bool)]
TEXTS = [name for name, value in DEFAULTS.items() if isinstance(value, str)]
OPTIONAL = [name for name, value in DEFAULTS.items() if value is None]


def make(**values: Any) -> ReliableChannel:
    arguments: dict[str, Any] = {"channel_id": "general", "sender_id": "alice", **values}
    return ReliableChannel(transport=MemoryNetwork().transport(), **arguments)


def path(name: str) -> str:
    """The name of an option in errors, as a pattern."""
    return re.escape(SETTINGS[name].path)


@pytest.mark.conformance("LD-RATE-3")
@pytest.mark.parametrize(
    ("names", "values", "form"),
    [
        (WHOLE_NUMBERS, [-1, 1.5, "1", None, True], r".* \(got {}\)$"),
        (TEXTS, ["", "BOTH", None, 1, []], r".* \(got"),
        (SWITCHES, [1, "no", None], r"True or False \(got {}"),
        (OPTIONAL, [[]], r".* \(got {}\)$"),
    ],
)
def test_a_wrong_value_is_named_with_what_is_allowed(
    names: list[str], values: list[object], form: str
) -> None:
    for name, wrong in product(names, values):
        error: object = None
        try:
            make(**nested({name: wrong}))
        except ValueError as raised:
            error = raised
        allowed = form.format(re.escape(repr(wrong)))
        assert re.search(f"^`{path(name)}` must be {allowed}", str(error)), (name, wrong)


@pytest.mark.parametrize("wrong", [0, 1, -0.1, 1.5, float("nan"), 1e-300, "0.1", None, True])
def test_a_wrong_error_rate_is_named(wrong: object) -> None:
    with pytest.raises(ValueError, match=r"^`bloom.error_rate` must be a number from 1e-09"):
        make(bloom={"error_rate": wrong})


def test_the_history_has_an_upper_bound() -> None:
    with pytest.raises(
        ValueError, match=r"^`causal_history_size` must be between 0 and 1000 \(got"
    ):
        make(causal_history_size=1001)


def test_the_latest_repair_time_is_not_before_the_earliest() -> None:
    with pytest.raises(ValueError, match=r"^`repair.t_max_ms` must be at least .*, 20 \(got 10"):
        make(repair={"t_min_ms": 20, "t_max_ms": 10})


def test_every_option_is_covered_here() -> None:
    assert set(SETTINGS) == {*WHOLE_NUMBERS, *TEXTS, *SWITCHES, *OPTIONAL, "bloom_error_rate"}


def test_the_front_page_has_45_options_at_most() -> None:
    assert len(declared(ChannelOptions)) <= 45


def test_keywords_go_over_an_options_object() -> None:
    options = ChannelOptions(limits=Limits(log_entries=5), max_retry_attempts=3)
    channel = make(options=options, max_retry_attempts=4)
    expected = ChannelOptions(limits=Limits(log_entries=5), max_retry_attempts=4)
    assert channel.options == expected.resolved()


def test_keywords_alone_go_over_the_defaults() -> None:
    options = ChannelOptions(limits=Limits(log_entries=7))
    assert make(limits=Limits(log_entries=7)).options == options.resolved()


def test_an_unknown_option_fails() -> None:
    with pytest.raises(TypeError, match="`retry_interval`; did you mean"):
        make(retry_interval=3)


@pytest.mark.parametrize("name", ["channel_id", "sender_id"])
@pytest.mark.parametrize("wrong", ["", "x" * 1025, None, b"alice"])
def test_a_wrong_id_is_named(name: str, wrong: object) -> None:
    with pytest.raises(ValueError, match=rf"^`{name}` must be a text of 1 to 1024"):
        make(**{name: wrong})


@pytest.mark.parametrize("wrong", [-0.1, 1.5, float("nan"), "x"])
def test_a_wrong_share_to_drop_is_named(wrong: Any) -> None:
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
    assert get_type_hints(OptionValues) == get_type_hints(ChannelOptions)


def test_every_option_says_what_it_does() -> None:
    groups = [declared(kind) for kind in GROUPS.values()]
    for options in [declared(ChannelOptions), *groups]:
        for name, option in options.items():
            assert option.doc.endswith("."), name


def test_a_flat_name_is_of_one_option() -> None:
    names = [name for kind in (ChannelOptions, *GROUPS.values()) for name in declared(kind)]
    assert len(SETTINGS) == len(names) - len(GROUPS)
    assert nested({"repair_t_min_ms": 5, "limits_events": 3, "seed": 1, "node": "x"}) == {
        "repair": {"t_min_ms": 5},
        "limits": {"events": 3},
        "seed": 1,
        "node": "x",
    }


def test_the_core_and_the_channel_have_one_declaration() -> None:
    core = SdsOptions()
    assert ChannelOptions().sds_options() == replace(
        core, possibly_acknowledged_retry_interval_ms=60_000, limits=Limits()
    )
    changed = ChannelOptions(
        repair=RepairOptions(t_max_ms=7, t_min_ms=3),
        limits=Limits(log_entries=9),
        bloom=BloomParameters(capacity=5),
    )
    sds = changed.sds_options()
    assert (sds.repair.t_min_ms, sds.repair.t_max_ms) == (3, 7)
    assert (sds.limits.log_entries, sds.bloom.capacity) == (9, 5)


def test_the_core_takes_every_default() -> None:
    core = ChannelOptions().sds_options()
    assert core.limits == ChannelOptions().limits
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
    with pytest.raises(ValueError, match=r"^`bloom.capacity` must make a filter .* \(got 50000"):
        make(bloom=BloomParameters(capacity=50_000))
    with pytest.raises(ValueError, match=r"^`bloom.capacity` must be between 1 and 50000 "):
        make(bloom={"capacity": 10**9})
    with pytest.raises(ValueError, match=r"^`max_message_bytes` must be between 512 and"):
        make(max_message_bytes=10)


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("journal", 5),
        ("seed", "x"),
        ("sender_id", "\ud800"),
    ],
)
def test_a_wrong_argument_is_named(name: str, wrong: object) -> None:
    with pytest.raises(ValueError, match=rf"^`{name}` must be "):
        make(**{name: wrong})


NIM_FAMILY = {
    "causal_history_size": 10,
    "max_lamport_ahead_ms": 365 * DAY_MS,
    "repair": RepairOptions(t_max_ms=300_000),
    "sync_min_interval_ms": 0,
}


@pytest.mark.parametrize(
    "arguments",
    [
        {"wire_profile": "nim"},
        {"options": ChannelOptions(wire_profile="nim")},
        {"options": ChannelOptions(history="none"), "wire_profile": "nim"},
    ],
    ids=["keyword", "options", "both"],
)
def test_a_profile_brings_the_limits_of_its_family_however_it_is_named(
    arguments: dict[str, Any],
) -> None:
    options = make(**arguments).options
    assert {name: getattr(options, name) for name in NIM_FAMILY} == NIM_FAMILY


def test_what_is_given_stands_in_any_family() -> None:
    # 200 is what `spec` has by default: given is given.
    options = make(
        options=ChannelOptions(causal_history_size=200),
        wire_profile="nim",
        repair={"t_max_ms": 40_000},
    ).options
    assert (options.causal_history_size, options.repair) == (200, RepairOptions(t_max_ms=40_000))
    assert options.max_lamport_ahead_ms == 365 * DAY_MS


def test_a_family_is_left_as_it_was_entered() -> None:
    assert replace(ChannelOptions(wire_profile="nim"), wire_profile="spec") == ChannelOptions()
    copied = pickle.loads(pickle.dumps(ChannelOptions(wire_profile="nim")))
    assert replace(copied, wire_profile="spec") == ChannelOptions()
    assert json.loads(json.dumps(flat(ChannelOptions())))["causal_history_size"] == 200


def test_a_mapping_changes_single_options_of_a_group() -> None:
    auto = make(preset="auto", repair={"cache_bytes": 9}, limits={"events": 5}).options
    assert auto.repair == RepairOptions(
        cache_bytes=9,
        max_requests_per_message=20,
        max_request_attempts=12,
        requester_answers_per_minute=60,
    )
    assert auto.limits == Limits(events=5)
    given = ChannelOptions(repair=RepairOptions(buffer_size=8), bloom=BloomParameters(500))
    changed = make(options=given, repair={"cache_bytes": 9}, bloom={"error_rate": 0.01}).options
    assert changed.repair == RepairOptions(buffer_size=8, cache_bytes=9)
    assert changed.bloom == BloomParameters(500, 0.01)
    whole = make(preset="auto", repair=RepairOptions(cache_bytes=9)).options
    assert whole.repair == RepairOptions(cache_bytes=9)


@pytest.mark.parametrize("group", GROUPS)
def test_an_unknown_option_of_a_group_is_named(group: str) -> None:
    with pytest.raises(ValueError, match=rf"^there is no option `{group}\.x`"):
        make(**{group: {"x": 1}})


def test_options_need_no_source(tmp_path: Path) -> None:
    """In a zip file, without docstrings, and in the locale of another encoding."""
    archive = tmp_path / "sdk.zip"
    with zipfile.ZipFile(archive, "w") as sdk:
        for file in (ROOT / "reliable_channel").rglob("*.py"):
            sdk.write(file, file.relative_to(ROOT))
    program = (
        f"import sys; sys.path.insert(0, {str(archive)!r}); from reliable_channel import config; "
        "assert config.__file__.startswith(sys.path[0]); "
        "print(all(one.declared.doc for one in config.SETTINGS.values()))"
    )
    found = subprocess.run(
        [sys.executable, "-OO", "-c", program],
        env=os.environ | {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert found.stdout == "True\n"


def test_the_documented_preset_is_exactly_the_defaults() -> None:
    assert PRESETS["documented"] == {}
    assert make(preset="documented").options == make().options == ChannelOptions().resolved()


@pytest.mark.parametrize("preset", [name for name in PRESETS if name != "documented"])
def test_a_single_option_overrides_a_preset(preset: PresetName) -> None:
    channel = make(preset=preset, sync_min_interval_ms=7)
    assert channel.options.sync_min_interval_ms == 7
    assert channel.options == ChannelOptions.of_preset(preset, sync_min_interval_ms=7).resolved()
    assert ChannelOptions.of_preset(preset) == ChannelOptions(**PRESETS[preset])


def test_a_preset_stands_in_any_family() -> None:
    options = make(preset="small-group", wire_profile="nim").options
    assert options.causal_history_size == PRESETS["small-group"]["causal_history_size"]
    assert options.max_lamport_ahead_ms == 365 * DAY_MS


def test_a_wrong_preset_is_named() -> None:
    with pytest.raises(ValueError, match=r"^`preset` must be .* or 'auto' \(got 'x'\)"):
        make(preset="x")
    with pytest.raises(ValueError, match=r"^`preset` and `options` exclude each other; write"):
        make(preset="auto", options=ChannelOptions())


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
