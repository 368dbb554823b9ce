"""Real nodes on real ports, each as broken as a test wants it."""

import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from anyio.abc import TaskStatus
from anyio.from_thread import BlockingPortal, start_blocking_portal

from reliable_channel._contracts.finding import Finding
from reliable_channel.cli.doctor.findings import Findings
from reliable_channel.cli.doctor.nodes import examine_nodes
from reliable_channel.transport.settings import WakuSettings
from waku import WakuMessage
from waku.node import EmbeddedNode, NodeOptions, serve_node

TOPIC = "/reliable-channel/1/general/proto"
SETTINGS = WakuSettings(TOPIC)
ON_LOOPBACK = ("/ip4/127.0.0.1/tcp/0",)


class Nodes:
    """Starts nodes, and examines them."""

    def __init__(self, portal: BlockingPortal) -> None:
        self._portal = portal
        self._started: list[Any] = []
        self.nodes: dict[str, EmbeddedNode] = {}

    def start(
        self, *, join: str | None = None, listen: Sequence[str] | None = None, **options: Any
    ) -> str:
        """Start a node, joined to another one, and return its address."""
        node = EmbeddedNode(NodeOptions(**options), listen=listen)
        if join is not None:
            self._portal.call(node.join, self.nodes[join])
        served, url = self._portal.start_task(partial(_serve, node))
        self._started.append(served)
        self.nodes[url] = node
        return str(url)

    def listen(self, **options: Any) -> str:
        """Start a node that listens for libp2p peers, and return its multiaddress."""
        node = self.nodes[self.start(listen=ON_LOOPBACK, **options)]
        (address,) = node.libp2p_addresses
        self.nodes[address] = node
        return address

    def store(self, url: str, count: int, age_s: float) -> None:
        """Put messages into one node's Store alone."""
        node = self.nodes[url]
        for number in range(count):
            stamp = time.time_ns() - int(age_s * 1e9) + number
            message = WakuMessage(b"%d" % number, TOPIC, timestamp=stamp)
            self._portal.call(node.publish, node.shard_for(TOPIC), message)

    def examine(
        self,
        *urls: str,
        publish: bool = True,
        wait_s: float = 1.0,
        settings: WakuSettings = SETTINGS,
    ) -> list[Finding]:
        findings = Findings()
        call = partial(examine_nodes, publish=publish, wait_s=wait_s)
        self.run(call, findings, urls, settings)
        return findings.found

    def run(self, examine: Callable[..., Awaitable[None]], *arguments: object) -> None:
        """Call something in the event loop of the nodes."""
        self._portal.call(examine, *arguments)

    def close(self) -> None:
        for served in self._started:
            served.cancel()


@contextmanager
def nodes() -> Iterator[Nodes]:
    with start_blocking_portal() as portal:
        found = Nodes(portal)
        try:
            yield found
        finally:
            found.close()


def named(findings: list[Finding], check: str, level: str) -> Finding:
    """The one finding of a check and level."""
    matching = [one for one in findings if (one.check, one.level) == (check, level)]
    assert matching, [(one.check, one.level, one.text) for one in findings]
    return matching[0]


async def _serve(node: EmbeddedNode, *, task_status: TaskStatus[str]) -> None:
    async with node:
        await serve_node(node, port=0, started=task_status.started)
