"""The journal: JSON lines, whole ones, of all that is told and all that crosses the wire."""

import json
from base64 import b64decode
from pathlib import Path
from typing import Any

import pytest

from reliable_channel import MessageReceived, MessageSent
from reliable_channel.events import record
from reliable_channel.sds.wire import SpecCodec
from reliable_channel.transport import MemoryNetwork

from .world import EPOCH_NS, listening, make_channel

pytestmark = pytest.mark.anyio


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


async def test_it_has_every_event_and_every_message_on_the_wire(tmp_path: Path) -> None:
    network = MemoryNetwork()
    alice = make_channel(network.transport(), "alice", journal=tmp_path / "alice.jsonl")
    values: dict[str, Any] = {"journal": str(tmp_path / "bob.jsonl"), "query_on_connect": False}
    bob = make_channel(network.transport(), "bob", seed=2, **values)
    async with listening(alice) as alice_told, listening(bob) as bob_told:
        request = await alice.send(b"hello")
        sent = await alice_told.first(MessageSent)
        await bob_told.first(MessageReceived)

    for path, told in (("alice.jsonl", alice_told), ("bob.jsonl", bob_told)):
        opened, *rest = lines(tmp_path / path)
        assert opened == {
            "event": "journal_opened",
            "at_ms": opened["at_ms"],
            "format": "sds-journal/1",
            "channel_id": "general",
            "sender_id": path.removesuffix(".jsonl"),
            "content_topic": "/reliable-channel/1/general/proto",
        }
        assert opened["at_ms"] >= EPOCH_NS // 1_000_000
        events = [line for line in rest if not line["event"].startswith("wire_")]
        assert events == [
            json.loads(json.dumps(record(event, line["at_ms"])))
            for event, line in zip(told.events, events, strict=True)
        ]

    (out,) = [
        line
        for line in lines(tmp_path / "alice.jsonl")
        if line["event"] == "wire_out" and line["source"] == "content"
    ]
    assert bytes.fromhex(out["message_hash"]) == sent.message_hash
    message = SpecCodec().decode(b64decode(out["payload"]))
    assert (message.message_id, message.content) == (request.message_id, b"hello")
    (came,) = [
        line
        for line in lines(tmp_path / "bob.jsonl")
        if line["event"] == "wire_in" and line["message_hash"] == out["message_hash"]
    ]
    assert (came["payload"], came["source"]) == (out["payload"], "live")
    (received,) = [
        line for line in lines(tmp_path / "bob.jsonl") if line["event"] == "message_received"
    ]
    assert b64decode(received["payload"]) == b"hello"
    assert received["retrieval_hint"] == out["message_hash"]


async def test_sessions_follow_each_other_in_one_file(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    for _ in range(2):
        async with make_channel(MemoryNetwork().transport(), "alice", journal=path) as channel:
            await channel.send(b"hello")
    assert [line["event"] for line in lines(path)].count("journal_opened") == 2


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
