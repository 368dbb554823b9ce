"""Secure WebSockets on loopback, with a certificate of the tests' own."""

from pathlib import Path

import pytest

from waku.libp2p import DialFailed, Multiaddr
from waku.libp2p.driver import Host, Stream, ping

from ..pair import DIALLER, LISTENER
from .tls import contexts

pytestmark = pytest.mark.anyio

BIG = bytes(range(256)) * 2_000


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


async def echo(stream: Stream) -> None:
    while (message := await stream.receive_message(1_000_000)) is not None:
        await stream.send_message(message)


@pytest.mark.parametrize("kind", ["wss", "tls/ws"])
@pytest.mark.parametrize("name", ["ip4/127.0.0.1", "dns4/localhost"])
async def test_a_peer_behind_tls(kind: str, name: str, tmp_path: Path) -> None:
    server, client = contexts(tmp_path)
    async with Host(LISTENER, handlers={"/echo/1": echo}) as listener, Host(DIALLER) as dialler:
        bound = await listener.listen(
            Multiaddr.parse(f"/ip4/127.0.0.1/tcp/0/{kind}"), ssl_context=server
        )
        address = Multiaddr.parse(str(bound).replace("ip4/127.0.0.1", name))
        link = await dialler.dial(address, ssl_context=client)
        assert link.peer_id == LISTENER.peer_id
        async with link.open(["/echo/1"]) as stream:
            await stream.send_message(BIG)
            assert await stream.receive_message(1_000_000) == BIG
        assert await ping(link, bytes(32)) >= 0
        # T8: closing TLS is not orderly everywhere; the other side notices all the same.
        (other,) = listener.links
        link.close()
        await link.closed.wait()
        await other.closed.wait()


async def test_an_unknown_certificate_and_another_name_are_refused(tmp_path: Path) -> None:
    server, client = contexts(tmp_path, "other.example")
    async with Host(LISTENER) as listener, Host(DIALLER) as dialler:
        bound = await listener.listen(
            Multiaddr.parse("/ip4/127.0.0.1/tcp/0/wss"), ssl_context=server
        )
        with pytest.raises(DialFailed, match="certificate verify failed"):
            await dialler.dial(bound)
        named = Multiaddr.parse(str(bound).replace("ip4/127.0.0.1", "dns4/localhost"))
        with pytest.raises(DialFailed, match="Hostname mismatch"):
            await dialler.dial(named, ssl_context=client)
        assert not listener.links


async def test_no_tls_on_a_tls_port_and_the_other_way_round(tmp_path: Path) -> None:
    server, client = contexts(tmp_path)
    async with Host(LISTENER) as listener, Host(DIALLER) as dialler:
        secure = await listener.listen(
            Multiaddr.parse("/ip4/127.0.0.1/tcp/0/wss"), ssl_context=server
        )
        plain = await listener.listen(Multiaddr.parse("/ip4/127.0.0.1/tcp/0/ws"))
        with pytest.raises(DialFailed):
            await dialler.dial(Multiaddr.parse(str(secure).replace("/wss", "/ws")))
        with pytest.raises(DialFailed):
            await dialler.dial(
                Multiaddr.parse(str(plain).replace("/ws", "/wss")), ssl_context=client
            )
