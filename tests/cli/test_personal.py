"""Where the state of people's commands lies."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from reliable_channel.cli.personal import personal_state
from reliable_channel.errors import StateUnavailable

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the places are Linux's")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    return tmp_path


def test_state_is_data_and_no_setting(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = "reliable-channel/{channel_id}/{sender_id}.db"
    assert personal_state() == f"sqlite:///{home}/.local/share/{name}"
    monkeypatch.setenv("XDG_DATA_HOME", "relative")
    assert personal_state() == f"sqlite:///{home}/.local/share/{name}"
    monkeypatch.setenv("XDG_DATA_HOME", f"{home}/elsewhere")
    assert personal_state() == f"sqlite:///{home}/elsewhere/{name}"


def test_a_user_without_a_home_is_told_what_to_give(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HOME")
    monkeypatch.setattr("pwd.getpwuid", {}.__getitem__)  # an unknown user
    with pytest.raises(StateUnavailable, match="set XDG_DATA_HOME, or give --state"):
        personal_state()
