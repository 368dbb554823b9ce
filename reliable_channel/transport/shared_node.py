"""Embedded node that channels without the option `node` share. Other programs cannot reach the
embedded node."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from anyio.lowlevel import RunVar

from waku._asgi import App

from .settings import WakuSettings

if TYPE_CHECKING:
    from waku.node import EmbeddedNode


@dataclass(slots=True)
class _Shared:
    """A node and the number of channels that use it."""

    node: "EmbeddedNode"
    users: int = 0


_nodes: RunVar[dict[tuple[int, int, int], _Shared]] = RunVar("reliable_channel_nodes")
"""By cluster, number of shards and greatest message, for each event loop: a node belongs to one."""


@asynccontextmanager
async def shared_node(settings: WakuSettings) -> AsyncIterator[App]:
    """Use the embedded node of this event loop. The first user creates the node, and the last user
    ends it."""
    # A web server's worth of imports that only those pay for who bring no node.
    from waku.node import EmbeddedNode, NodeOptions

    nodes = _nodes.get({})
    _nodes.set(nodes)
    network = settings.cluster_id, settings.num_shards, settings.max_message_bytes
    if network not in nodes:
        options = NodeOptions(
            cluster_id=settings.cluster_id,
            num_shards=settings.num_shards,
            max_message_bytes=settings.max_message_bytes,
        )
        nodes[network] = _Shared(EmbeddedNode(options))
    shared = nodes[network]
    shared.users += 1
    try:
        yield shared.node.app
    finally:
        shared.users -= 1
        if not shared.users:
            del nodes[network]
            # Never entered: it dials nobody, so it has no tasks, and any user may end it.
            await shared.node.__aexit__(None, None, None)
