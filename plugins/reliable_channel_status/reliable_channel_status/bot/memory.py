"""Memory of a bot, which holds handled events, sent messages, and the time of the last received
event.

The memory consists of rows in a state store (`reliable_channel.state`), as in a channel. A bot's
state file therefore has one owner and a version, and survives a kill. A method that changes the
memory returns after the change is written. No message is sent before its row is written.
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
"""Time for which a late message is still answered, after everything before it was received."""
HANDLED: Final = 100_000
"""Maximum number of handled events that are remembered. Events older than the oldest remembered
event are not answered."""
SAID: Final = 20_000
"""Maximum number of the bot's messages that are remembered, so that none is sent twice. A message
that is no longer remembered is sent again if its function runs again."""
CHATS: Final = 1_000
"""Maximum number of chats whose clocks are remembered, because any user can invent chats of a
community."""
UNPUBLISHED: Final = 1_000
"""Maximum number of messages that wait for the node."""
UNCONFIRMED: Final = 1_000
"""Maximum number of messages that wait until Store has them. Beyond the maximum, the oldest message
counts as stored."""

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
    """Error that no further message can wait, because the node has accepted nothing for long."""


@dataclass(slots=True)
class OutboxEntry:
    """Message that the bot has sent or will send."""

    once: str
    """Identifier of the event and function that caused the message, which is sent only once for
    it."""
    number: int
    message_id: MessageId
    route: str
    """Pubsub topic of the message, or the community whose SDS channel sends it."""
    messages: tuple[WakuMessage, ...]
    """Waku messages that the node must still accept or Store must still keep. The tuple is empty
    after Store has kept all messages. For an SDS channel, `messages` holds the signed payload,
    which the channel wraps and encrypts."""
    published: int = 0
    """Number of times that this run published the message."""
    looks: int = 0
    """Number of Store queries since the last publication that did not find the message."""

    @property
    def is_sealed(self) -> bool:
        """True if the message goes to the node unchanged. The route of a sealed message is a pubsub
        topic, which begins with a slash."""
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
        """Time up to which all events were received and handled."""
        return self._times["heard"]

    @property
    def born_ms(self) -> int:
        return self._times["born"]

    @property
    def answers_since_ms(self) -> int:
        """Clock below which the bot answers no message, because the message is too old."""
        return max(self._times["born"], self._times.get("forgot", 0), self.heard_ms - LATE_MS)

    def heard_until(self, at_ms: int) -> None:
        """Note that all events up to a time are handled. `heard_until` also forgets events that
        cannot arrive any more."""
        if at_ms <= self.heard_ms:
            return
        self._time("heard", at_ms)
        since_ms = self.answers_since_ms
        for fingerprint in [f for f, clock in self._handled.items() if clock < since_ms]:
            self._forget(fingerprint)
        self._write()

    def was_handled(self, fingerprint: bytes) -> bool:
        """Return True if all functions for an event have ended."""
        return fingerprint in self._handled

    def handled(self, fingerprint: bytes, clock: int) -> None:
        """Note that all functions for an event with a clock (ms) have ended."""
        self._handled[fingerprint] = clock
        self._recorder.put(_HANDLED, fingerprint, clock)
        if len(self._handled) > HANDLED:
            oldest = next(iter(self._handled))
            oldest_ms = min(self._handled[oldest], self.heard_ms)  # a fast clock refuses no other
            self._time("forgot", max(self._times.get("forgot", 0), oldest_ms + 1))
            self._forget(oldest)
        self._write()

    def clock(self, chat_id: str) -> ChatClock:
        """Return the logical clock of a chat. `keep_clock` stores what the clock observed."""
        if chat_id not in self._clocks and len(self._clocks) >= CHATS:
            oldest = next(iter(self._clocks))
            del self._clocks[oldest]
            self._recorder.delete(_CLOCKS, oldest)
        return self._clocks.setdefault(chat_id, ChatClock())

    def keep_clock(self, chat_id: str) -> None:
        """Store the clock of a chat, together with the next message."""
        self._recorder.put(_CLOCKS, chat_id, self.clock(chat_id).last)

    def sent_before(self, once: str) -> MessageId | None:
        """Return the id of the message that was sent under the identifier `once`, or None."""
        one = self._entries.get(once)
        return one.message_id if one else None

    def say(
        self,
        once: str,
        message_id: MessageId,
        route: str,
        messages: tuple[WakuMessage, ...],
    ) -> None:
        """Store a message that will be published.

        Raises:
            OutboxFull: too much waits.
        """
        if len(self._unpublished) >= UNPUBLISHED:
            raise OutboxFull(f"{UNPUBLISHED} messages wait in memory; check that the node runs")
        self._numbers += 1
        one = OutboxEntry(once, self._numbers, message_id, route, messages)
        self._entries[once] = one
        self._unpublished.append(one)
        self._put(one)
        if len(self._entries) > SAID:
            self._recorder.delete(_SAID, self._entries.popitem(last=False)[0])
        self._write()

    def next_unpublished(self) -> OutboxEntry | None:
        """Return the oldest message that the node has not accepted."""
        return self._unpublished[0] if self._unpublished else None

    def published(self, one: OutboxEntry, *, to_confirm: bool = False) -> None:
        """Note that the node accepted a message, or will never accept it. With `to_confirm`, the
        message is kept until `confirmed`.

        After a restart, a kept message is published again, because it may not have arrived.
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
        """Note that Store has a message, or that the search for the message ended."""
        self._unconfirmed.pop(one.number, None)
        one.messages = ()
        if one.once in self._entries:
            self._put(one)
            self._write()

    def reroute(self, one: OutboxEntry, route: str, messages: tuple[WakuMessage, ...]) -> None:
        """Change the route of a message, with the Waku messages for the new route."""
        one.route, one.messages = route, messages
        if one.once in self._entries:
            self._put(one)
            self._write()

    def publish_again(self, one: OutboxEntry, messages: tuple[WakuMessage, ...]) -> None:
        """Publish a message again, with other Waku messages."""
        del self._unconfirmed[one.number]
        one.messages = messages
        self._unpublished.append(one)

    def note(self, name: str) -> Any:
        """Return the value that the bot's author stored under a name, or None."""
        text = self._notes.get(name)
        return None if text is None else json.loads(text)

    def keep(self, name: str, value: Any) -> None:
        """Store any JSON value for the bot's author under a name. The value None deletes the stored
        value."""
        if value is None:
            self._notes.pop(name, None)
            self._recorder.delete(_NOTES, name)
        else:
            self._notes[name] = json.dumps(value)
            self._recorder.put(_NOTES, name, self._notes[name])
        self._write()

    def rows(self, table: Table) -> list[tuple[Any, ...]]:
        """Return the rows of another module's table, as read at the start. A second call for the
        same table returns no rows."""
        return self._others.pop(table.name, [])

    def put(self, table: Table, *row: Any) -> None:
        """Insert a row into another module's table with the next `write`."""
        self._recorder.put(table, *row)

    def erase(self, table: Table, key: Any) -> None:
        """Delete a row of another module's table with the next `write`."""
        self._recorder.delete(table, key)

    def write(self) -> None:
        """Write all changed rows to the store."""
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
