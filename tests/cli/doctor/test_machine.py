"""What can be wrong on the machine, with real files."""

import os
import shutil
from pathlib import Path

import pytest

from reliable_channel import BlockingReliableChannel
from reliable_channel._contracts.finding import Finding
from reliable_channel.cli.doctor import machine
from reliable_channel.cli.doctor.findings import Findings
from reliable_channel.state import SqliteStateStore

from .nodes import named

IDS = ("general", "alice")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A state file of alice."""
    found = tmp_path / "alice.db"
    with BlockingReliableChannel(
        "memory://doctor", channel_id="general", sender_id="alice", state=f"sqlite:///{found}"
    ) as channel:
        channel.send(b"one")
    return found


def examined(path: Path, ids: tuple[str, str] = IDS) -> list[Finding]:
    findings = Findings()
    machine.examine_state(findings, SqliteStateStore(path), ids)
    return findings.found


def test_a_sound_file(path: Path) -> None:
    assert "1 messages, 1 unacknowledged" in named(examined(path), "state", "ok").text
    assert "first start makes it" in named(examined(path / "../new.db"), "state", "ok").text


def test_no_state_at_all() -> None:
    findings = Findings()
    machine.examine_state(findings, None, IDS)
    assert "--state" in named(findings.found, "state", "note").advice


def test_a_damaged_file(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:5_000])
    assert "restore" in named(examined(path), "state.sound", "problem").advice


def test_an_older_copy(path: Path, tmp_path: Path) -> None:
    shutil.copyfile(path, tmp_path / "copy")
    with BlockingReliableChannel(
        "memory://doctor", channel_id="general", sender_id="alice", state=f"sqlite:///{path}"
    ) as channel:
        channel.send(b"two")
    shutil.copyfile(tmp_path / "copy", path)
    assert "lacks the last" in named(examined(path), "state.lacks", "warning").text


def test_a_file_of_another_participant(path: Path) -> None:
    found = named(examined(path, ("general", "bob")), "state.identity", "problem")
    assert "belongs to 'alice'" in found.text


def test_a_file_in_use(path: Path) -> None:
    with BlockingReliableChannel(
        "memory://doctor", channel_id="general", sender_id="alice", state=f"sqlite:///{path}"
    ):
        assert "another process" in named(examined(path), "state.in_use", "problem").text


def test_a_file_that_others_can_read(path: Path) -> None:
    path.chmod(0o644)
    assert "chmod 600" in named(examined(path), "state.mode", "warning").advice


def test_a_directory_that_cannot_be_written(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: False)  # root may write anywhere
    assert named(examined(path), "state.directory", "problem")


def test_a_disk_that_is_nearly_full(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "MIN_FREE_BYTES", 10**18)
    assert "make room" in named(examined(path), "state.disk", "warning").advice


def test_a_misspelt_variable_is_named_and_a_foreign_one_is_not() -> None:
    findings = Findings()
    machine.examine_environment(
        findings,
        {
            "RELIABLE_CHANNEL_SENDERID": "alice",
            "RELIABLE_CHANNEL_NODE_PORT": "1",
            "RELIABLE_CHANNEL_SERVICE_HOST": "10.0.0.1",
            "RELIABLE_CHANNEL_STATE": "memory:",
        },
    )
    (found,) = findings.found
    assert found.advice == "did you mean RELIABLE_CHANNEL_SENDER_ID?"


def test_a_plugin_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RELIABLE_CHANNEL_PLUGINS", "pigeons")
    findings = Findings()
    machine.examine_plugins(findings)
    assert "pigeons" in named(findings.found, "plugins", "problem").text
