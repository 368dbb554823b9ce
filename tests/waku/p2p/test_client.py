"""The light client against a scripted peer, in virtual time."""

from collections.abc import Callable
from contextlib import AsyncExitStack, suppress
from dataclasses import replace
from typing import Any

import anyio
import pytest

from tests import inside
from tests.waku.libp2p.pair import DIALLER, LISTENER
from waku import StoreQuery, WakuMessage, errors, message_hash
from waku.libp2p import InvalidInput, Libp2pError, Multiaddr
from waku.libp2p.driver import Host, Stream
from waku.libp2p.varint import prefixed
from waku.p2p import (
    ClientEvent,
    LightClient,
    MessageDropped,
    PeerConnected,
    PeerLost,
    PeerPaused,
    PushRefused,
    SubscriptionInterrupted,
    SubscriptionRenewed,
    TooFewPeers,
    codec,
)
from waku.p2p import waku_libp2p_pb2 as pb
from waku.p2p.client import MAX_REFUSED
from waku.p2p.protocols import (
    FILTER_PUSH,
    FILTER_SUBSCRIBE,
    LIGHT_PUSH_2,
    LIGHT_PUSH_3,
    MAX_MESSAGE_BYTES,
    METADATA,
)

from .service import HASH, LIMIT, SHARD, TOPIC, Service, identity, served

pytestmark = pytest.mark.anyio

MESSAGE = WakuMessage(b"hello", TOPIC, timestamp=7)
SUBSCRIBE, UNSUBSCRIBE, PING = 1, 2, 0


def told(events: list[ClientEvent]) -> list[ClientEvent]:
    """Events but those that say that one peer is less than two."""
    return [event for event in events if not isinstance(event, TooFewPeers)]


# Metadata


async def test_metadata_are_answered_too() -> None:
    """T12: nwaku asks its clients, and hangs up on those that do not answer."""
    service = Service()
    async with served(service) as client:
        await client.connect()
        async with service.links[0].open([METADATA]) as stream:
            await stream.send_message(codec.encode_metadata(service.metadata))
            stream.end()
            answer = await stream.receive_message(LIMIT)
        assert answer is not None
        assert codec.decode_metadata(answer) == codec.Metadata(1, frozenset({0}))


@pytest.mark.parametrize(
    ("metadata", "reason"),
    [
        (codec.Metadata(16), "is in cluster 16, not 1"),
        (codec.Metadata(1, frozenset({3, 4})), "has shards 3, 4, not 0"),
    ],
)
async def test_a_peer_of_another_network_is_an_error(metadata: codec.Metadata, reason: str) -> None:
    service = Service()
    service.metadata = metadata
    events: list[ClientEvent] = []
    async with served(service, events=events) as client:
        with pytest.raises(errors.WrongNetwork, match=reason):
            await client.light_push(MESSAGE, SHARD)
        assert [type(event) for event in told(events)] == [PeerLost]
        await service.links[0].closed.wait()


async def test_a_peer_of_another_network_that_hangs_up_is_named() -> None:
    """T12: go-waku and nwaku ask for the client's metadata and disconnect; they may never answer
    its own question. What they asked with names their network."""

    async def ask_and_hang_up(stream: Stream) -> None:
        async with stream.link.open([METADATA]) as asking:
            await asking.request(codec.encode_metadata(codec.Metadata(16)), LIMIT)
        stream.link.close()

    service = Service()
    service.handlers[METADATA] = ask_and_hang_up
    async with served(service) as client:
        with pytest.raises(errors.WrongNetwork, match="is in cluster 16, not 1"):
            await client.connect()


async def test_a_peer_without_metadata_or_shards_is_taken() -> None:
    service = Service()
    service.metadata = codec.Metadata(1)
    async with served(service) as client:
        assert (await client.connect()).metadata == codec.Metadata(1)
    del service.handlers[METADATA]
    async with served(service) as client:
        assert (await client.connect()).metadata is None


# Light push


async def test_light_push_by_version_3_or_2() -> None:
    service = Service()
    async with served(service) as client:
        assert (await client.light_push(MESSAGE, SHARD)).relay_peer_count == 3
        (request,) = service.asked
        assert (request.pubsub_topic, codec.from_proto(request.message).payload) == (
            SHARD, b"hello",
        )  # fmt: skip
    del service.handlers[LIGHT_PUSH_3]
    async with served(service) as client:
        await client.light_push(MESSAGE, SHARD)
        assert service.asked[1].request.pubsub_topic == SHARD
    del service.handlers[LIGHT_PUSH_2]
    async with served(service) as client:
        with pytest.raises(errors.EndpointMissing, match="none of 1 connected peers offers light"):
            await client.light_push(MESSAGE, SHARD)


REFUSALS = [
    (420, "RLN validation failed", errors.RlnProofRequired, "attaches proofs"),
    (420, "Message size exceeded maximum of 153600 bytes", errors.MessageTooLarge, "segment"),
    (420, "Invalid content topic: /a", errors.BadRequest, "correct"),
    (420, "", errors.BadRequest, "correct"),
    (429, "", errors.RateLimited, "fewer requests"),
    (504, "", errors.OutOfRlnProofs, "next epoch"),
    (505, "", errors.NoPeers, "wait for peers"),
    (503, "no suitable peers", errors.NoPeers, "wait for peers"),
    (400, "RLN validation failed", errors.RlnProofRequired, "attaches proofs"),
    (413, "", errors.MessageTooLarge, "segment"),
    (400, "what", errors.BadRequest, "correct"),
    (500, "", errors.NodeFailure, "log"),
    (0, "", errors.NodeFailure, "log"),
]


@pytest.mark.parametrize(("status", "text", "error", "advice"), REFUSALS)
async def test_a_refusal_says_what_it_means(
    status: int, text: str, error: type[errors.WakuError], advice: str
) -> None:
    service = Service()
    service.push_answer = lambda request: pb.LightpushResponse(
        request_id=request.request_id, status_code=status, status_desc=text
    )
    async with served(service) as client:
        with pytest.raises(errors.WakuError, match=advice) as failure:
            await client.light_push(MESSAGE, SHARD)
        assert type(failure.value) is error
        assert failure.value.status == status


async def test_a_message_that_is_too_large_when_encoded_is_not_sent() -> None:
    service = Service()
    beside = len(codec.encode_message(replace(MESSAGE, payload=bytes(MAX_MESSAGE_BYTES))))
    fits = replace(MESSAGE, payload=bytes(2 * MAX_MESSAGE_BYTES - beside))
    assert len(codec.encode_message(fits)) == MAX_MESSAGE_BYTES
    async with served(service) as client:
        await client.light_push(fits, SHARD)
        with pytest.raises(errors.MessageTooLarge, match="153601 bytes encoded; at most 153600"):
            await client.light_push(replace(fits, payload=fits.payload + b"1"), SHARD)
        assert len(service.asked) == 1


async def test_a_push_that_reached_nobody_failed() -> None:
    service = Service()
    service.push_answer = lambda request: pb.LightpushResponse(
        request_id=request.request_id, status_code=200
    )
    async with served(service) as client:
        with pytest.raises(errors.NoPeers, match="0 relay peers"):
            await client.light_push(MESSAGE, SHARD)


async def test_a_push_repeated_after_silence_is_taken_where_the_peer_has_it() -> None:
    """nwaku answers 505 then, which would pause a peer that did what it was asked."""
    service, events = Service(), list[ClientEvent]()
    service.push_answer = lambda request: None
    async with served(service, on_event=events.append) as client:
        with pytest.raises(errors.NodeUnreachable):
            await client.light_push(MESSAGE, SHARD)
        events.clear()
        service.push_answer = lambda request: pb.LightpushResponse(
            request_id=request.request_id, status_code=505, status_desc="no peers"
        )
        assert (await client.light_push(MESSAGE, SHARD)).relay_peer_count == 0
        assert not any(isinstance(event, PeerPaused) for event in events)
        with pytest.raises(errors.NoPeers):
            await client.light_push(replace(MESSAGE, payload=b"another"), SHARD)


UNKIND: list[tuple[Callable[[Any], Any], type[errors.WakuError], str]] = [
    (lambda _: pb.LightpushResponse(request_id="b", status_code=200), errors.BadAnswer, "'b'"),
    (lambda _: b"\x03\xff\xff\xff", errors.BadAnswer, "LightpushResponse"),
    (lambda _: b"\xff\xff\xff\x7f", errors.BadAnswer, "message_bytes"),
    (lambda _: b"\xff" * 12, errors.BadAnswer, "varint"),
    (lambda _: b"\x05a", errors.NodeUnreachable, "within a message"),
    (lambda _: b"", errors.BadAnswer, "without an answer"),
    (lambda _: None, errors.NodeUnreachable, "no answer within 10000 ms"),
]


@pytest.mark.parametrize(("answer", "error", "words"), UNKIND)
async def test_an_unkind_answer_is_a_clear_error(
    answer: Callable[[Any], Any], error: type[errors.WakuError], words: str
) -> None:
    """The connection lives on: the next push is answered."""
    service = Service()
    kind, service.push_answer = service.push_answer, answer
    async with served(service) as client:
        with pytest.raises(error, match=words):
            await client.light_push(MESSAGE, SHARD)
        service.push_answer = kind
        await client.light_push(MESSAGE, SHARD)
        assert len(service.dials) == 1


async def test_a_lost_connection_is_dialled_again_by_the_next_call() -> None:
    service = Service()
    async with served(service) as client:
        await client.light_push(MESSAGE, SHARD)
        await anyio.sleep(20)
        service.links[0].close()
        await anyio.sleep(1)
        await client.light_push(MESSAGE, SHARD)
        await anyio.sleep(20)
        service.reachable = False
        service.links[1].close()
        await anyio.sleep(1)
        with pytest.raises(errors.NodeUnreachable, match="nobody is there") as failure:
            await client.light_push(MESSAGE, SHARD)
        assert not failure.value.sent


# Filter


async def test_pushes_arrive_on_one_stream_or_on_many() -> None:
    """T9: nwaku pushes all on one stream, go-waku opens one for each."""
    service = Service()
    async with served(service) as client:
        async with client.subscribe(SHARD, [TOPIC]) as messages:
            assert service.subscribed == [(SUBSCRIBE, SHARD, (TOPIC,))]
            await service.push(b"1", b"2", b"3")
            await service.push(b"4", streams=2)
            await service.push(b"other", topic="/other/1/x/proto")
            await service.push(b"5")
            got = [(await anext(messages)).message.payload for _ in range(5)]
            assert got == [b"1", b"2", b"3", b"4", b"5"]
        await anyio.sleep(2)
        assert service.subscribed[1:] == [(UNSUBSCRIBE, SHARD, (TOPIC,))]


async def test_subscriptions_end_together_and_at_the_latest_with_the_client() -> None:
    service = Service()
    topics = tuple(f"/app/1/{number}/proto" for number in range(10, 20))
    async with served(service) as client, AsyncExitStack() as stack:
        for topic in topics:
            await stack.enter_async_context(client.subscribe(SHARD, [topic]))
        service.subscribed.clear()
        await stack.aclose()
    assert service.subscribed == [(UNSUBSCRIBE, SHARD, topics)]


async def test_a_topic_that_is_subscribed_to_again_at_once_stays() -> None:
    service = Service()
    async with served(service) as client:
        async with client.subscribe(SHARD, [TOPIC]):
            pass
        async with client.subscribe(SHARD, [TOPIC]) as messages:
            await anyio.sleep(2)
            await service.push(b"still")
            assert (await anext(messages)).message.payload == b"still"


async def test_what_another_subscription_needs_is_kept() -> None:
    service = Service()
    async with served(service) as client, client.subscribe(SHARD, [TOPIC]) as messages:
        async with client.subscribe(SHARD, [TOPIC, "/app/1/more/proto"]):
            pass
        await anyio.sleep(2)
        assert service.subscribed[-1] == (UNSUBSCRIBE, SHARD, ("/app/1/more/proto",))
        await service.push(b"still")
        assert (await anext(messages)).message.payload == b"still"


async def test_a_broken_push_costs_its_stream_alone() -> None:
    service = Service()
    async with served(service) as client, client.subscribe(SHARD, [TOPIC]) as messages:
        async with service.links[0].open([FILTER_PUSH]) as stream:
            await stream.send_message(b"\xff\xff")
            with pytest.raises(Exception, match="reset"):
                await stream.receive()
        await service.push(b"good")
        assert (await anext(messages)).message.payload == b"good"


@pytest.mark.parametrize("wrong", [prefixed(b"\xff\xff"), b"\xff\xff\xff\x7f", b"\xff" * 10])
async def test_a_peer_that_pushes_nonsense_is_named_and_given_up(wrong: bytes) -> None:
    """Bytes that are no message, a message of 268 MB, and a length that is none."""
    service = Service()
    events: list[ClientEvent] = []
    async with served(service, events=events) as client, client.subscribe(SHARD, [TOPIC]):
        link, number = service.links[0], 0
        while link.is_open:
            number += 1
            with suppress(Libp2pError):
                async with link.open([FILTER_PUSH]) as stream:
                    await stream.send(wrong)
                    await stream.receive()
        assert number == MAX_REFUSED
        refused = [event for event in events if isinstance(event, PushRefused)]
        assert len(refused) == MAX_REFUSED
        assert {event.peer_id for event in refused} == {LISTENER.peer_id}
        await anyio.sleep(1)
        (lost,) = (event for event in events if isinstance(event, PeerLost))
        assert "20 pushes cannot be read" in lost.reason


async def test_a_slow_reader_is_named() -> None:
    service = Service()
    events: list[ClientEvent] = []
    async with (
        served(service, events=events, buffer_messages=2) as client,
        client.subscribe(SHARD, [TOPIC]) as messages,
    ):
        await service.push(b"1", b"2", b"3")
        assert told(events)[1:] == [MessageDropped(SHARD, TOPIC)]
        assert [(await anext(messages)).message.payload for _ in range(2)] == [b"1", b"2"]


async def test_a_peer_that_forgot_is_subscribed_with_again() -> None:
    service = Service()
    async with served(service) as client, client.subscribe(SHARD, [TOPIC]):
        service.filter_status = 404
        await anyio.sleep(61)
        assert [kind for kind, _, _ in service.subscribed] == [SUBSCRIBE, PING, SUBSCRIBE]
        assert len(service.dials) == 1


async def test_a_lost_peer_is_found_again_and_subscribed_with() -> None:
    service = Service()
    events: list[ClientEvent] = []
    async with (
        served(service, events=events) as client,
        client.subscribe(SHARD, [TOPIC]) as messages,
    ):
        await anyio.sleep(15)
        service.reachable = False
        service.links[0].close()
        await anyio.sleep(20)
        waits = [round(b - a) for a, b in zip(service.dials[1:], service.dials[2:], strict=False)]
        assert waits == [1, 2, 4, 8]
        service.reachable = True
        await anyio.sleep(20)
        assert service.subscribed == [(SUBSCRIBE, SHARD, (TOPIC,))] * 2
        await service.push(b"again")
        assert (await anext(messages)).message.payload == b"again"
        kinds = [type(event) for event in told(events)]
        assert kinds[:3] == [PeerConnected, PeerLost, SubscriptionInterrupted]
        assert kinds[-2:] == [PeerConnected, SubscriptionRenewed]


async def test_a_peer_that_does_not_answer_pings_is_given_up() -> None:
    service = Service()
    events: list[ClientEvent] = []
    async with served(service, events=events, keep_alive_ms=1_000) as client:
        peer = await client.connect()
        await anyio.sleep(10)
        assert told(events) == [PeerConnected(LISTENER.peer_id, "py-waku")]
        inside.handlers(service.links[0])["/ipfs/ping/1.0.0"] = lambda _: anyio.sleep_forever()
        await anyio.sleep(30)
        assert peer.link.failure is not None
        kinds = [type(event) for event in told(events)]
        assert kinds[:3] == [PeerConnected, PeerLost, PeerConnected]


async def test_a_refused_subscription_is_an_error() -> None:
    service = Service()
    service.filter_status = 400
    async with served(service) as client:
        with pytest.raises(errors.BadRequest):
            async with client.subscribe(SHARD, [TOPIC]):
                pass
        with pytest.raises(ValueError, match=r"1 to 100 topics \(got 0\)"):
            async with client.subscribe(SHARD, []):
                pass
    del service.handlers[FILTER_SUBSCRIBE]
    async with served(service) as client:
        with pytest.raises(errors.EndpointMissing):
            async with client.subscribe(SHARD, [TOPIC]):
                pass


# Store


def page_of(request: Any, numbers: range, cursor: bytes | None) -> Any:
    return pb.StoreQueryResponse(
        request_id=request.request_id,
        status_code=200,
        messages=[
            pb.WakuMessageKeyValue(
                message_hash=bytes([n]) * 32,
                message=codec.to_proto(WakuMessage(b"%d" % n, TOPIC)),
                pubsub_topic=SHARD,
            )
            for n in numbers
        ],
        pagination_cursor=cursor,
    )


async def test_a_store_is_read_page_by_page() -> None:
    service = Service()
    lost = [True]

    def answer(request: Any) -> Any:
        at = request.pagination_cursor[0] if request.pagination_cursor else 0
        if at == 20 and lost.pop():
            # T16: nwaku's words, without a request id; the cursor's message is gone.
            return pb.StoreQueryResponse(status_code=300, status_desc="…: cursor not found")
        lost.append(False)
        cursor = bytes([at + 10]) * 32 if at < 20 else None
        return page_of(request, range(at, at + 10), cursor)

    service.store_answer = answer
    async with served(service) as client:
        query = StoreQuery(pubsub_topic=SHARD, content_topics=(TOPIC,), page_size=10)
        lost[:] = [True]
        found = [entry.message_hash[0] async for entry in client.store_all(query)]
        assert found == list(range(30))


async def test_a_store_is_asked_for_hashes() -> None:
    """A message under the hash of another is left out, as one that was not asked for is."""
    service = Service()
    messages = [WakuMessage(b"%d" % n, TOPIC) for n in range(3)]
    digests = [message_hash(SHARD, message) for message in messages]

    def answer(request: Any) -> Any:
        page = page_of(request, range(3), None)
        for item, digest in zip(page.messages, (digests[0], digests[2], digests[2]), strict=True):
            item.message_hash = digest
        return page

    service.store_answer = answer
    async with served(service) as client:
        asked = [*digests[:2], *(bytes([n]) * 32 for n in range(118))]
        found = await client.store_by_hash(asked)
        assert [entry.message_hash for entry in found] == digests[:1]
        assert [len(request.message_hashes) for request in service.asked] == [100, 20]
        assert {r.pubsub_topic for r in service.asked} == {""}


HASH_REFUSALS = [
    (400, "BAD_REQUEST: queries by message hash are not supported", errors.BadRequest),
    (501, "queries by message hash: is not implemented", errors.EndpointMissing),
]


@pytest.mark.parametrize(("status", "text", "kind"), HASH_REFUSALS)
async def test_a_store_that_refuses_hashes_is_still_asked_for_the_rest(
    status: int, text: str, kind: type[errors.WakuError]
) -> None:
    service = Service()
    message = WakuMessage(b"kept", TOPIC)

    def answer(request: Any) -> Any:
        if request.message_hashes:
            return pb.StoreQueryResponse(
                request_id=request.request_id, status_code=status, status_desc=text
            )
        page = page_of(request, range(1), None)
        page.messages[0].message_hash = message_hash(SHARD, message)
        return page

    service.store_answer = answer
    async with served(service) as client:
        for _ in range(3):
            with pytest.raises(kind, match="queries by message hash"):
                await client.store_by_hash([HASH])
            page = await client.store(StoreQuery(pubsub_topic=SHARD, content_topics=(TOPIC,)))
            assert len(page.entries) == 1


@pytest.mark.parametrize(("status", "text", "kind"), HASH_REFUSALS)
async def test_another_store_is_asked_for_hashes_that_one_refuses(
    status: int, text: str, kind: type[errors.WakuError]
) -> None:
    refusing, answering = Service(LISTENER), Service(identity(2))
    refusing.store_answer = lambda request: pb.StoreQueryResponse(
        request_id=request.request_id, status_code=status, status_desc=text
    )
    message = WakuMessage(b"0", TOPIC)
    digest = message_hash(SHARD, message)

    def answer(request: Any) -> Any:
        page = page_of(request, range(1), None)
        page.messages[0].message_hash = digest
        return page

    answering.store_answer = answer
    async with served(refusing, answering) as client:
        for _ in range(4):  # whichever has its turn
            found = await client.store_by_hash([digest])
            assert [entry.message_hash for entry in found] == [digest]


async def test_a_store_that_is_being_dialled_is_waited_for_where_another_refuses() -> None:
    """It was connected soon after, and the query had failed."""
    refusing, answering = Service(LISTENER), Service(identity(2))
    answering.dialled_after = anyio.Event()

    def refuse(request: Any) -> Any:
        assert answering.dialled_after is not None
        answering.dialled_after.set()
        return pb.StoreQueryResponse(request_id=request.request_id, status_code=503)

    refusing.store_answer = refuse
    answering.store_answer = lambda request: page_of(request, range(1), None)
    async with served(refusing, answering) as client:
        query = StoreQuery(pubsub_topic=SHARD, content_topics=(TOPIC,))
        assert len((await client.store(query)).entries) == 1


async def test_a_refusal_of_a_store_needs_no_request_id() -> None:
    """T16."""
    service = Service()
    service.store_answer = lambda _: pb.StoreQueryResponse(status_code=429)
    async with served(service) as client:
        with pytest.raises(errors.RateLimited):
            await client.store(StoreQuery())
        await anyio.sleep(2)
        service.store_answer = lambda _: pb.StoreQueryResponse(status_code=200)
        with pytest.raises(errors.BadAnswer, match="answers request ''"):
            await client.store(StoreQuery(cursor=HASH))
        assert await client.ping() == 0.0


# Arguments, and sockets


def test_arguments_are_checked() -> None:
    with pytest.raises(ValueError, match="at least one peer"):
        LightClient([], cluster_id=1)
    with pytest.raises(InvalidInput, match="cannot be dialled"):
        LightClient("/ip4/1.2.3.4/udp/1", cluster_id=1)
    with pytest.raises(ValueError, match=r"`keep_alive_ms` must be at least 1 \(got 0\)"):
        LightClient("/ip4/1.2.3.4/tcp/1", cluster_id=1, keep_alive_ms=0)


class TestLoopback:
    @pytest.fixture(params=["asyncio", "trio"])
    def anyio_backend(self, request: pytest.FixtureRequest) -> str:
        return str(request.param)

    async def test_an_error_leaves_the_block_as_it_is(self) -> None:
        """Not in an ExceptionGroup: `except WakuError` around the client works."""
        with pytest.raises(errors.NodeUnreachable) as failure:
            async with LightClient("/ip4/127.0.0.1/tcp/1", cluster_id=1) as client:
                await client.ping()
        assert not failure.value.sent
        with anyio.move_on_after(0.01) as scope:
            async with LightClient("/ip4/127.0.0.1/tcp/1", cluster_id=1):
                await anyio.sleep_forever()
        assert scope.cancelled_caught

    @pytest.mark.parametrize("kind", ["", "/ws"], ids=["tcp", "websocket"])
    async def test_the_next_address_is_tried(self, kind: str) -> None:
        service = Service()
        async with Host(LISTENER, handlers=service.handlers) as host:
            address = await host.listen(Multiaddr.parse(f"/ip4/127.0.0.1/tcp/0{kind}"))
            addresses = [f"/ip4/127.0.0.1/tcp/1{kind}", str(address)]
            async with LightClient(addresses, cluster_id=1, identity=DIALLER) as client:
                assert (await client.light_push(MESSAGE, SHARD)).relay_peer_count == 3
                async with client.subscribe(SHARD, [TOPIC]) as messages:
                    service.links += host.links
                    await service.push(b"pushed")
                    pushed = await anext(messages)
                    assert (pushed.pubsub_topic, pushed.message.payload) == (SHARD, b"pushed")
                    assert pushed.message_hash == message_hash(SHARD, pushed.message)
