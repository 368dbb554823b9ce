"""Streams on which only the peer speaks, in memory, in virtual time."""

import anyio
import pytest

from tests.waku.libp2p.pair import DIALLER
from waku.libp2p import InvalidInput, Limits, PeerId, StreamClosed
from waku.libp2p.driver import Carrier, MessageSink, Stream
from waku.libp2p.varint import prefixed

from .memory import joined

pytestmark = pytest.mark.anyio

LIMIT = 400_000


class Taken(list[bytes]):
    def __init__(self) -> None:
        super().__init__()
        self.refused: list[PeerId] = []

    def sink(self) -> MessageSink:
        return MessageSink(LIMIT, self.take, lambda link, _: self.refused.append(link.peer_id))

    def take(self, link: Carrier, message: bytes) -> None:
        if message == b"nonsense":
            raise InvalidInput("nonsense")
        self.append(message)


async def test_a_message_a_stream_or_many_and_each_ends_with_the_peer() -> None:
    taken = Taken()
    async with joined({"/push/1": taken.sink()}) as both:
        messages = [b"%d" % number for number in range(100)]
        for message in messages[:50]:
            async with both.link.open(["/push/1"]) as stream:
                await stream.send_message(message)
                stream.end()
                assert await stream.receive() == b""
        async with both.link.open(["/push/1"]) as stream:
            for message in messages[50:]:
                await stream.send_message(message)
            stream.end()
            assert await stream.receive() == b""
        assert taken == messages
        assert both.back.connection.stream_count == 0


async def test_a_message_that_comes_with_its_end_in_one_read_is_answered() -> None:
    """The answer of the negotiation and the end of this half still go."""
    taken = Taken()

    async def served(stream: Stream) -> None:
        message = await stream.receive_message(LIMIT)
        assert message is not None
        taken.append(message)

    async with joined({"/push/1": taken.sink(), "/served/1": served}) as both:
        for protocol in ("/push/1", "/served/1"):
            async with both.link.open([protocol]) as stream:
                assert await stream.request(b"message", LIMIT) is None
                assert await stream.agreed() == protocol
        assert taken == [b"message"] * 2
        assert both.back.connection.stream_count == 0


async def test_messages_above_the_window_and_in_pieces() -> None:
    """T5: credit comes back as bytes arrive."""
    taken = Taken()
    async with joined({"/push/1": taken.sink()}) as both:
        large = bytes(range(250)) * 1_500
        async with both.link.open(["/push/1"]) as stream:
            for data in (prefixed(large), prefixed(b"small")):
                for at in range(0, len(data), 60_000):
                    await stream.send(data[at : at + 60_000])
            stream.end()
            assert await stream.receive() == b""
        assert taken == [large, b"small"]


@pytest.mark.parametrize("wrong", [prefixed(b"nonsense"), b"\xff\xff\xff\x7f", b"\xff" * 10])
async def test_nonsense_resets_its_stream_and_no_other(wrong: bytes) -> None:
    taken = Taken()
    async with joined({"/push/1": taken.sink()}) as both:
        async with both.link.open(["/push/1"]) as good, both.link.open(["/push/1"]) as bad:
            await bad.send(prefixed(b"before") + wrong + prefixed(b"behind it"))
            with pytest.raises(StreamClosed, match="reset"):
                await bad.receive()
            await good.send_message(b"good")
            good.end()
            assert await good.receive() == b""
        assert taken == [b"before", b"good"]
        assert taken.refused == ([] if b"nonsense" in wrong else [DIALLER.peer_id])
        assert both.back.connection.stream_count == 0
        assert both.ended == []


async def test_a_peer_that_ends_within_a_message_or_resets_leaves_nothing() -> None:
    taken = Taken()
    async with joined({"/push/1": taken.sink()}) as both:
        for is_reset in (False, True):
            async with both.link.open(["/push/1"]) as stream:
                await stream.send(prefixed(b"cut off")[:4])
                if not is_reset:
                    stream.end()
                    assert await stream.receive() == b""
        await anyio.sleep(1)
        assert taken == []
        assert both.back.connection.stream_count == 0


async def test_streams_that_idle_are_bounded() -> None:
    taken = Taken()
    async with joined({"/push/1": taken.sink()}, limits=Limits(streams_by_peer=5)) as both:
        streams = [both.link.open(["/push/1"]) for _ in range(8)]
        await anyio.sleep(1)
        assert both.back.connection.stream_count == 5
        for stream in streams[:5]:
            await stream.send_message(b"alive")
        with pytest.raises(StreamClosed):
            await streams[-1].receive()
        await anyio.sleep(1)
        assert taken == [b"alive"] * 5
