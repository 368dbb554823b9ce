"""Open questions, both own questions and questions that this participant may answer.

Only the payloads of questions and answers have an envelope (`proto/ask.proto`). This module does
not wait for the network. A question or an answer is stored in the step in which the channel
delivers it.
"""

from collections import OrderedDict, deque
from collections.abc import Callable
from hashlib import sha256
from typing import Final, NamedTuple
from weakref import WeakValueDictionary

from google.protobuf.message import DecodeError

from .._notifier import Notifier
from ..errors import ReliableChannelError
from ..events import AnswerLate, AnyEvent, MessageReceived, MessageUndecodable, QuestionDropped
from .ask_pb2 import Envelope

MAGIC: Final = 0xA1514352
VERSION: Final = 1
QUESTION_ID_BYTES: Final = 16
_BEGINNING: Final = b"\x0d" + MAGIC.to_bytes(4, "little")
"""Beginning of each envelope, which is the tag of field 1 and its value."""
QUESTIONS_LIMIT: Final = 1_000
"""Maximum number of open questions of other participants. The oldest questions are dropped."""
QUESTIONS_LIMIT_BYTES: Final = 16 * 1024 * 1024
"""Maximum size of the payloads of all open questions (bytes)."""
ANSWERS_LIMIT: Final = 1_000
"""Maximum number of answers to one question. Further answers count as late."""


class UnreadableEnvelope(ReliableChannelError):
    """The payload begins like an envelope, but this version cannot read the envelope."""


def is_envelope(payload: bytes) -> bool:
    """Return True if a payload is a question or an answer, of any version."""
    return payload.startswith(_BEGINNING)


def encode(question_id: bytes, content: bytes, asker_id: str = "") -> bytes:
    """Return the payload of a question, or of an answer to the asker `asker_id`."""
    return Envelope(
        magic=MAGIC, version=VERSION, question_id=question_id, asker_id=asker_id, content=content
    ).SerializeToString(deterministic=True)


def decode(payload: bytes) -> Envelope:
    """Return the envelope that a payload contains.

    Raises:
        UnreadableEnvelope: it is damaged, or of another version.
    """
    try:
        found = Envelope.FromString(payload)
    except DecodeError as error:
        raise UnreadableEnvelope(f"the envelope is damaged: {error}") from error
    if found.version != VERSION:
        raise UnreadableEnvelope(f"the envelope must have version {VERSION} (got {found.version})")
    if len(found.question_id) != QUESTION_ID_BYTES:
        raise UnreadableEnvelope(
            f"the question id of an envelope must have {QUESTION_ID_BYTES} bytes: this envelope "
            "is damaged"
        )
    return found


class Heard(NamedTuple):
    """Question or answer, with the message that carried it."""

    event: MessageReceived
    envelope: Envelope


class OpenQuestion:
    """Question of this participant that waits for answers."""

    def __init__(self, question_id: bytes) -> None:
        self.question_id: Final = question_id
        self.answers: deque[Heard] = deque()
        """Answers that were not handed out yet."""
        self.arrived: Final = Notifier()
        self.is_closed = False
        self._answered_by: set[str] = set()

    def take(self, heard: Heard) -> bool:
        """Accept the first answer of each participant, and return True if the answer is
        accepted."""
        sender_id = heard.event.sender_id
        if sender_id not in self._answered_by:
            if len(self._answered_by) >= ANSWERS_LIMIT:
                return False
            self._answered_by.add(sender_id)
            self.answers.append(heard)
            self.arrived.notify()
        return True

    def close(self) -> None:
        """End the wait for answers to the question."""
        self.is_closed = True
        self.arrived.notify()


class Asking:
    """Open questions of one channel, own and received."""

    def __init__(self, sender_id: str, emit: Callable[[AnyEvent], None]) -> None:
        self._sender_id = sender_id
        self._emit = emit
        self._open: WeakValueDictionary[bytes, OpenQuestion] = WeakValueDictionary()
        # Weak, so that an abandoned iterator over answers keeps nothing.
        self._waiting: OrderedDict[str, Heard] = OrderedDict()
        """Questions that no reader has taken, by message id."""
        self._waiting_bytes = 0
        self.is_answering = False
        """True if questions stay unconfirmed until they are answered."""
        self.arrived: Final = Notifier()
        """A question came, or a reader was closed."""
        self._is_closed = False

    def note(self, event: MessageReceived) -> None:
        """Note a question or an answer, which is a message with an envelope."""
        try:
            heard = Heard(event, decode(event.content))
        except UnreadableEnvelope as error:
            self._emit(MessageUndecodable(event.message_id, event.sender_id, str(error)))
            return
        if not heard.envelope.asker_id:
            self._question(heard)
        elif heard.envelope.asker_id == self._sender_id:
            self._answer(heard)

    def holds(self, event: AnyEvent) -> bool:
        """Return True if only the reader of questions or answers may confirm the event."""
        if not isinstance(event, MessageReceived) or not is_envelope(event.content):
            return False
        try:
            envelope = decode(event.content)
        except UnreadableEnvelope:
            return False
        if not envelope.asker_id:
            return self.is_answering
        question = self._open.get(envelope.question_id)
        return question is not None and any(heard.event == event for heard in question.answers)

    # -- questions of others -----------------------------------------------------------------------

    async def next(self, is_closed: Callable[[], bool]) -> Heard:
        """Wait for a question and return it.

        Raises:
            StopAsyncIteration: the channel was closed, or the reader that asks.
        """
        while not self._waiting or is_closed():
            if self._is_closed or is_closed():
                raise StopAsyncIteration
            await self.arrived.wait()
        _, heard = self._waiting.popitem(last=False)
        self._waiting_bytes -= len(heard.event.content)
        return heard

    def _question(self, heard: Heard) -> None:
        event = heard.event
        if event.sender_id == self._sender_id:
            return
        self._waiting[event.message_id] = heard
        self._waiting_bytes += len(event.content)
        while len(self._waiting) > QUESTIONS_LIMIT or self._waiting_bytes > QUESTIONS_LIMIT_BYTES:
            _, dropped = self._waiting.popitem(last=False)
            self._waiting_bytes -= len(dropped.event.content)
            if self.is_answering:
                self._emit(QuestionDropped(dropped.event.message_id, dropped.event.sender_id))
        self.arrived.notify()  # all, because the first may have been cancelled in this turn

    # -- questions of this participant -------------------------------------------------------------

    def open(self, *unique: object) -> OpenQuestion:
        """Keep a question open inside the `with` block, and collect its answers.

        The id of the question is derived from its unique parts.
        """
        parts = repr((self._sender_id, *unique)).encode()
        question_id = sha256(parts).digest()[:QUESTION_ID_BYTES]
        return self._open.setdefault(question_id, OpenQuestion(question_id))

    def close_question(self, question: OpenQuestion) -> None:
        """End the wait for answers to a question. Unread answers and further answers count as
        late."""
        question.close()
        if self._open.get(question.question_id) is question:  # else it was asked again
            del self._open[question.question_id]
        while question.answers:
            self._late(question.answers.popleft())

    def _answer(self, heard: Heard) -> None:
        question = self._open.get(heard.envelope.question_id)
        if question is None or not question.take(heard):
            self._late(heard)

    def _late(self, heard: Heard) -> None:
        event, envelope = heard
        self._emit(
            AnswerLate(event.message_id, event.sender_id, envelope.question_id, envelope.content)
        )

    def close(self) -> None:
        """End all waits for questions and answers, because the channel was closed."""
        self._is_closed = True
        self.arrived.notify()
        for question in self._open.values():
            question.close()
