from random import Random
from typing import Any

import pytest

from reliable_channel.sds import CoreLimits, Message
from reliable_channel.sds.dialects.codec import MAX_ID_BYTES
from reliable_channel.sds.log.log import MessageLog
from reliable_channel.sds.message import HistoryEntry, LogEntry
from reliable_channel.sds.profile import SPEC
from reliable_channel.sds.references.causal_history import (
    FOLLOWED_BURST,
    CausalTail,
    ReferenceBudget,
    UnknownReferences,
    excess,
    history_entry,
)


class Recorder:
    """An encoder that remembers what it was asked to encode."""

    def __init__(self) -> None:
        self.encoded: list[str] = []

    def __call__(self, entry: HistoryEntry) -> bytes:
        self.encoded.append(entry.message_id)
        hint = entry.retrieval_hint or b"-"
        return entry.message_id.encode() + b":" + hint + b";"


def tail(
    size: int, count: int, limit_bytes: int = 1_000
) -> tuple[CausalTail, MessageLog, Recorder]:
    log, encode = MessageLog(1_000), Recorder()
    for i in range(count):
        log.insert(LogEntry(f"m{i:02}", "s", i, b""))
    return CausalTail(log, size, limit_bytes, encode), log, encode


def test_the_newest_entries_oldest_first() -> None:
    assert bytes(tail(2, 4)[0].encoded()) == b"m02:-;m03:-;"
    assert bytes(tail(9, 2)[0].encoded()) == b"m00:-;m01:-;"
    assert bytes(tail(2, 0)[0].encoded()) == b""


def test_a_log_that_was_restored_empty_has_no_history() -> None:
    causal, log, _ = tail(9, 2)
    causal.encoded()
    log.restore([], [], [], None)
    assert bytes(causal.encoded()) == b""


def test_size_zero_is_none() -> None:
    assert bytes(tail(0, 4)[0].encoded()) == b""


def test_each_entry_is_encoded_once() -> None:
    causal, log, encode = tail(3, 3)
    for i in range(50):
        causal.encoded()
        log.insert(LogEntry(f"n{i:02}", "s", 100 + i, b""))
    assert len(encode.encoded) == len(set(encode.encoded))


def test_a_late_insertion_takes_its_place() -> None:
    causal, log, _ = tail(3, 3)
    causal.encoded()
    log.insert(LogEntry("late", "s", 1, b""))
    assert bytes(causal.encoded()) == b"late:-;m01:-;m02:-;"


def test_a_hint_that_becomes_known_is_encoded() -> None:
    causal, log, _ = tail(1, 1)
    causal.encoded()
    log.set_retrieval_hint("m00", b"hint")
    assert bytes(causal.encoded()) == b"m00:hint;"


def test_histories_share_their_bytes() -> None:
    causal, log, _ = tail(50, 50)
    made = []
    for i in range(900):
        log.insert(LogEntry(f"n{i:03}", "s", 100 + i, b""))
        made.append(causal.encoded())
    buffers = {id(history.shared): len(history.shared) for history in made}
    assert sum(buffers.values()) < 20 * len(made)


def test_whatever_happens_to_the_log_it_is_its_newest_entries() -> None:
    random, size = Random(5), 7
    log = MessageLog(30)
    causal = CausalTail(log, size, 10_000, SPEC.codec.encode_causal_entry)
    made = []
    for i in range(2_000):
        chance = random.random()
        newest = log.last(12)
        if chance < 0.7 or not newest:
            lamport = i if chance < 0.4 else max(0, i - random.randrange(20))
            if not log.is_below_horizon(lamport, f"m{i}"):
                log.insert(LogEntry(f"m{i}", "s", lamport, b""))
        elif chance < 0.85:
            log.set_retrieval_hint(random.choice(newest).message_id, b"hint")
        else:
            log.remove(random.choice(newest).message_id)
        if random.random() < 0.6:
            entries = [history_entry(entry) for entry in log.last(size)]
            expected = b"".join(map(SPEC.codec.encode_causal_entry, entries))
            made.append((causal.encoded(), expected))
    # A history stays as it is, whatever happens afterwards.
    assert all(bytes(history) == expected for history, expected in made)


@pytest.mark.parametrize(
    ("data", "ids"),
    [
        (b"m01:-;m02:-;m03:-;", ["m01", "m02", "m03"]),
        (b"m00:-;m01:-;", ["m00", "m01"]),
        (b"m01:-;m02:-;other:-;m03:-;", ["m01", "m02"]),
        (b"m01:-;m03:-;", ["m01"]),
        (b"m02:hint;m03:-;", []),
        (b"other:-;m01:-;", []),
        (b"01:-;m02:-;", []),
    ],
)
def test_what_a_history_has_in_common_with_it(data: bytes, ids: list[str]) -> None:
    found, end = tail(9, 4)[0].common(b"start" + data + b"end", 5, 6 + data.index(b";"))
    assert list(found) == ids
    assert end == 5 + sum(len(f"{message_id}:-;") for message_id in ids)


def test_beyond_the_limit_of_bytes_the_oldest_are_left_out() -> None:
    # An entry takes 6 bytes.
    assert bytes(tail(5, 5, limit_bytes=12)[0].encoded()) == b"m03:-;m04:-;"
    assert bytes(tail(5, 5, limit_bytes=11)[0].encoded()) == b"m04:-;"
    assert bytes(tail(5, 5, limit_bytes=0)[0].encoded()) == b""


def test_a_reference_names_the_sender() -> None:
    assert history_entry(LogEntry("m", "s", 1, b"", b"h")) == HistoryEntry("m", b"h", "s")


def test_a_long_conversation_is_referred_to_by_its_end_as_a_short_one() -> None:
    causal, log, encode = tail(3, 3)
    for i in range(900):
        log.insert(LogEntry(f"n{i:03}", "s", 100 + i, b""))
        entries = bytes(causal.encoded()).decode().split(":-;")
        if i >= 2:
            assert entries == [f"n{n:03}" for n in range(i - 2, i + 1)] + [""]
    assert len(encode.encoded) == len(set(encode.encoded))


def test_all_unknown_references_count() -> None:
    assert len(UnknownReferences((5, 6), (1, 2, 3))) == 5
    assert not UnknownReferences()


def test_what_is_spent_comes_back_with_time() -> None:
    budget = ReferenceBudget(10)
    assert budget.room("alice", 0) == FOLLOWED_BURST
    budget.spend("alice", FOLLOWED_BURST, 0)
    assert budget.room("alice", 0) == 0
    assert budget.room("", 0) == FOLLOWED_BURST
    assert 0 < budget.room("alice", 1_000) <= FOLLOWED_BURST
    assert budget.room("alice", 10_000_000) == FOLLOWED_BURST


def test_the_payer_that_spent_longest_ago_is_forgotten() -> None:
    budget = ReferenceBudget(2)
    for payer in ("alice", "bob", "alice", "carol"):
        budget.spend(payer, 10, 0)
    rooms = {name: budget.room(name, 0) for name in ("alice", "bob", "carol")}
    assert rooms == {
        "alice": FOLLOWED_BURST - 20,
        "bob": FOLLOWED_BURST,
        "carol": FOLLOWED_BURST - 10,
    }


@pytest.mark.parametrize(
    ("length", "reason"),
    [(MAX_ID_BYTES, ""), (MAX_ID_BYTES + 1, "ids or hints of more than")],
)
@pytest.mark.parametrize("part", ["message_id", "sender_id", "retrieval_hint"])
def test_an_id_or_hint_may_have_so_many_bytes(part: str, length: int, reason: str) -> None:
    long: Any = b"x" * length if part == "retrieval_hint" else "x" * length
    values: dict[str, Any] = {"message_id": "m", part: long}
    entry = HistoryEntry(**values)
    message = Message("alice", "id", "c", 1, (entry,), content=b"x")
    found = excess(message, UnknownReferences((0,), ()), MessageLog(1), CoreLimits())
    assert reason in found and bool(found) is bool(reason)
