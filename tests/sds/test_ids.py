from hashlib import sha256

from Crypto.Hash import keccak

from reliable_channel.sds.changes import Recorder, Table
from reliable_channel.sds.ids import RecentIds, js_waku_id, reliable_channel_id


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
