"""The audit log: a chain of lines that survives crashes and shows changes."""

import json
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from reliable_channel_moderation import AuditLog, LogBroken, plugin
from reliable_channel_moderation.audit_log import read_log


def written(file: Path, count: int = 4) -> Path:
    log = AuditLog(file)
    for number in range(1, count + 1):
        log.add(number, "delete", case=number, user="0x04aa", why=f"link {number}")
    return file


def checked(*arguments: str) -> tuple[int, str]:
    app = typer.Typer()
    plugin.register_commands(app)
    app.command("other")(lambda: None)
    result = CliRunner().invoke(app, ["bot", "log", *arguments])
    return result.exit_code, result.output


def test_a_log_is_a_chain_that_goes_on_after_a_restart(tmp_path: Path) -> None:
    file = written(tmp_path / "log.jsonl")
    AuditLog(file).add(9, "pardon", case=2, by="0x04bb", user="0x04aa", why="a friend")
    entries = list(read_log(file))
    assert [entry.case for entry in entries] == [1, 2, 3, 4, 2]
    assert file.stat().st_mode & 0o777 == 0o600
    status, text = checked(str(file))
    assert status == 0 and "pardon case 2 0x04aa by 0x04bb 'a friend'" in text


@pytest.mark.parametrize("change", ["changed", "removed", "moved", "first removed", "nonsense"])
def test_a_line_that_was_tampered_with_is_found(tmp_path: Path, change: str) -> None:
    file = written(tmp_path / "log.jsonl")
    lines = file.read_bytes().splitlines(keepends=True)
    if change == "changed":
        lines[1] = lines[1].replace(b"link 2", b"link X")
    elif change == "removed":
        del lines[2]
    elif change == "moved":
        lines[1], lines[2] = lines[2], lines[1]
    elif change == "first removed":
        del lines[0]
    else:
        lines[1] = b"[]\n"
    file.write_bytes(b"".join(lines))
    with pytest.raises(LogBroken, match="line"):
        list(read_log(file))
    status, text = checked(str(file))
    assert status == 1 and "error:" in text


def test_a_line_that_a_crash_cut_off_is_dropped_and_written_again(tmp_path: Path) -> None:
    file = written(tmp_path / "log.jsonl")
    whole = file.read_bytes()
    for cut in range(1, len(whole.splitlines()[-1])):
        file.write_bytes(whole[:-cut])
        AuditLog(file).add(4, "delete", case=4, user="0x04aa", why="link 4")
        assert file.read_bytes() == whole


def test_an_action_of_a_case_that_is_the_last_line_is_not_written_again(tmp_path: Path) -> None:
    file = written(tmp_path / "log.jsonl")
    before = file.read_bytes()
    AuditLog(file).add(5, "delete", case=4, user="0x04aa", why="link 4")
    assert file.read_bytes() == before
    AuditLog(file).add(5, "raid", why="x")
    AuditLog(file).add(5, "raid", why="x")
    assert len(list(read_log(file))) == 6


def test_a_full_log_is_renamed_and_the_chain_goes_on(tmp_path: Path) -> None:
    file = tmp_path / "log.jsonl"
    log = AuditLog(file, max_bytes=500)
    for number in range(1, 20):
        log.add(number, "delete", case=number, why="x")
        if not file.exists():
            log = AuditLog(file, max_bytes=500)
    earlier = list(read_log(tmp_path / "log.jsonl.1", is_first=False))
    later = list(read_log(file, is_first=False))
    assert [entry.case for entry in earlier + later][-1] == 19
    numbers = [entry.case for entry in earlier + later]
    assert numbers == list(range(numbers[0], 20))
    assert checked(str(file))[0] == 1 and checked(str(file), "--renamed")[0] == 0
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) < 1500


def test_what_is_no_log_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "log.jsonl"
    file.write_text(json.dumps({"not": "a log"}) + "\n")
    with pytest.raises(LogBroken):
        AuditLog(file)
    assert checked(str(tmp_path / "missing"))[0] == 0, "nothing happened yet"
