"""Hosts in memory, in virtual time: streams, limits, deadlines, peers that break rules."""

import anyio
import pytest

from tests import inside
from waku.libp2p import (
    ConnectionClosed,
    HandshakeFailed,
    LimitExceeded,
    Limits,
    PeerViolation,
    StreamClosed,
)
from waku.libp2p.driver import Host, HostLimits, Link, LinkEnded, Stream, identify, ping

from ..pair import DIALLER, LISTENER
from .memory import joined, pipes

pytestmark = pytest.mark.anyio

LIMIT = 3_000_000


async def echo(stream: Stream) -> None:
    while (message := await stream.receive_message(LIMIT)) is not None:
        await stream.send_message(message)


async def test_messages_of_any_size_come_back() -> None:
    """T5: two megabytes pass a window of 256 KiB, in both directions at once."""
    async with joined({"/echo/1": echo}) as both, both.link.open(["/echo/1"]) as stream:
        for size in (0, 1, 300_000, 2_000_000):
            message = bytes([size % 251]) * size
            await stream.send_message(message)
            assert await stream.receive_message(LIMIT) == message
        stream.end()
        assert await stream.receive_message(LIMIT) is None


async def test_a_request_may_be_larger_than_the_window() -> None:
    """T5: what waits for credit goes on its own, and the end behind it."""
    async with joined({"/echo/1": echo}) as both, both.link.open(["/echo/1"]) as stream:
        assert await stream.request(bytes(2_000_000), LIMIT) == bytes(2_000_000)


async def test_two_peers_that_both_send_much_do_not_wait_for_each_other() -> None:
    """T19: the pipes between them have room for a few writes only."""
    message = bytes(2_000_000)
    async with joined({"/echo/1": echo}, own_handlers={"/echo/1": echo}) as both:

        async def ask(link: Link) -> None:
            async with link.open(["/echo/1"]) as stream:
                assert await stream.request(message, LIMIT) == message

        async with anyio.create_task_group() as tasks:
            for link in (both.link, both.back) * 3:
                tasks.start_soon(ask, link)


async def test_many_streams_at_once() -> None:
    async with joined({"/echo/1": echo}) as both:
        answers: list[bytes | None] = []

        async def ask(number: int) -> None:
            async with both.link.open(["/echo/1"]) as stream:
                await stream.send_message(b"%d" % number)
                answers.append(await stream.receive_message(LIMIT))

        async with anyio.create_task_group() as tasks:
            for number in range(300):
                tasks.start_soon(ask, number)
        assert sorted(a or b"" for a in answers) == sorted(b"%d" % number for number in range(300))
        await anyio.sleep(20)
        assert both.link.connection.stream_count == both.back.connection.stream_count == 0


async def test_identify_and_ping() -> None:
    async with joined({"/echo/1": echo}) as both:
        info = await identify(both.link)
        assert info.agent == "py-waku"
        assert info.protocols == {"/echo/1", "/ipfs/id/1.0.0", "/ipfs/ping/1.0.0"}
        assert await ping(both.link, bytes(32)) == 0.0
        assert both.back.peer_id == DIALLER.peer_id


async def test_a_protocol_that_the_peer_refuses() -> None:
    async with joined({"/echo/1": echo}) as both:
        async with both.link.open(["/other/1"]) as stream:
            with pytest.raises(StreamClosed, match="supports none of /other/1"):
                await stream.agreed()
        async with both.link.open(["/other/1", "/echo/1"]) as stream:
            assert await stream.agreed() == "/echo/1"


async def test_a_message_above_the_limit_costs_the_stream_alone() -> None:
    async with joined({"/echo/1": echo}) as both:
        async with both.link.open(["/echo/1"]) as stream:
            await stream.send_message(b"12345")
            with pytest.raises(LimitExceeded, match="`message_bytes` is 4"):
                await stream.receive_message(4)
        assert (await identify(both.link)).agent


async def test_a_stream_that_ends_within_a_message_is_an_error() -> None:
    async def half(stream: Stream) -> None:
        await stream.send(b"\x05abc")

    async with joined({"/half/1": half}) as both, both.link.open(["/half/1"]) as stream:
        with pytest.raises(StreamClosed, match="within a message"):
            await stream.receive_message(LIMIT)


async def test_a_handler_that_meets_nonsense_leaves_the_others_alone() -> None:
    async with joined({"/echo/1": echo}) as both:
        async with both.link.open(["/echo/1"]) as bad, both.link.open(["/echo/1"]) as good:
            await bad.send(b"\xff" * 20)
            with pytest.raises(StreamClosed):
                await bad.receive()
            await good.send_message(b"still here")
            assert await good.receive_message(LIMIT) == b"still here"


async def test_a_peer_that_never_ends_its_half_is_reset() -> None:
    """T10, T11: js-waku keeps its half of many streams open."""

    async def answer(stream: Stream) -> None:
        await stream.send_message(b"done")

    async with joined({"/answer/1": answer}) as both, both.link.open(["/answer/1"]) as stream:
        assert await stream.receive_message(LIMIT) == b"done"
        assert both.back.connection.stream_count == 1
        await anyio.sleep(11)
        assert both.back.connection.stream_count == 0


async def test_a_stream_without_a_protocol_is_reset_in_time() -> None:
    """The watch looks earlier than it planned when a stream is opened."""
    async with joined(limits=Limits(negotiation_ms=5_000)) as both:
        connection = both.link.connection
        await anyio.sleep(100)
        inside.muxer(connection).open_stream()
        both.link.wake_writer()
        await anyio.sleep(4.9)
        assert both.back.connection.stream_count == 1
        await anyio.sleep(0.2)
        assert both.back.connection.stream_count == 0


async def test_a_silent_connection_is_closed() -> None:
    async with joined(limits=Limits(idle_ms=60_000)) as both:
        await anyio.sleep(61)
        assert both.ended == [LinkEnded(DIALLER.peer_id, both.ended[0].reason)]
        assert isinstance(both.ended[0].reason, PeerViolation)
        await both.link.closed.wait()
        with pytest.raises(ConnectionClosed, match="the socket is closed"):
            both.link.open(["/echo/1"])


async def test_what_waits_hears_of_the_end() -> None:
    async with joined({"/echo/1": echo}) as both, both.link.open(["/echo/1"]) as stream:
        async with anyio.create_task_group() as tasks:

            async def wait() -> None:
                with pytest.raises(ConnectionClosed):
                    await stream.receive()

            tasks.start_soon(wait)
            await anyio.sleep(1)
            both.back.close()
        with pytest.raises(ConnectionClosed):
            await stream.send(b"more")


async def test_a_sender_hears_of_the_end_while_its_bytes_are_written() -> None:
    """A socket that takes nothing more, and a connection that is given up meanwhile."""

    async def takes_nothing(item: bytes) -> None:
        await anyio.sleep_forever()

    async with joined({"/echo/1": echo}) as both, both.link.open(["/echo/1"]) as stream:
        await stream.send_message(b"hello")
        inside.pipe(both.link).send = takes_nothing
        async with anyio.create_task_group() as tasks:

            async def send() -> None:
                with pytest.raises(ConnectionClosed), anyio.fail_after(60):
                    await stream.send_message(b"more")

            tasks.start_soon(send)
            await anyio.sleep(1)
            both.link.close()


async def test_a_sender_that_is_cancelled_breaks_nothing() -> None:
    """The writer alone touches the socket: no half frame is left behind."""

    async def slow(stream: Stream) -> None:
        await anyio.sleep(60)
        await echo(stream)

    async with joined({"/slow/1": slow, "/echo/1": echo}) as both:
        async with both.link.open(["/slow/1"]) as stream:
            with anyio.move_on_after(1) as scope:
                await stream.send_message(bytes(1_000_000))
            assert scope.cancelled_caught
        async with both.link.open(["/echo/1"]) as stream:
            await stream.send_message(b"hello")
            assert await stream.receive_message(LIMIT) == b"hello"


async def test_another_peer_than_the_expected_one() -> None:
    async with Host(DIALLER) as dialler, Host(LISTENER) as listener:
        ours, theirs = pipes()
        async with anyio.create_task_group() as tasks:

            async def answer() -> None:
                with pytest.raises(ConnectionClosed):
                    await listener.connect(theirs, dialler=False)

            tasks.start_soon(answer)
            with pytest.raises(ConnectionClosed, match="dialled") as failure:
                await dialler.connect(ours, dialler=True, expected=DIALLER.peer_id)
        assert isinstance(failure.value.__cause__, HandshakeFailed)


async def test_a_peer_that_says_nothing_is_dropped() -> None:
    ended: list[LinkEnded] = []
    silent, theirs = pipes()
    async with Host(LISTENER, on_ended=ended.append) as listener, silent:
        with pytest.raises(ConnectionClosed, match="did not finish the handshake within 10000 ms"):
            await listener.connect(theirs, dialler=False)
    assert [e.peer_id for e in ended] == [None]


async def test_the_number_of_connections_is_bounded() -> None:
    first, second = pipes()
    async with Host(LISTENER, host_limits=HostLimits(connections=1)) as host:
        async with anyio.create_task_group() as tasks:

            async def connect() -> None:
                with pytest.raises(ConnectionClosed):
                    await host.connect(first, dialler=True)

            tasks.start_soon(connect)
            await anyio.sleep(1)
            with pytest.raises(ConnectionClosed, match="all 1 `connections` are in use"):
                await host.connect(second, dialler=True)
    with pytest.raises(ValueError, match=r"`dial_ms` must be at least 1 \(got 0\)"):
        HostLimits(dial_ms=0)
