"""State files from outside: real files of real channels, in use, damaged, old and not ours."""

import json
import resource
import shutil
import sqlite3
import subprocess
from base64 import b64decode
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from sys import maxsize
from typing import Any

import pytest

from reliable_channel import MessageSent, ReliableChannel
from reliable_channel.cli.lazy_command import loaded_command
from reliable_channel.cli.main import STATE_COMMANDS
from reliable_channel.errors import StateCorrupt, StateError, StateInUse, StateUnavailable
from reliable_channel.events import StateRolledBack
from reliable_channel.state import files
from reliable_channel.transport import MemoryNetwork
from tests.channel.world import make_channel

pytestmark = pytest.mark.anyio


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "alice.db"


@asynccontextmanager
async def alice(path: Path, network: MemoryNetwork | None = None) -> AsyncIterator[ReliableChannel]:
    transport = (network or MemoryNetwork()).transport()
    async with make_channel(transport, "alice", state=f"sqlite:///{path}") as channel:
        yield channel


async def send(channel: ReliableChannel, *texts: str) -> None:
    for text in texts:
        await channel.send(text.encode())
        async for event in channel.events():
            if isinstance(event, MessageSent):
                break


async def entries(channel: ReliableChannel, *wanted: bytes) -> None:
    """Wait until the log is this."""
    async for _ in channel.sync_status_changes():
        if [entry.content for entry in channel.log()] == [*wanted]:
            return


async def test_a_file_in_use_is_described_exported_and_copied(path: Path, tmp_path: Path) -> None:
    async with alice(path) as channel:
        await send(channel, "one", "two")
        found = files.summary(path)
        assert (found.channel_id, found.sender_id, found.messages) == ("general", "alice", 2)
        assert found.in_use and found.unacknowledged == 2
        assert [b64decode(str(one["payload"])) for one in files.export(path)] == [b"one", b"two"]
        assert files.check(path) == []
        files.backup(path, tmp_path / "copy.db")
        with pytest.raises(StateInUse):
            files.restore(tmp_path / "copy.db", path)
        with pytest.raises(StateInUse):
            files.prune(path, older_than_ms=0)
    assert not files.summary(path).in_use
    assert files.summary(tmp_path / "copy.db").messages == 2
    assert (tmp_path / "copy.db").stat().st_mode & 0o777 == 0o600
    with pytest.raises(StateUnavailable, match="exists"):
        files.backup(path, tmp_path / "copy.db")


async def test_a_restored_copy_says_what_it_lacks_and_gets_it_from_the_others(
    path: Path, tmp_path: Path
) -> None:
    network, copy = MemoryNetwork(), tmp_path / "copy.db"
    async with make_channel(network.transport(), "bob") as bob:
        async with alice(path, network) as channel:
            await send(channel, "before")
            files.backup(path, copy)
            await send(channel, "after")
            await entries(bob, b"before", b"after")
        earlier = files.restore(copy, path)
        assert earlier is not None and files.summary(earlier).messages == 2
        assert files.check(path) == [] and "lacks the last" in files.lacking(path)
        async with alice(path, network) as channel:
            async for event in channel.events():
                if isinstance(event, StateRolledBack):
                    break
            await entries(channel, b"before", b"after")


async def test_a_copy_of_another_participant_or_a_damaged_one_is_not_restored(
    path: Path, tmp_path: Path
) -> None:
    async with alice(path) as channel:
        await send(channel, "one")
    other = tmp_path / "bob.db"
    async with make_channel(
        MemoryNetwork().transport(), "bob", state=f"sqlite:///{other}"
    ) as channel:
        await send(channel, "two")
    with pytest.raises(StateUnavailable, match="is the state of 'bob'"):
        files.restore(other, path)
    damaged = tmp_path / "damaged.db"
    shutil.copyfile(path, damaged)
    with closing(sqlite3.connect(damaged)) as connection:
        connection.execute("UPDATE log SET content = x'00'")
        connection.commit()
    with pytest.raises(StateCorrupt, match="checksum"):
        files.restore(damaged, path)
    assert files.summary(path).messages == 1
    assert files.restore(path, tmp_path / "new.db") is None


@pytest.fixture
def link(path: Path) -> Path:
    link = path.parent / "links" / "bot.db"
    link.parent.mkdir()
    link.symlink_to(path)
    return link


async def test_a_link_stands_for_the_file_that_it_names(
    path: Path, link: Path, tmp_path: Path
) -> None:
    async with alice(link) as channel:
        await send(channel, "before")
        files.backup(link, tmp_path / "copy.db")
        await send(channel, "after")
        assert files.summary(link).size_bytes == files.summary(path).size_bytes
    restore_through(link, path, tmp_path / "copy.db")


def restore_through(link: Path, path: Path, copy: Path) -> None:
    earlier = files.restore(copy, link)
    assert earlier is not None and files.summary(earlier).messages == 2
    assert link.readlink() == path and files.summary(path).messages == 1
    assert "lacks the last" in files.lacking(link)


def test_a_link_to_a_missing_file_stays(path: Path, link: Path) -> None:
    assert not files.is_in_use(link)
    assert link.readlink() == path and not path.exists()


async def test_a_copy_without_room_leaves_everything_as_it_was(path: Path, tmp_path: Path) -> None:
    async with alice(path) as channel:
        await send(channel, "before")
        files.backup(path, tmp_path / "copy.db")
        await send(channel, "after")
    copy_without_room(path, tmp_path / "copy.db")


def copy_without_room(path: Path, copy: Path) -> None:
    whole, names = path.read_bytes(), {*path.parent.iterdir()}
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(whole) // 2, before[1]))
    try:
        with pytest.raises(StateUnavailable, match="cannot be written"):
            files.restore(copy, path)
        with pytest.raises(StateUnavailable, match="cannot be written"):
            files.backup(path, path.with_name("another.db"))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert (path.read_bytes(), {*path.parent.iterdir()}) == (whole, names)
    Path(f"{path}.restoring").write_bytes(b"what a killed process leaves")
    assert files.restore(copy, path) is not None
    assert files.summary(path).messages == 1


async def test_a_copy_made_in_use_is_sound_and_its_next_owner_knows_that_it_is_one(
    path: Path, tmp_path: Path
) -> None:
    copy, again = tmp_path / "copy.db", tmp_path / "again.db"
    async with alice(path) as channel:
        await send(channel, "before")
        files.backup(path, copy)
        await send(channel, "after")
    files.backup(copy, again)
    for one in (copy, again):
        assert files.check(one) == []
        assert files.summary(one).copied_at_ms is not None
    async with alice(copy) as channel:
        async for event in channel.events():
            if isinstance(event, StateRolledBack):
                break
    assert files.summary(copy).copied_at_ms is None


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 32 MiB."""
    (disk := tmp_path / "disk").mkdir()
    mount = ("mount", "-t", "tmpfs", "-o", "size=32m", "tmpfs", disk)
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("this user mounts no disk")
    yield disk
    subprocess.run(("umount", "--lazy", disk), check=True)


@pytest.mark.parametrize("anyio_backend", ["asyncio"])  # files know no event loop
async def test_pruning_gives_space_back_on_a_disk_with_no_room_for_a_second_file(
    small_disk: Path,
) -> None:
    path = small_disk / "alice.db"
    async with alice(path) as channel:
        await send(channel, *("x" * 10_000 for _ in range(200)))
        await send(channel, "kept")
        middle = channel.log()[-1].lamport_timestamp
    size = path.stat().st_size
    fill(small_disk, shutil.disk_usage(small_disk).free - 1_500_000)
    with pytest.raises(StateUnavailable, match="cannot be written"):
        files.backup(path, small_disk / "copy.db")
    evicted, freed = files.prune(path, older_than_ms=middle)
    assert evicted == 200 and freed > 1_900_000
    assert path.stat().st_size < size - 1_900_000
    assert "copy.db" not in names(small_disk) and files.check(path) == []


def names(disk: Path) -> str:
    return " ".join(path.name for path in disk.iterdir())


def fill(disk: Path, size_bytes: int) -> None:
    (disk / "something").write_bytes(bytes(size_bytes))


async def test_a_wal_without_its_file_is_not_applied_to_a_copy(path: Path, tmp_path: Path) -> None:
    async with alice(path) as channel:
        await send(channel, "before")
        files.backup(path, tmp_path / "copy.db")
        await send(channel, "after")
        wal = shutil.copyfile(f"{path}-wal", tmp_path / "wal")
    restore_beside(wal, path, tmp_path / "copy.db")


def restore_beside(wal: Path, path: Path, copy: Path) -> None:
    path.unlink()
    wal.rename(f"{path}-wal")
    assert files.restore(copy, path) is None
    assert files.summary(path).messages == 1


async def test_check_names_what_is_wrong(path: Path, tmp_path: Path) -> None:
    async with alice(path) as channel:
        await send(channel, *map(str, range(20)))
    damage(path, tmp_path)
    assert files.check(path) == []


def damage(path: Path, tmp_path: Path) -> None:
    whole = path.read_bytes()
    broken: dict[str, Any] = {
        "cut": whole[: len(whole) // 2],
        "other": b"SQLite format 3\0" + bytes(5_000),
        "text": b"not a database, but a long text" * 100,
        "empty": b"",
    }
    for name, content in broken.items():
        (tmp_path / name).write_bytes(content)
        assert files.check(tmp_path / name), name
    assert "is not a file" in files.check(tmp_path / "missing")[0]
    Path(f"{path}.commits").unlink()


async def test_pruning_evicts_old_messages_and_the_channel_goes_on(path: Path) -> None:
    async with alice(path) as channel:
        await send(channel, *("x" * 10_000 for _ in range(50)))
        await send(channel, "kept")
        middle = channel.log()[-1].lamport_timestamp
    evicted, freed = files.prune(path, older_than_ms=middle)
    assert evicted == 50 and freed > 400_000
    assert files.check(path) == []
    async with alice(path) as channel:
        assert [entry.content for entry in channel.log()] == [b"kept"]
        await send(channel, "more")
    assert files.prune(path, older_than_ms=0)[0] == 0


async def test_a_file_that_was_made_without_steps_is_pruned(path: Path) -> None:
    async with alice(path) as channel:
        await send(channel, *("x" * 10_000 for _ in range(50)))
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")
        connection.execute("PRAGMA auto_vacuum = NONE")
        connection.execute("VACUUM")
    evicted, freed = files.prune(path, older_than_ms=maxsize)
    assert evicted == 50 and freed > 400_000
    assert files.check(path) == []


async def test_the_commands_print_json(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    async with alice(path) as channel:
        await send(channel, "one")

    def run(name: str, *arguments: str) -> list[Any]:
        with pytest.raises(SystemExit) as ended:
            loaded_command(name, "reliable_channel.cli.state").main([*arguments])
        assert ended.value.code == 0
        return [json.loads(line) for line in capsys.readouterr().out.splitlines()]

    (found,) = run("list", str(path.parent), "--json")
    assert (found["sender_id"], found["messages"]) == ("alice", 1)
    assert run("check", str(path), "--json") == [{"path": str(path), "problems": [], "lacks": ""}]
    assert [one["sender_id"] for one in run("export", str(path))] == ["alice"]
    assert run("export", str(path), "--json") == run("export", str(path))
    copy = str(path.parent / "copy")
    assert run("backup", str(path), copy, "--json") == [{"path": str(path), "copy": copy}]
    (restored,) = run("restore", copy, str(path), "--json")
    assert restored["path"] == str(path) and "before-restore" in restored["earlier"]
    assert run("prune", str(path), "--older-than", "0d", "--json")[0]["evicted"] == 1
    with pytest.raises(ValueError, match="days or hours"):
        loaded_command("prune", "reliable_channel.cli.state").main(
            [str(path), "--older-than", "soon"]
        )
    with pytest.raises(StateError):
        loaded_command("export", "reliable_channel.cli.state").main([str(path.parent / "none.db")])


@pytest.mark.parametrize(("name", "text"), STATE_COMMANDS.items())
def test_the_list_of_commands_has_their_own_texts(name: str, text: str) -> None:
    help_text = loaded_command(name, "reliable_channel.cli.state").help or ""
    assert " ".join(help_text.split("\n\n")[0].split()) == text
