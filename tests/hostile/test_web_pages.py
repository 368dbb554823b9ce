"""Attack: a web page in the browser of somebody who runs an embedded node.

The browser sends what the page wants to any address of this machine, under its rules: a POST names
the page in `Origin`, a GET of an image or a link in `Sec-Fetch-Site`, and a page that made its own
name point here (DNS rebinding) is of the same origin, but has that name in `Host`.
"""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator, Mapping
from typing import Any

import httpx
import pytest

from tests.waku.node.wires import Inbox, message, publish, until
from waku import WakuClient, WakuMessage
from waku._asgi import Receive, Scope, Send
from waku.errors import BadRequest
from waku.node import EmbeddedNode, NodeOptions, serve_node

pytestmark = pytest.mark.anyio

EVIL = "https://evil.example"
TOPIC = "/app/1/chat/proto"
PUBLISH = "/relay/v1/auto/messages"
BODY = b'{"payload": "YQ==", "contentTopic": "/app/1/chat/proto"}'


class Arrives:
    """Brings requests to a node as a server at an address does, whatever their `Host`."""

    def __init__(self, node: EmbeddedNode, server: str = "127.0.0.1") -> None:
        self._node = node
        self._server = server

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._node.app({**scope, "server": (self._server, 8645)}, receive, send)


def at(node: EmbeddedNode, host: str, server: str = "127.0.0.1") -> httpx.AsyncClient:
    """A browser or program that calls the node by a name."""
    way = httpx.ASGITransport(app=Arrives(node, server))
    return httpx.AsyncClient(transport=way, base_url="http://127.0.0.1", headers={"host": host})


@pytest.fixture
async def node() -> AsyncIterator[EmbeddedNode]:
    async with EmbeddedNode() as one:
        yield one


@pytest.mark.parametrize(
    "page",
    [
        {"origin": EVIL},
        {"origin": "null"},
        {"origin": "http://localhost:3000"},
        {"origin": "http://127.0.0.1:8646"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
    ],
)
async def test_a_foreign_page_can_neither_publish_nor_read_nor_join(
    node: EmbeddedNode, page: Mapping[str, str]
) -> None:
    inbox = Inbox(node)
    publish(node, message(0))
    async with at(node, "127.0.0.1:8645") as browser:
        for method, path, body in (
            ("POST", PUBLISH, BODY),
            ("POST", "/lightpush/v3/message", b'{"message": %s}' % BODY),
            ("POST", "/admin/v1/peers", b'["http://evil.example"]'),
            ("POST", "/admin/v1/peers", b"[]"),
            ("GET", "/store/v3/messages?includeData=true", b""),
            ("GET", "/relay/v1/auto/messages/%2Fapp%2F1%2Fchat%2Fproto", b""),
        ):
            answer = await browser.request(
                method, path, content=body, headers={"content-type": "text/plain", **page}
            )
            assert answer.status_code == 403, path
            assert "access-control-allow-origin" not in answer.headers
            assert "--allow-origin" in answer.text
    assert inbox.payloads == [b"message 0"] and not node.mesh.links


@pytest.mark.parametrize(
    "host",
    ["evil.example:8645", "evil.example", "8.8.8.8", "localhost.evil.example", "[2001:db8::1]"],
)
async def test_a_page_whose_name_points_here_is_refused(node: EmbeddedNode, host: str) -> None:
    """DNS rebinding: to the browser the page and the node are of one origin."""
    async with at(node, host) as browser:
        answer = await browser.get("/store/v3/messages", headers={"sec-fetch-site": "same-origin"})
        assert answer.status_code == 403 and "--allow-host" in answer.text
        answer = await browser.post(PUBLISH, content=BODY, headers={"origin": f"http://{host}"})
        assert answer.status_code == 403
    assert node.archive is not None and len(node.archive) == 0


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1:8645",
        "127.0.0.2",
        "localhost:8645",
        "LOCALHOST.:8645",
        "node.localhost",
        "[::1]:8645",
        "0.0.0.0:8645",
        socket.gethostname(),
    ],
)
async def test_local_names_need_no_option(node: EmbeddedNode, host: str) -> None:
    async with at(node, host) as program:
        assert (await program.get("/health")).status_code == 200
        own_page = {"origin": f"http://{host}", "sec-fetch-site": "same-origin"}
        assert (await program.get("/docs", headers=own_page)).status_code == 200


async def test_other_names_are_allowed_by_name() -> None:
    for allowed, status in (("host.docker.internal", 200), ("*", 200), ("other", 403)):
        async with EmbeddedNode(NodeOptions(allow_hosts=(allowed,))) as node:
            async with at(node, "Host.Docker.Internal:8645") as container:
                assert (await container.get("/health")).status_code == status


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("192.168.1.5:8645", 200),
        ("node:8645", 200),
        ("localhost:8645", 200),
        ("evil.example:8645", 403),
    ],
)
async def test_on_a_network_addresses_and_names_of_the_network_are_taken(
    node: EmbeddedNode, host: str, status: int
) -> None:
    for server in ("192.168.1.5", "2001:db8::1"):
        async with at(node, host, server) as other:
            assert (await other.get("/health")).status_code == status
    for loopback in ("::ffff:127.0.0.1", "::1"):
        async with at(node, "node", loopback) as other:
            assert (await other.get("/health")).status_code == 403


async def test_an_allowed_page_can_do_all_that_others_can() -> None:
    origin = {"origin": "https://app.example"}
    options = NodeOptions(allow_origins=("https://app.example",), token="secret")
    async with EmbeddedNode(options) as node, at(node, "localhost") as browser:
        asks = {
            "access-control-request-method": "DELETE",
            "access-control-request-headers": "authorization,content-type,waku-client-id",
        }
        path = "/filter/v2/subscriptions"
        preflight = await browser.options(path, headers={**origin, **asks})
        assert preflight.status_code == 200
        assert preflight.headers["access-control-allow-origin"] == origin["origin"]
        assert "DELETE" in preflight.headers["access-control-allow-methods"]
        assert "Authorization" in preflight.headers["access-control-allow-headers"]
        assert (await browser.get("/health", headers=origin)).status_code == 401
        bearer = {"authorization": "Bearer secret"}
        answer = await browser.get("/health", headers={**origin, **bearer})
        assert answer.status_code == 200
        assert answer.headers["access-control-allow-origin"] == origin["origin"]
        other = await browser.get("/health", headers={"origin": EVIL, **bearer})
        assert (other.status_code, other.text) == (403, "Origin not allowed")
        preflight = await browser.options(path, headers={"origin": EVIL, **asks})
        assert preflight.status_code == 403


async def test_without_the_token_nothing_is_answered() -> None:
    async with EmbeddedNode(NodeOptions(token="s3cret-%")) as node:
        async with at(node, "localhost") as caller:
            for wrong in ({}, {"authorization": "Bearer s3cret"}, {"authorization": "Basic !!"}):
                for path in ("/health", "/nowhere", "/relay/v1/messages/x"):
                    answer = await caller.get(path, headers=wrong)
                    assert answer.status_code == 401
                    assert "http://:<token>@" in answer.text
        inbox = Inbox(node)
        app = Arrives(node)
        async with WakuClient("http://:s3cret-%25@127.0.0.1", app=app) as client:
            await client.lightpush(WakuMessage(b"message 0", TOPIC))
        async with WakuClient("http://127.0.0.1", app=app, retries=None) as client:
            with pytest.raises(BadRequest, match="wants its token"):
                await client.lightpush(WakuMessage(b"message 1", TOPIC))
        assert inbox.payloads == [b"message 0"]
        assert "s3cret" not in repr(node.options)


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_served_node_looks_at_the_address_of_the_connection() -> None:
    import anyio

    urls: list[str] = []
    async with EmbeddedNode() as node, anyio.create_task_group() as tasks:
        tasks.start_soon(lambda: serve_node(node, port=0, started=urls.append))
        await until(lambda: bool(urls))
        async with httpx.AsyncClient(base_url=urls[0]) as http:
            assert (await http.get("/health")).status_code == 200
            for header in ({"host": "evil.example"}, {"origin": EVIL}):
                assert (await http.get("/health", headers=header)).status_code == 403
        tasks.cancel_scope.cancel()


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        ({"allow_origins": ("app.example",)}, "`allow_origins` must be like https://app.example"),
        ({"allow_origins": ("http://x/",)}, "`allow_origins` must be like"),
        ({"allow_hosts": ("http://x",)}, "`allow_hosts` must be names without scheme"),
        ({"allow_hosts": ("x:8645",)}, r"\(got 'x:8645'\)"),
        ({"token": ""}, "`token` must be visible ASCII"),
    ],
)
def test_options_that_would_allow_nothing_are_refused(wrong: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        NodeOptions(**wrong)
