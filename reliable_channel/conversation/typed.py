"""Channel methods for payloads that are values of one type. A plain channel has payloads of
bytes."""

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any, Final, Generic, Literal, Self, TypeVar

import anyio

from ..errors import ChannelClosed
from ..events import MessageReceived, MessageUndecodable
from .asking import Heard, OpenQuestion, is_envelope
from .codecs import Codec
from .conversation import Conversation, Request

T = TypeVar("T")
ItemT = TypeVar("ItemT", bound="Message[Any]")
OtherT = TypeVar("OtherT")
Wait = Literal["acknowledged"]


@dataclass(frozen=True)
class Message(Generic[T]):
    """Message of another participant, with its decoded payload."""

    content: T
    """Payload of the message, decoded by the codec of the channel."""
    event: MessageReceived = field(repr=False)
    """Event that delivered the message, with its place in the log and its missing dependencies."""

    @property
    def message_id(self) -> str:
        """Message id, as events contain it."""
        return self.event.message_id

    @property
    def sender_id(self) -> str:
        """Id of the participant that sent the message."""
        return self.event.sender_id


@dataclass(frozen=True)
class Answer(Message[T]):
    """Answer of a participant to an own question."""


@dataclass(frozen=True)
class Question(Message[T]):
    """Question of another participant.

    In a channel with `state`, a question stays open across restarts until it is answered or
    ignored.
    """

    _heard: Heard = field(repr=False, compare=False)
    _view: "View[T]" = field(repr=False, compare=False)

    async def answer(self, content: T) -> Request:
        """Send the answer, once for each question, and confirm the question.

        A repeated call, also after a restart with `state`, returns the request of the first call.

        Raises:
            ContentTooLong, OutgoingBufferFull, ChannelClosed, StateError: as `send`.
        """
        conversation = self._view.conversation
        return await conversation.answer(self._heard, self._view.codec.encode(content))

    async def ignore(self) -> None:
        """Confirm the question without an answer, so that it is not emitted again.

        Raises:
            ChannelClosed: the channel is not open.
        """
        await self._view.conversation.ignore(self._heard)


@dataclass(frozen=True)
class View(Generic[T]):
    """View of a conversation in which payloads pass a codec."""

    conversation: Conversation
    codec: Codec[T]

    def decoded(self, event: MessageReceived, payload: bytes) -> list[T]:
        """Return the decoded payload in a list. If the payload cannot be decoded, emit an event and
        return an empty list."""
        try:
            return [self.codec.decode(payload)]
        except Exception as error:  # any failure of a given codec is one of the payload
            undecodable = MessageUndecodable(event.message_id, event.sender_id, str(error))
            self.conversation.runtime.emit(undecodable)
            return []


class Reader(AsyncIterator[ItemT], ABC):
    """Reader of messages, questions or answers, until the channel or the reader is closed.

    Read the items with `async for`. The end of an `async with` block closes the reader, even after
    an early end of the loop.
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
    """Reader of other participants' messages, without questions and answers."""

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
        """Close the reader of messages. The last message that the reader returned stays
        unconfirmed."""
        await self._events.aclose()


class Questions(Reader[Question[T]], Generic[T]):
    """Reader of other participants' questions. Several readers of one channel share the questions,
    so each question goes to one reader."""

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
        """Close the reader of questions. Questions that the reader returned can still be
        answered."""
        self._is_closed = True
        self._view.conversation.asking.arrived.notify()


class Answers(Reader[Answer[T]], Generic[T]):
    """Reader of the answers to one question, until the time is over."""

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
        """End the wait for answers. Further answers count as late."""
        if self._question is not None:
            self._view.conversation.asking.close_question(self._question)

    async def first(self) -> Answer[T]:
        """Wait for the first answer to the question and return it.

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
    """Channel whose payloads are values of one type. `ReliableChannel.typed` returns such a
    channel.

    A payload is the result of the codec without an envelope, so other implementations can read it.
    All participants must use the same type. If the codec cannot decode a message, the event
    `MessageUndecodable` names the sender.
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

        After the call, the message is delivered, or an event reports its failure
        (`delivery_failed`, `send_failed`). In a channel with `state`, that is also true after a
        restart. After a crash, call `send` again with the same `idempotency_key`. The repeated call
        sends no second message, and returns the same request.

        With `wait="acknowledged"`, the call waits like `Request.acknowledged` within `within_s`
        (s).

        The call returns when the message is accepted, not when it is published. At most
        `limits.outgoing_messages` own messages can be unacknowledged. If more messages are
        unacknowledged, the call raises `OutgoingBufferFull`. In a channel with `state`, the call
        also waits until the message is on the disk.

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

        The reader reads `events()` and skips all other events. With `state`, reading the next
        message confirms the previous message and the skipped events. A question stays unconfirmed
        until its reader answers it.

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

        Answers of other participants are emitted as `AnswerLate`. If the program may be killed,
        give an `idempotency_key`. With `state`, a question is not sent again under the same key.
        The repeated call returns an answer that arrived meanwhile.

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

        The iterator yields the first answer of each participant, in order of arrival. The question
        is sent when the iteration begins. Leave the loop after enough answers.

        Raises:
            ChannelClosed: the channel is not open.
        """
        payload = self._codec.encode(question)
        return Answers(self._view(), payload, within_s=within_s, idempotency_key=idempotency_key)

    def questions(self) -> Questions[T]:
        """Iterate over the questions of other participants until the channel is closed.

            async for question in channel.questions():
                await question.answer(b"half past six")

        Several loops of a program share the questions, so each question goes to one loop. With
        `state`, an open question is emitted again after a restart, and no question is answered
        twice. Call `questions` before you read events or messages, because their readers confirm
        questions. At most 1,000 questions wait for an answer. If there are more, the oldest
        question is dropped with `QuestionDropped`.

        Raises:
            ChannelClosed: the channel is not open.
        """
        return Questions(self._view())

    def typed(self, codec: Codec[OtherT]) -> "TypedChannel[OtherT]":
        """Return a channel for values of one type, over the same channel.

            orders = channel.typed(json(Order))
            await orders.send(Order(table=7, dish="soup"))

        `reliable_channel.conversation.json` makes a codec of JSON values, pydantic models and
        msgspec types. Any object with `encode` and `decode` is a codec.
        """
        return TypedChannel(self._conversing, codec)

    def _view(self) -> View[T]:
        return View(self._conversing(), self._codec)
