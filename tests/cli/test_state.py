"""What `reliable-channel state check` says of a copy."""

import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from reliable_channel import BlockingReliableChannel
from reliable_channel.cli.main import command_line
from reliable_channel.state import files


def send(path: Path, content: bytes) -> None:
    with BlockingReliableChannel(
        "memory://copies", channel_id="general", sender_id="alice", state=f"sqlite:///{path}"
    ) as channel:
        channel.send(content)


def checked(path: Path) -> tuple[int, str]:
    ran = CliRunner().invoke(command_line(), ["state", "check", str(path)])
    return ran.exit_code, ran.output


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A file that was in use after its copies were made."""
    path = tmp_path / "alice.db"
    send(path, b"before")
    files.backup(path, tmp_path / "copy.db")
    shutil.copyfile(path, tmp_path / "file.db")
    send(path, b"after")
    return path


def test_a_restored_copy_is_sound_and_lacks_what_came_later(path: Path, tmp_path: Path) -> None:
    files.restore(tmp_path / "copy.db", path)
    status, printed = checked(path)
    assert status == 0 and "is sound; it is a copy of" in printed
    assert "lacks later writes" in printed
    assert "lacks" not in checked(tmp_path / "copy.db")[1]


def test_a_file_that_was_set_back_is_not_sound(path: Path, tmp_path: Path) -> None:
    shutil.copyfile(tmp_path / "file.db", path)
    status, printed = checked(path)
    assert status == 1 and "lacks the last" in printed
