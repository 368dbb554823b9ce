"""The client as an object: its life, its headers, and the package's door."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import anyio
import httpx
import pytest
from anyio.streams.tls import TLSListener

import waku
from tests.asgi import app_of
from tests.waku.libp2p.driver.tls import contexts
from tests.waku.nodes import BASE_URL, answering, socket_node
from waku import WakuClient, WakuMessage
from waku.client import CLIENT_ID_HEADER
from waku.errors import ClientClosed, NodeUnreachable, NoPeers

pytestmark = pytest.mark.anyio

TOPIC = "/waku/2/rs/1/0"


async def test_closing_twice_is_closing_once() -> None:
    client = answering(b"v1").client()
    async with client as entered:
        assert entered is client
        await client.aclose()
    await client.aclose()
    with pytest.raises(ClientClosed):
        await client.version()


async def test_a_cancelled_block_still_closes() -> None:
    client = answering(b"v1").client()
    with anyio.CancelScope() as scope:
        async with client:
            scope.cancel()
            await anyio.lowlevel.checkpoint()
    with pytest.raises(ClientClosed):
        await client.version()


async def test_every_request_names_its_client() -> None:
    node = answering(b"OK")
    async with node.client() as client:
        await client.relay_subscribe([TOPIC])
        await client.relay_publish(TOPIC, WakuMessage(b"a", "t"))
    assert {request.headers[CLIENT_ID_HEADER] for request in node.requests} == {"tester"}


async def test_clients_have_names_of_their_own() -> None:
    names = set()

    def node(request: httpx.Request) -> httpx.Response:
        names.add(request.headers[CLIENT_ID_HEADER])
        assert request.headers["Authorization"] == "Bearer x"
        return httpx.Response(200, text="v1")

    for _ in range(2):
        async with WakuClient(
            BASE_URL, app=app_of(node), headers={"Authorization": "Bearer x"}
        ) as client:
            await client.version()
    assert len(names) == 2
    assert {len(name) for name in names} == {32}


async def test_a_token_in_the_address_goes_into_a_header() -> None:
    node = answering(b"v1")
    url = BASE_URL.replace("//", "//:s3%3Acret@")
    async with WakuClient(url, app=app_of(node.answer), headers={"authorization": "x"}) as client:
        await client.version()
    (request,) = node.requests
    assert request.headers.get_list("Authorization") == ["Basic OnMzOmNyZXQ="]  # `:s3:cret`
    assert request.headers["Host"] == "node.invalid:8645"


async def test_a_request_without_a_body_says_so_where_one_may_be() -> None:
    """A proxy may refuse a POST without a length."""
    node = answering(b"OK")
    async with node.client() as client:
        await client.set_log_level("INFO")
    (request,) = node.requests
    assert request.headers["Content-Length"] == "0"


async def test_request_ids_do_not_repeat() -> None:
    node = answering({"requestId": "r", "statusDesc": "OK"})
    async with node.client() as client:
        await client.filter_ping()
        await client.filter_ping()
    assert [request.url.path for request in node.requests] == [
        "/filter/v2/subscriptions/tester-1",
        "/filter/v2/subscriptions/tester-2",
    ]


async def test_a_base_url_may_have_a_path_and_topics_stay_one_segment() -> None:
    def node(request: httpx.Request) -> httpx.Response:
        assert request.url.raw_path == b"/pre/fix/relay/v1/messages/%2Fwaku%2F2%2F%25%3F"
        return httpx.Response(200, text="[]")

    async with WakuClient("https://proxy.invalid/pre/fix", app=app_of(node)) as client:
        assert await client.relay_messages("/waku/2/%?") == []


async def test_over_a_real_socket() -> None:
    async def behave(stream: anyio.abc.SocketStream) -> None:
        await stream.send(
            b"HTTP/1.1 503 x\r\ncontent-length: 35\r\n\r\nNo suitable service peer & no disco"
        )

    async with socket_node(behave) as url, WakuClient(url, retries=None) as client:
        with pytest.raises(NoPeers) as caught:
            await client.lightpush_v1(WakuMessage(b"a", "t"))
    assert str(caught.value) == (
        "lightpush_v1 (POST /lightpush/v1/message) answered 503: "
        "No suitable service peer & no disco; wait for peers, or add one with add_peers()"
    )


@pytest.mark.parametrize(
    ("variable", "value"),
    [("HTTP_PROXY", "http://127.0.0.1:1"), ("NO_PROXY", "fd00::/8"), ("ALL_PROXY", "socks5://a:1")],
)
async def test_the_proxies_of_the_environment_are_not_followed(
    monkeypatch: pytest.MonkeyPatch, variable: str, value: str
) -> None:
    async def behave(stream: anyio.abc.SocketStream) -> None:
        await stream.send(b"HTTP/1.1 200 x\r\ncontent-length: 7\r\n\r\nv0.37.1")

    monkeypatch.setenv(variable, value)
    async with socket_node(behave) as url, WakuClient(url, retries=None) as client:
        assert await client.version() == "v0.37.1"


async def test_https_trusts_the_certificates_of_the_system(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A company's own authority stands there, and not in the list that httpx brings."""
    server, _ = contexts(tmp_path)

    async def behave(stream: anyio.abc.ByteStream) -> None:
        await stream.receive()
        await stream.send(b"HTTP/1.1 200 x\r\ncontent-length: 7\r\n\r\nv0.37.1")
        await stream.aclose()

    async with await anyio.create_tcp_listener(local_host="127.0.0.1") as listener:
        port = listener.extra(anyio.abc.SocketAttribute.local_port)
        secure = TLSListener(listener, server, standard_compatible=False)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(secure.serve, behave)
            url = f"https://localhost:{port}"
            monkeypatch.delenv("SSL_CERT_FILE", raising=False)
            async with WakuClient(url, retries=None) as client:
                with pytest.raises(NodeUnreachable, match="ConnectError"):
                    await client.version()
            monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "chain.pem"))
            async with WakuClient(url, retries=None) as client:
                assert await client.version() == "v0.37.1"
            tasks.cancel_scope.cancel()


@pytest.mark.parametrize("base_url", ["", "node:8645", "ftp://node", "http://", "http://node:port"])
def test_an_address_is_checked(base_url: str) -> None:
    with pytest.raises(ValueError, match="base_url"):
        WakuClient(base_url)


def test_limits_are_checked() -> None:
    with pytest.raises(ValueError, match="positive"):
        WakuClient(BASE_URL, timeout_s=0)
    with pytest.raises(ValueError, match="positive"):
        WakuClient(BASE_URL, max_answer_bytes=0)


def test_the_door_names_what_is_there() -> None:
    assert all(hasattr(waku, name) for name in waku.__all__)


def test_waku_stands_alone() -> None:
    code = "import sys, waku; sys.exit(any(m.startswith('reliable_channel') for m in sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
