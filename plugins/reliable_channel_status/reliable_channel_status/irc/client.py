"""A client of one IRC channel, sans-I/O: bytes and times in, bytes and events out."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, TypeAlias

from .lines import Line, LineBuffer, without_format

PING_MS: Final = 60_000
"""A server that was silent for so long is asked whether it is there."""
LOST_MS: Final = 120_000
"""A server that was silent for so long is lost."""
REGISTER_MS: Final = 60_000
"""For so long a server may take until the client is in the channel."""
REJOIN_MS: Final = 30_000
"""A client that was kicked comes back after so long."""
MAX_NICK: Final = 30
_WELCOME: Final = "001"
_NICK_REFUSED: Final = ("432", "433", "436", "437")
_JOIN_REFUSED: Final = ("403", "405", "471", "473", "474", "475", "476", "477", "489")
_BANNED: Final = ("464", "465")


class IrcError(ConnectionError):
    """The connection is of no use any more; the text says why."""


@dataclass(frozen=True, slots=True)
class Joined:
    """The client is in the channel."""


@dataclass(frozen=True, slots=True)
class Said:
    """A user wrote in the channel."""

    nick: str
    source: str
    text: str
    message_id: str


@dataclass(frozen=True, slots=True)
class Kicked:
    """The client was removed from the channel; it comes back."""

    by: str
    why: str


Event: TypeAlias = Joined | Said | Kicked


class IrcClient:
    """One connection.

    Args:
        nick: the wanted nickname; another is tried where it is taken.
        channel: such as `#tea`.
        password: of the server, or `account:password` for NickServ; empty for none.
        now_ms: when the connection began.
    """

    def __init__(self, nick: str, channel: str, password: str, now_ms: int) -> None:
        self.nick = nick
        self.is_joined = False
        self._channel = channel
        self._buffer = LineBuffer()
        self._out = bytearray()
        self._heard_ms = self._began_ms = now_ms
        self._is_asked = False
        self._rejoin_ms: int | None = None
        self._tries = 0
        if password:
            self._write("PASS", password)
        self._write("NICK", nick)
        self._write("USER", nick, "0", "*", "bridge to Status")

    def take(self) -> bytes:
        """What is to be sent now."""
        data = bytes(self._out)
        self._out.clear()
        return data

    def say(self, text: str) -> None:
        """Write a line into the channel.

        Raises:
            ValueError: the line is too long.
        """
        self._write("PRIVMSG", self._channel, text)

    @property
    def max_text_bytes(self) -> int:
        """How long a line can be: others get it with this client's name before it, at most 63 bytes
        of host and 10 of user."""
        overhead = len(f":{self.nick}!{'u' * 10}@{'h' * 63} PRIVMSG {self._channel} :\r\n".encode())
        return 512 - overhead

    def receive(self, data: bytes, now_ms: int) -> Iterator[Event]:
        """What some bytes mean.

        Raises:
            IrcError: the server ends the connection, or does not let the client in.
        """
        self._heard_ms, self._is_asked = now_ms, False
        for line in self._buffer.feed(data):
            if (event := self._take(line, now_ms)) is not None:
                yield event

    def tick(self, now_ms: int) -> None:
        """Let time pass.

        Raises:
            IrcError: the server has been silent, or has not let the client in.
        """
        silent_ms = now_ms - self._heard_ms
        if silent_ms >= LOST_MS:
            raise IrcError(f"the server has been silent for {silent_ms // 1000} s")
        if (
            not self.is_joined
            and self._rejoin_ms is None
            and now_ms - self._began_ms >= REGISTER_MS
        ):
            raise IrcError(f"not in {self._channel} after {REGISTER_MS // 1000} s")
        if silent_ms >= PING_MS and not self._is_asked:
            self._is_asked = True
            self._write("PING", "bridge")
        if self._rejoin_ms is not None and now_ms >= self._rejoin_ms:
            self._rejoin_ms, self._began_ms = None, now_ms
            self._write("JOIN", self._channel)

    def _take(self, line: Line, now_ms: int) -> Event | None:
        match line.command:
            case "PING":
                self._write("PONG", *line.params[:1])
            case "ERROR":
                raise IrcError(f"the server ended the connection: {' '.join(line.params)[:200]}")
            case command if command == _WELCOME:
                self.nick = line.params[0] if line.params else self.nick
                self._write("JOIN", self._channel)
            case command if command in _NICK_REFUSED and not self.is_joined:
                self._next_nick(line)
            case command if command in _JOIN_REFUSED and self._is_here(line, 1):
                raise IrcError(f"not let into {self._channel}: {' '.join(line.params[2:])[:200]}")
            case command if command in _BANNED:
                raise IrcError(f"refused by the server: {' '.join(line.params[1:])[:200]}")
            case "JOIN" if line.nick == self.nick and self._is_here(line, 0):
                self.is_joined = True
                return Joined()
            case "NICK" if line.nick == self.nick and line.params:
                self.nick = line.params[0]
            case "KICK" if self._is_here(line, 0) and line.params[1:2] == (self.nick,):
                self.is_joined, self._rejoin_ms = False, now_ms + REJOIN_MS
                return Kicked(line.nick, " ".join(line.params[2:])[:200])
            case "PRIVMSG" if self._is_here(line, 0) and line.nick != self.nick:
                return self._said(line)
        return None

    def _said(self, line: Line) -> Said | None:
        text = line.params[1] if len(line.params) > 1 else ""
        if text.startswith("\x01ACTION "):
            text = f"* {line.nick} {text[8:]}"
        elif text.startswith("\x01"):  # a request to the program, such as VERSION
            return None
        text = without_format(text).strip()
        return Said(line.nick, line.source, text, line.message_id) if text else None

    def _next_nick(self, line: Line) -> None:
        self._tries += 1
        if self._tries > 5:
            raise IrcError(f"no nickname was accepted: {' '.join(line.params[1:])[:200]}")
        self.nick = f"{self.nick[: MAX_NICK - 1]}_"
        self._write("NICK", self.nick)

    def _is_here(self, line: Line, index: int) -> bool:
        return len(line.params) > index and line.params[index].lower() == self._channel.lower()

    def _write(self, command: str, *params: str) -> None:
        self._out += Line(command, params).encode()
