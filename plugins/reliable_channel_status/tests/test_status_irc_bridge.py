"""The bridge between IRC and Status: with a scripted server that can be unkind, in virtual time."""

from collections.abc import Iterator
from itertools import pairwise
from random import Random
from typing import Any

import anyio
import pytest
from status_world import COMMUNITY, GENERAL, OTHER

from reliable_channel_status import BridgeMessage, ContentType, mention
from reliable_channel_status.bot import BotOptions, RateLimit, StatusBot, StatusTestKit
from reliable_channel_status.irc import IrcBridge, LineBuffer
from reliable_channel_status.irc import bridge as bridge_module

MANY = RateLimit(1000, 1000)
FAST = RateLimit(1000, 1000)


class ScriptedServer:
    """An IRC server for one client, and as unkind as told."""

    def __init__(self) -> None:
        self.is_there = True
        self.taken: set[str] = set()
        self.is_mute = False
        """Answers nothing."""
        self.chunk = 0
        """Cuts what it sends into pieces of so many bytes."""
        self.connections: list[Connection] = []
        self.heard: list[str] = []
        """What the client wrote into the channel."""

    async def connect(self) -> "Connection":
        if not self.is_there:
            raise ConnectionRefusedError("nobody is there")
        self.connections.append(Connection(self))
        return self.connections[-1]

    @property
    def now(self) -> "Connection":
        return self.connections[-1]

    def says(self, nick: str, text: str) -> None:
        self.now.write(f":{nick}!{nick}@host PRIVMSG #tea :{text}")


class Connection:
    """One connection, as the bridge has it."""

    def __init__(self, server: ScriptedServer) -> None:
        self._server = server
        self._to_client, self._from_server = anyio.create_memory_object_stream[bytes](10_000)
        self._lines = LineBuffer()
        self._nick = ""
        self.is_closed = False

    def write(self, line: str) -> None:
        self.write_bytes(line.encode() + b"\r\n")

    def write_bytes(self, data: bytes) -> None:
        size = self._server.chunk or len(data)
        for at in range(0, len(data), size):
            self._to_client.send_nowait(data[at : at + size])

    def cut(self) -> None:
        self._to_client.close()

    async def send(self, item: bytes) -> None:
        if self.is_closed:
            raise anyio.BrokenResourceError
        for line in self._lines.feed(item):
            self._answer(line.command, line.params)

    async def receive(self) -> bytes:
        return await self._from_server.receive()

    async def aclose(self) -> None:
        self.is_closed = True
        self._to_client.close()
        self._from_server.close()

    def _answer(self, command: str, params: tuple[str, ...]) -> None:
        server = self._server
        if server.is_mute:
            return
        match command:
            case "NICK" if params[0] in server.taken:
                self.write(f":srv 433 * {params[0]} :in use")
            case "NICK":
                self._nick = params[0]
                self.write(f":srv 001 {self._nick} :Welcome")
            case "JOIN":
                self.write(f":{self._nick}!b@h JOIN #tea")
            case "PING":
                self.write(f"PONG :{params[0]}")
            case "PRIVMSG":
                server.heard.append(params[1])


class World:
    """A bot with a bridge, and both networks."""

    def __init__(self, **arguments: Any) -> None:
        self.server = ScriptedServer()
        self.arguments = {"to_irc": FAST, **arguments}
        self.bridge: IrcBridge
        self.kit = StatusTestKit(self.bot())

    def bot(self) -> StatusBot:
        options = BotOptions(user_limit=MANY, channel_limit=MANY)
        bot = StatusBot(
            node="http://node", community=COMMUNITY, channels=[GENERAL, OTHER], options=options
        )
        self.bridge = IrcBridge(
            "irc.example",
            "#tea",
            GENERAL,
            nick="bridge",
            connect=self.server.connect,
            random=Random(1),
            **self.arguments,
        )
        bot.include(self.bridge.router)
        return bot

    def restart(self) -> None:
        """Kill the bot, and start it as a new process would."""
        self.kit.crash()
        self.kit.bot = self.bot()
        self.kit.start()

    def says(self, text: str, name: str = "Alice", **more: Any) -> str:
        return self.kit.user(name).says(text, channel=more.pop("channel", GENERAL), **more)

    @property
    def brought(self) -> list[BridgeMessage]:
        found = [message.bridge_message for message in self.kit.said(GENERAL)]
        return [one for one in found if one is not None]


@pytest.fixture
def world() -> Iterator[World]:
    world = World()
    with world.kit:
        world.kit.wait(3)
        yield world


def test_both_sides_hear_each_other_and_bridged_messages_are_shown_as_such(world: World) -> None:
    world.says("hello IRC")
    world.says("not here", channel=OTHER)
    bob = world.kit.user("Bob")
    world.says("Hi, I am Bob", name="Bob")
    world.says(f"thanks {mention(bob.public_key)}")
    assert world.server.heard == ["<Alice> hello IRC", "<Bob> Hi, I am Bob", "<Alice> thanks @Bob"]
    world.server.says("ann", "hello \x02Status\x02")
    world.kit.wait()
    (brought,) = world.brought
    assert (brought.bridge_name, brought.user_name, brought.content) == (
        "irc",
        "ann",
        "hello Status",
    )
    assert brought.user_id == "ann!ann@host"
    assert world.kit.said(GENERAL)[0].content_type is ContentType.BRIDGE_MESSAGE
    assert len(world.server.heard) == 3, "it is not brought back"


def test_nothing_goes_around_in_a_circle(world: World) -> None:
    world.says("one")
    world.server.says("bridge", "<Alice> one")  # an echo
    world.kit.wait()
    assert world.brought == []
    other = IrcBridge("x", "#tea", GENERAL, nick="b2", connect=world.server.connect, to_irc=FAST)
    second = StatusBot(node="http://node", community=COMMUNITY, channels=[GENERAL])
    second.include(other.router)
    world.kit.starts(second, "second bridge")
    world.kit.wait(5)
    world.server.connections[0].write(":ann!a@h PRIVMSG #tea :hello")
    world.kit.wait(5)
    assert len(world.brought) == 1 and world.server.heard == ["<Alice> one"], (
        "what one bridge brought, another leaves alone"
    )


def test_ignored_users_and_notices_are_not_brought() -> None:
    world = World(ignored=("OtherBridge",))
    with world.kit:
        world.kit.wait(3)
        world.server.says("otherbridge", "<x> hi")
        world.server.now.write(":ann!a@h NOTICE #tea :a bot")
        world.kit.wait()
        assert world.brought == []


def test_a_cut_connection_is_made_anew_and_what_waits_is_written(world: World) -> None:
    world.server.is_there = False
    world.server.now.cut()
    world.kit.wait(1)
    for n in range(3):
        world.says(f"while away {n}")
    world.kit.wait(600)
    assert world.server.heard == [] and world.bridge.last_error == "nobody is there"
    world.restart()
    world.server.is_there = True
    world.kit.wait(600)
    assert world.server.heard == [f"<Alice> while away {n}" for n in range(3)]
    world.server.says("ann", "welcome back")
    world.kit.wait()
    assert [one.content for one in world.brought] == ["welcome back"]


def test_attempts_become_rarer(world: World) -> None:
    attempts: list[int] = []

    async def refuse() -> Any:
        attempts.append(world.kit.now_ms())
        raise ConnectionRefusedError("no")

    world.bridge._connect = refuse
    world.server.now.cut()
    world.kit.wait(3600)
    waits = [after - before for before, after in pairwise(attempts)]
    assert len(attempts) < 25 and waits[0] < 10_000 and 300_000 <= waits[-1] <= 600_000


def test_a_server_that_falls_silent_is_left() -> None:
    world = World()
    with world.kit:
        world.kit.wait(3)
        world.server.is_mute = True
        world.kit.wait(130)
        assert world.server.connections[0].is_closed
        assert "silent" in world.bridge.last_error
        world.server.is_mute = False
        world.kit.wait(60)
        world.says("hello again")
        assert world.server.heard == ["<Alice> hello again"]


def test_an_unkind_server_breaks_nothing(world: World) -> None:
    now = world.server.now
    now.write_bytes(b"\xff\xfe\x00garbage\r\n:\r\n: \r\n@\r\n" + b"x" * 100_000)
    now.write_bytes(b"\r\n:ann!a@h PRIVMSG\r\n:ann PRIVMSG #tea :\x01\r\nKICK\r\n001\r\n")
    world.kit.wait()
    world.server.chunk = 1
    world.server.says("ann", "äöü")
    world.kit.wait()
    assert [one.content for one in world.brought] == ["äöü"]
    now.write(":op!o@h KICK #tea bridge :no bots")
    world.kit.wait(1)
    world.says("while kicked")
    world.kit.wait(20)
    assert world.server.heard == []
    world.kit.wait(30)
    assert world.server.heard == ["<Alice> while kicked"]


def test_a_taken_nickname_is_no_obstacle() -> None:
    world = World()
    world.server.taken = {"bridge", "bridge_"}
    with world.kit:
        world.kit.wait(3)
        world.says("hello")
        assert world.server.heard == ["<Alice> hello"]


def test_a_text_becomes_few_short_lines_and_never_a_command(world: World) -> None:
    world.says("one\r\nQUIT :bye\n\x01VERSION\x01")
    assert world.server.heard == ["<Alice> one", "<Alice> QUIT :bye", "<Alice> VERSION"]
    world.server.heard.clear()
    world.says("ü" * 4000, name="Ma\nry\x02" + "x" * 60)
    assert len(world.server.heard) == 5 and world.server.heard[-1].endswith("…")
    assert all(len(line.encode()) < 450 for line in world.server.heard)
    assert world.server.heard[0].startswith("<Ma> ")


def test_a_flood_from_irc_is_cut_and_the_cut_is_shown() -> None:
    world = World(from_user=RateLimit(3, 30_000), from_irc=RateLimit(5, 60_000))
    with world.kit:
        world.kit.wait(3)
        for n in range(50):
            world.server.says("ann", f"flood {n}")
        for n in range(50):
            world.server.says(f"nick{n}", f"sybil {n}")
        world.kit.wait(5)
        assert len(world.brought) == 5 and world.bridge.counts["dropped"] == 95
        world.kit.wait(60)
        world.server.says("bob", "what was that?")
        world.kit.wait()
        assert world.brought[-1].content.startswith("what was that?\n(")


def test_irc_is_written_to_at_its_pace() -> None:
    world = World(to_irc=RateLimit(4, 8_000))
    with world.kit:
        world.kit.wait(3)
        for n in range(10):
            world.says(f"line {n}", settle=False)
        world.kit.wait(2)
        assert 4 <= len(world.server.heard) <= 5
        world.kit.wait(20)
        assert world.server.heard == [f"<Alice> line {n}" for n in range(10)]


def test_what_waits_for_irc_is_bounded_and_the_loss_is_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(bridge_module, "MAX_QUEUED", 5)
    world = World()
    world.server.is_there = False
    with world.kit:
        for n in range(12):
            world.says(f"line {n}")
        world.server.is_there = True
        world.kit.wait(600)
        assert world.server.heard == [
            "(7 messages from Status are missing here)",
            *[f"<Alice> line {n}" for n in range(7, 12)],
        ]


@pytest.mark.parametrize(
    "wrong", [{"irc_channel": "tea"}, {"irc_channel": "#te a"}, {"nick": "a b"}, {"nick": ""}]
)
def test_names_that_irc_does_not_have_are_refused(wrong: dict[str, str]) -> None:
    arguments: dict[str, Any] = {"irc_channel": "#tea", "nick": "bridge", **wrong}
    with pytest.raises(ValueError, match="must be"):
        IrcBridge("x", channel=GENERAL, **arguments)
