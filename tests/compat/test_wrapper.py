"""`NodeWrapper`: results and texts of the bindings, from a configuration to the last thread."""

import json
import re
import socket
import threading
from importlib.util import module_from_spec, spec_from_file_location
from typing import Any

import anyio
import httpx
import pytest
from result import Err, Ok

from interop.compat import wrapper
from interop.compat.delivery import DeliveryNode
from interop.compat.records import address_in
from interop.compat.wrapper import NodeWrapper

from .nodes import TOPIC, NodeEvents, Nodes, address_of, message

pytestmark = pytest.mark.slow


def test_the_file_can_stand_where_the_suite_imports_it() -> None:
    assert wrapper.__file__ is not None
    found = spec_from_file_location("wrapper", wrapper.__file__)
    assert found is not None and found.loader is not None
    alone = module_from_spec(found)
    found.loader.exec_module(alone)
    assert alone.NodeWrapper.create_node({"mode": "Fringe"}).is_err()


def test_a_run_ends_with_its_threads(nodes: Nodes) -> None:
    before = set(threading.enumerate())
    nodes.start("alice")
    assert set(threading.enumerate()) > before
    nodes.end()
    assert set(threading.enumerate()) == before


def test_what_was_destroyed_answers_as_the_bindings_do(nodes: Nodes) -> None:
    node, _ = nodes.start("alice")
    assert node.stop_node() == Ok(0)
    assert node.destroy_keep_ctx() == Ok(0)
    assert node.destroy() == Ok(0)
    sent = node.send_message(message(b"hello"))
    assert sent == Err("send_message: immediate call failed (ret=1)")
    assert node.stop_and_destroy() == Err("stop_node: immediate call failed (ret=1)")
    nodes.forget(node)


def test_a_node_stops_and_starts_under_its_name(nodes: Nodes) -> None:
    node, _ = nodes.start("alice")
    node.subscribe_content_topic(TOPIC).unwrap()
    name = node.get_node_info("MyPeerId").unwrap()
    assert node.stop_node() == Ok(0)
    assert node.stop_node() == Ok(0)
    refused = node.send_message(message(b"hello")).unwrap_err()
    assert "the node is not running: call start_node first" in refused
    assert node.start_node() == Ok(0)
    assert node.start_node() == Ok(0)
    assert node.get_node_info("MyPeerId") == Ok(name)


def test_a_call_that_takes_too_long_is_given_up(
    nodes: Nodes, monkeypatch: pytest.MonkeyPatch
) -> None:
    node, _ = nodes.start("alice")
    monkeypatch.setattr(DeliveryNode, "stop", lambda self: anyio.sleep_forever())
    assert node.stop_node(timeout_s=0) == Err("stop_node: timeout after 0s")


def test_a_port_is_taken_as_it_says_or_shifted(nodes: Nodes) -> None:
    node, _ = nodes.start("alice", rest=True, restPort=0)
    bound = json.loads(node.get_node_info("MyBoundPorts").unwrap())
    assert bound.pop("tcp") == int(address_of(node).split("/")[4])
    assert bound.pop("rest")
    assert bound == dict.fromkeys(("webSocket", "quic", "discv5Udp", "metrics"), 0)
    taken = nodes.config("bob", tcpPort=int(address_of(node).split("/")[4]) - 1, portsShift=1)
    refused = NodeWrapper.create_and_start(taken).unwrap_err()
    assert re.match(r"callback failed in _wait_cb_ok: start_node \(ret=1\) msg=b'", refused)
    assert "failed to start: cannot listen at /ip4/127.0.0.1/tcp/" in refused


def test_a_websocket_and_metrics_are_served_where_they_are_asked_for(nodes: Nodes) -> None:
    ports: dict[str, Any] = {"websocketPort": 0, "metricsServerPort": 0}
    node, _ = nodes.start("alice", websocketSupport=True, metricsServer=True, **ports)
    bound = json.loads(node.get_node_info("MyBoundPorts").unwrap())
    page = httpx.get(f"http://127.0.0.1:{bound['metrics']}/metrics", trust_env=False)
    assert "\nwaku_node_messages_total" in page.text
    elsewhere = httpx.get(f"http://127.0.0.1:{bound['metrics']}/health", trust_env=False)
    assert elsewhere.status_code == 404
    with socket.create_connection(("127.0.0.1", bound["webSocket"])):
        pass
    name = node.get_node_info("MyPeerId").unwrap()
    assert node.stop_node() == node.start_node() == Ok(0)
    assert node.get_node_info("MyPeerId") == Ok(name)


def test_a_node_needs_an_address_to_listen_at(nodes: Nodes) -> None:
    config = nodes.config("alice", websocketSupport=True, listenAddress="localhost")
    refused = NodeWrapper.create_and_start(config).unwrap_err()
    assert "a node needs an IP address to listen at" in refused


def test_a_node_that_listens_everywhere_announces_one_address(nodes: Nodes) -> None:
    node, _ = nodes.start("alice", listenAddress="0.0.0.0")
    assert "," not in node.get_node_info("MyMultiaddresses").unwrap()


def test_a_node_tells_of_itself(nodes: Nodes) -> None:
    node, _ = nodes.start("alice")
    ids = node.get_available_node_info_ids().unwrap()
    told = {info_id: node.get_node_info(info_id).unwrap() for info_id in ids}
    assert told["MyMultiaddresses"].endswith(f"/p2p/{told['MyPeerId']}")
    assert told["Version"].startswith("py-waku-")
    assert told["MaxMessageSize"] == "153600"
    assert address_in(told["MyENR"]) == told["MyMultiaddresses"]
    assert told["MyMixPubKey"] == ""
    unknown = node.get_node_info("MyShoeSize")
    assert unknown == Err(
        "get_node_info: callback failed (ret=1) msg=b'Invalid node info id: MyShoeSize'"
    )


def test_every_option_is_described(nodes: Nodes) -> None:
    node, _ = nodes.start("alice")
    options = node.get_available_configs().unwrap()["configOptions"]
    assert {
        "tcpPort": "int(60000)",
        "desc": "where other nodes dial; 0 takes a free port",
    } in options


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({"shoeSize": 43}, "Unrecognized configuration option(s) found: shoeSize"),
        ({"mode": "Fringe"}, "invalid mode: 'Fringe' (expected 'Core' or 'Edge')"),
        ({"relay": 1}, "`relay` must be a bool (got 1)"),
        ({"tcpPort": True}, "`tcpPort` must be a int (got True)"),
        ({"tcpPort": 65000, "portsShift": 600}, "tcpPort with portsShift is 65600"),
        ({"storeMessageDbUrl": "postgres://db"}, "must be sqlite://path"),
        ({"channelOptions": {"retries": 1}}, "unexpected keyword argument"),
        ({"channelOptions": {"retry_interval_ms": 0}}, "`retry_interval_ms` must be at least 1"),
    ],
)
def test_a_bad_configuration_makes_no_node(config: dict[str, object], said: str) -> None:
    refused = NodeWrapper.create_node(config).unwrap_err()
    assert refused.startswith("callback failed in _wait_cb_ok: create_node (ret=1) msg=b")
    assert "failed parseLogosDeliveryConf " in refused
    assert said in refused


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        ({"payload": "aGk="}, "Missing contentTopic field"),
        ({"contentTopic": TOPIC}, "Missing payload field"),
        ({"contentTopic": TOPIC, "payload": "%"}, "invalid payload format: "),
    ],
)
def test_a_bad_message_is_not_sent(nodes: Nodes, sent: dict[str, object], said: str) -> None:
    node, _ = nodes.start("alice")
    refused = node.send_message(sent).unwrap_err()
    assert refused.startswith(f"send_message: callback failed (ret=1) msg=b'{said}")


def test_a_callback_that_fails_is_told_the_next_event(
    nodes: Nodes, caplog: pytest.LogCaptureFixture
) -> None:
    told = NodeEvents()

    def failing_once(ret: int, raw: bytes) -> None:
        told(ret, raw)
        if len(told.events) == 1:
            raise RuntimeError("a defect of the suite")

    bob, _ = nodes.start("bob")
    alice = NodeWrapper.create_and_start(nodes.config("alice", bob), failing_once).unwrap()
    try:
        assert told.until(lambda: bool(told.of("connection_status_change")))
        assert "the event callback failed at connection_change" in caplog.text
    finally:
        assert alice.stop_and_destroy() == Ok(0)
