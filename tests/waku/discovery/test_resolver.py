"""Asking the DNS: trees, and both resolvers against servers of the tests' own."""

import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import dns.asyncresolver
import dns.message
import dns.rrset
import httpx
import pytest

from tests.asgi import app_of
from waku.discovery import HttpsResolver, LookupFailed, SystemResolver, read_tree
from waku.errors import NodeUnreachable

from .test_dns_tree import nodes
from .zone import Key, Zone

pytestmark = pytest.mark.anyio

LONG = "enr:" + "x" * 500


def answer(query: dns.message.Message, *texts: str) -> dns.message.Message:
    """The answer of a server that has these texts; without any, that the name does not exist."""
    response = dns.message.make_response(query)
    name = query.question[0].name
    rows = [
        " ".join(f'"{text[at : at + 255]}"' for at in range(0, len(text), 255)) for text in texts
    ]
    if rows:
        response.answer = [dns.rrset.from_text(name, 60, "IN", "TXT", *rows)]
    else:
        response.set_rcode(dns.rcode.NXDOMAIN)
    return response


async def test_a_tree_is_read_with_several_questions_at_once() -> None:
    zone = Zone()
    url = zone.plant("nodes.example", nodes(9))
    walk = await read_tree(url, zone)
    assert len(walk.records) == 9


@pytest.mark.parametrize(
    ("signer", "records", "reason"),
    [(Key(9), 2, "wrong signature"), (None, 0, "it names no node")],
)
async def test_a_tree_without_nodes_is_an_error(
    signer: Key | None, records: int, reason: str
) -> None:
    zone = Zone()
    url = zone.plant("nodes.example", nodes(records), signer=signer)
    with pytest.raises(NodeUnreachable, match=reason):
        await read_tree(url, zone)


async def test_https() -> None:
    asked: list[httpx.Request] = []

    def serve(request: httpx.Request) -> httpx.Response:
        asked.append(request)
        query = dns.message.from_wire(request.content)
        texts = [LONG, "other"] if str(query.question[0].name) == "a.example." else []
        return httpx.Response(200, content=answer(query, *texts).to_wire())

    resolver = HttpsResolver("https://dns.example/q", app=app_of(serve))
    assert set(await resolver.texts("a.example")) == {LONG, "other"}
    assert asked[0].headers["content-type"] == "application/dns-message"
    with pytest.raises(LookupFailed):
        await resolver.texts("b.example")


@pytest.mark.parametrize(
    "response",
    [
        httpx.Response(500),
        httpx.Response(200, content=b"<html>"),
        httpx.Response(200, content=answer(dns.message.make_query("a.", "A")).to_wire()),
        httpx.Response(200, content=b""),
        httpx.Response(200, content=bytes(70_000)),
    ],
)
async def test_an_unkind_https_service_is_a_failed_lookup(response: httpx.Response) -> None:
    resolver = HttpsResolver("https://dns.example/q", app=app_of(lambda _: response))
    with pytest.raises(LookupFailed):
        await resolver.texts("a.example")


@pytest.mark.parametrize(
    ("variable", "value"), [("NO_PROXY", "fd00::/8"), ("ALL_PROXY", "socks5://[::1]:1")]
)
async def test_the_proxies_of_the_environment_are_not_followed(
    monkeypatch: pytest.MonkeyPatch, variable: str, value: str
) -> None:
    monkeypatch.setenv(variable, value)
    with pytest.raises(LookupFailed, match="connect"):
        await HttpsResolver("https://127.0.0.1:1/q").texts("a.example")


class TestSystem:
    @pytest.fixture(params=["asyncio", "trio"])
    def anyio_backend(self, request: pytest.FixtureRequest) -> str:
        return str(request.param)

    async def test_the_system_resolver(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Its answer is long: by UDP it is cut off, and asked again by TCP."""
        async with server({"a.example.": [LONG * 5, "v=spf1"]}) as port:
            use_server(monkeypatch, port)
            assert set(await SystemResolver().texts("a.example")) == {LONG * 5, "v=spf1"}
            with pytest.raises(LookupFailed, match="does not exist"):
                await SystemResolver().texts("b.example")

    async def test_a_silent_server_is_a_failed_lookup(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("waku.discovery.resolver.LOOKUP_S", 0.2)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as deaf:
            deaf.bind(("127.0.0.1", 0))
            use_server(monkeypatch, deaf.getsockname()[1])
            with pytest.raises(LookupFailed, match="lifetime"):
                await SystemResolver().texts("a.example")


def use_server(monkeypatch: pytest.MonkeyPatch, port: int) -> None:
    made = dns.asyncresolver.Resolver

    def configured() -> dns.asyncresolver.Resolver:
        resolver = made(configure=False)
        resolver.nameservers, resolver.port = ["127.0.0.1"], port
        return resolver

    monkeypatch.setattr("dns.asyncresolver.Resolver", configured)


@asynccontextmanager
async def server(zone: dict[str, list[str]]) -> AsyncIterator[int]:
    """A DNS server on loopback, UDP and TCP."""
    listener = await anyio.create_tcp_listener(local_host="127.0.0.1", local_port=0)
    port = listener.extra(anyio.abc.SocketAttribute.local_port)

    def answered(data: bytes) -> dns.message.Message:
        query = dns.message.from_wire(data)
        return answer(query, *zone.get(str(query.question[0].name), []))

    async def by_tcp(stream: anyio.abc.SocketStream) -> None:
        async with stream:
            wire = answered((await stream.receive(4_096))[2:]).to_wire()
            await stream.send(len(wire).to_bytes(2, "big") + wire)

    async def by_udp() -> None:
        async with await anyio.create_udp_socket(local_host="127.0.0.1", local_port=port) as udp:
            async for data, (host, sender) in udp:
                response = answered(data)
                if len(response.to_wire()) > 1_232:
                    response.flags |= dns.flags.TC
                    response.answer = []
                await udp.sendto(response.to_wire(), host, sender)

    async with listener, anyio.create_task_group() as tasks:
        tasks.start_soon(by_udp)
        tasks.start_soon(listener.serve, by_tcp)
        await anyio.wait_all_tasks_blocked()
        yield port
        tasks.cancel_scope.cancel()
