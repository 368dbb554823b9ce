"""Methods of a channel for values of one type. A plain channel is a channel of bytes."""

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any, Final, Generic, Literal, Self, TypeVar

import anyio

from ..errors import ChannelClosed
from ..events import MessageReceived, MessageUndecodable
from .acknowledging import Request
from .asking import Heard, OpenQuestion
from .codecs import Codec
from .conversation import Conversation
from .envelope import is_envelope

T = TypeVar("T")
ItemT = TypeVar("ItemT", bound="Message[Any]")
OtherT = TypeVar("OtherT")
Wait = Literal["acknowledged"]


@dataclass(frozen=True)
class Message(Generic[T]):
    """A message of another participant."""

    content: T
    """Payload, decoded by the codec of a typed channel."""
    event: MessageReceived = field(repr=False)
    """Event that delivered it, with its place in the log and its missing dependencies."""

    @property
    def message_id(self) -> str:
        """Message id, as in events."""
        return self.event.message_id

    @property
    def sender_id(self) -> str:
        """The participant that sent it."""
        return self.event.sender_id


@dataclass(frozen=True)
class Answer(Message[T]):
    """An answer to an own question."""


@dataclass(frozen=True)
class Question(Message[T]):
    """A question of another participant.

    With `state` it stays open, also across restarts, until it is answered or ignored.
    """

    _heard: Heard = field(repr=False, compare=False)
    _view: "View[T]" = field(repr=False, compare=False)

    async def answer(self, content: T) -> Request:
        """Send the answer, once for each question, and confirm the question.

        A repeated call, also after a restart with `state`, returns the request of the first one.

        Raises:
            ContentTooLong, OutgoingBufferFull, ChannelClosed, StateError: as `send`.
        """
        conversation = self._view.conversation
        return await conversation.answer(self._heard, self._view.codec.encode(content))

    async def ignore(self) -> None:
        """Confirm the question without an answer, so that it does not come again.

        Raises:
            ChannelClosed: the channel is not open.
        """
        await self._view.conversation.ignore(self._heard)


@dataclass(frozen=True)
class View(Generic[T]):
    """Conversation that uses a codec."""

    conversation: Conversation
    codec: Codec[T]

    def decoded(self, event: MessageReceived, payload: bytes) -> list[T]:
        """Return the value in a payload. If it cannot be decoded, emit that and return None."""
        try:
            return [self.codec.decode(payload)]
        except Exception as error:  # any failure of a given codec is one of the payload
            undecodable = MessageUndecodable(event.message_id, event.sender_id, str(error))
            self.conversation.runtime.emit(undecodable)
            return []


class Reader(AsyncIterator[ItemT], ABC):
    """Messages, questions or answers in their order, until the channel or the reader is closed.

    Iterate over it with `async for`. The end of an `async with` block closes it, even if you left
    the loop early.
    """

    def __aiter__(self) -> Self:
        return self

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self.aclose()

    @abstractmethod
    async def aclose(self) -> None:
        """End the reader and its iteration."""


class Messages(Reader[Message[T]], Generic[T]):
    """Messages of other participants, without questions and answers."""

    def __init__(self, view: View[T], *, confirm: bool) -> None:
        self._view = view
        self._events = view.conversation.runtime.events(confirm=confirm)

    async def __anext__(self) -> Message[T]:
        """Confirm the message before, and wait for the next one."""
        async for event in self._events:
            if isinstance(event, MessageReceived) and not is_envelope(event.content):
                for content in self._view.decoded(event, event.content):
                    return Message(content, event)
        raise StopAsyncIteration

    async def aclose(self) -> None:
        """End the reader. The last message stays unconfirmed."""
        await self._events.aclose()


class Questions(Reader[Question[T]], Generic[T]):
    """Questions of other participants. Readers of one channel share them, so each question goes to
    one reader."""

    def __init__(self, view: View[T]) -> None:
        self._view = view
        self._is_closed = False
        view.conversation.asking.is_answering = True

    async def __anext__(self) -> Question[T]:
        """Wait for the next question."""
        while True:
            heard = await self._view.conversation.next_question(lambda: self._is_closed)
            for content in self._view.decoded(heard.event, heard.envelope.content):
                return Question(content, heard.event, heard, self._view)
            await self._view.conversation.confirm(heard.event)

    async def aclose(self) -> None:
        """End the reader. Its questions can still be answered."""
        self._is_closed = True
        self._view.conversation.asking.arrived.notify()


class Answers(Reader[Answer[T]], Generic[T]):
    """Answers to one question, as they come, until the time is over."""

    def __init__(
        self, view: View[T], payload: bytes, *, within_s: float, idempotency_key: str | None
    ) -> None:
        self._view = view
        self._payload = payload
        self._within_s: Final = within_s
        self._key = idempotency_key
        self._question: OpenQuestion | None = None
        self._until_s = 0.0
        self.request: Request | None = None
        """The question's request; None before the first answer is awaited."""

    async def __anext__(self) -> Answer[T]:
        """Ask, if that was not done yet, and wait for the next answer."""
        conversation, question = self._view.conversation, await self._asked()
        while True:
            while question.answers:
                heard = event, envelope = question.answers[0]
                await conversation.confirm(event)
                if question.answers and question.answers[0] is heard:  # else it was closed
                    question.answers.popleft()
                    for content in self._view.decoded(event, envelope.content):
                        return Answer(content, event)
            left_s = self._until_s - anyio.current_time()
            if left_s <= 0 or question.is_closed:
                await self.aclose()
                raise StopAsyncIteration
            await question.arrived.wait(left_s)

    async def aclose(self) -> None:
        """End the wait. Further answers are late."""
        if self._question is not None:
            self._view.conversation.asking.close_question(self._question)

    async def first(self) -> Answer[T]:
        """Wait for the first answer and return it.

        Raises:
            NoAnswer: no answer came in time.
            ChannelClosed: the channel was closed first.
        """
        async with self:
            async for answer in self:
                return answer
        assert self.request is not None and self._question is not None
        if self._view.conversation.is_closed:
            raise ChannelClosed("the channel was closed before an answer came")
        raise self._view.conversation.no_answer(self.request, self._question, self._within_s)

    async def _asked(self) -> OpenQuestion:
        if self._question is None:
            conversation = self._view.conversation
            self._until_s = anyio.current_time() + self._within_s
            self.request, self._question = await conversation.ask(self._payload, self._key)
        return self._question


class TypedChannel(Generic[T]):
    """Channel whose payloads are values of one type.  `ReliableChannel.typed` makes it.

    Payloads are exactly what the codec makes, without an envelope, so that other implementations
    can read them. All participants must use one type. If the codec cannot decode a message,
    `MessageUndecodable` names its sender.
    """

    def __init__(self, opened: Callable[[], Conversation], codec: Codec[T]) -> None:
        self._conversing = opened
        self._codec = codec

    async def send(
        self,
        payload: T,
        *,
        idempotency_key: str | None = None,
        wait: Wait | None = None,
        within_s: float | None = None,
    ) -> Request:
        """Accept a message for every participant.

        From now on the message is delivered, or an event reports its failure (`delivery_failed`,
        `send_failed`). With `state`, that holds across restarts. After a crash, call again with the
        same `idempotency_key`. There is one message, and the same request is returned.

        With `wait="acknowledged"` it returns when another participant is known to have the
        message, as `Request.acknowledged` within `within_s` (s).

        Back-pressure: the call returns when the message is accepted, not when it is published. At
        most `limits.outgoing_messages` own messages can be unacknowledged. Then it raises
        `OutgoingBufferFull` until the next `message_acknowledged`, `delivery_failed` or
        `send_failed`. With `state`, it also waits for the disk.

        Raises:
            EmptyContent: there is nothing to send.
            ContentTooLong: it does not fit into a Waku message, or exceeds `limits.payload_bytes`.
            EncryptionFailed: with `encryption_order="encrypt-then-sds"`; nothing was sent.
            OutgoingBufferFull: too many own messages are unacknowledged; send again later.
            NotAcknowledged: the message was accepted, and not acknowledged in time, or failed.
            ChannelClosed: the channel is not open.
            StateUnavailable, StateCorrupt: the state cannot be written; nothing was sent, and the
                key, if any, is free again. `on_state_failure="accept"` accepts it in memory.
            ValueError: the key is not a text of 1 to 1024 characters.
            TypeError: the payload is not bytes; encode a text.
        """
        request = await self._conversing().send(self._codec.encode(payload), idempotency_key)
        if wait is not None:
            await request.acknowledged(within_s=within_s)
        return request

    def messages(self, *, confirm: bool = True) -> Messages[T]:
        """Iterate over the messages of other participants until the channel is closed.

            async for message in channel.messages():
                print(message.sender_id, message.content)

        It reads `events()` and skips everything except messages, questions and answers. With
        `state`, asking for the next message confirms the previous one and the skipped events. A
        question stays unconfirmed until its reader answers it.

        Raises:
            ChannelClosed: the channel is not open.
        """
        return Messages(self._view(), confirm=confirm)

    async def ask(
        self, question: T, *, within_s: float, idempotency_key: str | None = None
    ) -> Answer[T]:
        """Ask all participants, and return the first answer within `within_s` (s).

            answer = await channel.ask(b"what time is it?", within_s=5)
            print(answer.sender_id, answer.content)

        Other answers come as `AnswerLate`. If the program may be killed, set `idempotency_key`.
        With `state`, a repeated question under the same key is not sent again. It returns an answer
        that arrived in between.

        Raises:
            NoAnswer: no participant answered in time. The text says what was missing.
            ContentTooLong, OutgoingBufferFull, ChannelClosed, StateError: as `send`.
        """
        asked = self.ask_all(question, within_s=within_s, idempotency_key=idempotency_key)
        return await asked.first()

    def ask_all(
        self, question: T, *, within_s: float, idempotency_key: str | None = None
    ) -> Answers[T]:
        """Ask all participants, and iterate over their answers for `within_s` (s).

            async for answer in channel.ask_all(b"how many jobs?", within_s=5):
                ...

        It yields each participant's first answer, the fastest first. The question is sent when the
        iteration begins. Leave the loop when you have enough.

        Raises:
            ChannelClosed: the channel is not open.
        """
        payload = self._codec.encode(question)
        return Answers(self._view(), payload, within_s=within_s, idempotency_key=idempotency_key)

    def questions(self) -> Questions[T]:
        """Iterate over the questions of other participants until the channel is closed.

            async for question in channel.questions():
                await question.answer(b"half past six")

        Several loops of a program share the questions. With `state`, an open question is emitted
        again after a restart, and no question is answered twice. Call it before you read events or
        messages: until then, their readers confirm questions. At most 1,000 questions wait. Then
        the oldest becomes `QuestionDropped`.

        Raises:
            ChannelClosed: the channel is not open.
        """
        return Questions(self._view())

    def typed(self, codec: Codec[OtherT]) -> "TypedChannel[OtherT]":
        """Return the same channel for values of one type.

            orders = channel.typed(json(Order))
            await orders.send(Order(table=7, dish="soup"))

        `reliable_channel.conversation.json` makes a codec of JSON values, pydantic models and
        msgspec types. Any object with `encode` and `decode` is a codec.
        """
        return TypedChannel(self._conversing, codec)

    def _view(self) -> View[T]:
        return View(self._conversing(), self._codec)
