"""Private parts that tests look at: a rename in the code touches one line here.

Elsewhere ruff's SLF001 refuses such a look, unless the line says `noqa`; `test_inside.py` counts
all of them.
"""

# ruff: noqa: SLF001
import sqlite3
from collections.abc import Iterator, Sized
from typing import Any, TypeVar

from reliable_channel import ReliableChannel
from reliable_channel.sds import SdsProtocol
from reliable_channel.sds.state import ChannelState
from reliable_channel.sds.sweeps import Sweeps
from reliable_channel.state import SqliteStateStore
from reliable_channel.transport import Transport, WakuSettings
from reliable_channel.transport.libp2p import LightTransport
from reliable_channel.transport.shared_client import ClientKey
from waku import LightClient, RelayLeaf
from waku.libp2p.connection import Connection
from waku.libp2p.driver.host import Host
from waku.libp2p.driver.link import Link
from waku.libp2p.gossipsub.router import Router
from waku.libp2p.muxer import Muxer
from waku.node import EmbeddedNode
from waku.node.libp2p.network import Network
from waku.node.store import Archive
from waku.p2p.keeper import Keeper
from waku.p2p.meshes import Meshes

T = TypeVar("T")


def _made(part: T | None) -> T:
    assert part is not None
    return part


def sizes(of: object) -> dict[str, int]:
    """Return the size of each collection of an object, all of which are to be bounded."""
    return {name: len(value) for name, value in _attributes(of) if isinstance(value, Sized)}


def _attributes(of: object) -> Iterator[tuple[str, Any]]:
    yield from getattr(of, "__dict__", {}).items()
    for kind in type(of).__mro__:
        for name in getattr(kind, "__slots__", ()):
            yield name, getattr(of, name)


def connection(store: SqliteStateStore) -> sqlite3.Connection:
    """Return the connection of an open store."""
    return _made(store._connection)


def database(archive: Archive) -> sqlite3.Connection:
    """Return the connection of a node's archive."""
    db: sqlite3.Connection = archive._db
    return db


def state(core: SdsProtocol) -> ChannelState:
    """Return the tables that the parts of a core share."""
    return core._state


def sweeps(core: SdsProtocol) -> Sweeps:
    """Return what a core does because its time has come."""
    return core._sweeps


def given_transport(channel: ReliableChannel) -> Any:
    """Return the transport that the constructor was given."""
    return channel._given_transport


def transports(channel: ReliableChannel) -> list[Transport]:
    """Return the transports that a channel made of addresses."""
    return channel._transports


def settings(channel: ReliableChannel) -> WakuSettings:
    """Return what a channel's transports are told of the network."""
    return channel._settings


def client_key(transport: LightTransport) -> ClientKey:
    """Return the key under which transports share a client."""
    return transport._key


def host(of: LightClient | RelayLeaf | Network | None) -> Host:
    """Return what dials and accepts connections."""
    assert of is not None
    return of._host


def keeper(client: LightClient) -> Keeper:
    """Return what keeps a client's connections."""
    return client._keeper


def meshes(leaf: RelayLeaf) -> Meshes:
    """Return the gossip of a leaf."""
    return leaf._meshes


def router(leaf: RelayLeaf) -> Router | None:
    """Return the gossip router of a leaf, if anyone has come."""
    return _router_of(meshes(leaf))


def node_router(node: EmbeddedNode) -> Router:
    """Return the gossip router of a node that relays."""
    return _made(_router_of(_made(_made(node.network).gossip).meshes))


def _router_of(meshes: Meshes) -> Router | None:
    return meshes._router


def forget_client(node: EmbeddedNode, client: Any) -> None:
    """Let a client's time be over."""
    node._forget_client(client)


def subscribed(node: EmbeddedNode) -> Any:
    """Return the clients of a node's filter, and their subscriptions."""
    return node.filter._subscriptions.clients


def handlers(link: Link | None) -> dict[str, Any]:
    """Return what answers the streams of a connection."""
    found = _made(link)._handlers
    assert isinstance(found, dict)
    return found


def pipe(link: Link) -> Any:
    """Return the byte stream below a connection."""
    return link._pipe


def set_framing(link: Link, framing: Any) -> None:
    """Let a connection's bytes go through a WebSocket from now on."""
    link._framing = framing


def take(link: Link, data: bytes) -> bool:
    """Let a connection read bytes; True if more is to be read."""
    return link._take(data)


def muxer(connection: Connection) -> Muxer:
    """Return the muxer of an open connection."""
    return _made(connection.muxer)


def ciphers(session: Any) -> Any:
    """Return both directions of a session of Noise."""
    return _made(session._ciphers)
