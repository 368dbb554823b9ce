from hashlib import sha256

import pytest
from Crypto.Hash import keccak

from reliable_channel.sds.changes import Recorder, Table
from reliable_channel.sds.ids import (
    PROOF_AGE_MS,
    RecentIds,
    RecentSet,
    is_proven,
    js_waku_id,
    reliable_channel_id,
)


def test_the_id_of_the_reliable_channel_api() -> None:
    expected = keccak.new(digest_bits=256, data=b"alice" + b"1700000000000000001" + b"hi")
    assert reliable_channel_id("alice", 1_700_000_000_000_000_001, b"hi") == expected.hexdigest()


def test_sender_time_and_content_all_count() -> None:
    made = {
        reliable_channel_id(*arguments)
        for arguments in [("a", 1, b"c"), ("b", 1, b"c"), ("a", 2, b"c"), ("a", 1, b"d")]
    }
    assert len(made) == 4


def test_js_wakus_id_is_the_content_alone() -> None:
    assert js_waku_id("alice", 1, b"hi") == sha256(b"hi").hexdigest() == js_waku_id("bob", 2, b"hi")


def test_the_oldest_of_recent_ids_make_room() -> None:
    recent = RecentIds(2)
    for message_id in ("a", "b", "a", "c"):
        recent.add(message_id)
    assert [message_id in recent for message_id in "abc"] == [False, True, True]
    assert len(recent) == 2


def test_the_row_of_an_id_goes_with_it() -> None:
    recorder, table = Recorder(), Table("recent", (("message_id", "TEXT"),))
    recent = RecentIds(2, recorder=recorder, table=table)
    for message_id in "abc":
        recent.add(message_id)
    rows = {key: row for (_, key), row in recorder.take().rows.items()}
    assert rows == {"a": None, "b": ("b",), "c": ("c",)}
    again = RecentIds(2, recorder=recorder, table=table)
    again.restore(row for row in rows.values() if row)
    assert list(again) == ["b", "c"]


def test_a_recent_id_that_is_not_held_any_more_has_no_row() -> None:
    recorder, table = Recorder(), Table("recent", (("message_id", "TEXT"),))
    recent = RecentIds(3, recorder=recorder, table=table)
    for message_id in "abc":
        recent.add(message_id)
    recent.discard("b")
    recent.discard("b")
    assert list(recent) == ["a", "c"]
    rows = {key: row for (_, key), row in recorder.take().rows.items()}
    assert rows == {"a": ("a",), "b": None, "c": ("c",)}


SENT_AT_NS = 1_700_000_000_000_000_001
SENT_AT_MS = SENT_AT_NS // 1_000_000


@pytest.mark.parametrize(
    ("sender", "content", "sent_at_ns", "now_ms", "holds"),
    [
        ("alice", b"hi", SENT_AT_NS, SENT_AT_MS, True),
        ("alice", b"hi", SENT_AT_NS, SENT_AT_MS + PROOF_AGE_MS, True),
        ("alice", b"hi", SENT_AT_NS, SENT_AT_MS + PROOF_AGE_MS + 1, False),
        ("alice", b"hi", None, SENT_AT_MS, False),
        ("alice", b"hi", SENT_AT_NS + 1, SENT_AT_MS, False),
        ("bob", b"hi", SENT_AT_NS, SENT_AT_MS, False),
        ("alice", b"ho", SENT_AT_NS, SENT_AT_MS, False),
    ],
    ids=["now", "just in time", "too old", "no time", "a repetition", "a sender", "a content"],
)
def test_an_id_proves_who_sent_what_and_when(
    sender: str, content: bytes, sent_at_ns: int | None, now_ms: int, holds: bool
) -> None:
    message_id = reliable_channel_id("alice", SENT_AT_NS, b"hi")
    assert is_proven(message_id, sender, content, sent_at_ns, now_ms) is holds


def test_the_oldest_keys_are_forgotten() -> None:
    recent = RecentSet[bytes](2)
    assert [recent.add(digest) for digest in (b"a", b"b", b"a", b"c")] == [True, True, False, True]
    assert (b"a" in recent, b"b" in recent, len(recent)) == (True, False, 2)
