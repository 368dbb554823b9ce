"""The configuration of a node as the bindings take it: a flat JSON object of nwaku's options."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

from reliable_channel import ChannelOptions

__all__ = ["BadConfig", "NodeConfig", "described"]

NO_DISCOVERY: Final = "without effect: no node is discovered; name the nodes to join in staticnodes"


class BadConfig(ValueError):
    """The configuration cannot be used; the text is the library's where it has one."""


class _Option(NamedTuple):
    kind: type
    default: Any
    description: str


_NODES: Final = _Option(list, [], "multiaddresses to dial, again and again until they answer")
_OPTIONS: Final = {
    "mode": _Option(str, "Core", "Core relays; Edge sends by light push, and receives nothing"),
    "clusterId": _Option(int, 1, "the network's cluster"),
    "numShardsInNetwork": _Option(int, 0, "shards for autosharding; 0 is static sharding"),
    "listenAddress": _Option(str, "127.0.0.1", "where the node listens"),
    "tcpPort": _Option(int, 60000, "where other nodes dial; 0 takes a free port"),
    "rest": _Option(bool, False, "serve the REST API on restPort"),
    "restPort": _Option(int, 8645, "port of the REST API; 0 takes a free one"),
    "portsShift": _Option(int, 0, "added to every port that is not 0"),
    "relay": _Option(bool, None, "relay messages; off in mode Edge"),
    "store": _Option(bool, False, "keep messages for others to ask for"),
    "storeMessageDbUrl": _Option(str, "", "sqlite://path of them; in memory where empty"),
    "filter": _Option(bool, None, "serve filter; off in mode Edge"),
    "lightpush": _Option(bool, None, "serve light push; off in mode Edge"),
    "staticnodes": _NODES,
    "lightpushnode": _NODES,
    "filternode": _NODES,
    "storenode": _NODES,
    "reliabilityEnabled": _Option(bool, True, "ask Stores whether they have what was sent"),
    "localStoragePath": _Option(str, "./data", "folder of the channels' state; :memory: is none"),
    "channelOptions": _Option(dict, {}, "ours: ChannelOptions, for tests that cannot wait"),
    "logLevel": _Option(str, "INFO", "without effect: the application configures logging"),
    "nat": _Option(str, "any", "without effect: nodes are dialled on this machine"),
    "restAddress": _Option(str, "", "without effect: REST listens where the node does"),
    "discv5Discovery": _Option(bool, False, NO_DISCOVERY),
    "discv5UdpPort": _Option(int, 9000, NO_DISCOVERY),
    "peerExchange": _Option(bool, False, NO_DISCOVERY),
    "rendezvous": _Option(bool, False, NO_DISCOVERY),
    "metricsServer": _Option(bool, False, "serve /metrics on metricsServerPort"),
    "metricsServerPort": _Option(int, 8008, "port of /metrics; 0 takes a free one"),
    "websocketSupport": _Option(bool, False, "listen for light clients over libp2p"),
    "websocketPort": _Option(int, 8000, "port of that listener; 0 takes a free one"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeConfig:
    """The configuration of a node, read once."""

    listen_address: str
    tcp_port: int
    """0 takes a free one."""
    rest_port: int | None
    """None where `rest` is off."""
    metrics_port: int | None
    """None where `metricsServer` is off."""
    websocket_port: int | None
    """None where `websocketSupport` is off."""
    cluster_id: int
    num_shards: int | None
    """None is static sharding: then no content topic can be subscribed."""
    relay: bool
    store: bool
    store_path: str
    filter: bool
    lightpush: bool
    nodes: tuple[str, ...]
    """Multiaddresses to dial."""
    reliability: bool
    storage_path: str | None
    """Folder of the channels' state; None keeps none."""
    channel_options: ChannelOptions

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> NodeConfig:
        """Read a configuration; names are taken in any case.

        Raises:
            BadConfig: an option that is not known, of the wrong type or out of range.
        """
        values = _checked(config)
        mode = values["mode"].strip().lower()
        if mode not in ("core", "edge"):
            raise BadConfig(f"invalid mode: '{values['mode']}' (expected 'Core' or 'Edge')")
        services = {name: values[name] for name in ("relay", "filter", "lightpush")}
        storage = values["localStoragePath"]
        return cls(
            listen_address=values["listenAddress"],
            tcp_port=_port(values, "tcpPort"),
            rest_port=_port(values, "restPort") if values["rest"] else None,
            metrics_port=_port(values, "metricsServerPort") if values["metricsServer"] else None,
            websocket_port=_port(values, "websocketPort") if values["websocketSupport"] else None,
            cluster_id=values["clusterId"],
            num_shards=values["numShardsInNetwork"] or None,
            store=values["store"],
            store_path=_sqlite_path(values["storeMessageDbUrl"]),
            nodes=tuple(
                node for name, o in _OPTIONS.items() if o is _NODES for node in values[name]
            ),
            reliability=values["reliabilityEnabled"],
            storage_path=None if storage == ":memory:" else storage,
            channel_options=_channel_options(values["channelOptions"]),
            **{name: mode == "core" if on is None else on for name, on in services.items()},
        )


def described() -> list[dict[str, str]]:
    """The options, as the library lists them."""
    return [
        {name: f"{option.kind.__name__}({option.default})", "desc": option.description}
        for name, option in _OPTIONS.items()
    ]


def _checked(config: Mapping[str, Any]) -> dict[str, Any]:
    """The value of every option, by the name it has above."""
    names = {name.lower(): name for name in _OPTIONS}
    if unknown := [name for name in config if name.lower() not in names]:
        raise BadConfig(f"Unrecognized configuration option(s) found: {', '.join(unknown)}")
    values = {name: option.default for name, option in _OPTIONS.items()}
    for given, value in config.items():
        name = names[given.lower()]
        option = _OPTIONS[name]
        if isinstance(value, str):
            value = _read(option, value)
        # A bool is an int in Python, and never meant as one here.
        if not isinstance(value, option.kind) or isinstance(value, bool) != (option.kind is bool):
            raise BadConfig(f"`{given}` must be a {option.kind.__name__} (got {value!r})")
        values[name] = value
    return values


def _read(option: _Option, text: str) -> Any:
    """A value that came as a text, as from a command line."""
    if option is _NODES:
        return [text]
    if option.kind is int and text.isdecimal():
        return int(text)
    if option.kind is bool:
        return {"true": True, "false": False}.get(text.lower(), text)
    return text


def _port(values: Mapping[str, Any], name: str) -> int:
    port: int = values[name] and values[name] + values["portsShift"]
    if not 0 <= port < 65536:
        raise BadConfig(f"{name} with portsShift is {port}; a port must be below 65536")
    return port


def _sqlite_path(url: str) -> str:
    if url and not url.startswith("sqlite://"):
        raise BadConfig(f"`storeMessageDbUrl` must be sqlite://path (got {url!r})")
    return url.removeprefix("sqlite://") or ":memory:"


def _channel_options(given: Mapping[str, Any]) -> ChannelOptions:
    """Options on top of what logos-delivery does: the dialect of nim-sds, its wait before a message
    goes again, and no sync messages."""
    values = {"sync_min_interval_ms": 0, "retry_interval_ms": 60_000, **given}
    try:
        return replace(ChannelOptions(wire_profile="nim"), **values)
    except (TypeError, ValueError) as error:
        raise BadConfig(f"channelOptions: {error}") from error
