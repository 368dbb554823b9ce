"""What every state store promises."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from reliable_channel.engine.archive_overlay import ArchiveOverlay
from reliable_channel.sds.changes import Changes, Table
from reliable_channel.sds.message import LogEntry
from reliable_channel.state import (
    Identity,
    MemoryStateStore,
    SqliteStateStore,
    StateMismatch,
    StateStore,
)

ALICE = Identity("general", "alice", "spec")
NOTES = Table("notes", (("name", "TEXT"), ("number", "INTEGER"), ("data", "BLOB")))
Reopen = Callable[[], StateStore]


@pytest.fixture(params=["memory", "sqlite"])
def reopen(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Reopen]:
    """A store that begins again from what was written each time it is called."""
    opened: list[StateStore] = []
    kept = MemoryStateStore()

    def again() -> StateStore:
        for store in opened:
            store.close()
        opened.append(
            kept if request.param == "memory" else SqliteStateStore(tmp_path / "state.db")
        )
        return opened[-1]

    yield again
    for store in opened:
        store.close()


def entry(number: int, *, lamport: int | None = None, hint: bytes | None = None) -> LogEntry:
    lamport = number if lamport is None else lamport
    return LogEntry(f"m{number:04}", "bob", lamport, b"content %d" % number, hint)


def logged(*entries: LogEntry) -> Changes:
    return Changes(entries={each.message_id: each.row for each in entries})


@pytest.mark.conformance("LD-STATE-2")
def test_begins_empty(reopen: Reopen) -> None:
    saved = reopen().open(ALICE)
    assert not saved.newest
    assert not any(saved.tables.values())


@pytest.mark.conformance("LD-STATE-1")
def test_what_was_written_is_there_again(reopen: Reopen) -> None:
    store = reopen()
    store.open(ALICE)
    changes = logged(entry(2), entry(1, hint=b"h" * 32))
    changes.rows[NOTES, "a"] = ("a", 1, b"\x00data")
    changes.rows[NOTES, "b"] = ("b", None, None)
    store.write(changes)
    saved = reopen().open(ALICE)
    assert [each.row for each in saved.newest] == [entry(1, hint=b"h" * 32).row, entry(2).row]
    assert sorted(saved.tables["notes"], key=str) == [("a", 1, b"\x00data"), ("b", None, None)]


@pytest.mark.conformance("LD-STATE-3")
def test_rows_are_replaced_and_deleted(reopen: Reopen) -> None:
    store = reopen()
    store.open(ALICE)
    store.write(Changes(rows={(NOTES, "a"): ("a", 1, None), (NOTES, "b"): ("b", 1, None)}))
    store.write(Changes(rows={(NOTES, "a"): ("a", 2, None), (NOTES, "b"): None}))
    assert list(reopen().open(ALICE).tables["notes"]) == [("a", 2, None)]


def test_an_entry_learns_its_hint(reopen: Reopen) -> None:
    store = reopen()
    store.open(ALICE)
    store.write(logged(entry(1)))
    store.write(Changes(hints={"m0001": (*entry(1).row[:4], b"hint")}))
    with closing(store.archive()) as archive:
        found = archive.get("m0001")
    assert found is not None
    assert found.retrieval_hint == b"hint"


def test_the_archive_finds_by_id_and_by_place(reopen: Reopen) -> None:
    store = reopen()
    store.open(ALICE)
    # Five share a Lamport timestamp, so that the ids decide; more than a page of entries.
    store.write(logged(*(entry(number, lamport=number // 5) for number in range(2_500))))
    archive = store.archive()
    assert archive.get("m0007") is not None
    assert archive.get("m9999") is None
    for start, end in ((None, (1, "m0007")), ((0, "m0003"), (400, "")), ((3, "x"), (3, "x"))):
        expected = [
            each.message_id
            for each in (entry(number, lamport=number // 5) for number in range(2_500))
            if each.key < end and (start is None or start <= each.key)
        ]
        assert [each.message_id for each in archive.entries(start, end)] == expected
        assert archive.count(start, end) == len(expected)
    archive.close()


def test_trimming_lets_go_of_what_stands_below(reopen: Reopen) -> None:
    store = reopen()
    store.open(ALICE)
    store.write(logged(*(entry(number, lamport=number // 5) for number in range(20))))
    store.write(Changes(trimmed_below=(2, "m0012")))
    with closing(store.archive()) as archive:
        assert archive.get("m0011") is None
    assert [each.message_id for each in reopen().open(ALICE).newest] == [
        f"m{number:04}" for number in range(12, 20)
    ]


def test_belongs_to_one_participant_of_one_channel(reopen: Reopen) -> None:
    reopen().open(ALICE)
    with pytest.raises(StateMismatch, match="bob"):
        reopen().open(Identity("general", "bob", "spec"))


def test_the_overlay_finds_what_is_not_written_yet(reopen: Reopen) -> None:
    store = reopen()
    store.open(ALICE)
    store.write(logged(entry(1), entry(3)))
    overlay = ArchiveOverlay(store.archive())
    unwritten = logged(entry(2), entry(4))
    overlay.add(unwritten)
    found = overlay.get("m0002")
    assert found is not None
    assert [each.message_id for each in overlay.entries(None, (4, ""))] == [
        "m0001",
        "m0002",
        "m0003",
    ]
    assert overlay.count((2, ""), (9, "")) == 3
    store.write(unwritten)
    assert overlay.count((2, ""), (9, "")) == 3, "written, and not yet known to be"
    overlay.remove(unwritten)
    assert len(overlay) == 0
    assert overlay.get("m0002") is not None
    overlay.close()


def test_an_entry_that_is_taken_out_may_come_back_as_another(reopen: Reopen) -> None:
    store = reopen()
    store.open(ALICE)
    store.write(logged(entry(1), entry(2), entry(3)))
    overlay = ArchiveOverlay(store.archive())
    changes = Changes(removed={"m0002"})
    overlay.add(changes)
    assert overlay.get("m0002") is None
    assert [each.message_id for each in overlay.entries(None, (9, ""))] == ["m0001", "m0003"]
    assert overlay.count(None, (9, "")) == 2
    again = logged(entry(2, lamport=7))
    overlay.add(again)
    changes.add(again)
    assert [each.message_id for each in overlay.entries(None, (9, ""))][-1] == "m0002"
    store.write(changes)
    overlay.remove(changes)
    assert overlay.count(None, (9, "")) == 3
    overlay.close()
    newest = reopen().open(ALICE).newest
    assert [(each.message_id, each.lamport_timestamp) for each in newest] == [
        ("m0001", 1),
        ("m0003", 3),
        ("m0002", 7),
    ]
