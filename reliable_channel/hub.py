"""Hub for many channels with few subscriptions, for bots in hundreds of channels."""

from collections.abc import Callable, Collection, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from types import TracebackType
from typing import Self, TypedDict, Unpack
from weakref import WeakSet

import anyio

from ._contracts.encryption import Encryption
from ._contracts.signing import Signing
from .channel import ClosingLimit, ReliableChannel
from .options import ChannelOptions, OptionValues, PresetName, Service
from .runtime import Failures
from .sds.profile import PROFILES, WireProfile
from .state import StateStore
from .transport import PoolTransport, Transport, WakuSettings
from .transport.addresses import LIBP2P, checked_addresses, default_content_topic, masked_address
from .transport.connect import (
    MESSAGING_SCHEMES,
    WAKU_SCHEMES,
    hub_node,
    light_transport,
    messaging_transport,
    on_network,
    waku_transport,
)
from .transport.hub import Hub
from .transport.hub_node import HubNode
from .transport.pool import REDUNDANCY


class HubSettings(TypedDict, total=False):
    """Options that all channels of a hub share, as in `ReliableChannel`."""

    pubsub_topic: str | None
    cluster_id: int
    num_shards: int
    service: Service
    store_peer: str | None
    ca_file: str | Path | None


class HubChannelArguments(OptionValues, total=False):
    """Arguments of `ReliableChannel` that `ChannelHub.channel` accepts."""

    encryption: Encryption | str | None
    signing: Signing | None
    sync: str
    state: str | StateStore | None
    journal: str | Path | None
    plugins: Sequence[object]
    now_ns: Callable[[], int]
    preset: PresetName
    options: ChannelOptions | None


class ChannelHub:
    """Hub whose channels share nodes, with one subscription for each content topic.

        async with ChannelHub("http://127.0.0.1:8645") as hub:
            async with hub.channel(channel_id="ops", sender_id="bot", content_topic=topic) as ops:
                ...

    Open the hub before its channels, and close it after them.

    Args:
        node: the address of a Waku node's REST API, or of several nodes that replace each other
            when one fails, or addresses of service peers over libp2p; None for those of `network`.
        redundancy: how many of several nodes take a message at once; an option of all channels.
        wait_for_node: open channels although no node answers, as `ReliableChannel` does.
        network: named network, as for `ReliableChannel`.
        settings: `pubsub_topic`, `cluster_id`, `num_shards`, `service`, `store_peer` and
            `ca_file`, as for `ReliableChannel`.

    Raises:
        TypeError: a hub has no such setting.
        ValueError: an address is malformed, an option out of range, or the network unknown.
    """

    def __init__(
        self,
        node: str | Sequence[str] | None = None,
        *,
        redundancy: int = REDUNDANCY,
        wait_for_node: bool = False,
        network: str | None = None,
        **settings: Unpack[HubSettings],
    ) -> None:
        known = HubSettings.__annotations__
        if unknown := settings.keys() - known.keys():
            raise TypeError(
                f"a hub has no setting `{min(unknown)}`; its settings are {', '.join(known)}"
            )
        self._redundancy = ChannelOptions(redundancy=redundancy).redundancy
        self._settings = settings
        self._network = network
        some, entry = self._settings_for(default_content_topic("hub"))
        self._nodes = checked_addresses((entry or None) if node is None else node)
        if not self._nodes:
            raise ValueError("`node` must be the address of a node, or of several (got None)")
        for url in self._nodes:
            _to_waku_node(url, some)
        self._shared: dict[str, HubNode] = {}
        """Nodes by REST, while the hub is open."""
        self._stack = AsyncExitStack()
        self._wait_for_node = wait_for_node
        self._profiles = dict(PROFILES)
        self._channels = WeakSet[ReliableChannel]()
        self._log_failures: Failures = {}
        self._closing_limit = ClosingLimit()
        self._hub = Hub(self._connect, lambda data: channel_of(data, self._profiles.values()))

    def channel(
        self, *, channel_id: str, sender_id: str, **keywords: Unpack[HubChannelArguments]
    ) -> ReliableChannel:
        """Return a channel that uses the nodes of this hub. The method takes arguments of
        `ReliableChannel`.

        An error in one channel is logged, and raised at the end of the channel's `async with`
        block. The other channels of the hub continue.
        """
        if "redundancy" in keywords:
            raise TypeError(
                "`redundancy` is a setting of the hub for all its channels; give it to the hub"
            )
        topic = keywords.get("content_topic") or default_content_topic(channel_id)
        keywords["content_topic"], keywords["redundancy"] = topic, self._redundancy
        if self._network is not None:  # with its limits of a message
            keywords.setdefault("network", self._network)
        settings = self._settings  # of the shard: an invitation names them
        keywords.setdefault("pubsub_topic", settings.get("pubsub_topic"))
        if "cluster_id" in settings:
            keywords.setdefault("cluster_id", settings["cluster_id"])
        if "num_shards" in settings:
            keywords.setdefault("num_shards", settings["num_shards"])
        channel = ReliableChannel(
            channel_id=channel_id,
            sender_id=sender_id,
            transport=self._hub.transport(topic, channel_id),
            **keywords,
        )
        channel._log_failures = self._log_failures
        channel._closing_limit = self._closing_limit
        channel._ends_block = False  # blocks of a hub's channels may be left in any order
        channel.invited_node = self._nodes
        self._profiles[channel.options.profile.name] = channel.options.profile
        self._channels.add(channel)
        return channel

    @property
    def channels(self) -> tuple[ReliableChannel, ...]:
        """Open channels of this hub."""
        return tuple(channel for channel in self._channels if channel.health().live)

    @property
    def content_topics(self) -> tuple[str, ...]:
        """Content topics to which the hub is subscribed."""
        return self._hub.content_topics

    async def __aenter__(self) -> Self:
        some, _ = self._settings_for(default_content_topic("hub"))
        async with AsyncExitStack() as stack:
            tasks = await stack.enter_async_context(anyio.create_task_group())
            stack.callback(tasks.cancel_scope.cancel)
            for url in self._nodes:
                if _scheme(url) in WAKU_SCHEMES:
                    node = self._shared[url] = hub_node(url, some)
                    stack.push_async_callback(node.aclose)
                    tasks.start_soon(node.run, name="reliable_channel.hub_node")
            await stack.enter_async_context(self._hub)
            self._stack = stack.pop_all()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._stack.__aexit__(kind, error, traceback)
        self._shared.clear()

    def _connect(self, content_topic: str) -> Transport:
        settings, _ = self._settings_for(content_topic)
        transports = [_to_waku_node(url, settings, self._shared.get(url)) for url in self._nodes]
        return PoolTransport(
            transports, redundancy=self._redundancy, wait_for_node=self._wait_for_node
        )

    def _settings_for(self, content_topic: str) -> tuple[WakuSettings, tuple[str, ...]]:
        settings = WakuSettings(content_topic, redundancy=self._redundancy, **self._settings)
        return (settings, ()) if self._network is None else on_network(self._network, settings)


def channel_of(
    data: bytes, profiles: Collection[WireProfile] = tuple(PROFILES.values())
) -> str | None:
    """Return the channel id in an SDS message, or None if no dialect or several dialects read
    it."""
    channels = set[str]()
    for profile in profiles:
        try:
            if profile.codec.recognises(data):
                channels.add(profile.codec.decode(data).channel_id)
        except Exception:
            continue  # its channel raises an error of a plugin's codec, too
    return channels.pop() if len(channels) == 1 else None


def _to_waku_node(url: str, settings: WakuSettings, shared: HubNode | None = None) -> Transport:
    """Return a transport to a node.

    Raises:
        ValueError: it is not the URL of a Waku node.
    """
    if url.startswith(LIBP2P):
        return light_transport(url, settings)
    scheme = _scheme(url)
    if scheme in MESSAGING_SCHEMES:
        return messaging_transport(url, settings)
    if scheme not in WAKU_SCHEMES:
        raise ValueError(
            "`node` of a hub must be an http or https address, or name service peers (got "
            f"{masked_address(url)!r}); open a ReliableChannel for each channel on another network"
        )
    return waku_transport(url, settings, shared)


def _scheme(url: str) -> str:
    return url.partition("://")[0].lower()
