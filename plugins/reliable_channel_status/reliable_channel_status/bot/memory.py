"""Memory of a bot: handled events, sent messages, and the time up to which it has received
everything.

It consists of rows in the channel's state store (`reliable_channel.state`). A bot's file therefore
has one owner and a version, and survives a kill like a channel's. A method that changes something
has written it when it returns. Nothing is sent before that.
"""

import json
from collections import OrderedDict, deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from reliable_channel.spi import Identity, Recorder, StateStore, Table
from waku import WakuMessage

from ..wire.keys import PublicKey
from ..wire.outcomes import MessageId
from ..wire.rules import ChatClock

LATE_MS: Final = 3_600_000
"""Time for which a late question is still answered, after everything before it was received."""
HANDLED: Final = 100_000
"""Maximum number of remembered handled events. Events older than the oldest are not answered."""
SAID: Final = 20_000
"""Maximum number of remembered messages of the bot by their cause. The oldest may be sent again if
it is requested again."""
CHATS: Final = 1_000
"""Maximum number of chats whose clocks are remembered, because anybody can write into invented
chats of a community."""
UNPUBLISHED: Final = 1_000
"""Messages that wait for the node."""
UNCONFIRMED: Final = 1_000
"""Messages that Store should confirm. Beyond it the oldest counts as stored."""

_TIMES: Final = Table("bot_times", (("name", "TEXT"), ("at_ms", "INTEGER")))
_CLOCKS: Final = Table("bot_clocks", (("chat_id", "TEXT"), ("clock", "INTEGER")))
_HANDLED: Final = Table("bot_handled", (("fingerprint", "BLOB"), ("clock", "INTEGER")))
_SAID: Final = Table(
    "bot_said",
    (
        ("once", "TEXT"),
        ("number", "INTEGER"),
        ("message_id", "TEXT"),
        ("route", "TEXT"),
        ("messages", "TEXT"),
    ),
)
_NOTES: Final = Table("bot_notes", (("name", "TEXT"), ("json", "TEXT")))


_OWN: Final = {table.name for table in (_TIMES, _CLOCKS, _HANDLED, _SAID, _NOTES)}


class OutboxFull(RuntimeError):
    """The node has accepted nothing for so long that no further message can wait."""


@dataclass(slots=True)
class OutboxEntry:
    """Message that the bot has sent, or will send."""

    once: str
    """Cause of the message, for which it is sent once."""
    number: int
    message_id: MessageId
    route: str
    """Pubsub topic, or the community whose SDS channel sends it."""
    messages: tuple[WakuMessage, ...]
    """Messages that the node must still accept and Store must keep. Empty once both is done. In an
    SDS channel it is one message with the signed payload, which the channel wraps and encrypts."""
    published: int = 0
    """Number of publications in this run."""
    looks: int = 0
    """Number of Store queries without it since the last publication."""

    @property
    def is_sealed(self) -> bool:
        """True if it goes to the node as it is. A pubsub topic begins with a slash."""
        return self.route.startswith("/")


class BotMemory:
    """Memory of one bot, in memory and in a store.

    Raises:
        StateError: the store cannot be used, or is another bot's.
    """

    def __init__(self, store: StateStore, public_key: PublicKey, now_ms: int) -> None:
        self._store = store
        self._recorder = Recorder()
        saved = store.open(Identity("status-bot", public_key.hex, "status"))
        rows: Mapping[str, Any] = saved.tables
        self._times: dict[str, int] = dict(rows.get(_TIMES.name, ()))
        self._clocks = {chat: ChatClock(clock) for chat, clock in rows.get(_CLOCKS.name, ())}
        by_clock = sorted(rows.get(_HANDLED.name, ()), key=lambda row: row[1])
        # No dicts: taking the first key of one is linear in the keys deleted before it.
        self._handled: OrderedDict[bytes, int] = OrderedDict(by_clock)
        said = sorted(map(_entry, rows.get(_SAID.name, ())), key=lambda said: said.number)
        self._entries = OrderedDict((one.once, one) for one in said)
        self._unpublished = deque(one for one in said if one.messages)
        self._unconfirmed: OrderedDict[int, OutboxEntry] = OrderedDict()
        self._numbers = said[-1].number if said else 0
        self._notes: dict[str, str] = dict(rows.get(_NOTES.name, ()))
        self._others = {name: list(kept) for name, kept in rows.items() if name not in _OWN}
        if "born" not in self._times:
            self._time("born", now_ms)
            self._time("heard", now_ms)
            self._write()

    @property
    def heard_ms(self) -> int:
        """Time up to which everything was received and handled."""
        return self._times["heard"]

    @property
    def born_ms(self) -> int:
        return self._times["born"]

    @property
    def answers_since_ms(self) -> int:
        """Clock below which messages are older than the bot or were here before. They are not
        answered."""
        return max(self._times["born"], self._times.get("forgot", 0), self.heard_ms - LATE_MS)

    def heard_until(self, at_ms: int) -> None:
        """Note that everything up to a time is handled. Forget what cannot come any more."""
        if at_ms <= self.heard_ms:
            return
        self._time("heard", at_ms)
        since_ms = self.answers_since_ms
        for fingerprint in [f for f, clock in self._handled.items() if clock < since_ms]:
            self._forget(fingerprint)
        self._write()

    def was_handled(self, fingerprint: bytes) -> bool:
        """Return True if an event was handled completely."""
        return fingerprint in self._handled

    def handled(self, fingerprint: bytes, clock: int) -> None:
        """Note that an event was handled completely."""
        self._handled[fingerprint] = clock
        self._recorder.put(_HANDLED, fingerprint, clock)
        if len(self._handled) > HANDLED:
            oldest = next(iter(self._handled))
            self._time("forgot", max(self._times.get("forgot", 0), self._handled[oldest] + 1))
            self._forget(oldest)
        self._write()

    def clock(self, chat_id: str) -> ChatClock:
        """Return the clock of a chat. `keep_clock` keeps its observations."""
        if chat_id not in self._clocks and len(self._clocks) >= CHATS:
            oldest = next(iter(self._clocks))
            del self._clocks[oldest]
            self._recorder.delete(_CLOCKS, oldest)
        return self._clocks.setdefault(chat_id, ChatClock())

    def keep_clock(self, chat_id: str) -> None:
        """Keep the clock of a chat, together with the next message."""
        self._recorder.put(_CLOCKS, chat_id, self.clock(chat_id).last)

    def sent_before(self, once: str) -> MessageId | None:
        """Return the id of the message that was sent for a cause, or None."""
        one = self._entries.get(once)
        return one.message_id if one else None

    def say(
        self,
        once: str,
        message_id: MessageId,
        route: str,
        messages: tuple[WakuMessage, ...],
    ) -> None:
        """Accept a message that must be published sooner or later.

        Raises:
            OutboxFull: too much waits.
        """
        if len(self._unpublished) >= UNPUBLISHED:
            raise OutboxFull(f"{UNPUBLISHED} messages wait; is the node there?")
        self._numbers += 1
        one = OutboxEntry(once, self._numbers, message_id, route, messages)
        self._entries[once] = one
        self._unpublished.append(one)
        self._put(one)
        if len(self._entries) > SAID:
            self._recorder.delete(_SAID, self._entries.popitem(last=False)[0])
        self._write()

    def next_unpublished(self) -> OutboxEntry | None:
        """Return the messages that the node should accept first."""
        return self._unpublished[0] if self._unpublished else None

    def published(self, one: OutboxEntry, *, to_confirm: bool = False) -> None:
        """Note that the node accepted a message, or never will. `to_confirm` keeps it until
        `confirmed`.

        A kept message is published again after a restart, because it may not have arrived.
        """
        self._unpublished.remove(one)
        one.published += 1
        one.looks = 0
        if not to_confirm:
            self.confirmed(one)
            return
        self._unconfirmed[one.number] = one
        if len(self._unconfirmed) > UNCONFIRMED:
            self.confirmed(next(iter(self._unconfirmed.values())))

    @property
    def unconfirmed(self) -> tuple[OutboxEntry, ...]:
        """Messages that the node accepted and Store has not confirmed."""
        return tuple(self._unconfirmed.values())

    def confirmed(self, one: OutboxEntry) -> None:
        """Note that Store has a message, or that the search for it ended."""
        self._unconfirmed.pop(one.number, None)
        one.messages = ()
        if one.once in self._entries:
            self._put(one)
            self._write()

    def reroute(self, one: OutboxEntry, route: str, messages: tuple[WakuMessage, ...]) -> None:
        """Send a message another way."""
        one.route, one.messages = route, messages
        if one.once in self._entries:
            self._put(one)
            self._write()

    def publish_again(self, one: OutboxEntry, messages: tuple[WakuMessage, ...]) -> None:
        """Publish a message once more, as other Waku messages."""
        del self._unconfirmed[one.number]
        one.messages = messages
        self._unpublished.append(one)

    def note(self, name: str) -> Any:
        """Return the author's value under a name, or None."""
        text = self._notes.get(name)
        return None if text is None else json.loads(text)

    def keep(self, name: str, value: Any) -> None:
        """Keep any JSON value for the bot's author. None deletes it."""
        if value is None:
            self._notes.pop(name, None)
            self._recorder.delete(_NOTES, name)
        else:
            self._notes[name] = json.dumps(value)
            self._recorder.put(_NOTES, name, self._notes[name])
        self._write()

    def rows(self, table: Table) -> list[tuple[Any, ...]]:
        """Return the rows of another module's table at the start. They are returned once."""
        return self._others.pop(table.name, [])

    def put(self, table: Table, *row: Any) -> None:
        """Insert a row into another module's table with the next `write`."""
        self._recorder.put(table, *row)

    def erase(self, table: Table, key: Any) -> None:
        """Delete a row of another module's table with the next `write`."""
        self._recorder.delete(table, key)

    def write(self) -> None:
        """Write all changed rows."""
        self._write()

    def close(self) -> None:
        self._store.close()

    def _time(self, name: str, at_ms: int) -> None:
        self._times[name] = at_ms
        self._recorder.put(_TIMES, name, at_ms)

    def _forget(self, fingerprint: bytes) -> None:
        del self._handled[fingerprint]
        self._recorder.delete(_HANDLED, fingerprint)

    def _put(self, one: OutboxEntry) -> None:
        messages = json.dumps([message.to_json() for message in one.messages])
        self._recorder.put(_SAID, one.once, one.number, one.message_id, one.route, messages)

    def _write(self) -> None:
        self._store.write(self._recorder.take())


def _entry(row: tuple[Any, ...]) -> OutboxEntry:
    once, number, message_id, route, messages = row
    read = tuple(WakuMessage.from_json(message) for message in json.loads(messages))
    return OutboxEntry(once, number, message_id, route, read)
