"""Service peers over libp2p, each with what it lacks, and what to do."""

import time
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from reliable_channel._contracts.finding import Finding
from reliable_channel.cli.doctor.findings import Findings
from reliable_channel.cli.doctor.service_peers import examine_service_peers
from reliable_channel.transport.settings import WakuSettings
from tests.waku.p2p.network import ServiceNetwork
from tests.waku.p2p.service import answering
from waku.p2p import waku_libp2p_pb2 as pb
from waku.p2p.protocols import LIGHT_PUSH_3

from .nodes import SETTINGS, TOPIC, Nodes, named, nodes


@pytest.fixture(scope="module")
def world() -> Iterator[Nodes]:
    with nodes() as found:
        yield found


def examined(
    world: Nodes,
    *addresses: str,
    publish: bool = True,
    settings: WakuSettings = SETTINGS,
    wait_s: float = 5.0,
) -> list[Finding]:
    findings = Findings()
    call = partial(examine_service_peers, publish=publish, wait_s=wait_s)
    world.run(call, findings, ["libp2p://" + ",".join(addresses)], settings)
    return findings.found


def problems(found: list[Finding]) -> list[str]:
    return [one.check for one in found if one.level == "problem"]


def test_a_sound_peer_pushes_filters_and_stores(world: Nodes) -> None:
    address = world.listen()
    found = examined(world, address)
    assert {one.level for one in found} == {"ok"}
    assert "ms" in named(found, "node.reachable", "ok").text
    assert "light push, filter, store" in named(found, "node.protocols", "ok").text
    for check in ("publish", "round_trip", "store.archives"):
        assert "ms" in named(found, check, "ok").text
        assert named(found, check, "ok").where == address


def test_it_leaves_no_subscription(world: Nodes) -> None:
    address = world.listen()
    node = world.nodes[address]
    relayed = node.relay.pubsub_topics
    examined(world, address)
    assert not node.filter.criteria
    assert node.relay.pubsub_topics == relayed


def test_nothing_is_sent_unasked(world: Nodes) -> None:
    address = world.listen()
    found = examined(world, address, publish=False)
    assert {"node.filter", "node.store"} < {one.check for one in found}
    assert "publish" not in {one.check for one in found}
    assert problems(found) == []
    archive = world.nodes[address].archive
    assert archive is not None and not len(archive)


def test_nothing_listens(world: Nodes) -> None:
    peer = "/p2p/16Uiu2HAmPLe7Mzm8TsYUubgCAW1aJoeFScxrLj8ppHFivPo97bUZ"
    found = examined(world, f"/ip4/127.0.0.1/tcp/9{peer}")
    assert problems(found) == ["node.reachable"]
    assert "port" in named(found, "node.reachable", "problem").advice


def test_another_peer_answers_there(world: Nodes) -> None:
    at = world.listen().partition("/p2p/")[0]
    found = examined(world, f"{at}/p2p/16Uiu2HAmPLe7Mzm8TsYUubgCAW1aJoeFScxrLj8ppHFivPo97bUZ")
    assert problems(found) == ["node.reachable"]


def test_a_peer_of_another_cluster(world: Nodes) -> None:
    found = named(examined(world, world.listen(cluster_id=16)), "node.cluster", "problem")
    assert "in cluster 16, not 1" in found.text and "-o cluster_id" in found.advice


def test_a_peer_of_other_shards(world: Nodes) -> None:
    settings = WakuSettings(TOPIC, pubsub_topic="/waku/2/rs/1/99")
    address = world.listen()
    found = examined(world, address, settings=settings)
    assert problems(found) == ["node.shard"]
    wrong = named(found, "node.shard", "problem")
    assert "0, 1, 2, 3, 4, 5, 6, 7, not 99" in wrong.text and "--shard" in wrong.advice
    assert "/waku/2/rs/1/99" not in world.nodes[address].relay.pubsub_topics


@pytest.mark.parametrize(
    ("service", "name", "level"),
    [
        ("lightpush", "light push", "problem"),
        ("filter", "filter", "problem"),
        ("store", "store", "warning"),
    ],
)
def test_a_service_that_no_peer_offers(world: Nodes, service: str, name: str, level: str) -> None:
    found = examined(world, world.listen(**{service: False}))
    assert named(found, f"node.{service}", level).text == f"no peer offers {name}"


def test_a_service_of_one_peer_is_enough(world: Nodes) -> None:
    found = examined(world, world.listen(store=False), world.listen())
    assert {one.level for one in found} == {"ok"}
    assert len([one for one in found if one.check == "round_trip"]) == 2


def test_a_peer_that_serves_nothing(world: Nodes) -> None:
    address = world.listen(lightpush=False, filter=False, store=False)
    found = named(examined(world, address), "node.reachable", "problem")
    assert "no light push, filter or Store" in found.text


def test_a_peer_whose_clock_is_off_archives_nothing(world: Nodes) -> None:
    address = world.listen(
        store_timestamp_tolerance_s=20.0, now_ns=lambda: time.time_ns() + 60_000_000_000
    )
    found = examined(world, address, wait_s=1.0)
    assert "clocks" in named(found, "store.archives", "problem").advice


async def over_network(
    findings: Findings, network: ServiceNetwork, settings: WakuSettings, wait_s: float
) -> None:
    async with network.listening() as addresses:
        urls = ["libp2p://" + ",".join(addresses)]
        await examine_service_peers(findings, urls, settings, publish=True, wait_s=wait_s)


@pytest.mark.parametrize(
    ("status", "text", "advice"),
    [
        (420, "RLN validation failed", "without RLN"),
        (505, "no relay peers", "wait for peers"),
        (429, "", "fewer requests"),
    ],
)
def test_a_push_that_is_refused_names_the_cause(
    world: Nodes, status: int, text: str, advice: str
) -> None:
    network = ServiceNetwork(1)
    network.nodes[0].host.handlers[LIGHT_PUSH_3] = answering(
        pb.LightpushRequest,
        lambda request: pb.LightpushResponse(
            request_id=request.request_id, status_code=status, status_desc=text
        ),
    )
    findings = Findings()
    world.run(over_network, findings, network, SETTINGS, 1.0)
    refused = named(findings.found, "publish", "problem")
    assert advice in refused.advice and text in refused.text
    assert problems(findings.found) == ["publish"]


def test_a_peer_that_pushes_nothing(world: Nodes) -> None:
    network = ServiceNetwork(1)
    network.nodes[0].deliver = _silent  # type: ignore[method-assign]
    findings = Findings()
    world.run(over_network, findings, network, SETTINGS, 0.5)
    assert problems(findings.found) == ["round_trip"]
    assert named(findings.found, "store.archives", "ok")


def test_a_filter_that_refuses_the_shard(world: Nodes) -> None:
    network = ServiceNetwork(1)
    network.unserved.add(SETTINGS.shard)
    findings = Findings()
    world.run(over_network, findings, network, SETTINGS, 0.5)
    assert problems(findings.found) == ["node.filter"]


async def _silent(topic: str, message: Any) -> None:
    """Push to nobody."""
