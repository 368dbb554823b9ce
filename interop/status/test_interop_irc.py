"""The IRC bridge with a real IRC server, ngircd, over sockets: both ways, and over its restart.

As root on Debian, `ngircd` is installed where it is not here.
"""

import socket
import subprocess
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import anyio
import httpx
import pytest
from anyio.abc import SocketStream

from reliable_channel.spi import MemoryStateStore
from reliable_channel_status import (
    BridgeMessage,
    ChatMessage,
    Community,
    Opener,
    PrivateKey,
    Received,
    Sealer,
)
from reliable_channel_status.bot import BotMemory, StatusBot, Surroundings
from reliable_channel_status.irc import IrcBridge, Line, LineBuffer
from waku import WakuClient
from waku.node import EmbeddedNode, NodeOptions

from ..debian import ProgramUnavailable, debian_program
from ..needed import needed

pytestmark = pytest.mark.anyio
COMMUNITY: Final = Community(PrivateKey(b"c" * 32).public_key)
CHANNEL: Final = "1dc14fd8-9a8b-4df5-a358-2c3067be5439"
TOPIC: Final = COMMUNITY.universal_topic
SHARD: Final = "/waku/2/rs/16/32"
CONFIG: Final = """
[Global]
Name = irc.test
Info = test
Listen = 127.0.0.1
Ports = {port}
[Options]
DNS = no
Ident = no
PAM = no
"""


@pytest.fixture
def anyio_backend() -> str:
    """The bridge needs sockets, and the node's client asyncio."""
    return "asyncio"


class Ngircd:
    """The server, which can be ended and started."""

    def __init__(self, folder: Path) -> None:
        with needed("ngircd", ProgramUnavailable):
            self._program = debian_program("ngircd")
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port: int = free.getsockname()[1]
        self._config = folder / "ngircd.conf"
        self._config.write_text(CONFIG.format(port=self.port))
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        self._process = subprocess.Popen(
            [self._program, "-n", "-f", str(self._config)], stdout=subprocess.DEVNULL
        )

    def end(self) -> None:
        assert self._process is not None
        self._process.kill()
        self._process.wait()


class User:
    """A user of IRC in the channel."""

    def __init__(self, stream: SocketStream) -> None:
        self.heard: list[Line] = []
        self._stream = stream

    async def write(self, *lines: Line) -> None:
        await self._stream.send(b"".join(line.encode() for line in lines))

    async def read(self) -> None:
        buffer = LineBuffer()
        async for data in self._stream:
            for line in buffer.feed(data):
                if line.command == "PING":
                    await self.write(Line("PONG", line.params))
                self.heard.append(line)

    def has(self, command: str, nick: str = "", text: str = "") -> bool:
        return any(
            line.command == command and line.nick.startswith(nick) and text in " ".join(line.params)
            for line in self.heard
        )


@asynccontextmanager
async def irc_user(port: int, nick: str) -> AsyncIterator[User]:
    async with await until_connected(port) as stream, anyio.create_task_group() as tasks:
        user = User(stream)
        tasks.start_soon(user.read)
        await user.write(Line("NICK", (nick,)), Line("USER", (nick, "0", "*", nick)))
        await until(lambda: user.has("001"))
        await user.write(Line("JOIN", ("#tea",)))
        await until(lambda: user.has("JOIN", nick))
        yield user
        tasks.cancel_scope.cancel()


async def until_connected(port: int) -> SocketStream:
    while True:
        try:
            return await anyio.connect_tcp("127.0.0.1", port)
        except OSError:
            await anyio.sleep(0.1)


async def until(holds: Callable[[], bool]) -> None:
    while not holds():  # noqa: ASYNC110 - of sockets, which give no event
        await anyio.sleep(0.05)


async def test_a_real_server_and_status_hear_each_other_also_after_its_restart(
    tmp_path: Path,
) -> None:
    server = Ngircd(tmp_path)
    server.start()
    bot = StatusBot(node="http://node", community=COMMUNITY, channels=[CHANNEL])
    bridge = IrcBridge("127.0.0.1", "#tea", CHANNEL, nick="bridge", port=server.port, tls=False)
    bot.include(bridge.router)
    options = NodeOptions(cluster_id=16, shards=(32, 64), static_sharding=True)
    alice, brought = Sealer(PrivateKey(b"a" * 32)), list[BridgeMessage]()
    opener = Opener([TOPIC])
    async with EmbeddedNode(options) as node, anyio.create_task_group() as tasks:
        transport = httpx.ASGITransport(app=node.app)
        async with WakuClient("http://node", transport=transport) as client:
            key = PrivateKey(b"b" * 32)
            memory = BotMemory(MemoryStateStore(), key.public_key, now_ms())
            tasks.start_soon(
                bot.serve, Surroundings(key=key, memory=memory, client=client, now_ms=now_ms)
            )

            async def says(text: str) -> None:
                at_ms = now_ms()
                chat_id = COMMUNITY.channel_id(CHANNEL)
                message = ChatMessage(
                    clock=at_ms, timestamp=at_ms, text=text, chat_id=chat_id, display_name="Alice"
                )
                for sealed in alice.seal(message, TOPIC, at_ms).messages:
                    await client.relay_publish(SHARD, sealed)

            async def listen() -> None:
                async with WakuClient("http://node", transport=transport) as reader:
                    await reader.relay_subscribe([SHARD])
                    while True:
                        for sealed in await reader.relay_messages(SHARD):
                            for outcome in opener.receive(sealed, now_ms()):
                                payload = outcome.payload if isinstance(outcome, Received) else None
                                if isinstance(payload, ChatMessage) and payload.bridge_message:
                                    brought.append(payload.bridge_message)
                        await anyio.sleep(0.1)

            tasks.start_soon(listen)
            async with irc_user(server.port, "ann") as ann:
                await until(lambda: bridge.counts["connections"] == 1)
                await ann.write(Line("PRIVMSG", ("#tea", "is the bridge here?")))
                await until(lambda: bool(brought))
                await says("hello IRC, äöü")
                await until(lambda: ann.has("PRIVMSG", "bridge", "<Alice> hello IRC, äöü"))
            server.end()
            await says("while IRC is away")
            await until(lambda: bool(bridge.last_error))
            server.start()
            async with irc_user(server.port, "bob") as bob:
                await until(lambda: bob.has("PRIVMSG", "bridge", "<Alice> while IRC is away"))
                await bob.write(Line("PRIVMSG", ("#tea", "welcome back")))
                await until(lambda: len(brought) == 2)
            tasks.cancel_scope.cancel()
    server.end()
    assert [(one.user_name, one.content) for one in brought] == [
        ("ann", "is the bridge here?"),
        ("bob", "welcome back"),
    ]


def now_ms() -> int:
    return time.time_ns() // 1_000_000
