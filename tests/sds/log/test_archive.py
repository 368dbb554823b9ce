"""What is known of archived entries without reading them: how many stand where, and their size."""

import pytest

from reliable_channel.sds.changes import Changes, Recorder, Value
from reliable_channel.sds.log import archive
from reliable_channel.sds.log.archive import LOG_BLOCKS, NO_ARCHIVE, ArchiveBlocks, LogArchive
from reliable_channel.sds.message import LogEntry
from reliable_channel.state import Identity, MemoryStateStore

END = (1_000, "")


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "BLOCK_ENTRIES", 2)


def entry(number: int, size_bytes: int = 1) -> LogEntry:
    return LogEntry(f"m{number}", "alice", number, bytes(size_bytes))


def blocks(*sizes: int) -> ArchiveBlocks:
    made = ArchiveBlocks(Recorder())
    for number, size_bytes in enumerate(sizes):
        made.append(entry(number, size_bytes))
    return made


def archived(*entries: LogEntry) -> LogArchive:
    store = MemoryStateStore()
    store.open(Identity("channel", "alice", "spec"))
    store.write(Changes(entries={each.message_id: each.row for each in entries}))
    return store.archive()


def numbers(changes: Changes, *, deleted: bool) -> list[Value]:
    """Of the blocks that were deleted, or written."""
    rows = changes.rows.items()
    return [key for (table, key), row in rows if table is LOG_BLOCKS and (row is None) is deleted]


def test_entries_and_bytes_are_counted() -> None:
    made = blocks(10, 20, 30)
    made.remove(entry(1, 20))
    assert (made.total, made.size_bytes) == (2, 40)


def test_as_many_blocks_give_way_as_make_room_for_bytes() -> None:
    made = blocks(10, 10, 10, 10, 10, 10, 10)
    assert made.trim(0, 30) == (4, "m4")
    assert (made.total, made.size_bytes) == (3, 30)


def test_whole_blocks_give_way_for_entries_and_the_last_one_stays() -> None:
    made = blocks(1, 1, 1, 1, 1)
    assert made.trim(1, 0) is None
    assert made.trim(3, 0) == (2, "m2")
    assert made.trim(100, 100) == (4, "m4")
    assert made.total == 1


def test_blocks_keep_their_numbers_when_older_ones_are_gone() -> None:
    recorder = Recorder()
    made = ArchiveBlocks(recorder)
    for number in range(8):
        made.append(entry(number))
    assert numbers(recorder.take(), deleted=False) == [0, 1, 2]
    made.trim(4, 0)
    assert numbers(recorder.take(), deleted=True) == [0, 1]
    made.trim(2, 0)
    assert numbers(recorder.take(), deleted=True) == [2]
    made.append(entry(8))
    assert numbers(recorder.take(), deleted=False) == [3]


def test_blocks_are_restored_in_the_order_of_their_numbers() -> None:
    recorder = Recorder()
    made = ArchiveBlocks(recorder)
    rows = [(8, 4, "m4", 2, 20), (7, 2, "m2", 2, 30), (9, 6, "m6", 2, 5)]
    made.restore(list(rows), archived(entry(6, 2), entry(7, 3)), END)
    assert (made.total, made.size_bytes) == (6, 55)
    assert made.trim(2, 0) == (4, "m4")
    assert numbers(recorder.take(), deleted=True) == [7]


def test_a_full_block_is_written_again_when_an_entry_of_it_is_taken_out() -> None:
    recorder = Recorder()
    made = ArchiveBlocks(recorder)
    for number in range(4):
        made.append(entry(number, 10))
    recorder.take()
    made.remove(entry(1, 10))
    assert recorder.take().rows == {(LOG_BLOCKS, 0): (0, 0, "m0", 1, 10)}


def test_what_entered_the_log_since_the_last_step_is_counted_by_time_and_id() -> None:
    recorder = Recorder()
    for number, sender_id in enumerate("zyxw"):
        recorder.log((f"m{number}", sender_id, 7, b"", None))
    assert recorder.logged((7, "m1"), (7, "m3")) == 2
    assert recorder.logged((7, ""), (8, "")) == 4
    assert recorder.logged((8, ""), (9, "")) == 0


@pytest.mark.parametrize("number", [0, 2, 5])
def test_an_entry_that_comes_late_stands_after_older_ones_written_or_not(number: int) -> None:
    recorder = Recorder()
    made = ArchiveBlocks(recorder)
    others = [entry(each) for each in (1, 3, 4, 6, 7)]
    for each in others:
        made.append(each)
    for each in others[3:]:
        recorder.log(each.row)  # the archive does not have them yet
    before = made.insert(entry(number, 10), archived(*others[:3]))
    assert before == sum(each.lamport_timestamp < number for each in others)
    assert (made.total, made.size_bytes) == (6, 15)


def test_entries_are_counted_as_older_by_whole_blocks() -> None:
    made = blocks(1, 1, 1, 1, 1)
    assert [made.older_than(lamport) for lamport in (0, 2, 3, 4, 5, 9)] == [0, 0, 2, 2, 4, 4]


@pytest.mark.parametrize("full", [0, 1, 2])
def test_after_a_restart_what_follows_the_full_blocks_is_counted_again(full: int) -> None:
    entries = [entry(number, number) for number in range(5)]
    rows = [(n, 2 * n, f"m{2 * n}", 2, 4 * n + 1) for n in range(full)]
    made = ArchiveBlocks(Recorder())
    made.restore(list(rows), archived(*entries), END)
    assert (made.total, made.size_bytes) == (5, 10)
    assert made.trim(2, 0) == (2, "m2")
    assert made.total == 3


def test_without_an_archive_nothing_is_found() -> None:
    assert NO_ARCHIVE.get("m1") is None
    assert list(NO_ARCHIVE.entries(None, END)) == []
    assert NO_ARCHIVE.count(None, END) == 0


def test_what_is_in_memory_again_after_a_restart_is_counted_once() -> None:
    """A larger window, or fewer entries in it, reaches into blocks that were recorded as full."""
    recorder, entries = Recorder(), [entry(number, 10) for number in range(6)]
    made = ArchiveBlocks(recorder)
    made.restore([(n, 2 * n, f"m{2 * n}", 2, 20) for n in range(3)], archived(*entries), (3, "m3"))
    assert (made.total, made.size_bytes) == (3, 30)
    assert numbers(recorder.take(), deleted=True) == [2]
