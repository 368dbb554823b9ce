"""Two hosts joined in memory."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from random import Random

import anyio
from anyio.abc import ByteStream
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

from waku.libp2p import Limits, PrivateKey
from waku.libp2p.driver import Handler, Host, Link, LinkEnded, MessageSink

from ..pair import DIALLER, LISTENER


class MemoryPipe(ByteStream):
    """One end of a pair; what is sent takes room until it is read, as in a socket."""

    def __init__(
        self,
        send: MemoryObjectSendStream[bytes],
        receive: MemoryObjectReceiveStream[bytes],
        random: Random,
    ) -> None:
        self._send = send
        self._receive = receive
        self._random = random
        self.sending = 0

    async def send(self, item: bytes) -> None:
        self.sending += 1
        assert self.sending == 1, "two tasks send at once (T8)"
        try:
            at = 0
            while at < len(item):
                size = self._random.choice([1, 20, 5_000, 60_000])
                await self._send.send(item[at : at + size])
                at += size
        finally:
            self.sending -= 1

    async def receive(self, max_bytes: int = 65536) -> bytes:
        return await self._receive.receive()

    async def send_eof(self) -> None:
        self._send.close()

    async def aclose(self) -> None:
        self._send.close()
        self._receive.close()


def pipes(seed: int = 1, buffered: int = 4) -> tuple[MemoryPipe, MemoryPipe]:
    there = anyio.create_memory_object_stream[bytes](buffered)
    back = anyio.create_memory_object_stream[bytes](buffered)
    random = Random(seed)
    return MemoryPipe(there[0], back[1], random), MemoryPipe(back[0], there[1], random)


class Joined:
    """A dialler and a listener, connected."""

    def __init__(self, dialler: Host, listener: Host) -> None:
        self.dialler = dialler
        self.listener = listener
        self.ended: list[LinkEnded] = []
        self.link: Link
        self.back: Link


@asynccontextmanager
async def joined(
    handlers: Mapping[str, Handler | MessageSink] | None = None,
    *,
    own_handlers: Mapping[str, Handler | MessageSink] | None = None,
    limits: Limits | None = None,
    identity: PrivateKey = LISTENER,
) -> AsyncIterator[Joined]:
    ended: list[LinkEnded] = []
    async with (
        Host(DIALLER, handlers=own_handlers) as dialler,
        Host(identity, handlers=handlers, limits=limits, on_ended=ended.append) as listener,
    ):
        both = Joined(dialler, listener)
        both.ended = ended
        ours, theirs = pipes()

        async def answer() -> None:
            both.back = await listener.connect(theirs, dialler=False)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(answer)
            both.link = await dialler.connect(ours, dialler=True, expected=LISTENER.peer_id)
        yield both
