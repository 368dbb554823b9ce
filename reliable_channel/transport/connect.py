"""From a node's address to a transport; without an address, an embedded node of its own."""

import re
from contextlib import AsyncExitStack

import httpx

from .waku import Service, WakuSettings, WakuTransport

__all__ = ["Service", "WakuSettings", "checked_address", "connect", "default_content_topic"]


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


async def connect(url: str | None, settings: WakuSettings, stack: AsyncExitStack) -> WakuTransport:
    """A transport to the node at `url`, or to an embedded node that lives as long as `stack`."""
    if url is not None:
        return WakuTransport(url, settings)
    # A web server's worth of imports that only those pay for who bring no node.
    from waku.node import EmbeddedNode, NodeOptions

    options = NodeOptions(cluster_id=settings.cluster_id, num_shards=settings.num_shards)
    node = await stack.enter_async_context(EmbeddedNode(options))
    return WakuTransport(
        "http://embedded", settings, http_transport=httpx.ASGITransport(app=node.app)
    )
