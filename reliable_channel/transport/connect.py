"""From a node's address to a transport; without an address, an embedded node of its own."""

import re
from collections.abc import Sequence
from contextlib import AsyncExitStack

import httpx

from .pool import REDUNDANCY, PoolTransport
from .waku import Service, WakuSettings, WakuTransport

__all__ = [
    "Service",
    "WakuSettings",
    "checked_address",
    "checked_addresses",
    "connect",
    "default_content_topic",
    "pool_of",
]


def default_content_topic(channel_id: str) -> str:
    """The content topic of a channel that was given none: `/reliable-channel/1/<channel
    id>/proto`."""
    return f"/reliable-channel/1/{re.sub(r'[^A-Za-z0-9._-]', '-', channel_id)}/proto"


def checked_address(url: str) -> str:
    """Return the address of a node's REST API.

    Raises:
        ValueError: it is none.
    """
    if not isinstance(url, str) or not re.match(r"https?://[^/?#\s]", url):
        raise ValueError(f"node is {url!r}; allowed is an http or https address")
    return url


def checked_addresses(node: str | Sequence[str] | None) -> tuple[str, ...]:
    """Return the addresses of one node or several, each once; none where `node` is None.

    Raises:
        ValueError: one of them is none, or the list is empty.
    """
    if node is None:
        return ()
    if isinstance(node, str) or not isinstance(node, Sequence):
        return (checked_address(node),)
    if not node:
        raise ValueError("node is an empty list; allowed is at least one address, or None")
    return tuple(dict.fromkeys(map(checked_address, node)))


def pool_of(urls: Sequence[str], settings: WakuSettings, *, redundancy: int) -> PoolTransport:
    """A transport to the nodes at `urls`. One node is a pool too, which knows how it does."""
    return PoolTransport([WakuTransport(url, settings) for url in urls], redundancy=redundancy)


async def connect(
    urls: Sequence[str],
    settings: WakuSettings,
    stack: AsyncExitStack,
    *,
    redundancy: int = REDUNDANCY,
) -> PoolTransport:
    """A transport to the nodes at `urls`, or to an embedded node that lives as long as `stack`."""
    if urls:
        return pool_of(urls, settings, redundancy=redundancy)
    # A web server's worth of imports that only those pay for who bring no node.
    from waku.node import EmbeddedNode, NodeOptions

    options = NodeOptions(cluster_id=settings.cluster_id, num_shards=settings.num_shards)
    node = await stack.enter_async_context(EmbeddedNode(options))
    app = httpx.ASGITransport(app=node.app)
    return PoolTransport([WakuTransport("http://embedded", settings, http_transport=app)])
