"""One peer that floods: what it provokes is bounded, others have their turn, and it is named."""

from itertools import pairwise

import anyio
import anyio.lowlevel
import pytest
from websockets.client import ClientProtocol
from websockets.frames import Frame, Opcode
from websockets.uri import parse_uri

from tests import inside
from tests.hostile.cost import kept_bytes
from waku.libp2p import ConnectionClosed, LimitExceeded, Limits, PeerViolation
from waku.libp2p.budget import TURN
from waku.libp2p.driver import MessageSink, Stream
from waku.libp2p.driver.framing import WebSocketServer
from waku.libp2p.driver.services import PING
from waku.libp2p.varint import prefixed

from .memory import Joined, joined

pytestmark = pytest.mark.anyio

LIMITS = Limits(frames_per_s=5_000)


async def ended(both: Joined, rule: str) -> None:
    """Wait for the end of the connection, and for who and why."""
    await both.back.closed.wait()
    (end,) = both.ended
    assert end.peer_id is not None and isinstance(end.reason, PeerViolation)
    assert rule in str(end.reason)


class Kept:
    """A link that counts what a stream says that it consumed."""

    def __init__(self) -> None:
        self.bytes = 0

    def consumed(self, stream_id: int, size_bytes: int) -> None:
        self.bytes += size_bytes


@pytest.mark.parametrize("size", [1, 31, 33, 1_000])
async def test_bytes_count_as_consumed_once_and_when_they_are_taken(size: int) -> None:
    kept = Kept()
    stream = Stream(kept, 1)  # type: ignore[arg-type]
    stream.take(bytes(100 * size))
    for number in range(100):
        assert await stream.receive_exactly(size) == bytes(size)
        assert kept.bytes == size * (number + 1)
    stream.take(prefixed(b"first") + prefixed(b"second") + b"\x09half")
    assert await stream.receive_message(10) == b"first"
    assert kept.bytes == 100 * size + 6
    assert await stream.receive_message(10) == b"second"
    assert kept.bytes == 100 * size + 13
    with anyio.move_on_after(1):  # of a message that is not whole, all counts: T5
        await stream.receive_message(10)
    assert kept.bytes == 100 * size + 18
    stream.take(b" done")
    assert await stream.receive_message(10) == b"half done"
    assert kept.bytes == 100 * size + 23


def test_tiny_chunks_take_little_more_memory_than_is_counted() -> None:
    stream = Stream(Kept(), 1)  # type: ignore[arg-type]

    def take() -> Stream:
        for _ in range(200_000):
            stream.take(b"xy")
        return stream

    assert kept_bytes(take) < 2 * 400_000


async def test_pings_of_a_chunk_are_answered_at_once_and_too_many_end_the_connection() -> None:
    async with joined(limits=LIMITS) as both:
        writes = 0
        send = inside.pipe(both.back).send

        async def counted(item: bytes) -> None:
            nonlocal writes
            writes += 1
            await send(item)

        inside.pipe(both.back).send = counted
        async with both.link.open([PING]) as stream:
            await stream.send(bytes(32 * 150))
            assert await stream.receive_exactly(32 * 150) == bytes(32 * 150)
            assert writes < 50
            with pytest.raises(ConnectionClosed):
                await stream.send(bytes(32 * 1_000))
                await stream.receive_exactly(32 * 1_000)
        await ended(both, "`frames_per_s` is 5000; the peer sent more, the last: pings")


async def test_tasks_of_streams_that_are_reset_end_at_once() -> None:
    """Each waits for a socket that takes nothing."""
    running = 0

    async def answer(stream: Stream) -> None:
        nonlocal running
        running += 1
        try:
            await stream.send(bytes(1_000))
        finally:
            running -= 1

    async def takes_nothing(item: bytes) -> None:
        await anyio.sleep_forever()

    async with joined({"/answer/1": answer}) as both:
        inside.pipe(both.back).send = takes_nothing
        for _ in range(50):
            async with both.link.open(["/answer/1"]) as stream:
                await stream.send(b"")
                await anyio.sleep(0.01)
            await both.link.flush()
            await anyio.sleep(0.01)
            assert running == 0
        assert both.back.connection.stream_count == 0


async def test_a_socket_that_takes_nothing_ends_the_connection() -> None:
    async def takes_nothing(item: bytes) -> None:
        await anyio.sleep_forever()

    async with joined(limits=Limits(write_ms=7_000)) as both:
        inside.pipe(both.back).send = takes_nothing
        stream = both.link.open([PING])
        await stream.send(bytes(32))
        await anyio.sleep(6.9)
        assert both.ended == []
        await anyio.sleep(0.2)
        await ended(both, "the socket took less than 16384 bytes in 7000 ms (`write_ms`)")


async def test_a_slow_socket_is_no_stuck_one() -> None:
    async def answer(stream: Stream) -> None:
        await stream.send(bytes(1_000_000))

    async with joined({"/answer/1": answer}, limits=Limits(write_ms=7_000)) as both:
        send = inside.pipe(both.back).send

        async def slowly(item: bytes) -> None:
            await anyio.sleep(6)
            await send(item)

        inside.pipe(both.back).send = slowly
        async with both.link.open(["/answer/1"]) as stream:
            assert await stream.receive_exactly(1_000_000) == bytes(1_000_000)
        assert both.ended == []


async def test_a_socket_that_takes_a_kilobyte_a_second_is_no_stuck_one() -> None:
    async def answer(stream: Stream) -> None:
        await stream.send(b"")  # the negotiation has a deadline of its own
        await stream.send(bytes(100_000))

    async with joined({"/answer/1": answer}) as both:
        send = inside.pipe(both.back).send

        async def slowly(item: bytes) -> None:
            for begin in range(0, len(item), 1_000):
                await anyio.sleep(1)
                await send(item[begin : begin + 1_000])

        inside.pipe(both.back).send = slowly
        async with both.link.open(["/answer/1"]) as stream:
            assert await stream.receive_exactly(100_000) == bytes(100_000)
        assert both.ended == []


async def test_tiny_messages_of_a_frame_are_handed_over_in_turns() -> None:
    taken: list[bytes] = []
    turns: list[int] = []

    async with joined({"/push/1": MessageSink(10, lambda _, data: taken.append(data))}) as both:

        async def others() -> None:
            while len(taken) < 5_000:
                turns.append(len(taken))
                await anyio.lowlevel.checkpoint()

        async with both.link.open(["/push/1"]) as stream, anyio.create_task_group() as tasks:
            await stream.send(b"")
            tasks.start_soon(others)
            await stream.send(b"\0" * 5_000)
        assert taken == [b""] * 5_000
        steps = [after - before for before, after in pairwise(turns)]
        assert 0 < max(steps) <= 2 * TURN
        assert both.ended == []


async def test_other_tasks_have_their_turn_while_a_read_is_handled() -> None:
    """A read of 3,000 frames is no single step of the event loop."""
    async with joined() as both:
        received: list[int] = []
        receive = both.back.connection.receive

        def counted(data: bytes, now_ms: int) -> None:
            receive(data, now_ms)
            received.append(1)

        both.back.connection.receive = counted  # type: ignore[method-assign]
        muxer = inside.muxer(both.link.connection)
        assert muxer is not None
        stream = both.link.open([PING])
        await stream.send(bytes(32))
        await anyio.sleep(1)  # nothing is on its way
        header = b"\0\0\0\0" + stream.id.to_bytes(4, "big") + bytes([0, 0, 0, 1])
        data = both.link.connection.noise.encrypt((header + b"x") * 3_000)
        before = len(received)
        alone: list[bool] = [inside.take(both.back, data)]
        assert len(received) == before + 1 and alone == [True]
        while inside.take(both.back, b""):
            pass
        assert len(received) >= before + 3_000 // TURN


# WebSocket


def frames_of(*frames: Frame) -> bytes:
    return b"".join(frame.serialize(mask=True) for frame in frames)


def opened() -> WebSocketServer:
    client = ClientProtocol(parse_uri("ws://127.0.0.1/"))
    client.send_request(client.connect())
    server = WebSocketServer()
    for piece in client.data_to_send():
        server.upgrade(piece)
    assert server.opened and server.send(b"")
    return server


def test_websocket_frames_are_read_in_turns_wherever_they_are_cut() -> None:
    """Heads in pieces, all three forms of the length, and control frames in between."""
    sizes = [0, 1, 125, 126, 65_535, 65_536, 200_000, *[1] * 1_000]
    data = b"".join(
        frames_of(Frame(Opcode.BINARY, bytes([number % 251]) * size))
        + (frames_of(Frame(Opcode.PING, b"?")) if number % 300 == 0 else b"")
        for number, size in enumerate(sizes)
    )
    expected = b"".join(bytes([number % 251]) * size for number, size in enumerate(sizes))
    for step in (1_000_000, 65_536, 7):
        server, got = opened(), b""
        for at in range(0, len(data), step):
            got += server.receive(data[at : at + step])
            while server.cost >= TURN:
                got += server.receive(b"")
        assert got == expected
    server = opened()
    assert len(server.receive(frames_of(*[Frame(Opcode.BINARY, b"x")] * 5_000))) <= TURN


def test_pongs_that_are_not_taken_are_bounded() -> None:
    server = opened()
    ping = frames_of(Frame(Opcode.PING, bytes(125)))
    with pytest.raises(LimitExceeded, match="`control_bytes`"):
        for _ in range(1_000):
            server.receive(ping)
    assert len(server.send(b"")) < 70_000


def test_frames_in_one_read_with_the_upgrade_wait_for_their_turn() -> None:
    client = ClientProtocol(parse_uri("ws://127.0.0.1/"))
    client.send_request(client.connect())
    server = WebSocketServer()
    early = frames_of(*[Frame(Opcode.BINARY, b"x")] * 1_000)
    server.upgrade(b"".join(client.data_to_send()) + early)
    got = server.receive(b"")
    assert 0 < len(got) <= TURN
    while server.cost >= TURN:
        got += server.receive(b"")
    assert got == b"x" * 1_000


async def test_websocket_pings_end_the_connection_out_of_the_budget() -> None:
    async with joined(limits=LIMITS) as both:
        server = opened()
        inside.set_framing(both.back, server)
        ping = frames_of(Frame(Opcode.PING, b""))
        with pytest.raises(LimitExceeded, match="WebSocket frames"):
            for _ in range(2 * LIMITS.frames_per_s // 100 + 1):
                inside.take(both.back, ping)
                server.send(b"")


async def test_all_frames_of_a_read_are_taken_whoever_spent_the_turn() -> None:
    """Pings may have used up the turn before a read, and WebSocket frames use it up alone."""
    taken: list[bytes] = []
    async with joined({"/push/1": MessageSink(10, lambda _, data: taken.append(data))}) as both:
        server = opened()
        async with both.link.open(["/push/1"]) as stream:
            await stream.send_message(b"first")
            await anyio.sleep(1)  # nothing is on its way
            inside.set_framing(both.back, server)
            both.link.connection.send(stream.id, b"\x01x" * 3)
            data = both.link.connection.data_to_send()
            frames = [Frame(Opcode.BINARY, data[at : at + 1]) for at in range(len(data))]
            both.back.charge(TURN, "pings")
            more = inside.take(both.back, frames_of(*frames, *[Frame(Opcode.BINARY, b"")] * 500))
            while more:
                more = inside.take(both.back, b"")
            assert taken == [b"first", b"x", b"x", b"x"]
