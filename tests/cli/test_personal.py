"""Where the state of people's commands lies."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from filelock import FileLock

from reliable_channel.cli.personal import personal_state

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the places are Linux's")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    return tmp_path


def earlier_state(home: Path) -> Path:
    path = home / ".config" / "reliable-channel" / "general" / "alice.db"
    path.parent.mkdir(parents=True)
    for end in ("", "-wal", ".lock"):
        Path(f"{path}{end}").write_text(end)
    return path


def test_state_is_data_and_no_setting(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = "reliable-channel/{channel_id}/{sender_id}.db"
    assert personal_state() == f"sqlite:///{home}/.local/share/{name}"
    monkeypatch.setenv("XDG_DATA_HOME", "relative")
    assert personal_state() == f"sqlite:///{home}/.local/share/{name}"
    monkeypatch.setenv("XDG_DATA_HOME", f"{home}/elsewhere")
    assert personal_state() == f"sqlite:///{home}/elsewhere/{name}"


def test_what_lay_with_the_settings_moves_once_with_a_notice(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = earlier_state(home)
    for _ in range(2):
        state = personal_state()
    assert state.startswith(f"sqlite:///{home}/.local/share/")
    assert (home / ".local/share/reliable-channel/general/alice.db-wal").read_text() == "-wal"
    assert not path.parent.parent.exists()
    assert capsys.readouterr().err.replace("\n", "").count("moved from") == 1


def test_what_is_in_use_does_not_move(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = earlier_state(home)
    with FileLock(f"{path}.lock"):
        assert personal_state().startswith(f"sqlite:///{home}/.config/reliable-channel/")
    assert path.exists()
    assert "in use" in capsys.readouterr().err.replace("\n", " ")
