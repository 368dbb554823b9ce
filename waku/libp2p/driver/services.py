"""Services that every libp2p peer offers, which are identify and ping.

The specifications are https://github.com/libp2p/specs/blob/master/identify/README.md and
…/ping/ping.md.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import anyio
from google.protobuf.message import DecodeError

from ..budget import PING as PRICE
from ..errors import InvalidInput, PeerViolation, StreamClosed
from ..libp2p_pb2 import Identify
from ..multiaddr import Multiaddr
from .link import Link
from .stream import Stream

__all__ = ["IdentifiedPeer", "decode_identify", "identify", "ping"]

IDENTIFY: Final = "/ipfs/id/1.0.0"
PING: Final = "/ipfs/ping/1.0.0"
PROTOCOL_VERSION: Final = "ipfs/0.1.0"
PING_BYTES: Final = 32
MAX_PINGS: Final = 1_000
"""Maximum number of pings that are answered in a row."""
MAX_IDENTIFY_BYTES: Final = 8 * 1024
"""Maximum size of an identify answer (bytes), as in go-libp2p (`legacyIDSize` and
`signedIDSize`)."""
MAX_TEXT: Final = 200
MAX_PROTOCOLS: Final = 1_000
MAX_ADDRESSES: Final = 100


@dataclass(frozen=True, slots=True)
class IdentifiedPeer:
    """Answer of a peer to an identify request. The values in the answer are not proven."""

    agent: str
    protocols: frozenset[str]
    listen_addresses: tuple[Multiaddr, ...]
    """Addresses of the peer whose protocols this library knows."""


async def identify(link: Link) -> IdentifiedPeer:
    """Ask a peer for its keys, addresses and protocols.

    Raises:
        InvalidInput: its answer cannot be read.
        LimitExceeded: its answer is too long.
        StreamClosed, ConnectionClosed: it does not answer.
    """
    async with link.open([IDENTIFY]) as stream:
        data = await stream.receive_message(MAX_IDENTIFY_BYTES)
    if data is None:
        raise StreamClosed("the peer ended the identify stream without an answer")
    return decode_identify(data)


def decode_identify(data: bytes) -> IdentifiedPeer:
    """Decode an identify answer, up to its size limit.

    Raises:
        InvalidInput: it cannot be read.
    """
    try:
        message = Identify.FromString(data)
    except DecodeError as error:
        raise InvalidInput(f"the identify answer of the peer cannot be read: {error}") from error
    return IdentifiedPeer(
        agent=message.agentVersion[:MAX_TEXT],
        protocols=frozenset(message.protocols[:MAX_PROTOCOLS]),
        listen_addresses=tuple(_readable(message.listenAddrs[:MAX_ADDRESSES])),
    )


async def ping(link: Link, data: bytes) -> float:
    """Measure the round trip time to a peer (s). `data` must be 32 random bytes.

    Raises:
        PeerViolation: the peer answered other bytes.
        StreamClosed, ConnectionClosed: it does not answer.
    """
    async with link.open([PING]) as stream:
        begun = anyio.current_time()
        await stream.send(data)
        stream.end()
        answer = await stream.receive_exactly(PING_BYTES)
        if answer != data:
            raise PeerViolation("the peer answered a ping with other bytes than it received")
        return anyio.current_time() - begun


async def answer_identify(
    stream: Stream,
    *,
    public_key: bytes,
    listen_addresses: Iterable[Multiaddr],
    protocols: Iterable[str],
    agent: str,
) -> None:
    """Send the peer the public key, addresses and protocols of this host."""
    message = Identify(
        publicKey=public_key,
        listenAddrs=[address.encode() for address in listen_addresses],
        protocols=sorted(protocols),
        protocolVersion=PROTOCOL_VERSION,
        agentVersion=agent,
    )
    await stream.send_message(message.SerializeToString())


async def answer_ping(stream: Stream) -> None:
    """Send the bytes of each ping back, up to the permitted number of pings."""
    while (data := await stream.receive_pieces(PING_BYTES, MAX_PINGS)) is not None:
        stream.link.charge(len(data) // PING_BYTES * PRICE, "pings")
        await stream.send(data)


def _readable(addresses: list[bytes]) -> list[Multiaddr]:
    found = []
    for data in addresses:
        try:
            found.append(Multiaddr.decode(data))
        except InvalidInput:
            continue
    return found
