"""The journal: JSON lines, whole ones, of all that is told and all that crosses the wire."""

import gzip
import json
from base64 import b64decode
from errno import ENOSPC, EROFS
from hashlib import sha256
from io import FileIO
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from reliable_channel import MessageReceived, MessageSent
from reliable_channel._contracts import repair_policies
from reliable_channel.config import flat
from reliable_channel.diagnostics import JournalDegraded
from reliable_channel.events import record
from reliable_channel.runtime.journal import Journal
from reliable_channel.sds.dialects import SpecCodec
from reliable_channel.transport import MemoryNetwork
from tests.channel.world import EPOCH_NS, QUICK, listening, make_channel
from tests.journal_lines import json_lines

pytestmark = pytest.mark.anyio

OF_THE_JOURNAL = ("journal_opened", "wire_in", "wire_out", "message_logged", "journal_closed")


def files(directory: Path) -> list[str]:
    return sorted(each.name for each in directory.iterdir() if each.is_file())


async def test_it_has_every_event_and_every_message_on_the_wire(tmp_path: Path) -> None:
    network = MemoryNetwork()
    alice = make_channel(network.transport(), "alice", journal=tmp_path / "alice.jsonl")
    values: dict[str, Any] = {"query_on_connect": False, "seed": 2}
    path = str(tmp_path / "bob.jsonl")
    bob = make_channel(network.transport(), "bob", journal=path, **values)
    async with listening(alice) as alice_told, listening(bob) as bob_told:
        request = await alice.send(b"hello")
        sent = await alice_told.first(MessageSent)
        await bob_told.first(MessageReceived)

    for path, told in (("alice.jsonl", alice_told), ("bob.jsonl", bob_told)):
        opened, *rest = json_lines(tmp_path / path)
        assert opened == {
            "event": "journal_opened",
            "at_ms": opened["at_ms"],
            "format": "reliable-channel-journal/1",
            "channel_id": "general",
            "sender_id": path.removesuffix(".jsonl"),
            "content_topic": "/reliable-channel/1/general/proto",
            "wanted_from_ms": opened["at_ms"] - QUICK.query_on_connect_window_ms,
            "log_length": 0,
            "has_store": True,
            "options": {**flat(QUICK), "seed": 1, **(values if path == "bob.jsonl" else {})},
        }
        assert opened["at_ms"] >= EPOCH_NS // 1_000_000
        assert rest.pop()["event"] == "journal_closed"
        events = [line for line in rest if line["event"] not in OF_THE_JOURNAL]
        assert events == [
            json.loads(json.dumps(record(event, line["at_ms"])))
            for event, line in zip(told.events, events, strict=True)
        ]

    (out,) = [
        line
        for line in json_lines(tmp_path / "alice.jsonl")
        if line["event"] == "wire_out" and line["source"] == "content"
    ]
    assert bytes.fromhex(out["message_hash"]) == sent.message_hash
    message = SpecCodec().decode(b64decode(out["payload"]))
    assert (message.message_id, message.content) == (request.message_id, b"hello")
    (came,) = [
        line
        for line in json_lines(tmp_path / "bob.jsonl")
        if line["event"] == "wire_in" and line["message_hash"] == out["message_hash"]
    ]
    assert (came["payload"], came["source"]) == (out["payload"], "live")
    assert (came["outcome"], came["timestamp_ns"]) == ("delivered", out["timestamp_ns"])
    (received,) = [
        line for line in json_lines(tmp_path / "bob.jsonl") if line["event"] == "message_received"
    ]
    assert b64decode(received["payload"]) == b"hello"
    assert received["retrieval_hint"] == out["message_hash"]


async def test_it_says_what_entered_the_log_and_where(tmp_path: Path) -> None:
    network = MemoryNetwork()
    paths = [tmp_path / "alice.jsonl", tmp_path / "bob.jsonl"]
    alice = make_channel(
        network.transport(), "alice", journal=paths[0], segmentation="lip-243-v0.1"
    )
    bob = make_channel(network.transport(), "bob", seed=2, journal=paths[1])
    async with listening(alice), listening(bob) as told:
        await alice.send(b"a" * 250_000)
        await told.first(MessageReceived)
        for channel, path in zip((alice, bob), paths, strict=True):
            logged = [line for line in json_lines(path) if line["event"] == "message_logged"]
            entries = channel.log()
            assert [each["position"] for each in logged] == [0, 1, 2]
            assert [
                (each["message_id"], each["sender_id"], each["lamport_timestamp"])
                for each in logged
            ] == [(each.message_id, each.sender_id, each.lamport_timestamp) for each in entries]
            assert [each["content_sha256"] for each in logged] == [
                sha256(each.content).hexdigest() for each in entries
            ]
            first = entries[0].message_id if channel is alice else None
            assert {each["first_segment_id"] for each in logged} == {first}
    came = {line["message_hash"] for line in json_lines(paths[1]) if line["event"] == "wire_in"}
    assert {line["message_hash"] for line in logged} <= came


async def test_an_option_that_is_a_function_is_named(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    options: dict[str, Any] = {"retrieval_strategy": repair_policies.both, "journal": path}
    async with make_channel(MemoryNetwork().transport(), "alice", **options):
        pass
    assert json_lines(path)[0]["options"]["retrieval_strategy"] == "both"


async def test_sessions_follow_each_other_in_one_file(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    for _ in range(2):
        async with make_channel(MemoryNetwork().transport(), "alice", journal=path) as channel:
            await channel.send(b"hello")
    assert [line["event"] for line in json_lines(path)].count("journal_opened") == 2


async def test_a_journal_of_another_format_is_refused_as_it_lies(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    path.write_text('{"event":"journal_opened","format":"sds-journal/3"}\n{"event":"wire_o')
    before = path.read_bytes()
    channel = make_channel(MemoryNetwork().transport(), "alice", journal=path)
    with pytest.raises(ValueError, match=r"channel-journal/1 \(got 'sds-journal/3' in .*; give"):
        await channel.open()
    assert path.read_bytes() == before


async def test_a_line_torn_by_a_kill_costs_only_itself(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    path.write_text('{"event":"wire_o')
    async with make_channel(MemoryNetwork().transport(), "alice", journal=path):
        pass
    torn, opened, *_ = path.read_text().splitlines()
    assert torn == '{"event":"wire_o'
    assert json.loads(opened)["event"] == "journal_opened"


async def test_an_unwritable_path_fails_when_the_channel_opens(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "nowhere" / "journal.jsonl"):
        channel = make_channel(MemoryNetwork().transport(), "alice", journal=path)
        with pytest.raises(OSError, match=str(path)):
            await channel.open()


async def test_a_long_journal_goes_on_in_another_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each part begins with whose it is, and needs no bytes of the part before."""
    monkeypatch.setattr(Journal.__init__, "__kwdefaults__", {"part_bytes": 20_000})
    path = tmp_path / "alice.jsonl"
    for _ in range(2):
        channel = make_channel(MemoryNetwork().transport(), "alice", journal=path)
        async with listening(channel):
            for number in range(30):
                await channel.send(b"hello %d, from one who has much to say" % number)
    names = files(tmp_path)
    assert len(names) > 3
    assert names[:2] == ["alice.0001.jsonl.gz", "alice.0002.jsonl.gz"]
    assert names[-1] == "alice.jsonl"
    before = None
    for name in names:
        part = tmp_path / name
        if name.endswith(".gz"):
            unpacked = gzip.decompress(part.read_bytes())
            assert 20_000 < len(unpacked) < 40_000
            part = tmp_path / "part"
            part.write_bytes(unpacked)
        opened, *rest = json_lines(part)
        assert (opened["event"], opened["sender_id"]) == ("journal_opened", "alice")
        assert opened.get("follows") == before
        assert rest
        before = name


async def test_a_part_that_cannot_be_packed_stays(tmp_path: Path) -> None:
    (tmp_path / "alice.0001.jsonl.gz.unfinished").mkdir()
    path = tmp_path / "alice.jsonl"
    values = {"channel_id": "general", "sender_id": "alice", "content_topic": "/a/1/b/proto"}
    with Journal(path, part_bytes=1_000, **values) as journal:
        journal.opened(at_ms=1, wanted_from_ms=0, log_length=0, options={})
        for number in range(10):
            journal.event(MessageSent(str(number) * 64, "r", bytes(32), ()), 2)
    names = files(tmp_path)
    assert names[0] == "alice.0001.jsonl"
    assert json_lines(tmp_path / "alice.0001.jsonl")[-1]["event"] == "message_sent"
    assert json_lines(path)[0]["follows"].startswith("alice.")


def test_a_part_is_numbered_after_those_that_are_left(tmp_path: Path) -> None:
    """Readers order parts by number: a new one in the place of one that was removed would be read
    first."""
    values = {"channel_id": "general", "sender_id": "alice", "content_topic": "/a/1/b/proto"}
    with Journal(tmp_path / "alice.jsonl", part_bytes=1_000, **values) as journal:
        for number in range(10):
            journal.event(MessageSent(str(number) * 64, "r", bytes(32), ()), 2)
    before = files(tmp_path)
    (tmp_path / before[0]).unlink()
    with Journal(tmp_path / "alice.jsonl", part_bytes=1_000, **values) as journal:
        for number in range(10):
            journal.event(MessageSent(str(number) * 64, "r", bytes(32), ()), 3)
    assert files(tmp_path)[0] == before[1]
    assert len(files(tmp_path)) > len(before)


class FullDisk:
    """A disk that takes so many bytes more."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.room_bytes = 10**9
        disk, write = self, FileIO.write

        class OnFullDisk(FileIO):
            def write(self, data: Any, /) -> int:
                if disk.room_bytes == 0:
                    raise OSError(ENOSPC, "No space left on device")
                written = write(self, data[: disk.room_bytes])
                disk.room_bytes -= written
                return written

        monkeypatch.setattr(Journal, "_opened_file", lambda journal: OnFullDisk(journal.path, "ab"))


async def test_a_full_disk_ends_no_channel_and_the_journal_says_what_it_lacks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    disk, network, path = FullDisk(monkeypatch), MemoryNetwork(), tmp_path / "alice.jsonl"
    alice = make_channel(network.transport(), "alice", journal=path)
    bob = make_channel(network.transport(), "bob", seed=2)
    async with listening(alice) as told, listening(bob) as bob_told:
        await alice.send(b"before")
        await bob_told.until(lambda: len(bob_told.of(MessageReceived)) == 1, within_s=600)
        before = json_lines(path)
        disk.room_bytes = 100  # so that a line is torn
        for content in (b"lost", b"lost as well"):
            await alice.send(content)
        await bob_told.until(lambda: len(bob_told.of(MessageReceived)) == 3, within_s=600)
        (degraded,) = told.of(JournalDegraded)
        assert "No space left" in degraded.reason
        assert any("No space left" in each for each in alice.health().warnings)
        assert json_lines(path)[: len(before)] == before
        disk.room_bytes = 10**9
        await alice.send(b"after")
        await bob_told.until(lambda: len(bob_told.of(MessageReceived)) == 4, within_s=600)
        assert alice.health().warnings == ()
    lines = json_lines(path)
    (gap,) = [line for line in lines if line["event"] == "journal_gap"]
    place = lines.index(gap)
    assert lines[place - 1]["at_ms"] <= gap["from_ms"] <= gap["at_ms"]
    assert gap["lines"] >= 4 and "No space left" in gap["reason"]
    (sent,) = [
        line
        for line in lines[place:]
        if (line["event"], line.get("source")) == ("wire_out", "content")
    ]
    assert SpecCodec().decode(b64decode(sent["payload"])).content == b"after"
    assert lines[-1]["event"] == "journal_closed"
    assert caplog.text.count("journal_degraded") == 1


def test_a_journal_that_begins_on_a_full_disk_says_later_whose_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk, path = FullDisk(monkeypatch), tmp_path / "alice.jsonl"
    disk.room_bytes = 0
    with Journal(path, channel_id="c", sender_id="alice", content_topic="t") as journal:
        journal.opened(at_ms=1, wanted_from_ms=0, log_length=0, options={})
        journal.event(MessageSent("m", "r", b"hash"), 2)
        disk.room_bytes = 10**9
        journal.closed(3)
    opened, gap, closed = json_lines(path)
    assert (opened["event"], opened["at_ms"], opened["sender_id"]) == ("journal_opened", 1, "alice")
    assert (gap["event"], gap["from_ms"], gap["at_ms"], gap["lines"]) == ("journal_gap", 1, 3, 1)
    assert closed["event"] == "journal_closed"


def test_a_part_that_cannot_begin_leaves_the_journal_in_its_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "alice.jsonl"
    monkeypatch.setattr(Path, "rename", _refuse)
    with Journal(
        path, channel_id="c", sender_id="alice", content_topic="t", part_bytes=100
    ) as journal:
        journal.opened(at_ms=1, wanted_from_ms=0, log_length=0, options={})
        for number in range(10):
            journal.event(MessageSent(str(number), "r", b"hash"), 2)
        journal.closed(3)
    assert len(json_lines(path)) == 12


def _refuse(path: Path, target: Path) -> Path:
    raise OSError(EROFS, "Read-only file system")


def test_a_torn_line_stays_apart_where_the_next_one_does_not_fit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk, path = FullDisk(monkeypatch), tmp_path / "alice.jsonl"
    path.write_text('{"event":"torn hal')
    disk.room_bytes = 20
    with Journal(path, channel_id="c", sender_id="alice", content_topic="t") as journal:
        journal.opened(at_ms=1, wanted_from_ms=0, log_length=0, options={})
        disk.room_bytes = 10**9
        journal.closed(2)
    torn, opened, *_ = path.read_text().splitlines()
    assert torn == '{"event":"torn hal' and opened.startswith('{"event":"journal_opened"')


def test_lines_that_fit_now_and_then_are_reported_once_a_minute(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk, reports = FullDisk(monkeypatch), list[OSError]()
    with Journal(tmp_path / "a", channel_id="c", sender_id="a", content_topic="t") as journal:
        journal.degraded = reports.append
        for at_ms in range(0, 120_000, 1_000):
            disk.room_bytes = 0 if at_ms % 2_000 else 10**9
            journal.closed(at_ms)
    assert len(reports) == 2


def test_a_part_is_left_unpacked_where_no_thread_can_be_had(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(thread: Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(Thread, "start", refuse)
    values = {"channel_id": "c", "sender_id": "a", "content_topic": "t"}
    with Journal(tmp_path / "a.jsonl", part_bytes=200, **values) as journal:
        for at_ms in range(20):
            journal.closed(at_ms)
    assert len([line for name in files(tmp_path) for line in json_lines(tmp_path / name)]) > 20


def test_a_file_of_something_else_is_refused_unchanged(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("buy milk\n")
    with pytest.raises(ValueError, match="got 'something else'"):
        Journal(path, channel_id="c", sender_id="a", content_topic="t")
    assert path.read_text() == "buy milk\n"


def test_a_first_line_that_cannot_be_read_does_not_stop_the_channel(tmp_path: Path) -> None:
    path = tmp_path / "alice.jsonl"
    path.write_text('{"event":"wire_in","deep":' + "[" * 60_000 + "\n")
    with Journal(path, channel_id="c", sender_id="a", content_topic="t") as journal:
        journal.closed(1)
    assert path.read_text().endswith('{"event":"journal_closed","at_ms":1}\n')
