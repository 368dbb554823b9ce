"""`ndn://`: channels whose messages are publications of a group on NDN."""

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from itertools import count
from pathlib import Path

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reliable_channel import MessageReceived, ReliableChannel
from reliable_channel._contracts.plugin_code import Owner
from reliable_channel._plugins.transport import PluginTransport
from reliable_channel.testing.transport_suite import (
    SETTINGS,
    MakeTransport,
    TransportSuite,
    envelope,
)
from reliable_channel.transport import PoolTransport, Received, TransportError, WakuFraming
from reliable_channel_svs import NDND, DigestSigner, Name, StateVector, SvsOptions, plugin
from reliable_channel_svs.ndn import (
    ForwarderConnected,
    NdnTransport,
    NodeEvent,
    PacketRefused,
    PublicationReceived,
    PublicationUnavailable,
    SvsNode,
)
from reliable_channel_svs.ndn import transport as ndn_transport
from reliable_channel_svs.ndn.parts import BEGINS, ENDS, Joiner, cut
from reliable_channel_svs.ndn.transport import OPTIONS
from reliable_channel_svs.ndn.url import GroupUrl
from reliable_channel_svs.packet import Interest, make_data
from svs_tests.small_forwarder import SmallForwarder, small_forwarder


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def sync_interest(group: str, vector: bytes) -> bytes:
    name = Name.parse(f"{group}/v=3")
    return Interest(name, b"1234", parameters=make_data(name, vector, DigestSigner())).encode()


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@asynccontextmanager
async def forwarding() -> AsyncIterator[tuple[SmallForwarder, str]]:
    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    port = listener.extra(anyio.abc.SocketAttribute.local_port)
    async with small_forwarder(listener) as forwarder:
        yield forwarder, f"ndn://127.0.0.1:{port}/room/one"


class TestNdn(TransportSuite):
    has_store = False
    naming = "spec"

    @asynccontextmanager
    async def network(self) -> AsyncIterator[MakeTransport]:
        numbers = count()
        async with forwarding() as (_, url):
            url += f"?naming={self.naming}"
            yield lambda settings: NdnTransport(url, settings, f"sender {next(numbers)}")


class TestNdnAlo(TestNdn):
    naming = "svs-alo"


class TestNdnInPool(TestNdn):
    """As every channel has it that is given a URL."""

    @asynccontextmanager
    async def network(self) -> AsyncIterator[MakeTransport]:
        async with super().network() as make:
            owner = Owner("plugin 'svs': transport 'ndn'")
            yield lambda settings: PoolTransport([PluginTransport(make(settings), owner)])


def test_a_url_says_where_the_group_is_and_who_we_are() -> None:
    where = GroupUrl.parse("ndn://10.1.2.3:6364/room/one?naming=svs-alo&node_prefix=/site/a")
    assert where.forwarder == "tcp://10.1.2.3:6364"
    assert str(where.group("/reliable-channel/1/general/proto")) == (
        "/room/one/reliable-channel/1/general/proto"
    )
    assert str(where.node("alice/1")) == "/site/a/alice%2F1"
    assert where.options(OPTIONS).naming == "svs-alo"
    other = GroupUrl.parse("ndn:///room?forwarder=unix:///run/nfd/nfd.sock&set_strategy=no")
    assert (other.forwarder, other.options(OPTIONS).set_strategy) == (
        "unix:///run/nfd/nfd.sock",
        False,
    )


@pytest.mark.parametrize(
    "url",
    [
        "ndn:///room",
        "ndn://host:port/room",
        "ndn://host/room//x",
        "ndn://host/room?naming=mine",
        "ndn://host/room?set_strategy=maybe",
        "ndn://host/room?colour=red",
        "ndn://host/room?key=a.key",
        "ndn://host/room?trust=a.keys",
        "ndn://host/room?naming=spec&naming=spec",
        "ndn://host/room?forwarder=tcp://other",
        "ndn://host/room#here",
        "ndn:///room?forwarder=ftp://host",
    ],
)
def test_a_url_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(
        ValueError, match=r"must be ndn://host:6363/group|give key= and trust= together"
    ):
        ReliableChannel(url, channel_id="general", sender_id="alice", plugins=[plugin])


SEED = "11" * 32


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("own", "trusted", "text"),
    [
        (None, f"/k {SEED}", "cannot be read"),
        ("", f"/k {SEED}", "holds 0 keys"),
        (f"/k {SEED}\n/l {SEED}", f"/k {SEED}", "holds 2 keys"),
        (f"/k {SEED}\n", f"\n/k {SEED}\n/l {SEED[1:]}", "line 3 of .*: must be"),
        (f"/k {SEED}", f"/k {SEED[2:]}", "line 1 of"),
        (f"/k {SEED}", SEED, "line 1 of"),
        (f"k {SEED}", f"/k {SEED}", "line 1 of"),
    ],
)
async def test_key_files_that_are_none_are_refused_and_show_nothing(
    own: str | None, trusted: str, text: str, tmp_path: Path
) -> None:
    if own is not None:
        (tmp_path / "own").write_text(own)
    (tmp_path / "trusted").write_text(trusted)
    url = f"ndn://127.0.0.1:1/room?key={tmp_path}/own&trust={tmp_path}/trusted"
    with pytest.raises(TransportError, match=text) as refused:
        await NdnTransport(url, SETTINGS, "alice").open()
    assert not refused.value.retryable
    assert SEED[:20] not in str(refused.value)


@pytest.mark.anyio
async def test_names_that_are_too_long_and_a_forwarder_that_is_away_are_told() -> None:
    for url, sender in (("/room", "a" * 1_100), ("/" + "r" * 300, "alice")):
        with pytest.raises(TransportError, match=r"name of .* bytes") as refused:
            await NdnTransport(f"ndn://127.0.0.1:1{url}", SETTINGS, sender).open()
        assert not refused.value.retryable
    with pytest.raises(TransportError, match="cannot be reached") as away:
        await NdnTransport("ndn://127.0.0.1:1/room", SETTINGS, "alice").open()
    assert away.value.retryable


@asynccontextmanager
async def opened(transport: NdnTransport) -> AsyncIterator[NdnTransport]:
    await transport.open()
    try:
        yield transport
    finally:
        await transport.aclose()


async def heard(transport: NdnTransport, count: int) -> list[Received]:
    found: list[Received] = []
    while len(found) < count:
        found += (await transport.receive()).messages
    return found


async def connected(transport: NdnTransport) -> None:
    """Wait until the forwarder is there again: its link may break more than once before."""
    while True:
        with suppress(TransportError):
            if (await transport.receive()).messages == []:
                return


@pytest.mark.anyio
async def test_a_forwarder_that_goes_is_told_and_nothing_is_published_meanwhile() -> None:
    async with (
        forwarding() as (forwarder, url),
        opened(NdnTransport(url, SETTINGS, "alice")) as alice,
        opened(NdnTransport(url, SETTINGS, "bob")) as bob,
    ):
        forwarder.status = 403  # for a while it refuses
        await forwarder.cut()
        for transport in (alice, bob):
            with pytest.raises(TransportError, match="the forwarder is not connected"):
                await heard(transport, 1)
        with pytest.raises(TransportError, match="the forwarder is not connected"):
            await alice.publish(envelope(alice, b"lost"))
        forwarder.status = 200
        await connected(alice)
        await connected(bob)
        await alice.publish(envelope(alice, b"there again"))
        assert [m.payload for m in await heard(bob, 1)] == [b"there again"]


@pytest.mark.anyio
async def test_a_newcomer_gets_what_is_there_but_for_ephemeral_messages_that_are_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with (
        forwarding() as (_, url),
        opened(NdnTransport(url, SETTINGS, "alice")) as alice,
    ):
        for number in range(6):
            typing = number % 2 == 1
            await alice.publish(replace(envelope(alice, b"%d" % number), ephemeral=typing))
        monkeypatch.setattr(ndn_transport, "EPHEMERAL_S", -1)
        await alice.publish(envelope(alice, b"6"))
        async with opened(NdnTransport(url, SETTINGS, "bob")) as bob:
            assert [m.payload for m in await heard(bob, 4)] == [b"0", b"2", b"4", b"6"]


@pytest.mark.anyio
async def test_what_comes_while_the_transport_is_being_opened_is_not_lost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    wrapping = WakuFraming(SETTINGS)
    body = wrapping.body(wrapping.envelope(b"hi", timestamp_ns=1, ephemeral=False))
    publication = PublicationReceived(Name.parse("/alice"), 1, 1, cut(body, 100)[0])
    early: list[list[NodeEvent]] = [[PacketRefused("noise")], [ForwarderConnected(), publication]]
    original = SvsNode.next_events

    async def next_events(node: SvsNode) -> list[NodeEvent]:
        return early.pop(0) if early else await original(node)

    monkeypatch.setattr(SvsNode, "next_events", next_events)
    async with (
        forwarding() as (_, url),
        opened(NdnTransport(url, SETTINGS, "bob")) as bob,
    ):
        assert [m.payload for m in await heard(bob, 1)] == [b"hi"]
        assert bob.mislabelled == 1


@pytest.mark.anyio
async def test_what_went_with_an_earlier_life_holds_up_nothing() -> None:
    async with forwarding() as (_, url), opened(NdnTransport(url, SETTINGS, "carol")) as carol:
        async with opened(NdnTransport(url, SETTINGS, "alice")) as alice:
            await alice.publish(envelope(alice, b"x" * 20_000))
            await heard(carol, 1)
            await carol.publish(envelope(carol, b"seen"))
        in_a_while_ms = now_ms() + 5_000  # another second is another bootstrap time
        later = NdnTransport(url, SETTINGS, "alice", now_ms=lambda: in_a_while_ms)
        async with opened(later) as alice, opened(NdnTransport(url, SETTINGS, "dave")) as dave:
            await alice.publish(envelope(alice, b"again"))
            gaps: list[str] = []
            said: list[bytes] = []
            while not (gaps and said):
                batch = await dave.receive()
                gaps += [batch.gap] if batch.gap else []
                said += [message.payload for message in batch.messages]
            assert set(said) <= {b"seen", b"again"}
            assert gaps[0].endswith("publications cannot be had")


@pytest.mark.anyio
async def test_what_others_get_wrong_is_counted() -> None:
    """Publications that are no messages, and vectors that are none."""
    async with (
        forwarding() as (forwarder, url),
        opened(NdnTransport(url, SETTINGS, "bob")) as bob,
    ):
        group = str(GroupUrl.parse(url).group(SETTINGS.content_topic))
        link = f"tcp://{url.removeprefix('ndn://').partition('/')[0]}"
        async with SvsNode(link, group=group, name="/mallory") as mallory:
            await mallory.wait_connected()
            whole = bytes([BEGINS | ENDS])
            for content in (whole + b"short", whole + b"\xff" * 20, b"", bytes([ENDS]) + b"rest"):
                await mallory.publish(content)
            good = WakuFraming(SETTINGS).body(envelope(bob, b"good"))
            await mallory.publish(whole + good)
            assert [m.payload for m in await heard(bob, 1)] == [b"good"]
            assert bob.mislabelled == 2  # the others are parts of nothing
            for vector in (b"nonsense", b"\xc9\x01\x00"):
                await forwarder.inject(sync_interest(group, vector))
            while bob.mislabelled < 4:
                await bob.receive()


@pytest.mark.anyio
async def test_numbers_that_somebody_used_up_are_left_behind() -> None:
    """With `own_future="adopt"` one claim takes all numbers that a node has."""
    adopting, boot_ms = replace(OPTIONS, svs=SvsOptions(behaviour=NDND)), now_ms()
    async with (
        forwarding() as (forwarder, url),
        opened(NdnTransport(url, SETTINGS, "alice", options=adopting, now_ms=lambda: boot_ms)) as a,
        opened(NdnTransport(url, SETTINGS, "bob")) as bob,
    ):
        claim = StateVector({Name.parse("/alice"): {boot_ms // 1000: 2**64 - 1}}).encode()
        group = str(GroupUrl.parse(url).group(SETTINGS.content_topic))
        await forwarder.inject(sync_interest(group, claim))
        while not a.mislabelled:
            await a.receive()
        with pytest.raises(TransportError, match="has used all sequence numbers") as refused:
            await a.publish(envelope(a, b"first"))
        assert refused.value.retryable
        await a.publish(envelope(a, b"second"))
        assert [m.payload for m in await heard(bob, 1)] == [b"second"]


@pytest.mark.anyio
async def test_who_sends_and_leaves_is_heard() -> None:
    """Others fetch: who closes at once would take along what nobody has yet."""
    async with forwarding() as (_, url):

        def channel(name: str) -> ReliableChannel:
            return ReliableChannel(url, channel_id="c", sender_id=name, plugins=[plugin])

        async with channel("bob") as bob:
            for number in range(3):
                async with channel(f"alice {number}") as alice:
                    await alice.send(b"%d" % number)
                async for event in bob.events():
                    if isinstance(event, MessageReceived):
                        assert event.content == b"%d" % number
                        break


@given(st.lists(st.binary(max_size=60), max_size=8), st.integers(2, 9))
def test_parts_make_the_messages_that_were_cut(messages: list[bytes], size: int) -> None:
    joiner, seq = Joiner(), 0
    joined = []
    for message in messages:
        for part in cut(message, size):
            assert len(part) <= size
            seq += 1
            joined.append(joiner.take(PublicationReceived(Name.parse("/a"), 1, seq, part)))
    assert [message for message in joined if message is not None] == messages
    assert joiner.given_up == 0


def test_the_end_of_one_message_is_not_joined_to_the_beginning_of_another() -> None:
    node, joiner = Name.parse("/a"), Joiner()
    first, second = cut(b"first", 4), cut(b"other", 4)
    assert joiner.take(PublicationReceived(node, 1, 1, first[0])) is None
    assert joiner.take(PublicationReceived(node, 1, 3, second[0])) is None
    assert joiner.take(PublicationReceived(node, 1, 2, first[1])) is None
    assert joiner.take(PublicationReceived(node, 1, 4, second[1])) is None
    assert joiner.given_up == 4
    assert joiner.held_bytes == 0


def test_messages_that_never_end_are_bounded() -> None:
    joiner = Joiner(max_bytes=1_000)
    for number in range(20):
        node = Name.parse(f"/{number}")
        assert joiner.take(PublicationReceived(node, 1, 1, bytes([BEGINS]) + bytes(300))) is None
    assert joiner.given_up == 17
    last = PublicationReceived(Name.parse("/19"), 1, 2, bytes([ENDS]) + b"end")
    assert joiner.take(last) == bytes(300) + b"end"
    joiner.skip(PublicationUnavailable(Name.parse("/18"), 1, 2, "gone"))
    rest = PublicationReceived(Name.parse("/18"), 1, 3, bytes([ENDS]) + b"end")
    assert joiner.take(rest) is None
    with pytest.raises(ValueError, match="at most 1048704"):
        cut(bytes(2_000_000), 8_000)
