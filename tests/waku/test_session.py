"""What goes wrong between two nodes' words: sockets, silence, garbage, and when to try again."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from contextlib import suppress

import anyio
import anyio.lowlevel
import httpx
import pytest
from anyio.abc import SocketStream

from tests.asgi import app_of
from tests.waku.nodes import BASE_URL, FakeNode, answering, said, socket_node
from tests.waku.recordings import Call
from waku import RetryPolicy, StoreQuery, WakuClient, WakuError, WakuMessage, _session
from waku._session import MAX_CONNECTIONS
from waku.errors import BadAnswer, BadRequest, NodeFailure, NodeUnreachable, RateLimited
from waku.models import StoreV1Query

pytestmark = pytest.mark.anyio

TOPIC = "/waku/2/rs/1/0"
MESSAGE = WakuMessage(b"payload", "/app/1/x/proto")

READING: list[Call] = [
    lambda n: n.relay_messages(TOPIC),
    lambda n: n.filter_messages(MESSAGE.content_topic),
    lambda n: n.store(StoreQuery()),
    lambda n: n.store_v1(StoreV1Query()),
    lambda n: n.info(),
    lambda n: n.health(),
    lambda n: n.peers(),
    lambda n: n.relay_peers(),
    lambda n: n.peer("16U"),
    lambda n: n.peer_stats(),
    lambda n: n.filter_subscriptions(),
    lambda n: n.lightpush(MESSAGE),
    lambda n: n.filter_ping(),
]
GARBAGE = [
    b"",
    b"<html><body>welcome</body></html>",
    b"\xff\xfe\x00garbage",
    b'{"unexpected": 1}',
    b"[" * 100_000,
    b"5",
    b'"text"',
    b"[5",
]


@pytest.mark.parametrize("call", READING)
@pytest.mark.parametrize("body", [body for body in GARBAGE if body != b'{"unexpected": 1}'])
async def test_garbage_is_a_bad_answer(call: Call, body: bytes) -> None:
    async with answering(body).client() as client:
        with pytest.raises(BadAnswer) as caught:
            await call(client)
    assert caught.value.status == 200
    assert not caught.value.retryable


@pytest.mark.parametrize("call", [c for i, c in enumerate(READING) if i not in (4, 11)])
async def test_an_object_of_another_api_is_a_bad_answer(call: Call) -> None:
    async with answering({"unexpected": "x"}).client() as client:
        with pytest.raises(BadAnswer):
            await call(client)


@pytest.mark.parametrize("body", [b"<html>welcome</html>", b"[]", b"false", b"\x00"])
async def test_a_publication_is_confirmed_in_the_nodes_words_only(body: bytes) -> None:
    async with answering(body).client() as client:
        with pytest.raises(BadAnswer, match="confirmation"):
            await client.relay_publish(TOPIC, MESSAGE)


@pytest.mark.parametrize("body", [b"<html>", b"", b'"' + b"x" * 300 + b'"', b"two\nlines", b"{}"])
async def test_a_version_is_a_short_text(body: bytes) -> None:
    async with answering(body).client() as client:
        with pytest.raises(BadAnswer):
            await client.version()


@pytest.mark.parametrize(
    ("status", "body", "expected"),
    [
        (302, b"", BadAnswer),
        (404, b"<html>nginx</html>", BadAnswer),
        (502, b"<html>nginx</html>", NodeFailure),
        (429, b"", RateLimited),
    ],
)
async def test_other_servers_answers(status: int, body: bytes, expected: type[WakuError]) -> None:
    async with FakeNode([said(body, status)]).client() as client:
        with pytest.raises(expected) as caught:
            await client.info()
    assert type(caught.value) is expected
    assert caught.value.status == status


async def test_one_bad_message_costs_only_itself() -> None:
    good = {"payload": "YQ==", "contentTopic": "t"}
    bad = [{"payload": "***", "contentTopic": "t"}, None, {"payload": "YQ=="}]
    node = answering([good, *bad, good])
    async with node.client() as client:
        messages = await client.relay_messages(TOPIC)
    assert messages == [WakuMessage(b"a", "t", version=None)] * 2
    assert [rejected.item for rejected in node.rejected] == bad
    assert {rejected.call for rejected in node.rejected} == {
        "relay_messages (GET /relay/v1/messages/%2Fwaku%2F2%2Frs%2F1%2F0)"
    }


async def test_what_is_left_out_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    async with WakuClient(BASE_URL, app=app_of(lambda _: said([5]))) as client:
        assert await client.relay_messages(TOPIC) == []
    assert "one item left out: expected an object, found a number" in caplog.text


async def test_a_health_entry_names_one_protocol() -> None:
    entry = {"Relay": "READY", "Store": "READY"}
    async with answering({"nodeHealth": "READY", "protocolsHealth": [entry]}).client() as client:
        with pytest.raises(BadAnswer, match="one protocol"):
            await client.health()


async def test_a_request_that_cannot_be_written_is_the_callers() -> None:
    async with FakeNode([httpx.LocalProtocolError("Illegal header")]).client() as client:
        with pytest.raises(BadRequest, match="Illegal header"):
            await client.info()
    async with answering(b"v1").client() as client:
        with pytest.raises(BadRequest, match="too long"):
            await client.store(StoreQuery(hashes=(bytes(32),) * 1000))


# Sockets


async def silent(stream: SocketStream) -> None:
    await anyio.sleep_forever()


async def hang_up(stream: SocketStream) -> None:
    pass


async def break_off(stream: SocketStream) -> None:
    await stream.send(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n[")


async def drip(stream: SocketStream) -> None:
    await stream.send(b"HTTP/1.1 200 OK\r\ncontent-length: 1000000\r\n\r\n")
    while True:
        await stream.send(b" ")
        await anyio.sleep(0.01)


async def other_protocol(stream: SocketStream) -> None:
    await stream.send(b"220 mail.invalid ESMTP\r\n250 ready\r\n\r\n")


async def bad_gzip(stream: SocketStream) -> None:
    await stream.send(
        b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: 7\r\n\r\ngarbage"
    )


async def bomb(stream: SocketStream) -> None:
    body = gzip.compress(bytes(1_000_000))
    head = f"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: {len(body)}\r\n\r\n"
    await stream.send(head.encode() + body)


async def endless(stream: SocketStream) -> None:
    await stream.send(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
    while True:
        await stream.send(b"400\r\n" + b"x" * 0x400 + b"\r\n")


@pytest.mark.parametrize(
    ("behave", "expected", "timeout_s"),
    [
        (silent, NodeUnreachable, 1),  # long enough to connect, on a busy machine as well
        (drip, NodeUnreachable, 1),
        (hang_up, NodeUnreachable, 600),
        (break_off, NodeUnreachable, 600),
        (other_protocol, BadAnswer, 600),
        (bad_gzip, BadAnswer, 600),
        (bomb, BadAnswer, 600),
        (endless, BadAnswer, 600),
    ],
)
async def test_sockets_that_misbehave(
    behave: object, expected: type[WakuError], timeout_s: float
) -> None:
    async with (
        socket_node(behave) as url,  # type: ignore[arg-type]
        WakuClient(url, timeout_s=timeout_s, retries=None, max_answer_bytes=10_000) as client,
    ):
        with pytest.raises(expected) as caught:
            await client.relay_messages(TOPIC)
    if isinstance(caught.value, NodeUnreachable):
        assert caught.value.sent


async def test_calls_that_are_cancelled_leave_no_connection_taken() -> None:
    answers = anyio.Event()

    async def behave(stream: SocketStream) -> None:
        await answers.wait()
        await stream.send(b"HTTP/1.1 200 x\r\ncontent-length: 7\r\n\r\nv0.37.1")

    async with socket_node(behave) as url, WakuClient(url, retries=None) as client:
        for turns in (0, 2):
            scopes = [anyio.CancelScope() for _ in range(2 * MAX_CONNECTIONS)]

            async def call(scope: anyio.CancelScope) -> None:
                with scope:
                    await client.version()

            async with anyio.create_task_group() as tasks:
                for scope in scopes:
                    tasks.start_soon(call, scope)
                await anyio.wait_all_tasks_blocked()
                # A call that waits is given the place of the one before, and is cancelled, too.
                for on_its_way, waiting in zip(
                    scopes[:MAX_CONNECTIONS], scopes[MAX_CONNECTIONS:], strict=True
                ):
                    on_its_way.cancel()
                    for _ in range(turns):
                        await anyio.lowlevel.checkpoint()
                    waiting.cancel()
                    await anyio.lowlevel.checkpoint()
        answers.set()
        assert await client.version() == "v0.37.1"


class Ports:
    """Connections of a node that answers each request with its name."""

    def __init__(self) -> None:
        self.open: list[int] = []
        self.opened = 0

    async def __call__(self, stream: SocketStream) -> None:
        self.opened += 1
        number = self.opened
        self.open.append(number)
        with suppress(anyio.EndOfStream):
            while True:
                await stream.send(b"HTTP/1.1 200 x\r\ncontent-length: 2\r\n\r\nv1")
                await stream.receive()
        self.open.remove(number)


async def until(holds: Callable[[], bool]) -> None:
    while not holds():
        await anyio.lowlevel.checkpoint()


async def test_a_connection_serves_one_request_after_another() -> None:
    ports = Ports()
    async with socket_node(ports) as url, WakuClient(url, retries=None) as client:
        for _ in range(5):
            await client.version()
        assert ports.opened == 1
        await client.aclose()
        await until(lambda: not ports.open)


async def test_a_connection_that_its_node_may_be_closing_serves_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ports = Ports()
    monkeypatch.setattr("waku.client.KEEPALIVE_S", 0)
    async with socket_node(ports) as url, WakuClient(url, retries=None) as client:
        for _ in range(3):
            await client.version()
    assert ports.opened == 3


async def test_connections_of_a_burst_are_closed_when_none_needs_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ports = Ports()
    monkeypatch.setattr(_session, "MAX_IDLE_CONNECTIONS", 3)
    async with socket_node(ports) as url, WakuClient(url, retries=None) as client:
        async with anyio.create_task_group() as tasks:
            for _ in range(10):
                tasks.start_soon(client.version)
        await until(lambda: len(ports.open) == 3)
        monkeypatch.setattr(_session, "KEEPALIVE_S", 0)
        await client.version()
        await until(lambda: len(ports.open) == 1)


async def test_the_last_idle_connection_may_be_taken_while_others_are_closed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Slow(httpx.AsyncBaseTransport):
        async def aclose(self) -> None:
            taken.append(connections.take())

    taken: list[httpx.AsyncBaseTransport] = []
    connections = _session.Connections(Slow)
    monkeypatch.setattr(_session, "MAX_IDLE_CONNECTIONS", 1)
    in_use = [connections.take() for _ in range(2)]
    for transport in in_use:
        await connections.give_back(transport)
    assert taken == in_use[1:]


async def test_nobody_there() -> None:
    async with socket_node(silent) as url:
        pass
    async with WakuClient(url, retries=None) as client:
        with pytest.raises(NodeUnreachable) as caught:
            await client.info()
    assert not caught.value.sent


PAGE = b"<html><body>The web filter of your company has closed this address</body></html>"


@pytest.mark.parametrize("status", [302, 400, 405, 408, 410, 413, 421, 425, 451, 499, 501, 502])
@pytest.mark.parametrize("body", [b"", PAGE, b"\n" + PAGE])
async def test_what_stands_in_between_says_nothing_of_the_message(status: int, body: bytes) -> None:
    if not body and status in (400, 405, 413, 501):
        return  # a node's own answers
    async with answering(body, status=status).client() as client:
        for call in (lambda: client.lightpush(MESSAGE), lambda: client.relay_subscribe([TOPIC])):
            with pytest.raises((BadAnswer, NodeFailure)):
                await call()


async def test_a_page_is_known_by_its_type() -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        return httpx.Response(400, html="<!-- this is not allowed here -->"[5:])

    async with WakuClient(BASE_URL, app=app_of(answer)) as client:
        with pytest.raises(BadAnswer):
            await client.relay_auto_publish(MESSAGE)


# Retries

CUT = httpx.ReadError("cut")
REFUSED = httpx.ConnectError("refused")
BUSY = said(b"Request rate limit reached", 429)
OK = said(b"OK")
NOTHING = said([])

SAFE: list[tuple[Call, httpx.Response]] = [
    (lambda n: n.info(), said({"listenAddresses": []})),
    (lambda n: n.store(StoreQuery()), said({"statusCode": 200, "messages": []})),
    (lambda n: n.relay_subscribe([TOPIC]), OK),
    (lambda n: n.relay_auto_unsubscribe(["/app/1/x/proto"]), OK),
    (lambda n: n.filter_unsubscribe_all("r"), said({"requestId": "r", "statusDesc": "OK"})),
]
ONCE: list[tuple[Call, httpx.Response]] = [
    (lambda n: n.relay_publish(TOPIC, MESSAGE), OK),
    (lambda n: n.relay_auto_publish(MESSAGE), OK),
    (lambda n: n.lightpush(MESSAGE), said({"relayPeerCount": 1})),
    (lambda n: n.lightpush_v1(MESSAGE), OK),
    (lambda n: n.relay_messages(TOPIC), NOTHING),
    (lambda n: n.relay_auto_messages("/app/1/x/proto"), NOTHING),
    (lambda n: n.filter_messages("/app/1/x/proto"), NOTHING),
    (lambda n: n.filter_ping("r"), said({"requestId": "r", "statusDesc": "OK"})),
    (
        lambda n: n.filter_subscribe(["/app/1/x/proto"]),
        said({"requestId": "r", "statusDesc": "OK"}),
    ),
]


@pytest.mark.parametrize(("call", "answer"), SAFE)
@pytest.mark.parametrize("failure", [CUT, REFUSED, BUSY, said(b"", 503)])
async def test_safe_calls_are_repeated(
    call: Call, answer: httpx.Response, failure: httpx.Response | Exception
) -> None:
    node = FakeNode([failure, failure, answer])
    async with node.client(attempts=3) as client:
        await call(client)
    assert len(node.requests) == 3


async def test_a_page_of_store_is_not_asked_for_again_after_a_timeout() -> None:
    """The same page would take as long, so the caller halves it."""
    node = FakeNode([httpx.ReadTimeout("slow")])
    async with node.client(attempts=3) as client:
        with pytest.raises(NodeUnreachable) as caught:
            await client.store(StoreQuery())
    assert caught.value.timed_out
    assert len(node.requests) == 1


@pytest.mark.parametrize(("call", "answer"), ONCE)
async def test_other_calls_are_repeated_only_if_they_never_left(
    call: Call, answer: httpx.Response
) -> None:
    node = FakeNode([REFUSED, httpx.ConnectTimeout("slow"), answer])
    async with node.client(attempts=3) as client:
        await call(client)
    assert len(node.requests) == 3


@pytest.mark.parametrize(("call", "answer"), ONCE)
@pytest.mark.parametrize("failure", [CUT, BUSY, said(b"", 503)])
async def test_other_calls_go_out_once(
    call: Call, answer: httpx.Response, failure: httpx.Response | Exception
) -> None:
    node = FakeNode([failure, answer])
    async with node.client(attempts=3) as client:
        with pytest.raises(WakuError):
            await call(client)
    assert len(node.requests) == 1


async def test_a_peer_that_could_not_be_dialled_is_tried_again() -> None:
    # the failure is inside a 200 answer
    dial = said({"statusCode": 504, "statusDesc": "PEER_DIAL_FAILURE: 16U", "messages": []})
    node = FakeNode([dial, said({"statusCode": 200, "messages": []})])
    async with node.client(attempts=3) as client:
        await client.store(StoreQuery())
    assert len(node.requests) == 2


@pytest.mark.parametrize("failure", [said(b"", 400), said(b"", 404), said(b"<html>")])
async def test_what_time_does_not_cure_is_not_repeated(failure: httpx.Response) -> None:
    node = FakeNode([failure])
    async with node.client(attempts=3) as client:
        with pytest.raises(WakuError) as caught:
            await client.info()
    assert not caught.value.retryable
    assert len(node.requests) == 1


async def test_waits_grow_and_are_bounded() -> None:
    node = FakeNode([CUT])
    policy = RetryPolicy(attempts=8, initial_ms=100, max_ms=1000, jitter_ms=50, sleep=node.wait)
    async with WakuClient(BASE_URL, app=app_of(node.answer), retries=policy) as client:
        with pytest.raises(NodeUnreachable):
            await client.info()
    assert len(node.requests) == 8
    for wait, least in zip(node.waits, [0.1, 0.2, 0.4, 0.8, 1, 1, 1], strict=True):
        assert least <= wait <= least + 0.05


async def test_waiting_is_anyios_unless_told_otherwise() -> None:
    node = FakeNode([CUT, said(b"v1")])
    policy = RetryPolicy(initial_ms=1, jitter_ms=0)
    async with WakuClient(BASE_URL, app=app_of(node.answer), retries=policy) as client:
        assert await client.version() == "v1"


async def test_no_policy_means_one_attempt() -> None:
    node = FakeNode([CUT])
    async with WakuClient(BASE_URL, app=app_of(node.answer), retries=None) as client:
        with pytest.raises(NodeUnreachable):
            await client.info()
    assert len(node.requests) == 1


def test_a_policy_is_checked() -> None:
    with pytest.raises(ValueError, match="attempts"):
        RetryPolicy(attempts=0)
    with pytest.raises(ValueError, match="negative"):
        RetryPolicy(max_ms=-1)
