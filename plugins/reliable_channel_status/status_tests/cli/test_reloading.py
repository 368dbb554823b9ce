"""`bot run --reload`: a real process, started again when its files change."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from reliable_channel_status import PrivateKey, write_key
from reliable_channel_status.cli import reloading
from reliable_channel_status.cli.reloading import CannotRun, Reloader, folder_of, load_bot, seen
from status_tests.world import COMMUNITY

PROGRAM = """
import signal, sys, time
from pathlib import Path
log = Path(__file__).with_suffix(".log")
def note(text):
    with log.open("a") as file:
        file.write(text + "\\n")
def end(*_):
    note("{name} ended")
    sys.exit(0)
signal.signal(signal.SIGTERM, end)
note("{name} runs")
while {is_running}:
    time.sleep(0.05)
"""


class World:
    """A program in a folder, and what the reloader reports."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.file = folder / "program.py"
        self.said: list[str] = []
        self.write("one")
        self.reloader = Reloader(
            [sys.executable, str(self.file)], folder, self.said.append, lambda _: time.sleep(0.05)
        )
        self.thread = threading.Thread(target=self.reloader.run)

    def write(self, name: str, *, is_running: bool = True) -> None:
        self.file.write_text(PROGRAM.format(name=name, is_running=is_running))

    @property
    def lines(self) -> list[str]:
        log = self.folder / "program.log"
        return log.read_text().splitlines() if log.exists() else []

    def until(self, *lines: str) -> None:
        while self.lines != list(lines):
            time.sleep(0.02)

    def until_said(self, start: str) -> None:
        while not any(line.startswith(start) for line in self.said):
            time.sleep(0.02)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    world = World(tmp_path)
    world.thread.start()
    yield world
    world.reloader.stop()
    world.thread.join()


def test_a_change_ends_the_program_in_good_order_and_starts_it_again(world: World) -> None:
    world.until("one runs")
    world.write("two")
    world.until("one runs", "one ended", "two runs")
    assert world.said == ["reload: program.py"]
    (world.folder / "settings.toml").write_text("x = 1")
    world.until("one runs", "one ended", "two runs", "two ended", "two runs")
    (world.folder / "settings.toml").unlink()
    world.until_said("reload: files")


def test_an_error_of_syntax_leaves_the_program_running(world: World) -> None:
    world.until("one runs")
    world.file.write_text("def broken(:")
    world.until_said("not reloaded: SyntaxError")
    assert world.lines == ["one runs"]
    world.write("two")
    world.until("one runs", "one ended", "two runs")


def test_a_program_that_ends_by_itself_starts_after_a_change(world: World) -> None:
    world.until("one runs")
    world.write("two", is_running=False)
    world.until_said("the bot ended with status 0")
    world.write("three")
    world.until("one runs", "one ended", "two runs", "three runs")


BOT = """
from reliable_channel_status.bot import StatusBot
bot = StatusBot(node="http://127.0.0.1:9", key_file={key!r}, community={community!r}, state=None)
other = 1
"""


@pytest.mark.slow
def test_the_command_runs_a_bot_and_reloads_it(tmp_path: Path) -> None:
    file, key = tmp_path / "a_bot.py", tmp_path / "bot.key"
    write_key(key, PrivateKey.generate())
    text = BOT.format(key=str(key), community=COMMUNITY.id)
    file.write_text(text)
    command = [sys.executable, "-m", "reliable_channel", "bot", "run", str(file), "--reload"]
    environment = {**os.environ, "RELIABLE_CHANNEL_PLUGINS": "status"}
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment)
    assert process.stderr is not None
    lines = iter(process.stderr.readline, "")
    assert any('"bot_started"' in line for line in lines)
    file.write_text(text + "# changed\n")
    assert any(line.startswith("reload: a_bot.py") for line in lines)
    assert any('"bot_started"' in line for line in lines)
    process.send_signal(signal.SIGTERM)
    assert any('"bot_stopped"' in line for line in lines)
    process.communicate()
    assert process.returncode == 0


def test_a_bot_is_found_by_file_and_by_module(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.chdir(tmp_path)
    text = BOT.format(key="bot.key", community=COMMUNITY.id)
    (tmp_path / "tea_bot_1.py").write_text(text)
    (tmp_path / "tea_pack").mkdir()
    (tmp_path / "tea_pack" / "__init__.py").write_text("")
    (tmp_path / "tea_pack" / "robot.py").write_text(text.replace("bot = ", "robot = "))
    assert load_bot("tea_bot_1.py").rooms.communities
    assert load_bot("tea_pack.robot:robot").rooms.communities
    assert folder_of("tea_pack.robot:robot") == tmp_path / "tea_pack"
    assert folder_of("tea_bot_1.py") == tmp_path
    for target, why in {
        "nowhere.py": "no file",
        "nowhere_at_all": "no module",
        "tea_bot_1.py:other": "must be a StatusBot",
        "tea_pack.robot": "must be a StatusBot",
    }.items():
        with pytest.raises(CannotRun, match=why):
            load_bot(target)
    with pytest.raises(CannotRun, match="no module"):
        folder_of("nowhere_at_all.bot")


def test_few_files_are_watched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a.py", "b.toml", "c.txt", ".hidden.py"):
        (tmp_path / name).write_text("")
    (tmp_path / "__pycache__").mkdir()
    (tmp_path / "__pycache__" / "d.py").write_text("")
    assert sorted(file.name for file in seen(tmp_path)) == ["a.py", "b.toml"]
    monkeypatch.setattr(reloading, "MAX_FILES", 1)
    with pytest.raises(CannotRun, match="more than 1 files"):
        seen(tmp_path)
