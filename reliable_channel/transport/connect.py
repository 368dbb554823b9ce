"""The transports that are built in, by their URLs; without one, the process's embedded node."""

import logging
import re
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Final

from .settings import WakuSettings

if TYPE_CHECKING:
    from .waku import WakuTransport

__all__ = [
    "WAKU_SCHEMES",
    "embedded_transport",
    "waku_transport",
]

_log: Final = logging.getLogger("reliable_channel")


WAKU_SCHEMES: Final = ("http", "https", "waku+http", "waku+https")


def waku_transport(url: str, settings: WakuSettings) -> "WakuTransport":
    """Return a transport of a Waku node: `http://`, `https://`, `waku+http://`, `waku+https://`.

    Raises:
        ValueError: it names no host.
    """
    address = re.sub(r"^waku\+", "", url, flags=re.IGNORECASE)
    if not re.match(r"[a-z]+://[^/?#\s]", address, re.IGNORECASE):
        raise ValueError(f"`node` must be an http or https address with a host (got {url!r})")
    from .waku import WakuTransport

    return WakuTransport(address, settings)


async def embedded_transport(settings: WakuSettings, stack: AsyncExitStack) -> "WakuTransport":
    """A way into the embedded node that all channels without a node share, as long as `stack`
    lasts."""
    from .shared_node import shared_node
    from .waku import WakuTransport

    _log.warning(
        "channel on %s has no `node`: it meets other channels of this process that have none, and "
        "nobody outside hears it; give the address of a node, such as http://127.0.0.1:8645",
        settings.content_topic,
    )
    node = await stack.enter_async_context(shared_node(settings))
    return WakuTransport("http://embedded", settings, http_transport=node)
