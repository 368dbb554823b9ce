"""What a bot must not forget: what it handled and said, and up to when it has heard everything.

Rows of the channel's state store (`reliable_channel.state`), so that a bot's file has one owner, a
version, and survives a kill like a channel's. Each method that changes something has written it
when it returns; nothing is said before that.
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
"""A question that is heard up to an hour after everything before it was heard is still answered."""
HANDLED: Final = 100_000
"""Handled events that are remembered; beyond it what is older than the oldest is not answered."""
SAID: Final = 20_000
"""What the bot said, by what for; then the oldest may be said again if it is asked for again."""
CHATS: Final = 1_000
"""Chats whose clocks are remembered: of a whole community anybody can write into made-up ones."""
UNPUBLISHED: Final = 1_000
"""Messages that wait for the node."""
UNCONFIRMED: Final = 1_000
"""Messages that Store is to show; beyond it the oldest counts as kept."""

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
    """The node has taken nothing for so long that nothing more can wait for it."""


@dataclass(slots=True)
class OutboxEntry:
    """Something that the bot said, or is about to."""

    once: str
    """What it was said for: it is said once."""
    number: int
    message_id: MessageId
    route: str
    """The pubsub topic, or the community in whose SDS channel it goes."""
    messages: tuple[WakuMessage, ...]
    """What the node has to take yet, and Store to keep; empty once both is done. What goes through
    an SDS channel is one message with the signed payload, which the channel wraps and encrypts."""
    published: int = 0
    """How often, in this run."""
    looks: int = 0
    """How often Store lacked it since it was published last."""

    @property
    def is_sealed(self) -> bool:
        """True if it is as it goes to the node: a pubsub topic begins with a slash."""
        return self.route.startswith("/")


class BotMemory:
    """One bot's memory, in memory and in a store.

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
        """Everything up to this time was heard and handled."""
        return self._times["heard"]

    @property
    def born_ms(self) -> int:
        return self._times["born"]

    @property
    def answers_since_ms(self) -> int:
        """What has a lower clock was here before, or before the bot was, and is not answered."""
        return max(self._times["born"], self._times.get("forgot", 0), self.heard_ms - LATE_MS)

    def heard_until(self, at_ms: int) -> None:
        """Take note that all up to a time is handled; forget what can come no more."""
        if at_ms <= self.heard_ms:
            return
        self._time("heard", at_ms)
        since_ms = self.answers_since_ms
        for fingerprint in [f for f, clock in self._handled.items() if clock < since_ms]:
            self._forget(fingerprint)
        self._write()

    def was_handled(self, fingerprint: bytes) -> bool:
        """Return True if an event was handled to its end."""
        return fingerprint in self._handled

    def handled(self, fingerprint: bytes, clock: int) -> None:
        """Take note that an event was handled to its end."""
        self._handled[fingerprint] = clock
        self._recorder.put(_HANDLED, fingerprint, clock)
        if len(self._handled) > HANDLED:
            oldest = next(iter(self._handled))
            self._time("forgot", max(self._times.get("forgot", 0), self._handled[oldest] + 1))
            self._forget(oldest)
        self._write()

    def clock(self, chat_id: str) -> ChatClock:
        """The clock of a chat; `keep_clock` keeps what it observed."""
        if chat_id not in self._clocks and len(self._clocks) >= CHATS:
            oldest = next(iter(self._clocks))
            del self._clocks[oldest]
            self._recorder.delete(_CLOCKS, oldest)
        return self._clocks.setdefault(chat_id, ChatClock())

    def keep_clock(self, chat_id: str) -> None:
        """Keep the clock of a chat, together with what is said next."""
        self._recorder.put(_CLOCKS, chat_id, self.clock(chat_id).last)

    def sent_before(self, once: str) -> MessageId | None:
        """The id of what was said for that, if anything was."""
        one = self._entries.get(once)
        return one.message_id if one else None

    def say(
        self,
        once: str,
        message_id: MessageId,
        route: str,
        messages: tuple[WakuMessage, ...],
    ) -> None:
        """Accept something that is to be published; it is, sooner or later.

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
        """What the node should take first."""
        return self._unpublished[0] if self._unpublished else None

    def published(self, one: OutboxEntry, *, to_confirm: bool = False) -> None:
        """Take note that the node took it, or never will; `to_confirm` keeps it until `confirmed`.

        What is kept is published again after a restart, since it may not have arrived.
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
        """What the node took and Store has not shown."""
        return tuple(self._unconfirmed.values())

    def confirmed(self, one: OutboxEntry) -> None:
        """Take note that Store has it, or that it is not looked for any more."""
        self._unconfirmed.pop(one.number, None)
        one.messages = ()
        if one.once in self._entries:
            self._put(one)
            self._write()

    def reroute(self, one: OutboxEntry, route: str, messages: tuple[WakuMessage, ...]) -> None:
        """Have something go another way."""
        one.route, one.messages = route, messages
        if one.once in self._entries:
            self._put(one)
            self._write()

    def publish_again(self, one: OutboxEntry, messages: tuple[WakuMessage, ...]) -> None:
        """Have something published once more, as other messages."""
        del self._unconfirmed[one.number]
        one.messages = messages
        self._unpublished.append(one)

    def note(self, name: str) -> Any:
        """What the bot's author keeps under a name, or None."""
        text = self._notes.get(name)
        return None if text is None else json.loads(text)

    def keep(self, name: str, value: Any) -> None:
        """Keep anything that JSON can hold for the bot's author; None deletes it."""
        if value is None:
            self._notes.pop(name, None)
            self._recorder.delete(_NOTES, name)
        else:
            self._notes[name] = json.dumps(value)
            self._recorder.put(_NOTES, name, self._notes[name])
        self._write()

    def rows(self, table: Table) -> list[tuple[Any, ...]]:
        """The rows of a table of another module at the start; they are handed out once."""
        return self._others.pop(table.name, [])

    def put(self, table: Table, *row: Any) -> None:
        """Put a row into a table of another module with the next `write`."""
        self._recorder.put(table, *row)

    def erase(self, table: Table, key: Any) -> None:
        """Delete a row of a table of another module with the next `write`."""
        self._recorder.delete(table, key)

    def write(self) -> None:
        """Write what was put and erased."""
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
