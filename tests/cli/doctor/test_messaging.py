"""Nodes with a messaging layer, with a broken one, and with none."""

from collections.abc import Iterator
from functools import partial

import pytest

from reliable_channel._contracts.finding import Finding
from reliable_channel.cli.doctor.findings import Findings
from reliable_channel.cli.doctor.messaging import examine_messaging

from .nodes import SETTINGS, Nodes, named, nodes


@pytest.fixture
def world() -> Iterator[Nodes]:
    with nodes() as found:
        yield found


def examined(world: Nodes, url: str, *, publish: bool = True) -> list[Finding]:
    findings = Findings()
    call = partial(examine_messaging, publish=publish, wait_s=1.0)
    url = url.replace("http://", "waku+messaging://")
    world.run(call, findings, [url], SETTINGS)
    return findings.found


def test_a_node_that_sends_and_archives(world: Nodes) -> None:
    found = examined(world, world.start(messaging=True))
    assert [one.text for one in found if one.level == "problem"] == []
    assert "subscribes" in named(found, "messaging", "ok").text
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
    assert "number of shards" in named(found, "store.archives", "problem").advice


def test_a_node_without_store(world: Nodes) -> None:
    found = examined(world, world.start(messaging=True, store=False))
    assert "no Store" in named(found, "node.store", "warning").text


def test_nothing_is_sent_unasked(world: Nodes) -> None:
    found = examined(world, world.start(messaging=True), publish=False)
    assert "publish" not in {one.check for one in found}
