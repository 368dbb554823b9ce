"""Where a command's options come from, and which of two wins."""

import json
from pathlib import Path
from subprocess import PIPE

import pytest

from reliable_channel.cli.node import configured

from .forked import Process
from .in_process import run
from .test_commands import address, flags

__all__ = ["address"]  # a fixture


def options_of(journal: Path) -> dict[str, object]:
    found: dict[str, object] = json.loads(journal.read_text(encoding="utf-8").splitlines()[0])
    return found


def test_flags_beat_o_that_the_environment_and_that_the_file(address: str, tmp_path: Path) -> None:
    config, journal = tmp_path / "channel.toml", tmp_path / "journal.jsonl"
    config.write_text(
        f"[channel]\nnode = '{address}'\nchannel_id = 'file'\nsender_id = 'file'\n"
        "retry_interval_ms = 1001\nmax_retry_attempts = 1001\ncausal_history_size = 101\n"
        "[channel.bloom]\ncapacity = 1001\n"
    )
    sent = run(
        "send",
        *("--config", str(config), "--journal", str(journal), "--json"),
        *("--sender-id", "flag", "-o", "sender_id=o", "-o", "retry-interval-ms=1003"),
        "hello",
        RELIABLE_CHANNEL_SENDER_ID="environment",
        RELIABLE_CHANNEL_RETRY_INTERVAL_MS="1002",
        RELIABLE_CHANNEL_MAX_RETRY_ATTEMPTS="1002",
    )
    assert sent.returncode == 0, sent.stderr
    assert json.loads(sent.stdout)["status"] == "sent"
    opened = options_of(journal)
    assert (opened["channel_id"], opened["sender_id"]) == ("file", "flag")
    options = opened["options"]
    assert isinstance(options, dict)
    assert options["retry_interval_ms"] == 1003
    assert options["max_retry_attempts"] == 1002
    assert options["causal_history_size"] == 101


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        (["-o", "retry_intervall_ms=5"], "did you mean `retry_interval_ms`?"),
        (["-o", "retry_interval_ms"], "must be of the form NAME=VALUE"),
        (["-o", "retry_interval_ms=soon"], "must be a whole number (got 'soon')"),
        (["-o", "retry_interval_ms=0"], "`retry_interval_ms` must be at least 1 (got 0)"),
    ],
)
def test_a_wrong_option_is_named(given: list[str], problem: str) -> None:
    done = run("send", "--sender-id", "alice", *given, "hello")
    assert done.returncode == 2
    assert problem in done.stderr


def test_a_name_has_to_be_given_somewhere() -> None:
    done = run("send", "hello")
    assert done.returncode == 2
    assert "--sender-id" in done.stderr and "RELIABLE_CHANNEL_SENDER_ID" in done.stderr


def test_a_configuration_that_is_not_there_is_named() -> None:
    done = run("send", "--config", "missing.toml", "hello")
    assert done.returncode == 4
    assert "missing.toml" in done.stderr


def test_the_outcome_of_send_as_json(address: str) -> None:
    late = run("send", *flags(address, "json", "alice"), "--json", "--wait", "0.1", "hello")
    assert late.returncode == 1
    found = json.loads(late.stdout)
    assert found["status"] == "not-acknowledged" and len(found["message_id"]) == 64


def test_a_node_takes_its_flags_from_a_file_and_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tmp_path / "node.toml"
    config.write_text("[node]\nport = 8646\nnum_shards = 4\nhost = '0.0.0.0'\n")
    monkeypatch.setenv("RELIABLE_CHANNEL_NODE_HOST", "::1")
    monkeypatch.setenv("RELIABLE_CHANNEL_NODE_JOIN", "http://a:1 http://b:2")
    monkeypatch.setenv("RELIABLE_CHANNEL_NODE_PORT", "tcp://10.0.0.1:8645")
    names = {"host": False, "port": False, "num_shards": False, "join": True}
    assert configured(names, config) == {
        "port": 8646,
        "num_shards": 4,
        "host": "::1",
        "join": ["http://a:1", "http://b:2"],
    }


def test_a_node_uses_them(tmp_path: Path) -> None:
    config = tmp_path / "node.toml"
    config.write_text("[node]\nport = 0\nnum_shards = 4\n")
    with Process("node", "--config", str(config), "--json", stdout=PIPE) as node:
        assert node.stdout is not None
        assert json.loads(node.stdout.readline())["event"] == "listening"
        node.terminate()
