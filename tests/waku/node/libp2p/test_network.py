"""What libp2p peers get from an embedded node: the same as its REST clients."""

from dataclasses import replace
from pathlib import Path

import anyio
import pytest
from websockets.client import ClientProtocol
from websockets.uri import parse_uri

from tests.waku.libp2p.driver.tls import contexts
from waku import LightClient, StoreQuery, WakuClient, errors, message_hash
from waku.discovery import Capability, NodeRecord
from waku.libp2p import InvalidInput, Multiaddr
from waku.libp2p.driver import Stream, identify
from waku.node import CannotListen, EmbeddedNode, Listen, ListenLimits, NodeOptions
from waku.node.store import ArchiveError
from waku.p2p import codec
from waku.p2p.codec import Metadata
from waku.p2p.protocols import (
    FILTER_SUBSCRIBE,
    LIGHT_PUSH_2,
    MAX_PUSH_BYTES,
    METADATA,
    PEER_EXCHANGE,
    STORE_3,
)

from .around import KINDS, NODE_KEY, SHARD, TOPIC, asked, dialled, listening, message, push_2, until
from .around import subscribe as subscribe_peer

pytestmark = pytest.mark.anyio

ALL = range(8)


def client(node: EmbeddedNode, **options: object) -> LightClient:
    return LightClient(node.libp2p_addresses, cluster_id=1, shards=ALL, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", KINDS)
async def test_light_push_filter_and_store(kind: str) -> None:
    async with listening(KINDS[kind]) as node, client(node) as light:
        async with light.subscribe(SHARD, [TOPIC]) as messages:
            for number in range(30):
                assert (await light.light_push(message(number), SHARD)).relay_peer_count == 1
            got = [(await messages.receive()).message.payload for _ in range(30)]
        assert got == [message(number).payload for number in range(30)]
        query = StoreQuery(pubsub_topic=SHARD, content_topics=(TOPIC,), page_size=12)
        stored = [entry async for entry in light.store_all(query)]
        assert [e.message.payload for e in stored if e.message] == got
        assert await light.store_by_hash([stored[7].message_hash]) == [stored[7]]
        newest = await light.store(StoreQuery(page_size=5, ascending=False))
        assert newest.entries == tuple(stored[-5:])
        assert newest.cursor == stored[-5].message_hash
        assert await light.ping() >= 0


@pytest.mark.parametrize("kind", KINDS)
async def test_what_a_peer_sees_of_the_node(kind: str) -> None:
    options = NodeOptions(cluster_id=16, shards=(32, 64))
    async with listening(KINDS[kind], options=options) as node, dialled(node) as link:
        info = await identify(link)
        assert {METADATA, PEER_EXCHANGE, LIGHT_PUSH_2, FILTER_SUBSCRIBE, STORE_3} <= info.protocols
        assert (info.agent, tuple(map(str, info.listen_addresses))) == (
            node.agent,
            node.libp2p_addresses,
        )
        own = codec.decode_metadata(await asked(link, METADATA, b"\xff not protobuf"))
        assert own == Metadata(16, frozenset({32, 64}))
        answer, (record,) = codec.decode_peer_exchange_answer(
            await asked(link, PEER_EXCHANGE, codec.encode_peer_exchange_query(10))
        )
        read = NodeRecord.decode(record)
        assert (answer.status, read.text, read.peer_id) == (200, node.record, NODE_KEY.peer_id)
        assert (read.cluster_id, set(read.shards)) == (16, {32, 64})
        served = Capability.STORE | Capability.FILTER | Capability.LIGHT_PUSH
        assert read.capabilities == Capability.RELAY | served
        assert tuple(map(str, read.addresses)) == node.libp2p_addresses


async def test_light_push_of_the_older_version() -> None:
    async with listening() as node, dialled(node) as link:
        answer = await asked(link, LIGHT_PUSH_2, push_2(message(1)))
        assert codec.decode_light_push_2_answer(answer) == ("one", True, "OK")
        answer = await asked(link, LIGHT_PUSH_2, push_2(message(1), "/waku/2/rs/9/9"))
        assert codec.decode_light_push_2_answer(answer) == (
            "one", False, "not_published_to_any_peer",
        )  # fmt: skip
        assert node.archive is not None and len(node.archive) == 1


async def test_rest_and_libp2p_share_archive_filter_and_limits() -> None:
    options = NodeOptions(
        max_message_bytes=5_000, service_requests_per_s=0.2, now_ns=lambda: 10**18
    )
    shared = replace(options, service_requests_per_s=100)
    async with listening(options=shared) as node, client(node) as light:
        rest = WakuClient("http://node", app=node.app)
        async with rest, light.subscribe(SHARD, [TOPIC]) as messages:
            await rest.lightpush(message(1))
            pushed = await messages.receive()
            (entry,) = [e async for e in rest.store_all(StoreQuery())]
            assert pushed.message_hash == entry.message_hash == message_hash(SHARD, message(1))
            assert (await rest.info()).listen_addresses == node.libp2p_addresses
            assert (await rest.info()).enr_uri == node.record
    # Of one request:
    async with listening(options=options) as node, client(node) as light:
        with pytest.raises(errors.MessageTooLarge, match="exceeded maximum of 5000"):
            await light.light_push(message(2, 5_000), SHARD)
        with pytest.raises(errors.RateLimited, match="wait some seconds"):
            await light.light_push(message(2), SHARD)


async def test_a_page_is_as_long_as_its_limit_allows() -> None:
    limits = ListenLimits(page_bytes=31_000)
    async with listening(limits=limits) as node, client(node) as light:
        for number in range(10):
            node.publish(SHARD, message(number, 9_900))
        page = await light.store(StoreQuery())
        assert len(page.entries) == 3 and page.cursor == page.entries[-1].message_hash
        found = [e.message.payload async for e in light.store_all(StoreQuery()) if e.message]
        assert found == [message(number, 9_900).payload for number in range(10)]


async def test_refusals_have_the_words_of_rest() -> None:
    async with listening() as node, client(node) as light, dialled(node) as link:
        with pytest.raises(errors.NoPeers, match="No peers for topic"):
            await light.light_push(message(1), "/waku/2/rs/2/0")
        with pytest.raises(errors.CursorExpired, match="cursor not found"):
            await light.store(StoreQuery(cursor=bytes(31) + b"\1"))
        request = codec.encode_filter_request("7", codec.FilterRequest.SUBSCRIBER_PING)
        answer = codec.decode_answer(await asked(link, FILTER_SUBSCRIBE, request))
        assert (answer.request_id, answer.status) == ("7", 404)


async def test_what_the_options_switch_off_is_not_offered() -> None:
    options = NodeOptions(store=False, lightpush=False)
    async with listening(options=options) as node, client(node) as light:
        with pytest.raises(errors.WakuError, match="offers store"):
            await light.store(StoreQuery())
        assert not {STORE_3, LIGHT_PUSH_2} & (await light.connect()).info.protocols


async def test_wss_with_a_certificate_that_is_renewed(tmp_path: Path) -> None:
    _, trusting = contexts(tmp_path)
    chain, key = tmp_path / "chain.pem", tmp_path / "key.pem"
    secure = "/ip4/127.0.0.1/tcp/0/wss"
    async with listening(secure, tls_certificate=chain, tls_key=key) as node:
        async with client(node, ssl_context=trusting) as light:
            await light.light_push(message(1), SHARD)
        chain.write_text("broken")
        await anyio.sleep(61)
        async with client(node, ssl_context=trusting) as light:
            await light.light_push(message(2), SHARD)
        _, trusting_the_next = contexts(tmp_path)
        await anyio.sleep(61)
        async with client(node, ssl_context=trusting_the_next) as light:
            await light.light_push(message(3), SHARD)
        async with client(node, ssl_context=trusting) as light:
            with pytest.raises(errors.NodeUnreachable, match="certificate verify failed"):
                await light.light_push(message(4), SHARD)


async def test_the_identity_lasts_and_belongs_to_one_node(tmp_path: Path) -> None:
    path = tmp_path / "data" / "node.key"
    async with listening(identity=path) as node:
        first = node.peer_id
        assert node.libp2p_addresses[0].endswith(first)
        with pytest.raises(CannotListen, match=r"another node uses the identity .*--identity"):
            EmbeddedNode(listen=Listen((KINDS["tcp"],), identity=path))
    assert path.stat().st_mode & 0o777 == 0o600
    async with listening(identity=path) as node:
        assert node.peer_id == first


async def test_announced_addresses_replace_those_of_the_machine() -> None:
    announced = "/dns4/node.example/tcp/443/wss"
    async with listening(announce=(announced,)) as node:
        assert node.libp2p_addresses == (f"{announced}/p2p/{node.peer_id}",)
        (address,) = NodeRecord.parse(node.record).addresses
        assert str(address) == node.libp2p_addresses[0]


async def test_an_address_of_all_interfaces_is_announced_as_loopback_too() -> None:
    async with listening("/ip4/0.0.0.0/tcp/0/ws") as node:
        assert any(text.startswith("/ip4/127.0.0.1/tcp/") for text in node.libp2p_addresses)
        assert not any("0.0.0.0" in text for text in node.libp2p_addresses)


async def test_an_address_that_is_taken() -> None:
    async with listening() as node:
        port = node.libp2p_addresses[0].split("/")[4]
        taken = EmbeddedNode(listen=[f"/ip4/127.0.0.1/tcp/{port}"])
        with pytest.raises(CannotListen, match=f"cannot listen at .*{port}: .*--listen"):
            await taken.__aenter__()


async def test_records_that_the_operator_names_are_given_to_peers() -> None:
    async with listening(announce=("/ip4/10.1.2.3/tcp/60000",)) as other:
        record = other.record
    async with listening(known_peers=(record,)) as node, client(node) as light:
        assert [NodeRecord.decode(r).text for r in await (await light.connect()).peers()] == [
            record, node.record,
        ]  # fmt: skip


@pytest.mark.parametrize("reader", ["all on one stream", "one, then ends the stream"])
async def test_pushes_reach_readers_of_both_kinds(reader: str) -> None:
    """T9: nwaku and js-waku read all on one stream, go-waku reads one and ends it."""
    got: list[bytes] = []
    streams: list[Stream] = []

    async def read(stream: Stream) -> None:
        streams.append(stream)
        while (data := await stream.receive_message(MAX_PUSH_BYTES)) is not None:
            got.append(codec.decode_push(data)[1].payload)
            if reader != "all on one stream":
                return

    async with listening() as node, dialled(node, pushes=read) as link:
        assert (await subscribe_peer(link)).status == 200
        sent = [message(number) for number in range(100)]
        for one in sent[:50]:
            node.publish(SHARD, one)
        await until(lambda: len(got) == 50)
        for one in sent[50:]:
            node.publish(SHARD, one)
        await until(lambda: len(got) == 100)
        assert sorted(got) == sorted(one.payload for one in sent)
        assert len(streams) == (1 if reader == "all on one stream" else 100)


async def test_a_subscription_ends_with_the_last_connection() -> None:
    async with listening() as node:
        async with dialled(node) as first, dialled(node) as second:  # one key: one subscriber
            assert (await subscribe_peer(first)).status == 200
            first.close()
            request = codec.encode_filter_request("7", codec.FilterRequest.SUBSCRIBER_PING)
            answer = codec.decode_answer(await asked(second, FILTER_SUBSCRIBE, request))
            assert answer.status == 200
            assert list(node.filter.criteria) == [(SHARD, TOPIC)]
        await until(lambda: not node.filter.criteria)


async def test_web_pages_where_the_options_name_those_that_may() -> None:
    options = NodeOptions(allow_origins=("https://app.example",))
    async with listening(KINDS["ws"], options=options) as node, client(node) as light:
        await light.light_push(message(1), SHARD)  # programs name no origin
        target = Multiaddr.parse(node.libp2p_addresses[0]).dial_target
        for origin, status in (("https://app.example", b"101"), ("https://evil.example", b"403")):
            request = ClientProtocol(parse_uri(f"ws://127.0.0.1:{target.port}/"))
            upgrade = request.connect()
            upgrade.headers["Origin"] = origin
            async with await anyio.connect_tcp(target.host, target.port) as socket:
                await socket.send(upgrade.serialize())
                assert (await socket.receive())[9:12] == status


def test_options_that_make_no_sense() -> None:
    for text, what in (
        ("/dns4/node.example/tcp/1", "has a name; listen at an IP address"),
        ("/ip4/127.0.0.1/udp/1", "cannot be dialled: supported are"),
        ("/ip4/127.0.0.1/tcp/1/wss", "needs `tls_certificate` and `tls_key`"),
        ("nowhere", "not a multiaddress: write /ip4/"),
    ):
        with pytest.raises(ValueError, match=f"`addresses`.*{what}"):
            Listen((text,))
    with pytest.raises(ValueError, match="at least one, such as /ip4"):
        Listen(())
    with pytest.raises(ValueError, match="must be given together"):
        Listen((KINDS["tcp"],), tls_key=Path("key.pem"))
    with pytest.raises(ValueError, match="`announce`"):
        Listen((KINDS["tcp"],), announce=("node.example",))
    with pytest.raises(ValueError, match="`known_peers`"):
        Listen((KINDS["tcp"],), known_peers=("enr:-abc",))
    with pytest.raises(ValueError, match=r"`streams` must be at least 1 \(got 0\)"):
        ListenLimits(streams=0)


def test_an_identity_or_certificate_that_cannot_be_used(tmp_path: Path) -> None:
    key = tmp_path / "node.key"
    key.write_text("11" * 32)
    key.chmod(0o644)
    with pytest.raises(CannotListen, match=r"others may read .*: run chmod 600 "):
        EmbeddedNode(listen=Listen((KINDS["tcp"],), identity=key))
    key.chmod(0o600)
    key.write_text("no key")
    with pytest.raises(CannotListen, match="64 hexadecimal digits; delete it for a new one"):
        EmbeddedNode(listen=Listen((KINDS["tcp"],), identity=key))
    with pytest.raises(CannotListen, match="PEM files, and belong together"):
        EmbeddedNode(listen=Listen((KINDS["tcp"],), tls_certificate=key, tls_key=key))


async def test_a_node_that_cannot_be_made_leaves_its_identity_and_store_free(
    tmp_path: Path,
) -> None:
    listen = Listen((KINDS["tcp"],), identity=tmp_path / "node.key")
    private = NodeOptions(cluster_id=42, store_path=tmp_path / "store")
    with pytest.raises(InvalidInput) as unreachable:
        EmbeddedNode(private, listen=listen, relay_peers=["/ip4/192.0.2.1/udp/1"])
    with pytest.raises(ArchiveError) as no_folder:
        EmbeddedNode(replace(private, store_path=tmp_path / "none" / "store"), listen=listen)
    assert not (tmp_path / "store-wal").exists(), "the store is open"
    async with EmbeddedNode(private, listen=listen):
        assert (tmp_path / "store-wal").exists()
    assert unreachable.tb is not no_folder.tb, "they hold what was made until here"
