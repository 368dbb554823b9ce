"""What nodes and their databases have, read to the end and in order of time."""

from contextlib import closing
from pathlib import Path
from time import time_ns
from typing import Any

import anyio
import pytest

from reliable_channel_audit.store_audit.reading import fill, is_database, stored_in
from reliable_channel_audit.store_audit.tally import StoreTally
from tests.cli.processes import Node
from waku import WakuClient, WakuMessage
from waku.node.store import Archive

from .stores import TOPIC, crafted


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("postgresql://host/name", True),
        ("sqlite:///archive", True),
        ("store.sqlite3", True),
        ("http://host:8645", False),
        ("/dns4/node.example/tcp/8000/wss/p2p/16Uiu2", False),
        ("enrtree://key@boot.example", False),
    ],
)
def test_databases_are_told_from_nodes(address: str, expected: bool) -> None:
    assert is_database(address) == expected


@pytest.mark.anyio
async def test_a_database_is_read_by_topic_and_time(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite3"
    messages = [crafted(f"m{n}", "alice", n) for n in range(20)]
    with closing(Archive(path)) as archive:
        for number, each in enumerate(messages):
            topic = TOPIC if number % 2 else "/another/1/topic/proto"
            message = WakuMessage(each.payload, topic, timestamp=each.timestamp_ns)
            archive.insert(each.message_hash, "/waku/2/rs/1/0", message)
    given = {"content_topic": TOPIC, "node": str(path)}
    start_ns = messages[10].timestamp_ns
    found = [each async for page in stored_in(given, start_ns) for each in page]
    assert [each[4] for each in found] == [each.payload for each in messages[11::2]]


async def _publish(node: str) -> None:
    async with WakuClient(node) as client:
        for number in range(5):
            sender_id = ("alice", "bob")[number % 2]
            refers_to = [f"m{number - 1}"] if number else []
            payload = crafted(f"m{number}", sender_id, number, refers_to=refers_to).payload
            message = WakuMessage(payload, TOPIC, timestamp=time_ns())
            await client.relay_auto_publish(message)


async def _counted(given: dict[str, Any]) -> StoreTally:
    tally = StoreTally(0, "ops")
    await fill(tally, given)
    return tally


@pytest.mark.parametrize("way", ["rest", "native"])
def test_a_node_is_read_over_either_protocol(way: str) -> None:
    with Node("--listen", "/ip4/127.0.0.1/tcp/0/ws") as node:
        anyio.run(_publish, node.address)
        address = node.address if way == "rest" else node.libp2p_addresses[0]
        tally = anyio.run(_counted, {"node": [address], "content_topic": TOPIC})
    channel = tally.channels["ops"]
    assert (channel.messages, sorted(channel.senders)) == (5, ["alice", "bob"])
    assert not channel.gaps
