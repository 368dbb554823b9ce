"""The token in a node's address: whoever reads what a program shows of its channels learns it."""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from reliable_channel import ChannelHub, ReliableChannel
from reliable_channel._contracts.plugin_code import TRACE
from reliable_channel._topic_reader import topic_transport
from reliable_channel.diagnostics import NodeHealthChanged, TransportDegraded
from reliable_channel.errors import ChannelUnavailable
from reliable_channel.events import MessageSent, record
from reliable_channel.spi import Register, hookimpl
from reliable_channel.transport import MemoryNetwork, MemoryTransport, TransportError
from tests.channel.world import QUICK, Told, listening
from tests.cli.in_process import run
from tests.transport.nodes import served
from waku import WakuClient
from waku.node import EmbeddedNode, NodeOptions

pytestmark = pytest.mark.anyio
SERVES = pytest.mark.parametrize("anyio_backend", ["asyncio"])
"""The server knows no other."""

TOKEN = "s3cr3t-token"
AWAY = "127.0.0.1:9"
ABSENT = [
    f"http://:{TOKEN}@{AWAY}",
    f"http://user:{TOKEN}@{AWAY}/path",
    f"waku+http://:{TOKEN}@{AWAY}",
    f"waku+messaging://:{TOKEN}@{AWAY}",
    f"pigeon://user:{TOKEN}@loft",
]
MALFORMED = [
    f"htp://:{TOKEN}@h",
    f"http://:{TOKEN}/+=@h",
    f"http://:{TOKEN}@[::1",
    f"http://?:{TOKEN}@h",
    f":{TOKEN}@h:8645",
    f"waku+http:///:{TOKEN}@h",
]


class Pigeons:
    """A plugin that repeats the address it was given in all that it says."""

    @hookimpl
    def register_transports(self, register: Register) -> None:
        register("pigeon", Pigeon)


class Pigeon(MemoryTransport):
    """A transport that never opens."""

    def __init__(self, url: str) -> None:
        super().__init__(MemoryNetwork(), url)

    async def open(self) -> None:
        raise TransportError(f"{self.url} is away")


def chain(error: BaseException | None) -> str:
    """All that an error says, and those that it came from."""
    return "" if error is None else f"{error!r} {error} {chain(error.__cause__)}"


def shown(channel: ReliableChannel, told: Told, message_id: str) -> str:
    """All that a channel says of itself."""
    seen = [repr(event) + json.dumps(record(event, 0)) for event in told.events]
    health, statistics = channel.health(), channel.statistics()
    texts = (health, health.as_dict(), statistics, channel.explain(message_id), channel)
    return "\n".join([*seen, *map(repr, texts)])


@asynccontextmanager
async def node(token: str) -> AsyncIterator[str]:
    """A node that demands a token; where it answers."""
    async with EmbeddedNode(NodeOptions(token=token)) as embedded, served(embedded) as server:
        yield server.url.removeprefix("http://")


async def open_with(urls: Sequence[str], journal: Path, *, sent: bool) -> str:
    """Use a channel until it says that a node fails."""
    channel = ReliableChannel(
        urls,
        channel_id="ops",
        sender_id="alice",
        options=QUICK,
        wait_for_node=True,
        journal=journal,
        plugins=[Pigeons()],
    )
    async with listening(channel) as told:
        accepted = await channel.send(b"hello")
        await told.first(NodeHealthChanged)
        await told.first(MessageSent if sent else TransportDegraded)
        return shown(channel, told, accepted.message_id)


@SERVES
@pytest.mark.parametrize("given", [*ABSENT, "wrong", "right"])
async def test_a_channel_shows_it_nowhere(
    given: str,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    caplog.set_level(logging.DEBUG)
    monkeypatch.setenv(TRACE, "1")
    journal = tmp_path / "alice.jsonl"
    async with node(TOKEN if given == "right" else "another") as answers:
        urls = [f"http://:{TOKEN}@{answers}"] if given in ("wrong", "right") else [given]
        if given == "right":
            urls.append(ABSENT[0])  # for something to fail
        text = await open_with(urls, journal, sent=given == "right")
    text += journal.read_text() + caplog.text + capfd.readouterr().err
    assert TOKEN not in text
    assert text.count("://***@") > 3, "that there is one is shown"


@SERVES
@pytest.mark.parametrize("given", [*ABSENT, "wrong"])
async def test_a_channel_that_cannot_be_opened_shows_it_nowhere(given: str) -> None:
    async with node("another") as answers:
        url = f"http://:{TOKEN}@{answers}" if given == "wrong" else given
        with pytest.raises(ChannelUnavailable, match=r"://\*\*\*@") as caught:
            async with ReliableChannel(
                url, channel_id="ops", sender_id="alice", plugins=[Pigeons()]
            ):
                pass
    assert TOKEN not in chain(caught.value)


@pytest.mark.parametrize("url", MALFORMED)
def test_an_address_that_is_refused_is_named_without_it(url: str) -> None:
    def channel() -> None:
        ReliableChannel(url, channel_id="ops", sender_id="alice")

    def hub() -> None:
        ChannelHub(url)

    def reader() -> None:
        topic_transport({"node": url}, "reader")

    for make in (channel, hub, reader, lambda: WakuClient(url)):
        with pytest.raises(ValueError, match=r"\*\*\*@") as caught:
            make()
        assert TOKEN not in chain(caught.value)


@pytest.mark.parametrize("argument", ["encryption", "state"])
@pytest.mark.parametrize(
    "url", ["vault://user:{}@h/key", "sqlite://user:{}@h/x", "aes-256-gcm://user:{}@h/x"]
)
def test_the_password_in_another_url_is_not_shown(argument: str, url: str) -> None:
    with pytest.raises(ValueError, match=f"`{argument}`") as caught:
        ReliableChannel(
            "memory://here",
            channel_id="ops",
            sender_id="alice",
            **{argument: url.format(TOKEN)},  # type: ignore[arg-type]
        )
    assert TOKEN not in chain(caught.value)


@pytest.mark.parametrize("command", ["send", "listen", "doctor", "peer"])
def test_a_command_prints_it_nowhere(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RELIABLE_CHANNEL_STATE", "memory:")
    more = {"send": ["hello"], "peer": ["--no-wait-for-node"]}.get(command, [])
    ended = run(command, "--node", ABSENT[0], "--sender-id", "alice", *more)
    assert ended.returncode
    assert TOKEN not in ended.stdout + ended.stderr
    assert f"http://***@{AWAY}" in ended.stdout + ended.stderr
