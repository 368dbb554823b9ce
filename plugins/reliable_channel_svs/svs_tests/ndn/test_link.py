"""Links over real sockets: packets told apart on streams, and one a datagram."""

import asyncio
import os
import socket
from pathlib import Path
from tempfile import TemporaryDirectory

import anyio
import pytest
from anyio.abc import ByteStream, Listener, SocketAttribute, SocketStream

from reliable_channel_svs import ForwarderError, Name, TlvError
from reliable_channel_svs.ndn.link import Address, UnixStream, connect
from reliable_channel_svs.ndn.lp import LinkPacket, unwrap, wrap
from reliable_channel_svs.ndn.management import check_response, register_route
from reliable_channel_svs.packet import Interest
from reliable_channel_svs.tlv import encode

PACKETS = [Interest(Name.parse("/a"), b"1234").encode(), encode(6, os.urandom(8_000)), b"\x06\x00"]


async def _echo(stream: ByteStream) -> None:
    async with stream:
        async for chunk in stream:
            for byte in chunk[:20]:  # packets arrive in pieces of any size
                await stream.send(bytes([byte]))
            await stream.send(chunk[20:])


@pytest.mark.parametrize("scheme", ["unix", "tcp"])
def test_packets_are_told_apart_on_a_stream(scheme: str) -> None:
    async def main() -> None:
        with TemporaryDirectory(prefix="svs") as directory:
            listener: Listener[SocketStream]
            if scheme == "unix":
                listener = await anyio.create_unix_listener(Path(directory) / "s")
                url = f"unix://{directory}/s"
            else:
                listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
                url = f"tcp://127.0.0.1:{listener.extra(SocketAttribute.local_port)}"
            async with listener, anyio.create_task_group() as tasks:
                tasks.start_soon(listener.serve, _echo)
                link = await connect(Address.parse(url))
                for packet in PACKETS * 3:
                    await link.send(packet)
                assert [await link.receive() for _ in PACKETS * 3] == PACKETS * 3
                await link.aclose()
                tasks.cancel_scope.cancel()

    anyio.run(main)


def test_bytes_that_arrive_at_a_cancelled_receive_disturb_nobody() -> None:
    """With AnyIO's stream asyncio would report an InvalidStateError."""
    reported: list[object] = []

    async def main() -> None:
        asyncio.get_running_loop().set_exception_handler(
            lambda loop, context: reported.append(context)
        )
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        stream = UnixStream(ours)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(stream.receive, 100)
            await anyio.wait_all_tasks_blocked()
            theirs.send(b"late")
            await anyio.lowlevel.checkpoint()
            tasks.cancel_scope.cancel()
        await stream.aclose()
        theirs.close()

    anyio.run(main)
    assert reported == []


def test_a_datagram_is_a_packet() -> None:
    async def main() -> None:
        async with await anyio.create_udp_socket(
            family=socket.AF_INET, local_host="127.0.0.1"
        ) as server:
            port = server.extra(SocketAttribute.local_port)
            link = await connect(Address.parse(f"udp://127.0.0.1:{port}"))
            await link.send(PACKETS[0])
            packet, (host, sender) = await server.receive()
            await server.sendto(packet, host, sender)
            assert await link.receive() == PACKETS[0]
            await link.aclose()
            with pytest.raises(ForwarderError):
                await link.send(PACKETS[0])
            with pytest.raises(ForwarderError):
                await link.receive()

    anyio.run(main)


@pytest.mark.parametrize(
    "sent", [b"\xfd\x00\x01" + b"x" * 30, b"\x06\xfe\x00\xff\xff\xff" + b"x" * 30, b""]
)
def test_what_is_no_stream_of_packets_ends_the_link(sent: bytes) -> None:
    async def babble(stream: ByteStream) -> None:
        async with stream:
            if sent:
                await stream.send(sent)

    async def main() -> None:
        listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
        port = listener.extra(SocketAttribute.local_port)
        async with listener, anyio.create_task_group() as tasks:
            tasks.start_soon(listener.serve, babble)
            link = await connect(Address.parse(f"tcp://127.0.0.1:{port}"))
            with pytest.raises(ForwarderError):
                await link.receive()
            await link.aclose()
            tasks.cancel_scope.cancel()

    anyio.run(main)


@pytest.mark.parametrize("url", ["unix:///nowhere/at/all", "tcp://127.0.0.1:1"])
def test_a_forwarder_that_is_not_there_is_an_error(url: str) -> None:
    async def main() -> None:
        with pytest.raises(ForwarderError, match=url):
            await connect(Address.parse(url))

    anyio.run(main)


def test_link_headers() -> None:
    packet = PACKETS[0]
    assert unwrap(packet) == LinkPacket(packet)
    assert unwrap(wrap(packet, None)) == LinkPacket(packet)
    assert unwrap(wrap(packet, b"token")) == LinkPacket(packet, b"token")
    nack = encode(0x64, encode(0x0320, encode(0x0321, b"\x96")), encode(0x50, packet))
    assert unwrap(nack) == LinkPacket(packet, None, 150)
    assert unwrap(encode(0x64, encode(0x0320), encode(0x50, packet))).nack_reason == 0
    for wrong in (encode(0x64), encode(0x64, encode(0x53, b"\x02"), encode(0x50, packet)), b""):
        with pytest.raises(TlvError):
            unwrap(wrong)


def test_answers_to_commands() -> None:
    command = register_route(Name.parse("/a"), b"12345678", 1)
    check_response(command, bytes.fromhex("65036601c8"))
    refusal = encode(0x65, encode(0x66, b"\x01\x93"), encode(0x67, b"not for you"))
    with pytest.raises(ForwarderError, match="rib/register: the forwarder answers 403 not for you"):
        check_response(command, refusal)
    with pytest.raises(ForwarderError, match="cannot be read"):
        check_response(command, b"hello")


def test_a_system_without_unix_sockets_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(socket, "AF_UNIX")
    with pytest.raises(
        OSError, match="/run/nfd: this system has no Unix sockets; give the TCP address"
    ):
        UnixStream.connect("/run/nfd")
