"""Hosts on real sockets: TCP, WebSocket, and what answers there that is no libp2p peer."""

import errno
from contextlib import suppress

import anyio
import pytest

from waku.libp2p import DialFailed, InvalidInput, Multiaddr
from waku.libp2p.driver import Host, HostLimits, LinkEnded, Stream, host, identify
from waku.libp2p.driver.sockets import accept

from ..pair import DIALLER, LISTENER
from .test_host import LIMIT, echo

pytestmark = pytest.mark.anyio


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.mark.parametrize("kind", ["", "/ws"], ids=["tcp", "websocket"])
async def test_large_messages_pass(kind: str) -> None:
    """T2, T7: the first frame may come with the answer; WebSocket messages stay below 1 MiB."""
    async with (
        Host(LISTENER, handlers={"/echo/1": echo}) as listener,
        Host(DIALLER) as dialler,
    ):
        address = await listener.listen(Multiaddr.parse(f"/ip4/127.0.0.1/tcp/0{kind}"))
        assert address.peer_id == LISTENER.peer_id
        link = await dialler.dial(address)
        assert (await identify(link)).listen_addresses == (address,)
        async with link.open(["/echo/1"]) as stream:
            message = bytes(range(256)) * 9_000
            await stream.send_message(message)
            assert await stream.receive_message(LIMIT) == message
        (back,) = listener.links
        link.close()
        await link.closed.wait()
        await back.closed.wait()
        await anyio.wait_all_tasks_blocked()
        assert not listener.links


@pytest.mark.parametrize("kind", ["", "/ws"], ids=["tcp", "websocket"])
async def test_the_wrong_peer_and_no_peer(kind: str) -> None:
    async with Host(LISTENER) as listener, Host(DIALLER) as dialler:
        address = await listener.listen(Multiaddr.parse(f"/ip4/127.0.0.1/tcp/0{kind}"))
        with pytest.raises(DialFailed, match="dialled"):
            await dialler.dial(address.with_peer_id(DIALLER.peer_id))
        with pytest.raises(InvalidInput, match="cannot be dialled"):
            await dialler.dial(Multiaddr.parse("/ip4/127.0.0.1/udp/1"))
        with pytest.raises(DialFailed):
            await dialler.dial(Multiaddr.parse(f"/ip4/127.0.0.1/tcp/1{kind}"))
        assert (await identify(await dialler.dial(address))).agent == "py-waku"


NONSENSE = [
    b"GET / HTTP/1.1\r\n\r\n",
    b"\x13/multistream/1.0.0\n\x07/tls/1\n" * 40,
    bytes(range(256)) * 300,
    b"",
    (
        b"GET / HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n\r\n"
        b"\x81\x01a"
    ),
    b"GET / HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\n\r\n\x86\x7a\0\0\0\0hello",
]


@pytest.mark.parametrize("kind", ["", "/ws"], ids=["tcp", "websocket"])
@pytest.mark.parametrize(
    "nonsense",
    NONSENSE,
    ids=["http", "wishes", "bytes", "nothing", "text", "frames behind a bad upgrade"],
)
async def test_what_is_no_peer_is_dropped_and_harms_nobody(kind: str, nonsense: bytes) -> None:
    ended: list[LinkEnded] = []
    dropped = anyio.Event()

    def note(event: LinkEnded) -> None:
        ended.append(event)
        dropped.set()

    async with Host(LISTENER, on_ended=note) as listener, Host(DIALLER) as dialler:
        address = await listener.listen(Multiaddr.parse(f"/ip4/127.0.0.1/tcp/0{kind}"))
        target = address.dial_target
        async with await anyio.connect_tcp(target.host, target.port) as intruder:
            with suppress(anyio.BrokenResourceError, OSError):  # it is dropped while it sends
                await intruder.send(nonsense)
                await intruder.send_eof()
            await dropped.wait()
        assert [event.peer_id for event in ended] == [None]
        assert (await identify(await dialler.dial(address))).agent == "py-waku"


@pytest.mark.parametrize(
    "answer",
    [b"HTTP/1.1 404 Not Found\r\n\r\n", b"SSH-2.0-x\r\n", b""],
    ids=["404", "ssh", "nothing"],
)
async def test_dialling_what_speaks_no_websocket(answer: bytes) -> None:
    async def other(client: anyio.abc.SocketStream) -> None:
        async with client:
            await client.receive()
            if answer:
                await client.send(answer)

    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    port = listener.extra(anyio.abc.SocketAttribute.local_port)
    async with listener, anyio.create_task_group() as tasks, Host(DIALLER) as dialler:
        tasks.start_soon(listener.serve, other)
        with pytest.raises(DialFailed):
            await dialler.dial(Multiaddr.parse(f"/ip4/127.0.0.1/tcp/{port}/ws"))
        assert not dialler.links
        tasks.cancel_scope.cancel()


async def test_a_dial_has_an_end() -> None:
    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    port = listener.extra(anyio.abc.SocketAttribute.local_port)
    async with listener, Host(DIALLER, host_limits=HostLimits(dial_ms=1)) as dialler:
        with pytest.raises(DialFailed, match="no answer within 1 ms"):
            await dialler.dial(Multiaddr.parse(f"/ip4/127.0.0.1/tcp/{port}/ws"))


async def test_both_ends_may_serve() -> None:
    """A filter service opens streams to its client."""
    arrived = anyio.Event()

    async def pushed(stream: Stream) -> None:
        assert await stream.receive_message(LIMIT) == b"news"
        arrived.set()

    async with Host(LISTENER) as listener, Host(DIALLER, handlers={"/push/1": pushed}) as dialler:
        address = await listener.listen(Multiaddr.parse("/ip4/127.0.0.1/tcp/0/ws"))
        await dialler.dial(address)
        (back,) = listener.links
        await back.ready()
        async with back.open(["/push/1"]) as stream:
            await stream.send_message(b"news")
            await arrived.wait()


async def test_a_fault_of_a_handler_ends_its_connection_and_no_other() -> None:
    """T8."""

    async def broken(_: Stream) -> None:
        raise ZeroDivisionError("planted")

    ended: list[LinkEnded] = []
    handlers = {"/echo/1": echo, "/broken/1": broken}
    async with (
        Host(LISTENER, handlers=handlers, on_ended=ended.append) as listener,
        Host(DIALLER) as dialler,
    ):
        address = await listener.listen(Multiaddr.parse("/ip4/127.0.0.1/tcp/0"))
        first, second = await dialler.dial(address), await dialler.dial(address)
        async with first.open(["/broken/1"]):
            await first.closed.wait()
        while not ended:
            await anyio.lowlevel.checkpoint()
        assert "a fault of this side: ZeroDivisionError('planted')" in str(ended[0].reason)
        assert (ended[0].peer_id, ended[0].address) == (DIALLER.peer_id, "127.0.0.1")
        async with second.open(["/echo/1"]) as stream:
            await stream.send_message(b"still here")
            assert await stream.receive_message(LIMIT) == b"still here"


async def test_a_process_without_a_free_descriptor_goes_on_listening(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with Host(LISTENER) as listener, Host(DIALLER) as dialler:
        full = [OSError(errno.EMFILE, "too many files")] * 2

        async def limited(one: anyio.abc.SocketListener) -> anyio.abc.ByteStream:
            if full:
                raise full.pop()
            return await accept(one)

        monkeypatch.setattr(host, "accept", limited)
        address = await listener.listen(Multiaddr.parse("/ip4/127.0.0.1/tcp/0"))
        assert (await identify(await dialler.dial(address))).agent == "py-waku"
        assert not full
