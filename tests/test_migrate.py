"""Python files of 0.1 get the names of today."""

from pathlib import Path

import pytest

from reliable_channel.migrate import main, migrated

BEFORE_AND_AFTER = {
    "an event": (
        ["from reliable_channel import MessageStored"],
        ["from reliable_channel.events import MessageStored"],
    ),
    "several": (
        ["from reliable_channel import (", "    run,  # ours", "    StateInUse as Busy,", ")"],
        [
            "from reliable_channel import run",
            "from reliable_channel.errors import StateInUse as Busy",
        ],
    ),
    "in a function": (
        ["def f() -> None:", "    from reliable_channel import run, SyncSent; run(f)"],
        [
            "def f() -> None:",
            "    from reliable_channel import run",
            "    from reliable_channel.events import SyncSent; run(f)",
        ],
    ),
    "behind a letter of two bytes": (
        ["import reliable_channel", "é = 'é', reliable_channel.SyncSent"],
        ["import reliable_channel", "é = 'é', reliable_channel.events.SyncSent"],
    ),
    "blocking": (
        ["from reliable_channel import ReliableChannel", "with ReliableChannel.sync() as c: ..."],
        [
            "from reliable_channel import BlockingReliableChannel",
            "with BlockingReliableChannel() as c: ...",
        ],
    ),
    "blocking beside the other": (
        ["from reliable_channel import ReliableChannel", "ReliableChannel.sync, ReliableChannel"],
        [
            "from reliable_channel import BlockingReliableChannel, ReliableChannel",
            "BlockingReliableChannel, ReliableChannel",
        ],
    ),
    "blocking by its full name": (
        ["import reliable_channel", "reliable_channel.ReliableChannel.sync()"],
        ["import reliable_channel", "reliable_channel.BlockingReliableChannel()"],
    ),
    "a name that changed": (
        [
            "from reliable_channel.sync_core import Outcome, SyncSetting",
            "def core(setting: SyncSetting): return Core(setting.options)",
        ],
        [
            "from reliable_channel.sync_core import Outcome, CoreContext",
            "def core(setting: CoreContext): return Core(setting.options)",
        ],
    ),
    "the same name elsewhere": (
        ["from theirs import SyncSetting", "SyncSetting()"],
        ["from theirs import SyncSetting", "SyncSetting()"],
    ),
}


@pytest.mark.parametrize(
    ("before", "after"), BEFORE_AND_AFTER.values(), ids=BEFORE_AND_AFTER.keys()
)
def test_names_are_rewritten(before: list[str], after: list[str]) -> None:
    assert migrated("\n".join(before)).splitlines() == after
    assert migrated("\n".join(after)).splitlines() == after


def test_what_has_todays_names_stays_to_the_byte() -> None:
    source = "from reliable_channel import (Event,\n  run)  # both\nfrom .x import MessageStored\n"
    assert migrated(source) == source


def test_folders_are_searched_and_a_broken_file_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bot, broken = tmp_path / "bot" / "main.py", tmp_path / "broken.py"
    bot.parent.mkdir()
    bot.write_text("from reliable_channel import SyncSent\n")
    broken.write_text("def (")
    assert main([str(tmp_path)]) == 1
    printed = capsys.readouterr()
    assert printed.out == f"{bot}\n"
    assert f"{broken}: left as it is" in printed.err
    assert bot.read_text() == "from reliable_channel.events import SyncSent\n"
