"""Link of a bot to Waku, through a node's REST API or through service peers."""

import re
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

import anyio

from waku import PubsubTopic, WakuClient

from .link import Node

if TYPE_CHECKING:
    from .light_node import LightNode

_PEERS: Final = ("/", "enr:", "enrtree://")
"""How addresses of service peers begin."""
_EXTRAS: Final = ("cryptography", "dns", "websockets")

Pause = Callable[[float], Awaitable[None]]


class WakuAccess:
    """Link to Waku that the arguments of a bot describe.

    Raises:
        ValueError: an address that is none, an unknown network, or one of another cluster; a
            package of `[libp2p]` is missing.
    """

    def __init__(
        self,
        node: object,
        network: str | None,
        shards: Sequence[PubsubTopic],
        ssl_context: ssl.SSLContext | None,
    ) -> None:
        self._network = network
        self._shards = shards
        self._ssl_context = ssl_context
        self._url, self._peers = _sorted(node, network)
        if self._url is None:
            self._light_node()  # what is wrong is raised here, not when the bot runs

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[tuple[WakuClient | Node, Pause]]:
        """Yield the node, and a function that waits until the next read is useful."""
        if self._url is None:
            async with self._light_node() as node:
                yield node, node.wait
            return
        async with WakuClient(self._url, ssl_context=self._ssl_context) as client:
            yield client, anyio.sleep

    def _light_node(self) -> "LightNode":
        try:
            from waku.discovery import find_network

            from .light_node import LightNode

            if self._network is not None:
                _check_cluster(self._network, find_network(self._network).cluster_id, self._shards)
            return LightNode(
                self._peers,
                self._shards,
                network=self._network,
                ssl_context=self._ssl_context,
            )
        except ModuleNotFoundError as error:
            if error.name not in _EXTRAS:
                raise
            raise ValueError(
                f"service peers need {error.name}: pip install 'reliable-channel-status[libp2p]'"
            ) from error
        except OSError as error:
            raise ValueError(f"`network`: {self._network} cannot be read: {error}") from error


def _sorted(node: object, network: str | None) -> tuple[str | None, tuple[str, ...] | None]:
    """A node's URL, or the addresses of service peers; neither for those of the network.

    Raises:
        ValueError: no address, or not one.
    """
    if node is None and network is not None:
        return None, None
    given = [node] if isinstance(node, str) else list(node) if isinstance(node, Sequence) else []
    if given and all(isinstance(one, str) and one.startswith(_PEERS) for one in given):
        return None, tuple(given)
    is_url = len(given) == 1 and re.match(r"https?://[^/?#\s]", str(given[0]))
    if is_url and network is None:
        return str(given[0]), None
    shown = re.sub(r"[^\s'\"]*@", "***@", repr(node))  # without a token
    if is_url:
        raise ValueError(
            f"`network` is for service peers, and `node` is a node's REST API (got {shown}); "
            "leave one of them out"
        )
    raise ValueError(
        "`node` must be the address of a Waku node's REST API, or addresses of service peers "
        f"(got {shown}); write 'http://127.0.0.1:8645', '/dns4/…', or network='status.prod'"
    )


def _check_cluster(network: str, cluster_id: int, shards: Sequence[PubsubTopic]) -> None:
    for shard in shards:
        if shard.cluster_id != cluster_id:
            raise ValueError(
                f"`network` {network} is cluster {cluster_id}, and the bot's shard {shard} is "
                "not; see BotOptions(shard=…, also_listen=…)"
            )
