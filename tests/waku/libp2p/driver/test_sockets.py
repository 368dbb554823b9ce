"""Connections of either event loop, read by calls or by `pump`."""

from __future__ import annotations

import asyncio
import gc
import socket
import sys
import warnings
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

import anyio
import anyio.lowlevel
import pytest
from anyio.abc import ByteStream, SocketAttribute, SocketListener

from waku.libp2p import Multiaddr
from waku.libp2p.driver import Host, Stream
from waku.libp2p.driver.sockets import MAX_UNREAD_BYTES, accept, connect, pump

from ..pair import DIALLER, LISTENER

pytestmark = pytest.mark.anyio

BIG = bytes(range(256)) * 20_000


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@asynccontextmanager
async def both_ends() -> AsyncIterator[tuple[ByteStream, ByteStream]]:
    made = await anyio.create_tcp_listener(local_host="127.0.0.1")
    (listener,) = made.listeners
    assert isinstance(listener, SocketListener)
    accepted: list[ByteStream] = []

    async def take() -> None:
        accepted.append(await accept(listener))

    async with listener:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(take)
            ours = await connect("127.0.0.1", listener.extra(SocketAttribute.local_port))
    async with ours, accepted[0] as theirs:
        yield ours, theirs


async def test_small_writes_leave_at_once() -> None:
    """T20."""
    async with both_ends() as ends:
        for end in ends:
            raw = end.extra(SocketAttribute.raw_socket)
            assert raw.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


@contextmanager
def no_socket_left_open() -> Iterator[None]:
    """Sockets are closed, and not left to the garbage collector."""
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always", ResourceWarning)
        yield
        gc.collect()
    assert [str(each.message) for each in warned] == []


MOMENTS = range(12)
"""Passes of the event loop before the cancellation: some before the connection, some after."""


@pytest.mark.parametrize("moment", MOMENTS)
async def test_a_dial_that_is_cancelled_leaves_no_socket_open(moment: int) -> None:
    made = await anyio.create_tcp_listener(local_host="127.0.0.1")
    (listener,) = made.listeners

    async def dial() -> None:
        pipe = await connect("127.0.0.1", listener.extra(SocketAttribute.local_port))
        await pipe.aclose()

    with no_socket_left_open():
        async with listener, anyio.create_task_group() as tasks:
            tasks.start_soon(dial)
            for _ in range(moment):
                await anyio.lowlevel.checkpoint()
            tasks.cancel_scope.cancel()
        del tasks


@pytest.mark.parametrize("moment", MOMENTS)
async def test_an_accept_that_is_cancelled_leaves_no_socket_open(moment: int) -> None:
    made = await anyio.create_tcp_listener(local_host="127.0.0.1")
    (listener,) = made.listeners
    assert isinstance(listener, SocketListener)

    async def take() -> None:
        pipe = await accept(listener)
        await pipe.aclose()

    with no_socket_left_open():
        async with listener, anyio.create_task_group() as tasks:
            tasks.start_soon(take)
            await anyio.wait_all_tasks_blocked()
            address = "127.0.0.1", listener.extra(SocketAttribute.local_port)
            with socket.create_connection(address):
                for _ in range(moment):
                    await anyio.lowlevel.checkpoint()
                tasks.cancel_scope.cancel()
        del tasks


async def test_what_one_sends_the_other_receives_until_the_end() -> None:
    async with both_ends() as (ours, theirs):
        received = bytearray()

        async def send() -> None:
            await ours.send(BIG)
            await ours.send_eof()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(send)
            received += await theirs.receive(10)
            assert received == BIG[:10]
            with pytest.raises(anyio.EndOfStream):
                while True:
                    received += await theirs.receive()
        assert received == BIG
        await theirs.send(b"half closed")
        assert await ours.receive() == b"half closed"


async def test_the_pump_hands_over_what_came_before_it_too() -> None:
    async with both_ends() as (ours, theirs):
        await ours.send(b"before")
        received = bytearray(await theirs.receive(3))

        async def send() -> None:
            await ours.send(BIG)
            await ours.send_eof()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(send)
            with pytest.raises(anyio.EndOfStream):
                await pump(theirs, received.extend)
        assert received == b"before" + BIG


async def test_what_a_taker_raises_ends_the_pump() -> None:
    taken = []

    def take(data: bytes) -> None:
        taken.append(data)
        raise ZeroDivisionError("planted")

    async with both_ends() as (ours, theirs):
        await ours.send(b"one")
        with pytest.raises(ZeroDivisionError):
            await pump(theirs, take)
        assert taken == [b"one"]


async def test_a_pump_that_is_cancelled_takes_nothing_more() -> None:
    taken = bytearray()
    async with both_ends() as (ours, theirs):
        with anyio.CancelScope() as scope:

            def take(data: bytes) -> None:
                taken.extend(data)
                scope.cancel()

            await ours.send(b"one")
            await pump(theirs, take)
        await ours.send(b"two")
        assert await theirs.receive() == b"two"
        assert taken == b"one"


async def test_a_connection_that_is_reset_or_closed_here() -> None:
    async with both_ends() as (ours, theirs):
        ours.extra(SocketAttribute.remote_address)
        await ours.aclose()
        with pytest.raises(anyio.ClosedResourceError):
            await ours.receive()
        with pytest.raises(anyio.ClosedResourceError):
            await ours.send(b"late")
        with pytest.raises((anyio.EndOfStream, anyio.BrokenResourceError)):
            await theirs.receive()
        with pytest.raises(anyio.BrokenResourceError):
            while True:
                await theirs.send(BIG)


async def test_what_is_not_read_stays_with_its_sender() -> None:
    """Before the pump, as during an upgrade, nothing is buffered without bound."""
    async with both_ends() as (ours, theirs):
        with anyio.move_on_after(0.2) as scope:
            while True:
                await ours.send(BIG)
        assert scope.cancelled_caught
        assert (
            getattr(theirs, "_unread_bytes", 0) <= MAX_UNREAD_BYTES + 256 * 1024
        )  # one read of asyncio


async def test_no_answer() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with pytest.raises(OSError):
        await connect("127.0.0.1", port)


async def echo(stream: Stream) -> None:
    while (message := await stream.receive_message(1_000)) is not None:
        await stream.send_message(message)


def test_without_anyios_own_run() -> None:
    """Only anyio's tells sniffio which library it is in calls of the event loop."""
    import sniffio  # what is tested needs it

    assert sniffio.__name__ in sys.modules

    async def main() -> bytes | None:
        async with Host(LISTENER, handlers={"/echo/1": echo}) as listener, Host(DIALLER) as dialler:
            address = await listener.listen(Multiaddr.parse("/ip4/127.0.0.1/tcp/0"))
            link = await dialler.dial(address)
            async with link.open(["/echo/1"]) as stream:
                await stream.send_message(b"hello")
                return await stream.receive_message(1_000)

    assert asyncio.run(main()) == b"hello"
