"""A state file has one owner, whatever name it is opened under."""

from __future__ import annotations

import multiprocessing
import os
import stat
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from reliable_channel.state import Identity, SqliteStateStore, StateInUse

ALICE = Identity("general", "alice", "spec")

linux_only = pytest.mark.skipif(sys.platform != "linux", reason="the lock is Linux's")


def symbolic(path: Path) -> Path:
    other = path.with_name("link.db")
    other.symlink_to(path)
    return other


def hard(path: Path) -> Path:
    other = path.with_name("hard.db")
    os.link(path, other)
    return other


def through_a_directory(path: Path) -> Path:
    other = path.parent.with_name(path.parent.name + "-too")
    other.symlink_to(path.parent, target_is_directory=True)
    return other / path.name


def without_lock(path: Path) -> Path:
    Path(f"{path}.lock").unlink()
    return path


NAMES = [symbolic, hard, through_a_directory, without_lock]


def try_to_open(paths: Sequence[Path]) -> None:
    """In another process: exit with how many of them are in use."""
    refused = 0
    for path in paths:
        store = SqliteStateStore(path)
        try:
            store.open(ALICE)
            store.close()
        except StateInUse:
            refused += 1
    sys.exit(refused)


@pytest.mark.parametrize("name", NAMES)
def test_no_other_name_opens_it_twice_in_a_process(
    tmp_path: Path, name: Callable[[Path], Path]
) -> None:
    owner = SqliteStateStore(tmp_path / "state.db")
    owner.open(ALICE)
    other = SqliteStateStore(name(tmp_path / "state.db"))
    for _ in range(2):  # that it was refused must not release what the owner holds
        with pytest.raises(StateInUse, match="one owner at a time"):
            other.open(ALICE)
    owner.close()
    other.open(ALICE)
    other.close()


@linux_only
def test_no_other_name_opens_it_twice_in_two_processes(tmp_path: Path) -> None:
    (tmp_path / "here").mkdir()
    owner = SqliteStateStore(tmp_path / "here" / "state.db")
    owner.open(ALICE)
    paths = [name(tmp_path / "here" / "state.db") for name in NAMES]
    for expected in (len(paths), 0):
        if not expected:
            owner.close()
        process = multiprocessing.get_context("spawn").Process(target=try_to_open, args=(paths,))
        process.start()
        process.join()
        assert process.exitcode == expected


def test_what_is_made_is_readable_to_its_owner_alone(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        store = SqliteStateStore(tmp_path / "new" / "state.db", folder=tmp_path)
        store.open(ALICE)
        modes = {each.name: stat.S_IMODE(each.stat().st_mode) for each in tmp_path.rglob("*")}
        store.close()
    finally:
        os.umask(before)
    files = ("state.db", "state.db-wal", "state.db-shm", "state.db.lock", "state.db.commits")
    assert modes == dict.fromkeys(files, 0o600) | {"new": 0o700}


@pytest.mark.parametrize("parent", ["closes", "is killed"])
def test_a_forked_process_holds_no_lock(parent: str, tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    program = f"""
import os, signal, sys
from pathlib import Path
from reliable_channel.state import Identity, SqliteStateStore

store = SqliteStateStore(Path({str(path)!r}))
store.open(Identity("general", "alice", "spec"))
if not os.fork():
    print("forked", flush=True)
    sys.stdin.read()
    os._exit(0)
if {parent!r} == "closes":
    store.close()
else:
    os.kill(os.getpid(), signal.SIGKILL)
"""
    command, pipe = [sys.executable, "-c", program], subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe) as process:
        process.wait()
        assert process.stdout is not None
        assert process.stdout.readline() == b"forked\n"
        store = SqliteStateStore(path)
        store.open(ALICE)
        store.close()
