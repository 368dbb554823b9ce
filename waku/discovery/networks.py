"""Named networks, with their clusters, shards and entry nodes.

    find_network("logos.test")
    find_network("my-network.toml")

`networks.toml` contains the presets and the commit of their source. The presets were not tested on
the live networks. A TOML file of your own has the keys of one table in `networks.toml`.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

from waku.libp2p import InvalidInput, Multiaddr
from waku.topics import PubsubTopic, pubsub_topic_for

from .dns_tree import SCHEME, TreeUrl
from .enr import PREFIX, NodeRecord

__all__ = ["Network", "check_entry", "find_network", "network_in"]

MAX_CLUSTER: Final = 65_535
MAX_SHARDS: Final = 1_024
"""Maximum number of shards in a cluster, in every implementation."""
MAX_FILE_BYTES: Final = 65_536
_KEYS: Final = ("cluster_id", "shards", "num_shards", "max_message_bytes", "rln", "entry")


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """Settings that all participants of a network share.

    Raises:
        ValueError: a value out of range, an entry of no known form, or neither kind of sharding.
    """

    name: str
    cluster_id: int
    num_shards: int | None = None
    """Number of shards for autosharding, or None if shards are chosen by hand."""
    shards: tuple[int, ...] = ()
    """Static shards of the network. The first shard is the default shard."""
    max_message_bytes: int = 150 * 1024
    """Maximum size of an encoded message (bytes)."""
    rln: bool = False
    """True if a message needs a proof of its rate limit (RLN), which this package cannot make."""
    entry: tuple[str, ...] = ()
    """Entry nodes of the network, as multiaddresses, `enrtree://…` or `enr:…`."""

    def __post_init__(self) -> None:
        _check_range("cluster_id", self.cluster_id, 0, MAX_CLUSTER)
        _check_range("max_message_bytes", self.max_message_bytes, 1, 10 * 1024 * 1024)
        if (self.num_shards is None) == (not self.shards):
            raise ValueError(f"network {self.name!r} must name `num_shards` or `shards`")
        if self.num_shards is not None:
            _check_range("num_shards", self.num_shards, 1, MAX_SHARDS)
        for shard in self.shards:
            _check_range("shards", shard, 0, MAX_SHARDS - 1)
        for text in self.entry:
            check_entry(text)

    @property
    def all_shards(self) -> frozenset[int]:
        """Return all shards that the network uses."""
        return frozenset(self.shards or range(self.num_shards or 0))

    def pubsub_topic_for(self, content_topic: str) -> str:
        """Return the pubsub topic for a content topic, as `/waku/2/rs/<cluster>/<shard>`.

        Raises:
            InvalidTopic: not a content topic.
        """
        if self.num_shards is None:
            return str(PubsubTopic(self.cluster_id, self.shards[0]))
        return pubsub_topic_for(
            content_topic, cluster_id=self.cluster_id, num_shards=self.num_shards
        )


def find_network(name: str) -> Network:
    """Return a named preset, or read a TOML file if the name ends with `.toml`.

    Raises:
        ValueError: an unknown name, or a file that does not describe a network.
        OSError: the file cannot be read.
    """
    if name.endswith(".toml"):
        return _from_file(Path(name))
    presets = _presets()
    if name not in presets:
        raise ValueError(
            f"`network` must be one of {', '.join(sorted(presets))}, or a .toml file (got {name!r})"
        )
    return presets[name]


def check_entry(text: str) -> None:
    """Check the address of an entry node, a multiaddress, `enrtree://…` or `enr:…`.

    Raises:
        InvalidInput: it has another form, or cannot be dialled.
    """
    if text.lower().startswith(SCHEME):
        TreeUrl.parse(text)
    elif text.startswith(PREFIX):
        NodeRecord.parse(text)
    elif text.startswith("/"):
        _ = Multiaddr.parse(text).dial_target
    else:
        raise InvalidInput(
            f"{text[:100]!r} is neither a multiaddress (/dns4/…) nor enrtree://… nor enr:…"
        )


@cache
def _presets() -> dict[str, Network]:
    text = files("waku.discovery").joinpath("networks.toml").read_text("utf-8")
    return {name: _network(name, table) for name, table in tomllib.loads(text).items()}


def _from_file(path: Path) -> Network:
    with path.open("rb") as file:
        data = file.read(MAX_FILE_BYTES + 1)
    if len(data) > MAX_FILE_BYTES:
        raise ValueError(f"{path} has more than {MAX_FILE_BYTES} bytes")
    try:
        return network_in(path.stem, data)
    except ValueError as error:
        raise ValueError(f"{path} does not describe a network: {error}") from error


def network_in(name: str, data: bytes) -> Network:
    """Parse the text of a network's TOML file.

    Raises:
        ValueError: it does not describe a network.
    """
    try:
        table = tomllib.loads(data.decode())
    except RecursionError:
        raise ValueError("the values of the file are nested too deeply") from None
    return _network(name, table)


def _network(name: str, table: dict[str, Any]) -> Network:
    if unknown := table.keys() - set(_KEYS):
        raise ValueError(f"unknown key {min(unknown)!r}; known keys are {', '.join(_KEYS)}")
    if "cluster_id" not in table:
        raise ValueError("the key `cluster_id` is missing")
    values = dict(table)
    for key, kind in (("shards", int), ("entry", str)):
        listed = values.get(key, [])
        if not isinstance(listed, list) or not all(type(item) is kind for item in listed):
            raise ValueError(f"`{key}` must be a list of {kind.__name__} (got {listed!r})")
        values[key] = tuple(listed)
    if type(values.get("rln", False)) is not bool:
        raise ValueError(f"`rln` must be true or false (got {values['rln']!r})")
    return Network(name=name, **values)


def _check_range(name: str, value: object, low: int, high: int) -> None:
    if type(value) is not int or not low <= value <= high:
        raise ValueError(f"`{name}` must be between {low} and {high} (got {value!r})")
