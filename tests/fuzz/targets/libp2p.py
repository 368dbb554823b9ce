"""libp2p: notations, and whole connections that are given anything at each stage."""

from collections.abc import Iterator
from itertools import product
from typing import Final

from tests import inside
from waku.libp2p import (
    Connection,
    HandshakeFailed,
    InvalidInput,
    Libp2pError,
    Multiaddr,
    PeerId,
    PublicKey,
    StaticKeys,
)
from waku.libp2p.connection import MUXERS
from waku.libp2p.driver.services import MAX_ADDRESSES, MAX_PROTOCOLS, MAX_TEXT, decode_identify
from waku.libp2p.libp2p_pb2 import Identify
from waku.libp2p.multistream import MULTISTREAM, line
from waku.libp2p.noise.session import MAX_MUXERS, NoiseSession

from ...waku.libp2p.pair import DIALLER, LISTENER, Pair, events
from ..target import Target, joined, records

ADDRESSES: Final = (
    "/ip4/127.0.0.1/tcp/60000",
    f"/dns4/a.example/tcp/8000/wss/p2p/{LISTENER.peer_id}",
    f"/ip6/::1/tcp/1/ws/p2p/{DIALLER.peer_id}",
    "/ip4/1.2.3.4/tcp/443/tls/sni/a.example/ws",
)


def addresses() -> Iterator[bytes]:
    """What honest peers write, in both forms."""
    for text in ADDRESSES:
        yield text.encode()
        yield Multiaddr.parse(text).encode()
    yield DIALLER.public_key.encoded
    yield str(DIALLER.peer_id).encode()


def _address(data: bytes) -> None:
    """An address, a key or a peer id is what it was written as, or it is refused."""
    try:
        address = Multiaddr.decode(data)
        assert Multiaddr.decode(address.encode()) == address
        assert Multiaddr.parse(str(address)) == address
    except InvalidInput:
        pass
    try:
        assert str(Multiaddr.parse(data.decode("utf-8", "replace")))
    except InvalidInput:
        pass
    try:
        assert PeerId.parse(str(peer := PeerId.parse(data.decode("utf-8", "replace")))) == peer
    except InvalidInput:
        pass
    try:
        PublicKey(data).verify(b"message", b"signature")
    except InvalidInput:
        pass


def identities() -> Iterator[bytes]:
    """What peers say of themselves."""
    addresses = [Multiaddr.parse(text).encode() for text in ADDRESSES]
    yield Identify(
        agentVersion="nwaku", protocols=["/echo/1"], listenAddrs=addresses
    ).SerializeToString()


def _identify(data: bytes) -> None:
    """Anything is read within its bounds, or refused."""
    try:
        info = decode_identify(data)
    except InvalidInput:
        return
    assert len(info.agent) <= MAX_TEXT
    assert len(info.protocols) <= MAX_PROTOCOLS
    assert len(info.listen_addresses) <= MAX_ADDRESSES


def raw_sessions() -> Iterator[bytes]:
    """What a dialler says before there is any encryption."""
    pair = Pair()
    yield joined([pair.dialler.data_to_send()])
    yield joined([line(MULTISTREAM), line("/tls/1.0.0"), line("/noise")])
    yield joined([b"GET / HTTP/1.1\r\n\r\n"])


def _raw(data: bytes) -> None:
    """A side that hears anything from a socket ends the connection, and nothing else."""
    pair = Pair()
    for side in (pair.listener, pair.dialler):
        _feed(side, data)
        assert side.remote is None
        assert not events(side)


def payloads() -> Iterator[bytes]:
    """What either side says of itself within the handshake."""
    for initiator, muxers in product((True, False), (MUXERS, ())):
        yield bytes([initiator]) + _noise(initiator, muxers=muxers).payload


def _noise(initiator: bool, muxers: tuple[str, ...] = ()) -> NoiseSession:
    identity = DIALLER if initiator else LISTENER
    keys = StaticKeys.from_random(bytes([initiator]) * 64)
    return NoiseSession(initiator=initiator, identity=identity, keys=keys, muxers=muxers)


def _payload(data: bytes) -> None:
    """A peer with a sound handshake that says anything in it proves its key, or is refused."""
    if not data:
        return
    initiator = bool(data[0] & 1)
    hostile, honest = _noise(initiator), _noise(not initiator)
    hostile.payload = data[1:]
    try:
        for _ in range(2):
            honest.receive(hostile.data_to_send())
            hostile.receive(honest.data_to_send())
    except HandshakeFailed:
        return
    assert honest.remote is not None
    assert honest.remote.peer_id == (DIALLER if initiator else LISTENER).peer_id
    assert len(honest.remote.muxers) <= MAX_MUXERS


def muxed_sessions() -> Iterator[bytes]:
    """What a dialler says to each muxer behind the encryption."""
    for number, muxer in enumerate(MUXERS):
        pair = Pair(dialler_muxers=(muxer,))
        pair.pump()
        stream_id = pair.dialler.open_stream(["/echo/1"], 0)
        pair.dialler.send(stream_id, b"hello" * 50)
        pair.dialler.end(stream_id)
        yield bytes([number]) + joined([inside.muxer(pair.dialler).data_to_send()])


def _muxed(data: bytes) -> None:
    """A member that passed the handshake and then sends anything: bounded, and named."""
    if not data:
        return
    pair = Pair(dialler_muxers=(MUXERS[data[0] % len(MUXERS)],))
    pair.pump()
    events(pair.listener)
    session = pair.dialler.noise
    for record in records(data[1:]):
        try:
            pair.listener.receive(session.encrypt(record), 0)
        except Libp2pError:
            break
        events(pair.listener)
        pair.listener.data_to_send()
    assert pair.listener.stream_count <= 1_024


def _feed(connection: Connection, data: bytes) -> None:
    for record in records(data):
        try:
            connection.receive(record, 0)
        except Libp2pError:
            return
        connection.data_to_send()


TARGETS: Final = (
    Target("libp2p_address", _address, addresses),
    Target("libp2p_identify", _identify, identities),
    Target("libp2p_raw", _raw, raw_sessions),
    Target("libp2p_payload", _payload, payloads),
    Target("libp2p_muxed", _muxed, muxed_sessions),
)
