"""Nodes with a messaging layer, with a broken one, and with none."""

from collections.abc import Iterator
from functools import partial

import pytest

from reliable_channel._contracts.finding import Finding
from reliable_channel.cli.doctor.findings import Findings
from reliable_channel.cli.doctor.messaging import examine_messaging
from reliable_channel.transport.settings import WakuSettings

from .nodes import SETTINGS, TOPIC, Nodes, named, nodes


@pytest.fixture
def world() -> Iterator[Nodes]:
    with nodes() as found:
        yield found


def examined(
    world: Nodes, url: str, *, publish: bool = True, settings: WakuSettings = SETTINGS
) -> list[Finding]:
    findings = Findings()
    call = partial(examine_messaging, publish=publish, wait_s=1.0)
    url = url.replace("http://", "waku+messaging://")
    world.run(call, findings, [url], settings)
    return findings.found


def test_a_node_that_sends_and_archives(world: Nodes) -> None:
    found = examined(world, world.start(messaging=True))
    assert [one.text for one in found if one.level == "problem"] == []
    assert f"the channel is on {SETTINGS.shard}" in named(found, "messaging", "ok").text
    assert "sent a message" in named(found, "publish", "ok").text
    assert "stored" in named(found, "store.archives", "ok").text


def test_a_node_without_the_layer(world: Nodes) -> None:
    problem = named(examined(world, world.start()), "messaging", "problem")
    assert "cannot be used" in problem.text and "http://" in problem.advice


def test_nothing_listens(world: Nodes) -> None:
    found = examined(world, "http://127.0.0.1:9")
    assert [one.check for one in found] == ["node.reachable"]


def test_a_node_with_another_number_of_shards(world: Nodes) -> None:
    found = examined(world, world.start(messaging=True, num_shards=3))
    problem = named(found, "node.shard", "problem")
    theirs = WakuSettings(TOPIC, num_shards=3).shard
    assert f"to {theirs}, and the channel to {SETTINGS.shard}" in problem.text
    assert "num_shards" in problem.advice


def test_a_node_of_another_cluster(world: Nodes) -> None:
    found = examined(world, world.start(messaging=True, cluster_id=16))
    assert "cluster 16" in named(found, "node.cluster", "problem").text


def test_the_one_shard_of_status_where_nobody_listens(world: Nodes) -> None:
    settings = WakuSettings(TOPIC, cluster_id=16, num_shards=1)
    url = world.start(messaging=True, cluster_id=16, num_shards=1)
    warning = named(examined(world, url, settings=settings), "node.shard", "warning")
    assert "sends on /waku/2/rs/16/0, and clients of Status listen on shards 32" in warning.text
    assert "--network status.prod" in warning.advice


def test_a_node_without_store(world: Nodes) -> None:
    found = examined(world, world.start(messaging=True, store=False))
    assert "no Store" in named(found, "node.store", "warning").text


def test_nothing_is_sent_unasked(world: Nodes) -> None:
    found = examined(world, world.start(messaging=True), publish=False)
    assert "publish" not in {one.check for one in found}
