"""A participant is killed, and storage does something to its state before it starts again.

What the documentation promises to keep (docs/state.md) is kept, the rest is said; and in the end
nobody lacks a message that went out.
"""

from __future__ import annotations

import json
import resource
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest
from anyio import to_thread
from anyio.abc import TaskGroup

from tests.cli import forked

from .processes import Killable, Node, Participant
from .story import _all_killed, _free_port

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

COPY = "older copy.db"
Fault = Callable[[Path], None]


class Watched(Participant):
    """A participant whose events are remembered."""

    def __init__(self, name: str, directory: Path, address: str, tasks: TaskGroup) -> None:
        super().__init__(name, directory, address, tasks)
        self.state = directory / f"{name}.db"
        self.events: list[str] = []
        self.received: set[str] = set()
        self.changed = anyio.Event()

    def told(self, line: str) -> None:
        super().told(line)
        self.events.append(line)
        if (told := json.loads(line))["event"] == "message_received":
            self.received.add(told["message_id"])
        self.changed.set()
        self.changed = anyio.Event()

    def count(self, event: str) -> int:
        return sum(f'"event":"{event}"' in line for line in self.events)

    async def until(self, event: str, count: int = 1) -> None:
        while self.count(event) < count:
            await self.changed.wait()

    async def refuses(self) -> bool:
        """Whether the program does not start with this state, and names it as damaged."""
        run = await to_thread.run_sync(forked.run, *self.arguments)
        return run.returncode != 0 and "damaged" in run.stderr


def wal(state: Path) -> Path:
    return Path(f"{state}-wal")


def nothing(state: Path) -> None:
    assert wal(state).exists()


def delete_the_wal(state: Path) -> None:
    wal(state).unlink()


def lose_the_last_fsyncs(state: Path) -> None:
    with wal(state).open("r+b") as file:
        file.truncate(32 + 24 + 4_096)  # its header and a page: what follows may be older frames


def restore_the_copy(state: Path) -> None:
    shutil.copy(state.with_name(COPY), state)
    wal(state).unlink()


def delete_the_file(state: Path) -> None:
    state.unlink()
    wal(state).unlink()


def fold(state: Path) -> None:
    """Bring the WAL into the file, as a checkpoint does."""
    program = "import sqlite3, sys; sqlite3.connect(sys.argv[1]).execute('VACUUM')"
    subprocess.run([sys.executable, "-c", program, state], check=True)


def flip_a_bit(state: Path) -> None:
    fold(state)
    data = bytearray(state.read_bytes())
    data[data.index(b"message alice 3")] ^= 4
    state.write_bytes(data)


def cut_off_the_tail(state: Path) -> None:
    fold(state)
    state.write_bytes(state.read_bytes()[:-4_096])


@pytest.mark.parametrize(
    ("fault", "says"),
    [
        (nothing, None),
        (delete_the_wal, "state_rolled_back"),
        (lose_the_last_fsyncs, "state_rolled_back"),
        (restore_the_copy, "state_rolled_back"),
        (delete_the_file, "state_rolled_back"),
        (flip_a_bit, "refused"),
        (cut_off_the_tail, "refused"),
    ],
)
def test_what_storage_takes_back_is_said_and_comes_from_others(
    tmp_path: Path, fault: Fault, says: str | None
) -> None:
    anyio.run(_damaged_while_down, tmp_path, fault, says)


async def _damaged_while_down(directory: Path, fault: Fault, says: str | None) -> None:
    async with anyio.create_task_group() as tasks:
        node = Node(directory / "store.db", _free_port(), tasks)
        alice, bob = (Watched(name, directory, node.address, tasks) for name in ("alice", "bob"))
        with _all_killed([node, alice, bob]):
            await node.start()
            await node.listens.wait()
            await alice.start()
            await bob.start()
            await _talk(alice, bob, 1)
            await alice.kill()
            shutil.copy(alice.state, alice.state.with_name(COPY))
            await alice.start()
            await _talk(alice, bob, 2)
            await alice.kill()
            fault(alice.state)
            if says == "refused":
                assert await alice.refuses()
                shutil.move(alice.state, directory / "damaged.db")
            await alice.start()
            await alice.until("ready", 3)
            await _talk(alice, bob, 3)
            await _equal_logs(alice, bob, 6 * MESSAGES)
            assert alice.count("state_rolled_back") == (says is not None)
            assert alice.count("state_degraded") == 0
            if says is None:
                assert alice.errors == []  # nothing came twice, nothing after its confirmation
            await _end(node, alice, bob)


MESSAGES = 8


async def _talk(alice: Watched, bob: Watched, round_: int) -> None:
    """Each sends some messages, which the other one receives and confirms."""
    for _ in range(MESSAGES):
        for each in (alice, bob):
            await each.send()
    for each in (alice, bob):
        while len(each.accepted) < round_ * MESSAGES:
            await each.changed.wait()
        await each.until("message_sent", round_ * MESSAGES)
    while len(alice.received) < round_ * MESSAGES or alice.received - alice.confirmed:
        await alice.confirm(len(alice.handled))
        await alice.changed.wait()


async def _end(*processes: Killable) -> None:
    """End all of them; who listens to them ends by itself."""
    for each in processes:
        await each.kill()


async def _equal_logs(alice: Watched, bob: Watched, length: int) -> None:
    while True:
        for each in (alice, bob):
            await each.ask_log()
        while alice.log is None or bob.log is None:  # noqa: ASYNC110 - told by other processes
            await anyio.sleep(0.1)
        if alice.log == bob.log and len(alice.log) == length:
            return
        await anyio.sleep(0.5)


@pytest.mark.skipif(sys.platform != "linux", reason="limits of another process are Linux's")
def test_a_full_disk_refuses_and_nothing_that_was_accepted_is_lost(tmp_path: Path) -> None:
    anyio.run(_full, tmp_path)


async def _full(directory: Path) -> None:
    async with anyio.create_task_group() as tasks:
        node = Node(directory / "store.db", _free_port(), tasks)
        alice, bob = (Watched(name, directory, node.address, tasks) for name in ("alice", "bob"))
        place = alice.arguments.index("--journal")  # it is a file as well, which would not grow
        alice.arguments = (*alice.arguments[:place], *alice.arguments[place + 2 :])
        with _all_killed([node, alice, bob]):
            await node.start()
            await node.listens.wait()
            await alice.start()
            await bob.start()
            await _talk(alice, bob, 1)
            assert alice.process is not None
            pid, size = alice.process.pid, wal(alice.state).stat().st_size
            _, most = resource.prlimit(pid, resource.RLIMIT_FSIZE)
            resource.prlimit(pid, resource.RLIMIT_FSIZE, (size, most))
            while not any("nothing was sent" in line for line in alice.events):
                await alice.send()
                await alice.changed.wait()
            await alice.until("state_degraded")
            resource.prlimit(pid, resource.RLIMIT_FSIZE, (most, most))
            await alice.until("state_recovered")
            refused = set(alice.unknown)
            for key in sorted(refused):
                await alice.ask(key, alice.unknown[key])
            while alice.unknown:
                await alice.changed.wait()
            await alice.kill()
            await alice.start()
            await _equal_logs(alice, bob, len(alice.accepted) + len(bob.accepted))
            assert alice.count("state_rolled_back") == 0
            await _end(node, alice, bob)
