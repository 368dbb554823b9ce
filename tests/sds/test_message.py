from __future__ import annotations

import pytest

from reliable_channel.sds.message import (
    SHOWN_BYTES,
    HistoryEntry,
    LazyHistory,
    LogEntry,
    Message,
    MessageKind,
)


@pytest.mark.parametrize(
    ("lamport", "content", "kind"),
    [
        (1, b"c", MessageKind.CONTENT),
        (0, b"c", MessageKind.CONTENT),
        (1, None, MessageKind.SYNC),
        (1, b"", MessageKind.SYNC),
        (None, b"c", MessageKind.EPHEMERAL),
        (None, None, None),
        (None, b"", None),
    ],
)
def test_the_kind_is_told_by_the_fields_that_are_set(
    lamport: int | None, content: bytes | None, kind: MessageKind | None
) -> None:
    assert Message("s", "m", "c", lamport, content=content).kind is kind


def test_causal_ids() -> None:
    history = [HistoryEntry("a"), HistoryEntry("b")]
    assert Message("s", "m", "c", causal_history=history).causal_ids == ["a", "b"]
    lazy = LazyHistory(["a", "b"], history.__getitem__)
    assert Message("s", "m", "c", causal_history=lazy).causal_ids == ["a", "b"]


def test_a_lazy_history_is_a_sequence_that_makes_what_is_asked_for() -> None:
    made: list[int] = []

    def make(index: int) -> HistoryEntry:
        made.append(index)
        return HistoryEntry(str(index))

    lazy = LazyHistory(["0", "1", "2"], make)
    assert len(lazy) == 3
    assert lazy[1] == HistoryEntry("1")
    assert made == [1]
    assert lazy[-1] == HistoryEntry("2")
    assert lazy[1:] == [HistoryEntry("1"), HistoryEntry("2")]
    for index in (3, -4):
        with pytest.raises(IndexError):
            lazy[index]
    assert lazy == [HistoryEntry("0"), HistoryEntry("1"), HistoryEntry("2")]
    assert lazy != [HistoryEntry("0")]
    assert lazy != 3


def test_it_shows_its_content() -> None:
    assert repr(LogEntry("id", "alice", 7, b"coo")) == "LogEntry('id', 'alice', 7, b'coo')"


def test_of_long_content_it_shows_the_beginning_and_the_length() -> None:
    shown = repr(LogEntry("id", "alice", 7, b"x" * 150_000))
    assert shown.endswith(f"{b'x' * SHOWN_BYTES!r}… (150000 bytes))")
