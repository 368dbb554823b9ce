"""Three nodes in three processes join by libp2p; the one in the middle is killed and comes back."""

import signal
from base64 import b64decode, b64encode
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest

from .processes import TIMEOUT_S, Node

pytestmark = pytest.mark.slow

SHARD = "%2Fwaku%2F2%2Frs%2F42%2F0"
HERE = "/ip4/127.0.0.1/tcp"


class World:
    """Nodes with a key and a folder of their own."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self._folder = folder
        self._stack = stack

    def node(self, name: str, *peers: str, port: str = "0") -> Node:
        flags = ["--cluster-id", "42", "--num-shards", "1", "--listen", f"{HERE}/{port}"]
        flags += ["--identity", str(self._folder / f"{name}.key")]
        for peer in peers:
            flags += ["--relay-peer", peer]
        return self._stack.enter_context(Node(*flags))


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with ExitStack() as stack:
        yield World(tmp_path, stack)


def relay_peers(node: Node) -> int:
    shards = httpx.get(f"{node.address}/admin/v1/peers/mesh").json()
    return sum(len(shard["peers"]) for shard in shards)


def stored(node: Node) -> list[bytes]:
    page = httpx.get(f"{node.address}/store/v3/messages?includeData=true").json()
    return [b64decode(entry["message"]["payload"]) for entry in page["messages"]]


def publish(node: Node, payload: bytes) -> None:
    body = {"payload": b64encode(payload).decode(), "contentTopic": "/app/1/chat/proto"}
    httpx.post(f"{node.address}/relay/v1/messages/{SHARD}", json=body).raise_for_status()


def test_a_node_in_the_middle_is_killed_and_comes_back(world: World) -> None:
    a = world.node("a")
    b = world.node("b", *a.libp2p_addresses)
    c = world.node("c", *b.libp2p_addresses)
    while (relay_peers(a), relay_peers(b), relay_peers(c)) != (1, 2, 1):
        pass
    publish(a, b"first")
    while stored(c) != [b"first"]:
        pass
    b.process.send_signal(signal.SIGKILL)
    b.process.wait(TIMEOUT_S)
    publish(a, b"meanwhile")
    port = b.libp2p_addresses[0].split("/")[4]
    again = world.node("b", *a.libp2p_addresses, port=port)
    assert again.libp2p_addresses == b.libp2p_addresses
    while stored(again) != [b"first", b"meanwhile"]:
        pass
    while (relay_peers(a), relay_peers(again), relay_peers(c)) != (1, 2, 1):
        pass
    publish(c, b"last")
    while b"last" not in stored(a):
        pass
    while stored(c) != [b"first", b"meanwhile", b"last"]:
        pass
