"""Conversation in one open channel, and its connection to the runtime.

`send` returns a request, on whose result a program may wait.
"""

from collections import OrderedDict
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from itertools import count
from typing import Final

import anyio

from .._arguments import checked_name
from .._notifier import Notifier
from .._resources import name_resource
from ..errors import ChannelClosed, NoAnswer, NotAcknowledged
from ..events import (
    AnyEvent,
    DeliveryFailed,
    MessageAcknowledged,
    MessageReceived,
    SendFailed,
    SendingMessage,
)
from ..options import ChannelOptions
from ..runtime import Notes, Runtime
from .asking import (
    Asking,
    Heard,
    OpenQuestion,
    UnreadableEnvelope,
    decode,
    encode,
    is_envelope,
)
from .presence import SIGNS, Presence

ANSWER_KEY: Final = "reliable_channel.answer/"
"""Prefix of the idempotency keys of answers, followed by the ids of asker and question."""
EARLIER: Final = 100
"""Number of log entries of an earlier run from which known participants are restored."""
NAMED: Final = 5
"""Maximum number of participants that the text of an error lists."""
RESULTS_LIMIT: Final = 1_000
"""Maximum number of remembered results of requests, for a `send` that is repeated under its key.
The oldest results are dropped. A request object that a program keeps has its result in any case.
"""
Result = MessageAcknowledged | DeliveryFailed | SendFailed
OWN_EVENTS: Final = (SendingMessage, MessageAcknowledged, DeliveryFailed, SendFailed)


@dataclass(slots=True, eq=False)
class Outcome:
    """Result of one request, which comes later."""

    is_known: bool = False
    event: Result | None = None
    """None while it is not known, and where an earlier run of the program was informed."""
    is_closed: bool = False
    changed: Notifier | None = None
    """None while no task waits: thousands of messages may wait to be sent."""

    async def wait(self, within_s: float | None) -> bool:
        """Wait for the result, and return True if it is known in time.

        Raises:
            ChannelClosed: the channel was closed first.
        """
        with anyio.move_on_after(within_s):
            while not self.is_known and not self.is_closed:
                self.changed = self.changed or Notifier()
                await self.changed.wait()
        if self.is_closed and not self.is_known:
            raise ChannelClosed("the channel was closed before the message was acknowledged")
        return self.is_known


class Outcomes:
    """Results of own requests, by the message ids that events contain."""

    def __init__(self) -> None:
        self._pending: dict[str, Outcome] = {}
        """At most as many as messages may be unacknowledged."""
        self._known: OrderedDict[str, Outcome] = OrderedDict()

    def note(self, event: AnyEvent, at_ms: int) -> None:
        """Note an event about an own message."""
        if isinstance(event, SendingMessage):
            self._pending[event.message_id] = Outcome()
        elif isinstance(event, Result):
            outcome = self._pending.pop(event.message_id, None) or Outcome()
            outcome.event, outcome.is_known = event, True
            self._known[event.message_id] = outcome
            if len(self._known) > RESULTS_LIMIT:
                self._known.popitem(last=False)
            if outcome.changed is not None:
                outcome.changed.notify()

    def of(self, message_id: str) -> Outcome | None:
        """Return the result of a request, or None if it was accepted before a restart."""
        return self._pending.get(message_id) or self._known.get(message_id)

    def earlier(self, message_id: str, *, is_pending: bool) -> Outcome:
        """Return the result of a request that was accepted before a restart."""
        outcome = Outcome(is_known=not is_pending)
        if is_pending:
            self._pending[message_id] = outcome
        return outcome

    def close(self) -> None:
        """End all waits for results, because the channel was closed."""
        for outcome in self._pending.values():
            outcome.is_closed = True
            if outcome.changed is not None:
                outcome.changed.notify()


@dataclass(frozen=True, slots=True)
class Request:
    """Request of one `send`, for any number of segments."""

    request_id: str
    message_ids: tuple[str, ...]
    _outcome: Outcome = field(repr=False, compare=False)
    _conversation: "Conversation" = field(repr=False, compare=False)

    @property
    def message_id(self) -> str:
        """Message id that names the request in events, which is the id of its first segment."""
        return self.message_ids[0]

    async def acknowledged(self, *, within_s: float | None = None) -> None:
        """Wait until another participant is known to have received the message.

        Without `within_s` (s), the call waits for the result, which always comes at last. A
        repeated request counts as acknowledged if an earlier run of the program confirmed its
        result.

        Raises:
            NotAcknowledged: not in time, or never. The text says what was missing. The message is
                still retried, unless it failed.
            ChannelClosed: the channel was closed.
        """
        if not await self._outcome.wait(within_s):
            late = f"within {within_s:g} s: {self._conversation.why(self)}"
            raise NotAcknowledged(self.message_id, late)
        if (event := self._outcome.event) is not None:
            if not isinstance(event, MessageAcknowledged):
                raise NotAcknowledged(self.message_id, f"and failed: {event.reason}")
            await self._conversation.confirm(event)


class Conversation:
    """Conversation that gets each event of a channel before its readers. No method of the
    conversation waits for the network.

    Args:
        preset: the name of the channel's preset, for errors.
    """

    def __init__(
        self,
        runtime: Runtime,
        channel_id: str,
        sender_id: str,
        options: ChannelOptions,
        preset: str,
    ) -> None:
        self.runtime = runtime
        self._channel_id = channel_id
        self._interval_ms = options.sds_options().sync_min_interval_ms
        self._preset = preset
        self._outcomes = Outcomes()
        self._numbers = count()
        self.asking = Asking(sender_id, runtime.emit)
        self.presence = Presence(sender_id, self._interval_ms, runtime.emit, runtime.now_ms)
        self.is_closed = False
        notes: Notes = {
            **dict.fromkeys(SIGNS, self.presence.note),
            **dict.fromkeys(OWN_EVENTS, self._outcomes.note),
            MessageReceived: self._received,
        }
        runtime.attach(notes, self.asking.holds)

    def _received(self, event: MessageReceived, at_ms: int) -> None:
        self.presence.note(event, at_ms)
        if is_envelope(event.content):
            self.asking.note(event)

    def begin(self) -> None:
        """Restore the participants that sent the newest messages in the log."""
        for entry in self.runtime.engine.core.log.last(EARLIER):
            heard_ms, now_ms = entry.lamport_timestamp, self.runtime.now_ms()
            self.presence.heard(entry.sender_id, "message", heard_ms, now_ms)

    def close(self) -> None:
        """End all waits of the conversation, because the channel was closed."""
        self.is_closed = True
        self._outcomes.close()
        self.asking.close()

    async def send(self, payload: bytes, idempotency_key: str | None) -> Request:
        """Accept a message, unless a message was already accepted under the idempotency key."""
        if self.is_closed:
            raise self._closed()
        if idempotency_key is not None:
            checked_name("idempotency_key", idempotency_key)
        try:
            accepted = await self.runtime.send(payload, idempotency_key)
        except Exception as error:
            name_resource(error, f"channel {self._channel_id!r} cannot send")
            raise
        message_id = accepted.message_ids[0]
        if (outcome := self._outcomes.of(message_id)) is None:
            unacknowledged = self.runtime.engine.core.unacknowledged
            is_pending = any(map(unacknowledged.__contains__, accepted.message_ids))
            outcome = self._outcomes.earlier(message_id, is_pending=is_pending)
        return Request(accepted.request_id, accepted.message_ids, outcome, self)

    async def confirm(self, event: AnyEvent) -> None:
        """Confirm that an event was handled. In a closed channel, no task can write the
        confirmation."""
        if not self.is_closed:
            await self.runtime.confirm(event)

    def _closed(self) -> ChannelClosed:
        return ChannelClosed(f"channel {self._channel_id!r} is closed")

    # -- questions ---------------------------------------------------------------------------------

    async def ask(self, content: bytes, key: str | None) -> tuple[Request, OpenQuestion]:
        """Send a question to all participants. If the question was sent before a restart, its
        answers are taken from the log.

        A question under an idempotency key keeps its id across restarts.
        """
        unique = (self.runtime.now_ms(), next(self._numbers)) if key is None else (key,)
        question = self.asking.open(*unique)  # first, because an answer may be fast
        was_asked = key is not None and self.runtime.engine.accepted_before(key) is not None
        request = await self.send(encode(question.question_id, content), key)
        if was_asked:
            async for heard in self._answers_in_log(question.question_id):
                question.take(heard)
        return request, question

    async def answer(self, heard: Heard, content: bytes) -> Request:
        """Answer a question of another participant, once."""
        payload = encode(heard.envelope.question_id, content, heard.event.sender_id)
        request = await self.send(payload, _answer_key(heard))
        await self.confirm(heard.event)
        return request

    async def ignore(self, heard: Heard) -> None:
        """Confirm that a question was handled without an answer.

        Raises:
            ChannelClosed: the channel was closed.
        """
        if self.is_closed:
            raise self._closed()
        await self.confirm(heard.event)

    async def next_question(self, is_closed: Callable[[], bool]) -> Heard:
        """Wait for a question that this participant has not answered.

        Raises:
            StopAsyncIteration: the channel was closed, or the reader that asks.
        """
        while True:
            heard = await self.asking.next(is_closed)
            if self.runtime.engine.accepted_before(_answer_key(heard)) is None:
                return heard
            await self.confirm(heard.event)  # the process ended before it did this

    def no_answer(self, request: Request, question: OpenQuestion, within_s: float) -> NoAnswer:
        """Return the error for a question that no participant answered in time."""
        what = f"within {within_s:g} s: {self.why(request)}"
        return NoAnswer(request.message_id, question.question_id, what)

    async def _answers_in_log(self, question_id: bytes) -> AsyncIterator[Heard]:
        async with self.runtime.follow(None, own=False) as follower:
            for entry in follower.snapshot:
                if not is_envelope(entry.content):
                    continue
                try:
                    envelope = decode(entry.content)
                except UnreadableEnvelope:
                    continue
                if envelope.asker_id and envelope.question_id == question_id:
                    event = MessageReceived(
                        entry.message_id,
                        entry.sender_id,
                        entry.content,
                        entry.lamport_timestamp,
                        position=0,
                    )
                    yield Heard(event, envelope)

    def why(self, request: Request) -> str:
        """Return what is known of a message, of the participants, and of the preset."""
        now_ms = self.runtime.now_ms()
        heard = [
            f"{one.sender_id} {(now_ms - one.last_heard_ms) / 1000:.0f} s ago"
            for one in self.presence.participants()[:NAMED]
        ]
        heard_of = f"heard {', '.join(heard)}" if heard else "no other participant was heard"
        explained = self.runtime.explain(request.message_id).sentence
        every = f"sync messages each {self._interval_ms / 1000:g} s"
        advice = "" if self._preset == "auto" else "; preset='auto' at all participants is faster"
        return f"{explained}; {heard_of}; preset {self._preset!r}, {every}{advice}"


def _answer_key(heard: Heard) -> str:
    return f"{ANSWER_KEY}{heard.event.sender_id}/{heard.envelope.question_id.hex()}"
