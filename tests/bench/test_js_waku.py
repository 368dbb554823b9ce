"""The js-waku side; needs Node and npm packages, which CI installs and elsewhere `make bench`."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench import node_runtime
from bench.js_waku import JsWaku, JsWakuFailed
from bench.node_runtime import NodeUnavailable, ready_node
from bench.workload import message_id, payloads, traffic

IN_CI = os.environ.get("CI") == "true"


@pytest.fixture(scope="module")
def js_waku() -> Iterator[JsWaku]:
    try:
        node = ready_node(install=IN_CI)
    except NodeUnavailable as error:
        if IN_CI:
            raise
        pytest.skip(f"js-waku side of the benchmark: {error}")
    with JsWaku(node) as peer:
        yield peer


def test_js_waku_delivers_the_workload_and_says_what_it_cost(js_waku: JsWaku) -> None:
    js_waku.setup(40, 20, list(traffic(40, 20, 6)))
    assert js_waku.receive(0, 2) > 0
    assert js_waku.send(payloads(0, 3)) > 0
    js_waku.leave_unacknowledged(payloads(3, 5))
    assert js_waku.receive(3, 2) > 0


def test_js_waku_from_an_empty_log(js_waku: JsWaku) -> None:
    js_waku.setup(0, 200, list(traffic(0, 200, 3)))
    assert js_waku.receive(0, 2) > 0


def test_a_message_that_is_not_delivered_is_noticed(js_waku: JsWaku) -> None:
    js_waku.setup(10, 2, list(traffic(11, 2, 2)))  # they depend on one that is not in the log
    with pytest.raises(JsWakuFailed, match="delivered 0 of 2"):
        js_waku.receive(0, 1)


def test_js_waku_primitives_and_memory(js_waku: JsWaku) -> None:
    found = js_waku.primitives(traffic(10, 2, 3), [message_id(0)], rounds=2)
    assert set(found) == {"encode", "decode", "bloom_insert", "bloom_lookup", "bloom_to_bytes"}
    assert js_waku.memory_bytes(traffic(0, 2, 50)) > 50 * 19_000


def test_an_error_of_the_peer_is_told(js_waku: JsWaku) -> None:
    with pytest.raises(JsWakuFailed, match="ENOENT"):
        js_waku.ask("memoryAdd", messages="/nowhere")


def test_a_peer_that_dies_is_told() -> None:
    not_node = node_runtime.Node("/bin/false", ())
    with JsWaku(not_node) as peer, pytest.raises(JsWakuFailed, match="Node ended"):
        peer.setup(0, 2, [])


def test_without_node_one_line_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(node_runtime, "_node_of_wheel", lambda: None)
    with pytest.raises(NodeUnavailable, match=r"^no Node; `make bench` brings them$"):
        ready_node(install=False)


def test_a_failed_installation_says_why(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(node_runtime, "_node_of_wheel", lambda: None)
    monkeypatch.setattr(node_runtime, "REQUIREMENTS", tmp_path / "nowhere.txt")
    with pytest.raises(NodeUnavailable, match=r"nowhere\.txt") as failure:
        ready_node()
    assert "\n" not in str(failure.value)
    assert str(failure.value).startswith(sys.executable)
