"""One name an argument, wherever it is given."""

from inspect import signature
from pathlib import Path
from typing import Any

import pytest

from reliable_channel import BlockingReliableChannel, ReliableChannel
from reliable_channel.config import CHANNEL_NAMES, SETTINGS, channel_settings, settings
from reliable_channel.errors import SettingsError
from reliable_channel.options import Limits, RepairOptions

FILE = """
[channel]
node = ["http://a:8645", "http://b:8645"]
channel_id = "general"
sender_id = "bob"
retry_interval_ms = 5000
query_on_connect = false

[channel.limits]
events = 50

[channel.repair]
t_min_ms = 7
t_max_ms = 70

[node]
port = 8646
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "channel.toml"
    path.write_text(FILE)
    return path


@pytest.fixture(autouse=True)
def clean(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in CHANNEL_NAMES:
        monkeypatch.delenv(f"RELIABLE_CHANNEL_{name.upper()}", raising=False)


def test_an_argument_beats_the_environment_and_that_the_file(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RELIABLE_CHANNEL_SENDER_ID", "carol")
    monkeypatch.setenv("RELIABLE_CHANNEL_MAX_RETRY_ATTEMPTS", "7")
    monkeypatch.setenv("RELIABLE_CHANNEL_REPAIR_T_MIN_MS", "8")
    monkeypatch.setenv("RELIABLE_CHANNEL_RETRY_INTERVAL_MS", "")  # as compose leaves it
    channel = ReliableChannel.from_config(file, channel_id="ops", preset="small-group")
    assert (channel.channel_id, channel.sender_id) == ("ops", "carol")
    assert channel.options.max_retry_attempts == 7
    assert channel.options.retry_interval_ms == 5_000
    assert channel.options.query_on_connect is False
    assert channel.options.limits == Limits(events=50)
    assert channel.options.repair == RepairOptions(t_min_ms=8, t_max_ms=70)
    assert BlockingReliableChannel.from_config(file).sender_id == "carol"


def test_the_file_can_be_named_by_the_environment(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RELIABLE_CHANNEL_CONFIG", str(file))
    assert ReliableChannel.from_config().sender_id == "bob"


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("NODE", "http://a:1 http://b:2", ["http://a:1", "http://b:2"]),
        ("BLOOM_ERROR_RATE", "0.01", 0.01),
        ("LIMITS_EVENTS", "50", 50),
        ("QUERY_ON_CONNECT", "No", False),
        ("STATE", "sqlite:///x.db", "sqlite:///x.db"),
    ],
)
def test_a_variable_is_read_as_its_argument_is_typed(name: str, text: str, value: Any) -> None:
    assert channel_settings(None, {f"RELIABLE_CHANNEL_{name}": text}) == {name.lower(): value}


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        ("RETRY_INTERVAL_MS", "5s", r"`RELIABLE_CHANNEL_RETRY_INTERVAL_MS` must be a whole number"),
        ("QUERY_ON_CONNECT", "maybe", "must be true or false"),
        ("BLOOM_ERROR_RATE", "low", "must be a number"),
    ],
)
def test_a_variable_of_the_wrong_kind_is_named(name: str, text: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        channel_settings(None, {f"RELIABLE_CHANNEL_{name}": text})


def test_variables_that_an_orchestrator_adds_are_ignored() -> None:
    """Kubernetes adds these for a service named reliable-channel."""
    added = {
        "RELIABLE_CHANNEL_SERVICE_HOST": "10.0.0.1",
        "RELIABLE_CHANNEL_PORT": "tcp://10.0.0.1:8645",
        "RELIABLE_CHANNEL_PORT_8645_TCP": "tcp://10.0.0.1:8645",
    }
    assert channel_settings(None, added) == {}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[channel]\nretry_intervall_ms = 5", "did you mean `retry_interval_ms`"),
        ("[chanel]\n", "did you mean `channel`"),
        ("[channel.limit]\n", "did you mean `limits`"),
        ("[channel.limits]\nevent = 5", r"`event` .*\[channel.limits\]; did you mean `events`"),
        ("[channel]\nlimits_events = 5", r"`limits_events` .* is not a name in \[channel\]"),
        ("[channel.limits]\nevents = 0\n[channel]\nchannel_id='c'\nsender_id='a'", "limits.events"),
        ("channel = 5", r"must be a table: write \[channel\]"),
        ("[channel", "is not a TOML file"),
        ("channel = " + "[" * 5_000, "is not a TOML file"),
        ("[channel]\nretry_interval_ms = 0\nchannel_id='c'\nsender_id='a'", "retry_interval_ms"),
        ("[channel]\nretry_interval_ms = '5'\nchannel_id='c'\nsender_id='a'", "retry_interval_ms"),
        ("[channel]\nchannel_id = 'c'", "`sender_id` is missing: .*RELIABLE_CHANNEL_SENDER_ID"),
    ],
)
def test_a_bad_file_is_named(text: str, problem: str, tmp_path: Path) -> None:
    (tmp_path / "bad.toml").write_text(text)
    with pytest.raises(ValueError, match=problem):
        ReliableChannel.from_config(tmp_path / "bad.toml")


def test_a_file_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"missing\.toml"):
        ReliableChannel.from_config(tmp_path / "missing.toml")


def test_a_table_is_read_by_its_names(file: Path) -> None:
    assert settings("node", ["port", "host"], file) == {"port": 8646}
    assert settings("node", ["port", "host"], None, {}) == {}


def test_every_argument_that_a_text_can_give_has_a_name() -> None:
    arguments = set(signature(ReliableChannel).parameters) - {"values", "options"}
    objects = {"transport", "signing", "plugins", "now_ns"}
    options = {*SETTINGS} - {"marker"}
    assert set(CHANNEL_NAMES) == (arguments - objects) | options


def test_a_settings_file_of_another_editor_is_read(tmp_path: Path) -> None:
    path = tmp_path / "channel.toml"
    path.write_bytes(b"\xef\xbb\xbf" + FILE.replace("\n", "\r\n").encode())
    assert ReliableChannel.from_config(path).sender_id == "bob"


def test_line_ends_and_blanks_around_a_variable_are_not_part_of_it() -> None:
    environment = {"RELIABLE_CHANNEL_CHANNEL_ID": " orders\r", "RELIABLE_CHANNEL_REDUNDANCY": "2\n"}
    assert channel_settings(environment=environment) == {"channel_id": "orders", "redundancy": 2}


def test_a_variable_that_is_no_text_is_named() -> None:
    with pytest.raises(ValueError, match=r"`RELIABLE_CHANNEL_SENDER_ID` must be text"):
        channel_settings(environment={"RELIABLE_CHANNEL_SENDER_ID": "caf\udce9"})


@pytest.mark.parametrize("kind", [ReliableChannel, BlockingReliableChannel])
@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        ("REDUNDANCY", "two", "`RELIABLE_CHANNEL_REDUNDANCY` must be a whole number"),
        ("REDUNDANCY", "0", "`redundancy` must be at least 1"),
        ("CONFIG", "/nowhere.toml", "No such file"),
    ],
)
def test_a_wrong_setting_has_a_name_of_ours(
    kind: Any, name: str, text: str, problem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(f"RELIABLE_CHANNEL_{name}", text)
    with pytest.raises(SettingsError, match=problem):
        kind.from_config(channel_id="c", sender_id="s")


def test_one_file_serves_a_bot_and_another_participant(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "channel.toml"
    path.write_text(
        f"[channel]\nchannel_id = 'c'\nnode = ['memory://one file']\nsender_id = 'bot'\n"
        f"state = 'sqlite:///{tmp_path}/{{sender_id}}.db'\n"
    )
    monkeypatch.setenv("RELIABLE_CHANNEL_CONFIG", str(path))
    with (
        BlockingReliableChannel.from_config(),
        BlockingReliableChannel.from_config(sender_id="alice") as alice,
    ):
        alice.send(b"hello")
    assert {file.name for file in tmp_path.glob("*.db")} == {"bot.db", "alice.db"}
