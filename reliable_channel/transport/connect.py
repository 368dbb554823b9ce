"""The transports that are built in, by their URLs; without one, the process's embedded node."""

import logging
import re
from collections.abc import Sequence
from contextlib import AsyncExitStack
from typing import Final

from .shared_node import shared_node
from .waku import Service, WakuSettings, WakuTransport

__all__ = [
    "WAKU_SCHEMES",
    "Service",
    "WakuSettings",
    "checked_address",
    "checked_addresses",
    "default_content_topic",
    "embedded_transport",
    "waku_transport",
]

_log: Final = logging.getLogger("reliable_channel")


def default_content_topic(channel_id: str) -> str:
    """The content topic of a channel that was given none: `/reliable-channel/1/<channel
    id>/proto`."""
    return f"/reliable-channel/1/{re.sub(r'[^A-Za-z0-9._-]', '-', channel_id)}/proto"


def checked_address(url: str) -> str:
    """Return the address of a node, as far as any has the same form.

    Raises:
        ValueError: it is none.
    """
    if isinstance(url, str) and re.match(r"[A-Za-z][A-Za-z0-9+.-]*://[^\s]", url):
        return url
    is_host = isinstance(url, str) and re.fullmatch(r"[\w.-]+(:\d+)?", url)
    advice = f"; write 'http://{url}'" if is_host else ""
    raise ValueError(
        "`node` must be an http or https address, or the URL of another network "
        f"(got {url!r}){advice}"
    )


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


WAKU_SCHEMES: Final = ("http", "https", "waku+http", "waku+https")


def waku_transport(url: str, settings: WakuSettings) -> WakuTransport:
    """Return a transport of a Waku node: `http://`, `https://`, `waku+http://`, `waku+https://`.

    Raises:
        ValueError: it names no host.
    """
    address = re.sub(r"^waku\+", "", url, flags=re.IGNORECASE)
    if not re.match(r"[a-z]+://[^/?#\s]", address, re.IGNORECASE):
        raise ValueError(f"`node` must be an http or https address with a host (got {url!r})")
    return WakuTransport(address, settings)


async def embedded_transport(settings: WakuSettings, stack: AsyncExitStack) -> WakuTransport:
    """A way into the embedded node that all channels without a node share, as long as `stack`
    lasts."""
    _log.warning(
        "channel on %s has no `node`: it meets other channels of this process that have none, and "
        "nobody outside hears it; give the address of a node, such as http://127.0.0.1:8645",
        settings.content_topic,
    )
    node = await stack.enter_async_context(shared_node(settings))
    return WakuTransport("http://embedded", settings, http_transport=node)
