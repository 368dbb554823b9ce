"""Built-in transports by their URLs, and the embedded node for channels that name no node."""

import logging
import re
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from .addresses import masked_address
from .settings import WakuSettings

if TYPE_CHECKING:
    from .hub_node import HubNode
    from .libp2p import LightTransport
    from .messaging import MessagingTransport
    from .node import NodeTransport
    from .waku import WakuTransport

__all__ = [
    "WAKU_SCHEMES",
    "embedded_transport",
    "hub_node",
    "light_transport",
    "messaging_transport",
    "on_network",
    "waku_transport",
]

_log: Final = logging.getLogger("reliable_channel")


MESSAGING_SCHEMES: Final = ("waku+messaging", "waku+messaging+https")
WAKU_SCHEMES: Final = ("http", "https", "waku+http", "waku+https")


def waku_transport(
    url: str, settings: WakuSettings, shared: "HubNode | None" = None
) -> "NodeTransport":
    """Return a transport through a Waku node (`http://`, `https://`, `waku+http://`,
    `waku+https://`).

    Raises:
        ValueError: it names no host.
    """
    from .node import NodeTransport

    return NodeTransport(_rest_address(url), settings, shared=shared)


def hub_node(url: str, settings: WakuSettings) -> "HubNode":
    """Return a node for a hub, whose topics share the node's REST API.

    Raises:
        ValueError: it names no host.
    """
    from .hub_node import HubNode
    from .waku import rest_client

    return HubNode(masked_address(url), rest_client(_rest_address(url), settings))


def _rest_address(url: str) -> str:
    return _http_address(re.sub(r"^waku\+", "", url, flags=re.IGNORECASE))


def messaging_transport(url: str, settings: WakuSettings) -> "MessagingTransport":
    """Return a transport through a node's messaging layer (`waku+messaging://host:port`,
    `waku+messaging+https://…`).

    Raises:
        ValueError: it names no host, or the channel is on a static shard.
    """
    from .messaging import MessagingTransport

    scheme, _, host = url.partition("://")
    tls = "s" if scheme.lower().endswith("https") else ""
    return MessagingTransport(_http_address(f"http{tls}://{host}"), settings)


def _http_address(address: str) -> str:
    if not re.match(r"[a-z]+://[^/?#\s]", address, re.IGNORECASE):
        raise ValueError(
            f"`node` must be an http or https address with a host (got {masked_address(address)!r})"
        )
    return address


def light_transport(url: str, settings: WakuSettings) -> "LightTransport":
    """Return a transport over service peers (`libp2p:///dns4/…`, addresses separated by commas).

    Raises:
        ValueError: an address is invalid or cannot be dialled, or the extra is not installed.
    """
    with needs_libp2p("node"):
        from .libp2p import LightTransport

        return LightTransport(url, settings)


def on_network(network: str, settings: WakuSettings) -> tuple[WakuSettings, tuple[str, ...]]:
    """Return the settings of a named network, and the addresses of its entry nodes.

    Raises:
        ValueError: an unknown name, a bad file, or the extra is not installed.
    """
    with needs_libp2p("network"):
        from waku.discovery import find_network

        try:
            found = find_network(network)
        except OSError as error:
            raise ValueError(f"`network`: {network} cannot be read: {error}") from error
    on_it = replace(
        settings,
        network=network,
        max_message_bytes=found.max_message_bytes,
        cluster_id=found.cluster_id,
        num_shards=found.num_shards or settings.num_shards,
        pubsub_topic=settings.pubsub_topic
        or (None if found.num_shards else found.pubsub_topic_for(settings.content_topic)),
    )
    return on_it, found.entry


@contextmanager
def needs_libp2p(argument: str) -> Iterator[None]:
    """Name the extra to install if a package of the extra is missing."""
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name not in ("cryptography", "dns", "websockets"):
            raise
        raise ValueError(
            f"`{argument}` needs {error.name}: pip install 'reliable-channel[libp2p]'"
        ) from error


async def embedded_transport(settings: WakuSettings, stack: AsyncExitStack) -> "WakuTransport":
    """Return a transport through the embedded node that channels without a node share."""
    from .shared_node import shared_node
    from .waku import WakuTransport

    _log.warning(
        "channel on %s has no `node`: it meets other channels of this process that have none, and "
        "no other process reads it; give the address of a node, such as http://127.0.0.1:8645",
        settings.content_topic,
    )
    app = await stack.enter_async_context(shared_node(settings))
    return WakuTransport("http://embedded", settings, app=app)
