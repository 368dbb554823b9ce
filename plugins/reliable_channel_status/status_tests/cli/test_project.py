"""`reliable-channel bot new` writes a project whose own test passes."""

import subprocess
import sys
from pathlib import Path

import typer
from typer.testing import CliRunner

from reliable_channel_status import plugin, read_key
from status_tests.world import COMMUNITY, GENERAL


def new(*arguments: str) -> tuple[int, str]:
    app = typer.Typer()
    plugin.register_commands(app)
    result = CliRunner().invoke(app, ["bot", "new", *arguments])
    return result.exit_code, result.output.strip()


def test_the_test_of_a_new_project_passes(tmp_path: Path) -> None:
    folder = tmp_path / 'tea "bot" {x}\\'
    status, told = new(str(folder), "--community", COMMUNITY.id, "--channel", GENERAL)
    assert (status, told) == (0, read_key(folder / "bot.key").public_key.hex)
    assert (folder / "bot.key").stat().st_mode & 0o777 == 0o600
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-W",
        "error",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:schemathesis",
    ]
    ran = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert ran.returncode == 0 and "1 passed" in ran.stdout, ran.stdout + ran.stderr


def test_what_is_there_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("precious")
    status, told = new(str(tmp_path), "--community", COMMUNITY.id)
    assert status == 2 and "not empty; choose another name" in told
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


def test_mistakes_are_told_before_anything_is_written(tmp_path: Path) -> None:
    folder = tmp_path / "bot"
    for arguments in (["--community", "x"], ["--community", COMMUNITY.id, "--channel", "x"]):
        status, told = new(str(folder), *arguments)
        assert status == 2 and told.startswith("error: ")
    assert not folder.exists()
