"""Conversation in one open channel, and its connection to the runtime."""

from collections.abc import AsyncIterator, Callable
from functools import partial
from itertools import count
from typing import Final

from .._arguments import checked_name
from .._resources import name_resource
from ..errors import ChannelClosed, NoAnswer, NotAcknowledged
from ..events import AnyEvent, MessageAcknowledged, MessageReceived
from ..options import ChannelOptions
from ..runtime import Notes, Runtime
from .acknowledging import OWN_EVENTS, Outcome, Outcomes, Request
from .asking import Asking, Heard, OpenQuestion
from .envelope import UnreadableEnvelope, decode, encode, is_envelope
from .presence import SIGNS, Presence

ANSWER_KEY: Final = "reliable_channel.answer/"
"""Prefix of the idempotency keys of answers, followed by the ids of asker and question."""
EARLIER: Final = 100
"""Number of log entries of an earlier run from which known participants are restored."""
NAMED: Final = 5
"""Maximum number of participants that the text of an error lists."""


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
        self._check_open()
        if idempotency_key is not None:
            checked_name("idempotency_key", idempotency_key)
        try:
            accepted = await self.runtime.send(payload, idempotency_key)
        except Exception as error:
            name_resource(error, f"channel {self._channel_id!r} cannot send")
            raise
        unacknowledged = self.runtime.engine.core.unacknowledged
        is_pending = any(map(unacknowledged.__contains__, accepted.message_ids))
        outcome = self._outcomes.of(accepted.message_ids[0], is_pending=is_pending)
        wait = partial(self._acknowledged, outcome)
        return Request(accepted.request_id, accepted.message_ids, wait)

    async def _acknowledged(
        self, outcome: Outcome, request: Request, within_s: float | None
    ) -> None:
        """Wait for the result of a request.

        Raises:
            NotAcknowledged: not in time, or it failed.
            ChannelClosed: the channel was closed first.
        """
        if not await outcome.wait(within_s):
            late = f"within {within_s:g} s: {self._why(request)}"
            raise NotAcknowledged(request.message_id, late)
        if outcome.event is not None:
            if not isinstance(outcome.event, MessageAcknowledged):
                raise NotAcknowledged(request.message_id, f"and failed: {outcome.event.reason}")
            await self.confirm(outcome.event)

    async def confirm(self, event: AnyEvent) -> None:
        """Confirm that an event was handled. In a closed channel, no task can write the
        confirmation."""
        if not self.is_closed:
            await self.runtime.confirm(event)

    def _check_open(self) -> None:
        if self.is_closed:
            raise ChannelClosed(f"channel {self._channel_id!r} is closed")

    # -- questions ---------------------------------------------------------------------------------

    async def ask(self, content: bytes, key: str | None) -> tuple[Request, OpenQuestion]:
        """Send a question to all participants. If the question was sent before a restart, its
        answers are taken from the log.

        A question under an idempotency key keeps its id across restarts.
        """
        unique = (self.runtime.now_ms(), next(self._numbers)) if key is None else (key,)
        question = self.asking.open(*unique)  # first, because an answer may be fast
        was_asked = self.runtime.engine.accepted_before(key) is not None
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
        self._check_open()
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
        what = f"within {within_s:g} s: {self._why(request)}"
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

    def _why(self, request: Request) -> str:
        """What is known of a message, of the participants, and of the preset."""
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
