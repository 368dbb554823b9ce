"""A forwarder of one page, for tests that must not need Go: routes, multicast, Nacks, PIT tokens.

It keeps no Data and remembers an Interest for four seconds. The tests in `interop/` run the same
nodes through ndnd's forwarder.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
from anyio.abc import ByteStream, Listener

from reliable_channel_svs import ForwarderError, Name
from reliable_channel_svs.name import split_component
from reliable_channel_svs.ndn.link import StreamLink
from reliable_channel_svs.ndn.lp import FRAGMENT, LP_PACKET, NACK, PIT_TOKEN, unwrap
from reliable_channel_svs.ndn.management import CONTROL_RESPONSE, PREFIX, STATUS_CODE
from reliable_channel_svs.packet import INTEREST, decode_data, make_data
from reliable_channel_svs.signing import DigestSigner
from reliable_channel_svs.tlv import Reader, encode, encode_integer, only


class SmallForwarder:
    """Brings an Interest to every other face that registered the longest prefix of its name."""

    def __init__(self) -> None:
        self.routes: dict[Name, list[StreamLink]] = {}
        self.seen: list[Name] = []
        """Names of all Interests, with their digests."""
        self.longest_bytes = 0
        """Of all packets."""
        self.status = 200
        """What commands are answered."""
        self._pending: dict[Name, list[StreamLink]] = {}
        self._streams: set[ByteStream] = set()

    async def serve(self, stream: ByteStream) -> None:
        link = StreamLink(stream)
        self._streams.add(stream)
        try:
            async with stream:
                while True:
                    await self._take(link, await link.receive())
        except (ForwarderError, anyio.ClosedResourceError):
            for links in self.routes.values():
                if link in links:
                    links.remove(link)
        finally:
            self._streams.discard(stream)

    async def cut(self) -> None:
        for stream in list(self._streams):
            await stream.aclose()

    async def inject(self, packet: bytes) -> None:
        """Bring a packet to every face that registered anything."""
        for link in {link for links in self.routes.values() for link in links}:
            await link.send(packet)

    async def _take(self, link: StreamLink, wire: bytes) -> None:
        packet = unwrap(wire).packet
        self.longest_bytes = max(self.longest_bytes, len(packet))
        if packet[0] != INTEREST:
            for asker in self._pending.pop(decode_data(packet).name, ()):
                await asker.send(packet)
            return
        name = Name.from_value(Reader(only(packet, INTEREST)).take(0x07))
        self.seen.append(name)
        if name.starts_with(PREFIX):
            await self._obey(link, name)
            return
        route = next(
            (
                p
                for n in range(len(name), -1, -1)
                if (p := Name(name.components[:n])) in self.routes
            ),
            None,
        )
        others = [face for face in self.routes.get(route, ()) if face is not link] if route else []
        if not others:
            await link.send(encode(LP_PACKET, encode(NACK), encode(FRAGMENT, packet)))
            return
        self._pending.setdefault(name, []).append(link)
        for face in others:
            await face.send(
                encode(LP_PACKET, encode(PIT_TOKEN, b"token"), encode(FRAGMENT, packet))
            )

    async def _obey(self, link: StreamLink, name: Name) -> None:
        module, verb, parameters = (split_component(c)[1] for c in name.components[2:5])
        if (module, verb) == (b"rib", b"register") and self.status == 200:
            prefix = Name.from_value(Reader(only(parameters, 0x68)).take(0x07))
            self.routes.setdefault(prefix, []).append(link)
        content = encode(CONTROL_RESPONSE, encode_integer(STATUS_CODE, self.status))
        await link.send(make_data(name, content, DigestSigner()))


@asynccontextmanager
async def small_forwarder(listener: Listener[Any]) -> AsyncIterator[SmallForwarder]:
    """A forwarder behind a listener."""
    forwarder = SmallForwarder()
    async with listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, forwarder.serve)
        yield forwarder
        tasks.cancel_scope.cancel()
