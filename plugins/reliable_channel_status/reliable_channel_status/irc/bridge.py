"""`IrcBridge`: an IRC channel and a Status channel hear each other.

bridge = IrcBridge("irc.libera.chat", "#tea", CHANNEL, nick="teabridge")
bot.include(bridge.router)
"""

import logging
import ssl
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from itertools import count
from random import Random
from typing import Any, Final, Protocol
from uuid import uuid4

import anyio

from ..bot import Message, NotAMember, OutboxFull, RateLimit, Router
from ..bot.limits import Buckets
from ..enums import ContentType
from ..payloads import BridgeMessage
from .client import IrcClient, Said
from .lines import pieces

LOG: Final = logging.getLogger(__name__)
NAME: Final = "irc"
"""What Status clients show beside the name of a bridged author."""
MAX_QUEUED: Final = 500
"""Messages that wait for IRC; then the oldest is dropped, and IRC reads how many."""
MAX_LINES: Final = 5
"""Lines that a message of Status becomes; what is beyond is cut off."""
MAX_NAME: Final = 30
MIN_WAIT_S: Final = 2.0
MAX_WAIT_S: Final = 300.0
TICK_S: Final = 5.0
RECEIVED_BYTES: Final = 4096
FROM_IRC: Final = RateLimit(30, 60_000)
FROM_USER: Final = RateLimit(10, 30_000)
TO_IRC: Final = RateLimit(4, 8_000)
"""As servers want it: a burst of four lines, and one every two seconds."""


class Stream(Protocol):
    """A connection, as AnyIO has it."""

    async def send(self, item: bytes) -> None:
        """Send bytes."""

    async def receive(self) -> bytes:
        """Receive some bytes."""

    async def aclose(self) -> None:
        """Close it."""


class IrcBridge:
    """Brings what is written in each channel into the other.

    What comes from IRC is published as `BridgeMessage`, so that clients show the author and `irc`.
    Bridged messages and those of the bot are not brought back, whichever bridge they come from; nor
    are NOTICEs, which bots use. Messages for IRC wait in the bot's state while IRC is away.

    Args:
        host: of the IRC server.
        irc_channel: such as `#tea`.
        channel: the channel of the bot, by uuid or name.
        nick: of the bridge.
        port: of the server.
        tls: trusted certificates; True for the system's, False for a connection without TLS.
        password: of the server, or `account:password`.
        from_irc: how many lines are brought into Status, from all users together.
        from_user: the same for each nickname.
        to_irc: how fast lines are written to IRC.
        ignored: nicknames that are not brought over, such as of other bridges.
        connect: opens the connection; for tests.
        random: spreads the times of new attempts.

    Raises:
        ValueError: a channel or a nickname that IRC does not have.
    """

    def __init__(
        self,
        host: str,
        irc_channel: str,
        channel: str,
        *,
        nick: str,
        port: int = 6697,
        tls: ssl.SSLContext | bool = True,
        password: str = "",
        from_irc: RateLimit = FROM_IRC,
        from_user: RateLimit = FROM_USER,
        to_irc: RateLimit = TO_IRC,
        ignored: tuple[str, ...] = (),
        connect: Callable[[], Awaitable[Stream]] | None = None,
        random: Random | None = None,
    ) -> None:
        if not irc_channel.startswith(("#", "&", "+")) or not _is_word(irc_channel, 50):
            raise ValueError(f"`irc_channel` must be a name such as #tea (got {irc_channel!r})")
        if not _is_word(nick, MAX_NAME):
            raise ValueError(f"`nick` must be one word of at most {MAX_NAME} (got {nick!r})")
        self.router = Router()
        self.router.on_message(self._from_status)
        self.router.task(self._run)
        self.counts = {"to_irc": 0, "from_irc": 0, "dropped": 0, "connections": 0}
        """What was brought over, what was not, and how often the bridge connected."""
        self.last_error = ""
        """Why the last connection ended."""
        self._host, self._port, self._tls = host, port, tls
        self._connect = connect or self._open
        self._irc_channel, self._channel, self._nick = irc_channel, channel, nick
        self._password = password
        self._ignored = frozenset(name.lower() for name in ignored)
        self._from_irc, self._from_user = Buckets(from_irc), Buckets(from_user)
        self._to_irc = Buckets(to_irc)
        self._random = random or Random()
        self._has_mail = anyio.Event()
        self._skipped = 0

    # -- Status to IRC ----------------------------------------------------------------------------

    async def _from_status(self, message: Message) -> None:
        """Queue a message; it is written when IRC is there."""
        is_here = self._channel in (message.room.name, message.room.chat_id)
        if not is_here or message.payload.content_type is ContentType.BRIDGE_MESSAGE:
            return
        text = message.text_with_names
        if message.payload.content_type is ContentType.IMAGE:
            text = f"[image] {text}"
        if not text.strip() or self._note("last") == message.message_id:
            return
        first, after = self._note("first") or 0, self._note("after") or 0
        if after - first >= MAX_QUEUED:
            self._keep(f"line {first}", None)
            self._keep("first", first + 1)
            self._keep("lost", (self._note("lost") or 0) + 1)
            self.counts["dropped"] += 1
        name = "".join(pieces(message.author_name, MAX_NAME, 1)) or "?"
        self._keep(f"line {after}", [name, text[:4096]])
        self._keep("after", after + 1)
        self._keep("last", message.message_id)
        self._has_mail.set()

    async def _write(self, client: IrcClient, stream: Stream) -> None:
        """Write what waits, at the pace of IRC; a message is dropped from the queue when it is
        written."""
        while True:
            self._has_mail = anyio.Event()
            first, after = self._note("first") or 0, self._note("after") or 0
            if first >= after or not client.is_joined:
                await self._has_mail.wait()
                continue
            if lost := self._note("lost"):
                await self._line(client, stream, f"({lost} messages from Status are missing here)")
                self._keep("lost", None)
            if (found := self._note(f"line {first}")) is not None:
                name, text = found
                start = f"<{name}> "
                room = client.max_text_bytes - len(start.encode())
                for piece in pieces(text, room, MAX_LINES):
                    await self._line(client, stream, start + piece)
                self.counts["to_irc"] += 1
            self._keep("first", first + 1)
            self._keep(f"line {first}", None)

    async def _line(self, client: IrcClient, stream: Stream, text: str) -> None:
        await anyio.sleep(self._to_irc.wait_ms("", self._now()) / 1000)
        self._to_irc.take("", self._now())
        client.say(text)
        await stream.send(client.take())

    # -- IRC to Status ----------------------------------------------------------------------------

    async def _bring(self, said: Said, connection: str, number: int) -> None:
        if said.nick.lower() in self._ignored:
            return
        now_ms = self._now()
        is_slow = self._from_user.take(said.nick.lower(), now_ms) and self._from_irc.take(
            "", now_ms
        )
        if not is_slow:
            self._skipped += 1
            self.counts["dropped"] += 1
            return
        content = said.text
        if self._skipped:
            content += f"\n({self._skipped} lines before were too many)"
            self._skipped = 0
        message_id = said.message_id or f"{connection}-{number}"
        bridged = BridgeMessage(
            bridge_name=NAME,
            user_name=said.nick[:MAX_NAME],
            content=content,
            user_id=said.source[:200],
            message_id=message_id[:200],
        )
        channel = self.router.bot.channel(self._channel)
        try:
            await channel.send(bridged=bridged, once=f"irc {message_id}")
        except (OutboxFull, NotAMember, ValueError) as error:  # the connection to IRC goes on
            self.counts["dropped"] += 1
            LOG.warning("irc_line_dropped why=%r", str(error))
        else:
            self.counts["from_irc"] += 1

    # -- the connection ---------------------------------------------------------------------------

    async def _run(self) -> None:
        """Be connected, again and again."""
        wait_s = MIN_WAIT_S
        while True:
            began_ms = self._now()
            try:
                await self._be_connected()
            except* (OSError, anyio.EndOfStream, anyio.BrokenResourceError) as group:
                error = _first(group)
                self.last_error = str(error) or type(error).__name__
                LOG.warning("irc_away host=%r why=%r", self._host, self.last_error)
            if self._now() - began_ms > MAX_WAIT_S * 1000:
                wait_s = MIN_WAIT_S
            await anyio.sleep(wait_s * (1 + self._random.random()))
            wait_s = min(2 * wait_s, MAX_WAIT_S)

    async def _be_connected(self) -> None:
        stream = await self._connect()
        async with aclosing(stream), anyio.create_task_group() as tasks:
            self.counts["connections"] += 1
            client = IrcClient(self._nick, self._irc_channel, self._password, self._now())
            tasks.start_soon(self._tick, client, stream)
            tasks.start_soon(self._write, client, stream)
            await stream.send(client.take())
            connection, numbers = uuid4().hex, count(1)
            while True:
                for event in client.receive(await stream.receive(), self._now()):
                    if isinstance(event, Said):
                        await self._bring(event, connection, next(numbers))
                    else:
                        self._has_mail.set()
                if data := client.take():
                    await stream.send(data)

    async def _tick(self, client: IrcClient, stream: Stream) -> None:
        while True:
            await anyio.sleep(TICK_S)
            client.tick(self._now())
            if data := client.take():
                await stream.send(data)

    async def _open(self) -> Stream:
        tls = ssl.create_default_context() if self._tls is True else self._tls
        with anyio.fail_after(30):
            if tls is False:
                return await anyio.connect_tcp(self._host, self._port)
            return await anyio.connect_tcp(self._host, self._port, tls=True, ssl_context=tls)

    def _now(self) -> int:
        return self.router.bot.now_ms()

    def _note(self, name: str) -> Any:
        return self.router.bot.note(f"irc {self._irc_channel} {name}")

    def _keep(self, name: str, value: Any) -> None:
        self.router.bot.keep(f"irc {self._irc_channel} {name}", value)


def _first(group: BaseExceptionGroup[Any]) -> BaseException:
    error: BaseException = group
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def _is_word(text: str, most: int) -> bool:
    return 0 < len(text) <= most and text.isprintable() and not set(text) & set(" ,:@!\x07")
