"""The multicast group: its URL, its frames, and what strangers in it may send."""

import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from itertools import permutations
from random import Random
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reliable_channel import ChannelUnavailable, ReliableChannel
from reliable_channel.transport import (
    MemoryNetwork,
    MulticastTransport,
    PoolTransport,
    TransportError,
    WakuSettings,
)
from reliable_channel.transport.multicast_frames import (
    DATAGRAM_BYTES,
    MAX_FRAMES,
    MAX_MESSAGE_BYTES,
    PART_BYTES,
    PART_COST_BYTES,
    MulticastFrame,
    Reassembly,
    decode,
    frames,
    topic_tag,
)
from reliable_channel.transport.multicast_socket import Group, join
from tests.channel.world import QUICK, Told, listening
from tests.multicast_groups import group_url, new_port
from waku.hashing import message_hash
from waku.models import WakuMessage

TAG = topic_tag("topic")
HASH = bytes(range(32))
SETTINGS = WakuSettings("/reliable-channel/1/general/proto")


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    """Real time: sockets do not wait in virtual time."""
    return str(request.param)


@asynccontextmanager
async def member(url: str) -> AsyncIterator[MulticastTransport]:
    transport = MulticastTransport(url, SETTINGS)
    await transport.open()
    try:
        yield transport
    finally:
        await transport.aclose()


class Clock:
    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


@pytest.mark.parametrize(
    "url",
    [
        "udp+multicast://239.1.2.3:5007",
        "udp+multicast://239.1.2.3:5007/",
        "udp+multicast://239.1.2.3:5007?interface=127.0.0.1&ttl=3",
        "udp+multicast://[ff02::1234]:5007?interface=lo",
    ],
)
def test_a_url_names_a_group(url: str) -> None:
    group = Group.of_url(url)
    assert group.port == 5007
    assert group.destination in (("239.1.2.3", 5007), ("ff02::1234", 5007))


@pytest.mark.parametrize(
    "rest",
    (
        "239.1.2.3 10.0.0.1:5007 localhost:5007 239.1.2.3:0 239.1.2.3:99999 :5007 239.1.2.3:5007/x "
        "239.1.2.3:5007?ttl=-1 239.1.2.3:5007?ttl=256 239.1.2.3:5007?ttl=x [ff02::1:5007 "
        "239.1.2.3:5007?interface=eth0 239.1.2.3:5007?colour=red"
    ).split(),
)
def test_a_url_that_names_none_is_refused_with_what_is_allowed(rest: str) -> None:
    with pytest.raises(ValueError, match=r"must be udp\+multicast://group:port, such as"):
        ReliableChannel(f"udp+multicast://{rest}", channel_id="general", sender_id="alice")


@given(st.binary(max_size=5 * PART_BYTES), st.randoms())
def test_frames_in_any_order_and_any_number_make_the_message(body: bytes, random: Random) -> None:
    datagrams = frames(TAG, HASH, body)
    assert max(map(len, datagrams)) <= DATAGRAM_BYTES
    reassembly = Reassembly(Clock())
    sent = [datagram for datagram in datagrams for _ in range(random.randint(1, 2))]
    random.shuffle(sent)
    made = []
    for datagram in sent:
        frame = decode(datagram)
        assert frame is not None
        made.append(reassembly.add("sender", frame))
    assert body in made
    assert {whole for whole in made if whole is not None} == {body}


def test_a_frame_is_refused_beyond_its_bounds() -> None:
    assert decode(MulticastFrame(TAG, HASH, 0, MAX_FRAMES, b"").encode()) is not None
    for frame in (
        MulticastFrame(TAG, HASH, 0, 0, b""),
        MulticastFrame(TAG, HASH, 2, 2, b""),
        MulticastFrame(TAG, HASH, 0, MAX_FRAMES + 1, b""),
        MulticastFrame(TAG, HASH, 0, 1, bytes(PART_BYTES + 1)),
    ):
        assert decode(frame.encode()) is None
    assert len(frames(TAG, HASH, bytes(MAX_MESSAGE_BYTES))) == MAX_FRAMES
    with pytest.raises(ValueError, match="at most"):
        frames(TAG, HASH, bytes(MAX_MESSAGE_BYTES + 1))


def test_parts_of_two_messages_and_of_two_senders_do_not_mix() -> None:
    other = HASH[::-1]
    for order in permutations(range(4)):
        reassembly = Reassembly(Clock())
        made = [
            reassembly.add(*arrived)
            for arrived in (
                ("a", MulticastFrame(TAG, HASH, order[0] % 2, 2, b"x")),
                ("b", MulticastFrame(TAG, HASH, order[1] % 2, 2, b"y")),
                ("a", MulticastFrame(TAG, other, order[2] % 2, 2, b"z")),
                ("a", MulticastFrame(TAG, HASH, order[3] % 2, 3, b"of another count")),
            )
        ]
        assert made == [None] * 4


def test_memory_is_bounded_and_the_oldest_makes_room() -> None:
    reassembly = Reassembly(Clock(), max_bytes=10 * (PART_COST_BYTES + 100), max_messages=5)
    hashes = [bytes([number]) * 32 for number in range(20)]
    for message in hashes:
        reassembly.add("flooder", MulticastFrame(TAG, message, 0, 2, bytes(100)))
        assert len(reassembly) <= 5
    assert reassembly.given_up == 15
    assert (
        reassembly.add("flooder", MulticastFrame(TAG, hashes[-1], 1, 2, b"!")) == bytes(100) + b"!"
    )
    for index in range(50):
        reassembly.add("flooder", MulticastFrame(TAG, HASH, index, 99, bytes(100)))
        assert reassembly.held_bytes <= 10 * (PART_COST_BYTES + 100)


def test_what_waits_too_long_is_given_up() -> None:
    clock = Clock()
    reassembly = Reassembly(clock, expires_s=5)
    reassembly.add("a", MulticastFrame(TAG, HASH, 0, 2, b"x"))
    clock.now_s = 3
    reassembly.add("a", MulticastFrame(TAG, HASH[::-1], 0, 2, b"x"))
    clock.now_s = 5
    reassembly.expire()
    assert (len(reassembly), reassembly.given_up) == (1, 1)
    clock.now_s = 8
    reassembly.expire()
    assert (len(reassembly), reassembly.given_up, reassembly.held_bytes) == (0, 2, 0)


@pytest.mark.anyio
async def test_a_hash_is_that_of_a_waku_node() -> None:
    transport = MulticastTransport(group_url(), SETTINGS)
    envelope = transport.envelope(b"hello", timestamp_ns=5, ephemeral=False, meta=b"m")
    message = WakuMessage(b"hello", SETTINGS.content_topic, timestamp=5, meta=b"m")
    assert envelope.message_hash == message_hash(SETTINGS.shard, message)


@pytest.mark.anyio
async def test_what_strangers_send_is_skipped_and_counted() -> None:
    async with member(group_url()) as alice, member(alice.url) as bob:
        tag, digest = topic_tag(f"{SETTINGS.shard} {SETTINGS.content_topic}"), bytes(32)
        stranger = join(alice.group)
        for datagram in (
            b"",
            b"hello",
            bytes(60_000),
            MulticastFrame(topic_tag("another"), digest, 0, 1, b"x").encode(),
            MulticastFrame(tag, digest, 0, 1, b"").encode(),
            MulticastFrame(tag, digest, 0, 1, bytes(9) + b"a message of another hash").encode(),
            MulticastFrame(tag, digest, 0, 1, b"\xff" * 9 + b"a time that is none").encode(),
            MulticastFrame(tag, digest, 0, 500, b"a part without others").encode(),
        ):
            stranger.sendto(datagram, alice.group.destination)
        stranger.close()
        envelope = alice.envelope(b"hello", timestamp_ns=1, ephemeral=False)
        await alice.publish(envelope)
        with anyio.fail_after(5):
            (received,) = (await bob.receive()).messages
        assert received.payload == b"hello"
        assert bob.mislabelled == 3


@pytest.mark.anyio
async def test_the_same_envelope_again_fills_what_was_lost_and_is_told_once() -> None:
    async with member(group_url()) as alice, member(alice.url) as bob:
        envelope = alice.envelope(bytes(5 * PART_BYTES), timestamp_ns=1, ephemeral=False)
        await alice.publish(envelope)
        bob._socket.recvfrom(2_000)  # type: ignore[union-attr]  # noqa: SLF001
        with anyio.move_on_after(0.05):
            await bob.receive()
        await alice.publish(envelope)
        await alice.publish(envelope)
        with anyio.fail_after(5):
            assert [m.payload for m in (await bob.receive()).messages] == [envelope.payload]
        with anyio.move_on_after(0.05) as scope:
            await bob.receive()
        assert scope.cancelled_caught


@pytest.mark.anyio
async def test_whoever_waits_is_told_of_the_closing() -> None:
    async with member(group_url()) as alice, anyio.create_task_group() as tasks:
        errors: list[str] = []

        async def wait() -> None:
            try:
                await alice.receive()
            except TransportError as error:
                errors.append(str(error))

        tasks.start_soon(wait)
        await anyio.wait_all_tasks_blocked()
        await alice.aclose()
    assert errors


@pytest.mark.anyio
@pytest.mark.parametrize("call", ["receive", "publish"])
async def test_a_transport_that_is_not_open_says_so(call: str) -> None:
    alice = MulticastTransport(group_url(), SETTINGS)
    envelope = alice.envelope(b"hello", timestamp_ns=1, ephemeral=False)
    with pytest.raises(TransportError, match="is not open"):
        await (alice.publish(envelope) if call == "publish" else alice.receive())


@pytest.mark.anyio
async def test_a_group_that_cannot_be_joined_is_named_with_what_to_try() -> None:
    url = group_url(interface="192.0.2.77")
    channel = ReliableChannel(url, channel_id="general", sender_id="alice")
    with pytest.raises(ChannelUnavailable, match=r"cannot be joined: .*; add \?interface="):
        await channel.open()


def test_without_a_store_the_others_are_asked() -> None:
    def strategy(asked: Any) -> object:
        channel = ReliableChannel(
            group_url(), channel_id="general", sender_id="alice", retrieval_strategy=asked
        )
        return channel.options.retrieval_strategy

    assert [strategy(s) for s in ("both", "sds-r-only", "store-only", "none")] == (
        ["sds-r-only", "sds-r-only", "none", "none"]
    )


def has_all(told: Told) -> bool:
    return len(told.contents) == 16


@pytest.mark.anyio
async def test_datagrams_that_are_lost_are_made_up_for(monkeypatch: pytest.MonkeyPatch) -> None:
    random, url, names = Random(5), group_url(), (b"alice", b"bob", b"carol")

    def lossy(datagram: bytes) -> MulticastFrame | None:
        return None if random.random() < 0.05 else decode(datagram)

    monkeypatch.setattr("reliable_channel.transport.multicast.decode", lossy)
    async with AsyncExitStack() as stack:
        told = []
        for name in names:
            channel = ReliableChannel(
                url, channel_id="general", sender_id=name.decode(), options=QUICK
            )
            told.append((channel, await stack.enter_async_context(listening(channel))))
        for number in range(8):
            for (channel, _), name in zip(told, names, strict=True):
                await channel.send(b"%s %d " % (name, number) + bytes(5_000))
        for _, heard in told:
            await heard.until(partial(has_all, heard))
        assert len({channel.log_digest() for channel, _ in told}) == 1


@pytest.mark.anyio
async def test_a_group_and_a_node_at_once_are_one_channel_with_one_hash() -> None:
    url, near, far = group_url(), MemoryNetwork(), WakuSettings(SETTINGS.content_topic)
    async with member(url) as bob:
        pool = PoolTransport([MulticastTransport(url, far), near.transport()])
        await pool.open()
        envelope = pool.envelope(b"hello", timestamp_ns=1, ephemeral=False)
        await pool.publish(envelope)
        with anyio.fail_after(5):
            (received,) = (await bob.receive()).messages
        assert received.message_hash == envelope.message_hash
        assert [m.payload for m in await pool.by_hash([envelope.message_hash])] == [b"hello"]
        assert pool.has_store
        assert {node.state for node in pool.nodes()} == {"healthy"}
        await pool.aclose()


@pytest.mark.anyio
async def test_an_ipv6_group_works_as_well() -> None:
    port = new_port()
    for interface in (name for _, name in socket.if_nameindex()):
        url = f"udp+multicast://[ff02::4299]:{port}?interface={interface}"
        try:
            async with member(url) as alice, member(url) as bob:
                await alice.publish(alice.envelope(b"six", timestamp_ns=1, ephemeral=False))
                with anyio.fail_after(2):
                    assert [m.payload for m in (await bob.receive()).messages] == [b"six"]
                return
        except (TransportError, TimeoutError):
            continue
    pytest.skip("no interface of this machine carries IPv6 multicast")
