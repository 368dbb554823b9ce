"""Broken nodes, each with its cause and what to do."""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from reliable_channel.transport.settings import WakuSettings

from .nodes import ON_LOOPBACK, TOPIC, Nodes, named, nodes


@pytest.fixture(scope="module")
def world() -> Iterator[Nodes]:
    with nodes() as found:
        yield found


def test_a_sound_node_has_no_problem(world: Nodes) -> None:
    found = world.examine(world.start())
    assert [one for one in found if one.level == "problem"] == []
    assert "ms" in named(found, "round_trip", "ok").text
    assert named(found, "store.archives", "ok")


def test_nothing_listens(world: Nodes) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
    found = named(world.examine(f"http://127.0.0.1:{port}"), "node.reachable", "problem")
    assert "nothing listens" in found.text and "reliable-channel node" in found.advice


def test_a_name_that_no_dns_knows(world: Nodes) -> None:
    found = named(world.examine("http://node.invalid:8645"), "node.reachable", "problem")
    assert "name" in found.text


@contextmanager
def answering(answer: bytes | None) -> Iterator[str]:
    """A server that gives every caller the same bytes, or nothing for ever."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        kept: list[socket.socket] = []

        def serve() -> None:
            try:
                while True:
                    caller, _ = server.accept()
                    kept.append(caller)
                    if answer is not None:
                        caller.recv(65_536)
                        caller.sendall(answer)
                        caller.close()
            except OSError:
                return

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}"
        server.shutdown(socket.SHUT_RDWR)
        for caller in kept:
            caller.close()
        thread.join()


def test_a_web_server_that_is_no_node(world: Nodes) -> None:
    page = b"<html>It works!</html>"
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(page), page)
    with answering(answer) as url:
        found = named(world.examine(url), "node.reachable", "problem")
    assert "not a Waku node" in found.text and "--rest=true" in found.advice


def test_something_that_speaks_no_http(world: Nodes) -> None:
    with answering(b"\x00\x13/multistream/1.0.0\n") as url:
        assert named(world.examine(url), "node.reachable", "problem").advice


def test_a_node_that_demands_a_token(world: Nodes) -> None:
    url = world.start(token="hunter2")
    found = named(world.examine(url), "node.reachable", "problem")
    assert "token" in found.text and "http://:TOKEN@host:port" in found.advice
    with_token = world.examine(url.replace("://", "://:hunter2@"))
    assert [one for one in with_token if one.level == "problem"] == []
    assert not [one for one in with_token if "hunter2" in one.where + one.text]


def test_a_node_without_store(world: Nodes) -> None:
    found = world.examine(world.start(store=False))
    assert "no Store" in named(found, "node.store", "warning").text


def test_a_node_whose_clock_is_off_archives_nothing(world: Nodes) -> None:
    """As nwaku does beyond 20 s."""
    url = world.start(
        store_timestamp_tolerance_s=20.0, now_ns=lambda: time.time_ns() + 60_000_000_000
    )
    found = named(world.examine(url), "store.archives", "problem")
    assert "clocks" in found.advice


def test_a_message_from_the_future_names_the_clock(world: Nodes) -> None:
    url = world.start()
    world.store(url, 1, age_s=-300)
    found = named(world.examine(url), "clock", "warning")
    assert "in the future" in found.text and "NTP" in found.advice


def test_a_node_that_can_neither_relay_nor_push(world: Nodes) -> None:
    url = world.start(relay=False, store=False, filter=False, lightpush=False)
    found = world.examine(url)
    assert "service node" in named(found, "node.api", "problem").advice


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"messaging": True}, "its relay"),
        ({"rest_apis": ("filter", "lightpush", "store")}, "its filter and light push"),
        ({"messaging": True, "rest_apis": ("store",)}, "its messaging layer"),
    ],
)
def test_the_api_that_a_channel_uses(world: Nodes, options: dict[str, Any], text: str) -> None:
    found = world.examine(world.start(**options))
    assert [one for one in found if one.level == "problem"] == []
    assert text in named(found, "node.api", "ok").text
    assert named(found, "publish", "ok") and named(found, "store.archives", "ok")


def test_an_api_is_found_without_sending(world: Nodes) -> None:
    found = world.examine(world.start(messaging=True, rest_apis=("store",)), publish=False)
    assert "messaging layer" in named(found, "node.api", "ok").text
    assert "publish" not in {one.check for one in found}


def test_two_nodes_that_are_not_connected(world: Nodes) -> None:
    first, second = world.start(), world.start()
    found = named(world.examine(first, second), "round_trip", "problem")
    assert f"{first} → {second}" == found.where and "join them" in found.advice


def test_two_nodes_that_are_connected(world: Nodes) -> None:
    first = world.start()
    second = world.start(join=first)
    found = world.examine(first, second, wait_s=30)
    assert [one for one in found if one.level == "problem"] == []


def test_stores_that_disagree(world: Nodes) -> None:
    first, second = world.start(), world.start()
    world.store(first, 5, age_s=600)
    found = world.examine(first, second, publish=False)
    missing = named(found, "store.agrees", "warning")
    assert missing.where == second and "lacks 5 of 5" in missing.text
    world.store(second, 5, age_s=600)


def test_a_node_of_another_cluster(world: Nodes) -> None:
    found = named(world.examine(world.start(cluster_id=16)), "node.cluster", "problem")
    assert "cluster 16" in found.text and "-o cluster_id=16" in found.advice


def test_a_node_with_another_number_of_shards(world: Nodes) -> None:
    found = named(world.examine(world.start(num_shards=3)), "node.shard", "problem")
    assert "num_shards" in found.advice


@pytest.mark.parametrize("behave_as", ["nwaku", None])
def test_a_node_on_other_shards_follows_no_further_one_afterwards(
    world: Nodes, behave_as: str | None
) -> None:
    """nwaku would follow the shard of a subscription until it is started again."""
    url = world.start(listen=ON_LOOPBACK, behave_as=behave_as)
    followed = set(world.nodes[url].relay.pubsub_topics)
    settings = WakuSettings(TOPIC, pubsub_topic="/waku/2/rs/1/99")
    found = world.examine(url, settings=settings)
    wrong = named(found, "node.shard", "problem" if behave_as else "warning")
    assert "and the channel uses shard 99" in wrong.text
    assert set(world.nodes[url].relay.pubsub_topics) == followed


def test_a_node_that_hides_its_peers(world: Nodes) -> None:
    found = world.examine(world.start(admin=False), publish=False)
    assert "--rest-admin" in named(found, "node.peers", "note").advice


def test_a_lonely_node(world: Nodes) -> None:
    found = world.examine(world.start(), publish=False)
    assert "reach no other node" in named(found, "node.peers", "warning").text
