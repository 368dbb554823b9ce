"""Nodes as the official suite makes them, and what their callbacks are told."""

from __future__ import annotations

import json
import threading
from base64 import b64decode, b64encode
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from result import Ok

from interop.compat.wrapper import NodeWrapper

TIMEOUT_S: Final = 600.0
"""A guard against hangs; no result depends on it."""
TOPIC: Final = "/test/1/channel/proto"
CHANNEL: Final = "the-channel"


class NodeEvents:
    """The events of one node, in order."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []
        self._changed = threading.Condition()

    def __call__(self, ret: int, raw: bytes) -> None:
        assert ret == 0
        with self._changed:
            self.events.append(json.loads(raw))
            self._changed.notify_all()

    def until(self, holds: Callable[[], bool], *, within_s: float = TIMEOUT_S) -> bool:
        """Wait until something holds, looking at each event; False when it does not in time."""
        with self._changed:
            return self._changed.wait_for(holds, within_s)

    def of(self, event_type: str) -> list[dict[str, Any]]:
        return [event for event in self.events if event["eventType"] == event_type]

    def contents(self) -> list[bytes]:
        return [b64decode(event["payload"]) for event in self.of("channel_message_received")]

    def envelopes(self, content_topic: str = TOPIC) -> list[bytes]:
        """What came on a content topic, be it for a channel or not."""
        messages = [event["message"] for event in self.of("message_received")]
        return [bytes(m["payload"]) for m in messages if m["contentTopic"] == content_topic]

    def delivers(self, *contents: bytes) -> bool:
        """Wait until channels have delivered exactly these, in this order."""
        return self.until(lambda: self.contents() == list(contents))

    def hears(self, content: bytes, content_topic: str = TOPIC) -> bool:
        """Wait for an envelope with some bytes in it, whatever the channels make of it."""
        return self.until(lambda: any(content in e for e in self.envelopes(content_topic)))


class Nodes:
    """Makes nodes, each on a free port and with a folder of its own, and ends them."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._made: list[NodeWrapper] = []

    def start(
        self, name: str, *, join: NodeWrapper | None = None, **config: Any
    ) -> tuple[NodeWrapper, NodeEvents]:
        node, told = self.create(name, join=join, **config)
        node.start_node().unwrap()
        return node, told

    def create(
        self, name: str, *, join: NodeWrapper | None = None, **config: Any
    ) -> tuple[NodeWrapper, NodeEvents]:
        """Make a node that does not run yet, so that it can subscribe before it dials."""
        told = NodeEvents()
        node = NodeWrapper.create_node(self.config(name, join, **config), told).unwrap()
        self._made.append(node)
        return node, told

    def config(
        self, name: str, join: NodeWrapper | None = None, **config: Any
    ) -> dict[str, object]:
        return {
            "tcpPort": 0,
            "clusterId": "198",
            "numShardsInNetwork": 1,
            "store": False,
            "reliabilityEnabled": False,
            "localStoragePath": str(self._folder / name),
            "staticnodes": [] if join is None else [address_of(join)],
            **config,
        }

    def forget(self, node: NodeWrapper) -> None:
        """Leave the end of a node to its test."""
        self._made.remove(node)

    def end(self) -> None:
        while self._made:
            assert self._made.pop().stop_and_destroy() == Ok(0)


def address_of(node: NodeWrapper) -> str:
    return node.get_node_info("MyMultiaddresses").unwrap()


def message(content: bytes, **fields: object) -> dict[str, object]:
    """As the suite's `create_message_bindings`."""
    return {
        "contentTopic": TOPIC,
        "payload": b64encode(content).decode(),
        "ephemeral": False,
        **fields,
    }


def say(node: NodeWrapper, content: bytes, channel_id: str = CHANNEL) -> str:
    request_id = node.channel_send(channel_id, message(content)).unwrap()
    assert request_id
    return request_id
