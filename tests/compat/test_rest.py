"""What the official REST harness does with containers, on embedded nodes: flags, readiness, the
strings it looks for, and the surface of Docker that it touches."""

from __future__ import annotations

import subprocess
import threading
import time
from base64 import b64encode
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from time import time_ns
from typing import Any, Final
from urllib.parse import quote

import httpx
import pytest

from interop.compat.docker_stand_in import docker
from interop.compat.flags import BadFlag, NodeFlags
from interop.compat.rest import Container, Engine

pytestmark = pytest.mark.slow

SHARD: Final = "/waku/2/rs/3/0"
TOPIC: Final = "/test/1/waku-rest/proto"
HARNESS: Final = {
    # What `WakuNode.start` passes to every node, but for ports.
    "listen-address": "0.0.0.0",
    "rest": "true",
    "rest-admin": "true",
    "websocket-support": "true",
    "log-level": "TRACE",
    "rest-relay-cache-capacity": "100",
    "websocket-port": "1",
    "discv5-udp-port": "2",
    "rest-address": "0.0.0.0",
    "peer-exchange": "true",
    "discv5-discovery": "true",
    "cluster-id": "3",
    "shard": "0",
    "metrics-server": "true",
    "metrics-server-address": "0.0.0.0",
    "metrics-server-port": "0",
    "metrics-logging": "true",
}


LOOK_S: Final = 0.02
GUARD: Final = 30_000


class Harness:
    """Starts nodes as the harness does, and calls them."""

    def __init__(self, engine: Engine, stack: ExitStack) -> None:
        self._engine = engine
        self._exit = stack
        self._started = 0

    def node(self, **flags: str) -> Node:
        self._started += 1
        given = {
            **HARNESS,
            "rest-port": "0",
            "tcp-port": str(60000 + self._started),
            "nat": f"extip:172.18.7.{self._started}",
            "nodekey": f"{self._started:02x}" * 32,
            **{name.replace("_", "-"): value for name, value in flags.items()},
        }
        command = [f"--{name}={value}" for name, value in given.items()]
        container = self._engine.run(command)
        node = self.calls(container, f"/ip4/172.18.7.{self._started}/tcp/{given['tcp-port']}")
        named = sum(name in flags for name in ("staticnode", "filternode", "lightpushnode"))
        node.until_joined(named + ("storenode" in flags))
        return node

    def calls(self, container: Container, tcp_address: str) -> Node:
        """A client of a node; a restarted one needs a new one."""
        client = httpx.Client(base_url=container.address, trust_env=False)
        return Node(container, tcp_address, self._exit.enter_context(client))


class Node:
    """One node through its REST API, as the harness's `WakuNode`."""

    def __init__(self, container: Container, tcp_address: str, http: httpx.Client) -> None:
        self.container = container
        self.http = http
        peer_id = self.info()["listenAddresses"][0].split("/p2p/")[-1]
        self.multiaddr = f"{tcp_address}/p2p/{peer_id}"

    def info(self) -> Any:
        return self.http.get("/debug/v1/info").json()

    def until_joined(self, others: int) -> None:
        """Wait until the node knows others; a guard against hangs ends it, and no result."""
        for _ in range(GUARD):
            if len(self.http.get("/admin/v1/peers/connected").json()) >= others:
                return
            time.sleep(LOOK_S)
        raise AssertionError(f"not joined to {others} others")

    def post(self, path: str, body: object) -> httpx.Response:
        return self.http.post(path, json=body)

    def until_meshed(self) -> None:
        """Wait until a relay peer follows the shard: gossip brings a message to those alone."""
        for _ in range(GUARD):
            if self.http.get("/admin/v1/peers/relay/on/0").json()["peers"]:
                return
            time.sleep(LOOK_S)
        raise AssertionError("no relay peer")

    def publish(self, content: bytes) -> httpx.Response:
        return self.post(f"/relay/v1/messages/{quote(SHARD, safe='')}", relayed(content))

    def reads(
        self, *contents: bytes, path: str = f"/relay/v1/messages/{quote(SHARD, safe='')}"
    ) -> bool:
        """Read until as many messages have come; return whether they are these."""
        got: list[str] = []
        for _ in range(GUARD):
            got += [message["payload"] for message in self.http.get(path).json()]
            if len(got) >= len(contents):
                break
            time.sleep(LOOK_S)
        return got == encoded(*contents)


def relayed(content: bytes) -> dict[str, object]:
    payload = b64encode(content).decode()
    return {"payload": payload, "contentTopic": TOPIC, "timestamp": time_ns()}


@pytest.fixture
def harness() -> Iterator[Harness]:
    before = set(threading.enumerate())
    with Engine() as engine, ExitStack() as stack:
        yield Harness(engine, stack)
    assert set(threading.enumerate()) == before


def encoded(*contents: bytes) -> list[str]:
    return [b64encode(content).decode() for content in contents]


def test_a_node_is_ready_when_it_was_started(harness: Harness) -> None:
    node = harness.node(relay="true")
    assert node.http.get("/health").json()["nodeHealth"] == "READY"
    assert node.info()["listenAddresses"] == [node.multiaddr]


def test_relay_reaches_those_that_were_added(harness: Harness) -> None:
    one, other = harness.node(relay="true"), harness.node(relay="true")
    assert other.post("/admin/v1/peers", [one.multiaddr]).status_code == 200
    one.until_meshed()
    one.publish(b"hello").raise_for_status()
    assert other.reads(b"hello")


def test_a_topic_that_is_not_followed_is_refused_in_nwakus_words(harness: Harness) -> None:
    node = harness.node(relay="true")
    refused = node.post("/relay/v1/messages/%2Fwaku%2F2%2Frs%2F3%2F7", relayed(b"hello"))
    assert refused.status_code == 400
    assert refused.text.startswith("Failed to publish: Node not subscribed to topic")


def test_a_filter_client_is_served_by_another_node(harness: Harness) -> None:
    service = harness.node(relay="true", filter="true")
    client = harness.node(relay="false", filternode=service.multiaddr)
    asked = {"requestId": "1", "contentFilters": [TOPIC], "pubsubTopic": SHARD}
    assert client.post("/filter/v2/subscriptions", asked).json()["statusDesc"] == "OK"
    service.publish(b"hello").raise_for_status()
    assert client.reads(b"hello", path=f"/filter/v2/messages/{quote(TOPIC, safe='')}")


def test_a_light_push_client_is_served_by_another_node(harness: Harness) -> None:
    service = harness.node(relay="true", lightpush="true")
    receiver = harness.node(relay="true", staticnode=service.multiaddr)
    client = harness.node(relay="false", lightpushnode=service.multiaddr)
    service.until_meshed()
    pushed = {"pubsubTopic": SHARD, "message": relayed(b"hello")}
    assert client.post("/lightpush/v1/message", pushed).status_code == 200
    assert receiver.reads(b"hello")


def test_a_light_push_client_alone_is_refused(harness: Harness) -> None:
    client = harness.node(relay="true")
    pushed = {"pubsubTopic": SHARD, "message": relayed(b"hello")}
    refused = client.post("/lightpush/v1/message", pushed)
    assert refused.status_code == 503
    assert refused.text == "No suitable service peer & no discovery method"


def test_a_node_named_for_light_push_that_has_none_is_a_dial_failure(harness: Harness) -> None:
    other = harness.node(relay="true")
    client = harness.node(relay="true", lightpushnode=other.multiaddr)
    pushed = {"pubsubTopic": SHARD, "message": relayed(b"hello")}
    refused = client.post("/lightpush/v1/message", pushed)
    assert refused.status_code == 503
    assert refused.text == "Failed to request a message push: dial_failure"


def test_publishing_by_content_topic_needs_a_node_that_follows_its_shard(harness: Harness) -> None:
    sharded = {"num_shards_in_network": "8", "relay": "true"}
    one = harness.node(**sharded)
    refused = one.post("/relay/v1/auto/messages", relayed(b"hello"))
    assert refused.status_code == 400
    assert refused.text == "Failed to publish: publish failed in relay: NoPeersToPublish"
    other = harness.node(staticnode=one.multiaddr, **sharded)
    other.post("/relay/v1/auto/subscriptions", [TOPIC]).raise_for_status()
    while one.post("/relay/v1/auto/messages", relayed(b"hello")).is_error:
        time.sleep(LOOK_S)  # until one knows that the other follows the shard
    assert other.reads(b"hello", path=f"/relay/v1/auto/messages/{quote(TOPIC, safe='')}")


def test_a_node_that_follows_a_shard_publishes_there_alone(harness: Harness) -> None:
    one = harness.node(num_shards_in_network="8")
    one.post("/relay/v1/auto/subscriptions", [TOPIC]).raise_for_status()
    one.post("/relay/v1/auto/messages", relayed(b"hello")).raise_for_status()
    assert one.reads(b"hello", path=f"/relay/v1/auto/messages/{quote(TOPIC, safe='')}")


def test_a_store_is_asked_through_another_node(harness: Harness) -> None:
    store = harness.node(relay="true", store="true")
    client = harness.node(relay="true", storenode=store.multiaddr)
    store.publish(b"hello").raise_for_status()
    query = {"peerAddr": store.multiaddr, "includeData": "true", "pubsubTopic": SHARD}
    page = client.http.get("/store/v3/messages", params=query).json()
    assert [entry["message"]["payload"] for entry in page["messages"]] == encoded(b"hello")


def test_a_paused_node_gets_afterwards_what_was_sent(harness: Harness) -> None:
    one = harness.node(relay="true")
    other = harness.node(relay="true", staticnode=one.multiaddr)
    one.until_meshed()
    other.container.pause()
    assert other.container.status == "paused"
    one.publish(b"hello").raise_for_status()
    with pytest.raises(httpx.ReadTimeout):
        other.http.get("/debug/v1/info", timeout=0.01)
    other.container.unpause()
    assert other.reads(b"hello")


def test_what_a_container_loses_is_sent_again_when_its_rule_is_gone(harness: Harness) -> None:
    one = harness.node(relay="true")
    other = harness.node(relay="true", staticnode=one.multiaddr)
    one.until_meshed()
    other.container.tc("qdisc add dev eth0 root netem loss 100%".split())
    with pytest.raises(httpx.ReadTimeout):
        other.http.get("/debug/v1/info", timeout=0.01)
    shown = other.container.tc("-s qdisc show dev eth0".split())
    assert "loss 100.00% seed " in shown and "(dropped 0," not in shown
    one.publish(b"hello").raise_for_status()
    other.container.tc("qdisc del dev eth0 root".split())
    assert other.reads(b"hello")


def test_what_is_slow_comes_as_it_was_sent(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RELIABLE_CHANNEL_COMPAT_SEED", "7")
    one = harness.node(relay="true")
    other = harness.node(relay="true", staticnode=one.multiaddr)
    one.until_meshed()
    shaped = "netem delay 10ms 10ms loss 10% duplicate 10% reorder 25% 50% rate 10mbit"
    for node in (one, other):
        node.container.tc(["qdisc", "add", "dev", "eth0", "root", *shaped.split()])
        assert "seed 7\n" in node.container.tc("qdisc show dev eth0".split())
    contents = [bytes([n]) * 10_000 for n in range(5)]
    for content in contents:
        one.publish(content).raise_for_status()
    assert other.reads(*contents)
    for node in (one, other):
        assert " Sent 0 bytes" not in node.container.tc("-s qdisc show dev eth0".split())


def test_a_container_that_starts_again_has_no_rule(harness: Harness) -> None:
    node = harness.node()
    node.container.tc("qdisc add dev eth0 root netem delay 1ms".split())
    node.container.stop()
    assert node.container.attrs == {"State": {"Pid": 0}}
    node.container.start()
    assert "noqueue" in node.container.tc("qdisc show dev eth0".split())


def test_a_restarted_node_keeps_its_name_its_peers_and_its_store(harness: Harness) -> None:
    one = harness.node(relay="true", store="true")
    other = harness.node(relay="true", staticnode=one.multiaddr)
    one.until_meshed()
    one.publish(b"before").raise_for_status()
    one.container.restart()
    again = harness.calls(one.container, one.multiaddr.partition("/p2p/")[0])
    again.until_joined(1)
    other.until_joined(1)
    assert again.multiaddr == one.multiaddr
    other.until_meshed()
    other.publish(b"after").raise_for_status()
    contents: list[str] = []
    while len(contents) < 2:
        page = again.http.get("/store/v3/messages", params={"includeData": "true"}).json()
        contents = [entry["message"]["payload"] for entry in page["messages"]]
    assert contents == encoded(b"before", b"after")


def test_a_stopped_node_is_nobodys_peer(harness: Harness) -> None:
    one, other = harness.node(relay="true"), harness.node(relay="true")
    other.post("/admin/v1/peers", [one.multiaddr]).raise_for_status()
    one.container.stop()
    one.container.stop()
    assert one.container.status == "exited"
    assert other.http.get("/admin/v1/peers/connected").json() == []
    refused = other.post("/admin/v1/peers", [one.multiaddr])
    assert refused.text == f"Failed to connect to peer at index: 0 - {one.multiaddr}"
    one.container.start()
    one.container.start()
    assert one.container.status == "running"
    other.post("/admin/v1/peers", [one.multiaddr]).raise_for_status()


def test_a_node_of_another_cluster_hangs_up(harness: Harness) -> None:
    one, other = harness.node(), harness.node(cluster_id="4")
    assert other.post("/admin/v1/peers", [one.multiaddr]).status_code == 200
    for node in (one, other):
        assert node.http.get("/admin/v1/peers/connected").json() == []


def test_whom_nobody_knows_cannot_be_dialled(harness: Harness) -> None:
    one = harness.node()
    stranger = one.multiaddr[:-1] + ("1" if one.multiaddr[-1] != "1" else "2")
    for address in (one.multiaddr, stranger):
        assert one.post("/admin/v1/peers", [address]).status_code == 400


@pytest.mark.parametrize(
    ("flag", "said"),
    [
        ("--shoe-size=43", "unrecognized options: --shoe-size=43"),
        ("generateRlnKeystore", "unrecognized options: generateRlnKeystore"),
        ("--relay=perhaps", "argument --relay: invalid"),
        ("--rln-relay=true", "--rln-relay=true cannot be obeyed: there is no RLN"),
        ("--store-sync=true", "--store-sync=true cannot be obeyed: there is no Store synch"),
        ("--store-message-db-url=postgres://db", "cannot be obeyed: the store is SQLite"),
        ("--cluster-id=70000", "70000"),
    ],
)
def test_a_flag_that_cannot_be_obeyed_is_named(tmp_path: Path, flag: str, said: str) -> None:
    with pytest.raises(BadFlag) as refused:
        NodeFlags.of([flag], tmp_path)
    assert said in str(refused.value)


def test_flags_are_read_as_nwaku_reads_them(tmp_path: Path) -> None:
    plain = NodeFlags.of(["--shard=3", "--shard=5", "--nat=extip:172.18.0.9"], tmp_path)
    assert not plain.options.static_sharding and plain.options.num_shards == 1
    assert plain.options.pubsub_topics == ("/waku/2/rs/0/3", "/waku/2/rs/0/5")
    assert plain.host == "172.18.0.9"
    auto = NodeFlags.of(
        ["--cluster-id=2", "--num-shards-in-network=8", f"--content-topic={TOPIC}"], tmp_path
    )
    assert not auto.options.static_sharding
    assert len(auto.options.pubsub_topics) == 8
    assert auto.content_topics == (TOPIC,)
    assert NodeFlags.of(["--num-shards-in-network=0"], tmp_path).options.static_sharding


def test_tc_in_the_namespace_of_a_container_is_obeyed() -> None:
    container = docker.from_env().containers.run("wakuorg/nwaku:latest", command=["--rest-port=0"])
    container.reload()

    def run(words: str, pid: int = container.attrs["State"]["Pid"]) -> Any:
        command = ["sudo", "-n", "nsenter", "-t", str(pid), "-n", "tc", *words.split()]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    assert run("qdisc add dev eth0 root netem loss 30.0% seed 5").returncode == 0
    assert "loss 30.00% seed 5" in run("-s qdisc show dev eth0").stdout
    assert run("qdisc del dev eth0 root").returncode == 0
    refused = run("qdisc del dev eth0 root")
    assert refused.returncode == 2
    assert refused.stderr == "Error: Cannot delete qdisc with handle of zero.\n"
    container.remove()
    gone = run("qdisc show dev eth0")
    assert gone.returncode == 1 and "/ns/net: No such file or directory" in gone.stderr
    assert subprocess.run(["echo", "other"], capture_output=True, check=True).stdout == b"other\n"


def test_docker_is_found_where_the_harness_looks() -> None:
    client = docker.from_env()
    network = client.networks.list(names=["waku"])[0]
    container = client.containers.run(
        "wakuorg/nwaku:latest",
        command=["--relay=true", "--rest-port=0"],
        ports={},
        detach=True,
        remove=True,
        auto_remove=True,
        volumes=[],
    )
    network.connect(container, ipv4_address="172.18.0.2")
    assert client.containers.get(container.id) is container
    log = container.logs(stream=True)
    assert next(log) == f"listening on {container.address}\n".encode()
    container.kill()
    container.remove()
    assert list(log) == []
    with pytest.raises(docker.errors.NotFound, match="No such container: nobody"):
        client.containers.get("nobody")
    with pytest.raises(docker.errors.APIError, match="unrecognized options: --shoe-size=43"):
        client.containers.run("wakuorg/nwaku:latest", command=["--shoe-size=43"])
