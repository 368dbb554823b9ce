"""Messages of chats with their edits, deletions, pins and reactions. Of several changes by an
author, the change with the highest clock counts.

The result does not depend on the order in which changes arrive. A change of a message that has not
arrived waits for the message. The module has no I/O and no clock.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Annotated, TypeAlias

from reliable_channel.sds.declared import Bound, Doc, Unit, check

from .keys import PublicKey
from .outcomes import MessageId, Received, RefusalReason, Refused
from .payloads import (
    ChatMessage,
    ChatPayload,
    DeleteMessage,
    EditMessage,
    EmojiReaction,
    PinMessage,
)
from .recent import Recent
from .rules import review

Privileged: TypeAlias = Callable[[PublicKey, str], bool]
"""Function that returns True if a user may pin messages, and delete others' messages, in a chat."""


def everybody(signer: PublicKey, chat_id: str) -> bool:
    """Return True, because the rules of the chat were checked before."""
    return True


def nobody(signer: PublicKey, chat_id: str) -> bool:
    """Return False, because no user is privileged."""
    return False


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationLimits:
    """Limits of the memory of chats. Beyond a limit, the oldest entries are evicted.

    Raises:
        ValueError: a limit below 1.
    """

    messages: Annotated[int, Bound(1), Unit("messages")] = 10_000
    waiting: Annotated[
        int,
        Bound(1),
        Unit("messages"),
        Doc(
            "Maximum number of messages that have not arrived and for which edits, deletions "
            "or pins wait."
        ),
    ] = 1_000
    waiting_for_one: Annotated[
        int,
        Bound(1),
        Unit("messages"),
        Doc("""Maximum number of edits, deletions and pins that wait for one message. Of each kind
            of change, only the last one of each author is kept."""),
    ] = 16
    reactions: Annotated[int, Bound(1), Unit("reactions")] = 20_000
    fingerprints: Annotated[
        int,
        Bound(1),
        Unit("fingerprints"),
        Doc("Maximum number of payloads that are remembered to recognize repetitions."),
    ] = 50_000

    def __post_init__(self) -> None:
        check(self)


@dataclass(frozen=True, slots=True)
class MessageState:
    """Present form of a message, with all its changes."""

    message_id: MessageId
    author: PublicKey
    chat_id: str
    clock: int
    text: str
    edit_clock: int = 0
    """Clock of the message's last edit (0 if the message was never edited)."""
    is_deleted: bool = False
    is_pinned: bool = False
    pin_clock: int = 0


@dataclass(frozen=True, slots=True)
class Applied:
    """Result for a payload that was accepted."""

    received: Received
    before: MessageState | None = None
    """Earlier form of the message that the payload changes. For a new message, `before` is None."""
    after: MessageState | None = None
    """Present form of the message, with all changes that had waited for it."""
    refused: tuple[Refused, ...] = ()
    """Changes that had waited for the new message, but are not allowed."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """Result for a payload that waits for the message that it changes."""

    received: Received


_Writer: TypeAlias = tuple[PublicKey, type[EditMessage | DeleteMessage | PinMessage]]


class Conversation:
    """Messages of chats, with the rights of each user over each message.

    Args:
        is_privileged: whether a user may delete others' messages and pin.
        may_pin: whether a user may pin in a chat; None for privileged users alone.
        limits: how much is remembered.
    """

    def __init__(
        self,
        *,
        is_privileged: Privileged = nobody,
        may_pin: Privileged | None = None,
        limits: ConversationLimits | None = None,
    ) -> None:
        limits = limits or ConversationLimits()
        self._is_privileged = is_privileged
        self._may_pin = may_pin or is_privileged
        self._messages: Recent[str, MessageState] = Recent(limits.messages)
        self._limits = limits
        self._waiting: Recent[str, Recent[_Writer, Received]] = Recent(limits.waiting)
        self._reactions: Recent[tuple[str, PublicKey, str], int] = Recent(limits.reactions)
        self._seen: Recent[bytes, MessageId] = Recent(limits.fingerprints)
        self._other_ids: Recent[str, MessageId] = Recent(limits.fingerprints)

    def message(self, message_id: str) -> MessageState | None:
        """Return the present form of a message, or None if the message is not remembered."""
        return self._messages.get(self._other_ids.get(message_id, message_id))

    def apply(self, received: Received, now_ms: int) -> Applied | Waiting | Refused:
        """Add a payload of a chat, or return the reason for refusing it. A payload without a chat
        is accepted if it is new and its fields are valid."""
        if refused := review(received, now_ms):
            return refused
        first_id = self._seen.get(received.signed.fingerprint)
        if first_id is not None:
            self._note_id(received.message_id, first_id)
            return _refused(received, RefusalReason.REPEATED, f"it was here as {first_id}")
        outcome = self._apply(received)
        if not isinstance(outcome, Refused):
            self._seen[received.signed.fingerprint] = received.message_id
        return outcome

    def _note_id(self, message_id: MessageId, first_id: MessageId) -> None:
        """A user that wraps another's message anew and is faster must not keep edits of it away."""
        if message_id != first_id and first_id in self._messages:
            self._other_ids[message_id] = first_id
            self._change_by_waiting(message_id)

    def _apply(self, received: Received) -> Applied | Waiting | Refused:
        match received.payload:
            case ChatMessage():
                return self._add(received, received.payload)
            case EditMessage() | DeleteMessage() | PinMessage():
                message = self.message(received.payload.message_id)
                if message is None:
                    return self._wait(received, received.payload)
                return self._change(received, message)
            case EmojiReaction():
                return self._react(received, received.payload)
        return Applied(received)

    def _add(self, received: Received, payload: ChatMessage) -> Applied:
        state = MessageState(
            received.message_id, received.signer, payload.chat_id, payload.clock, payload.text
        )
        self._messages[state.message_id] = state
        refused = self._change_by_waiting(state.message_id)
        return Applied(received, None, self._messages[state.message_id], refused)

    def _change_by_waiting(self, message_id: MessageId) -> tuple[Refused, ...]:
        """Change a message by what waited for that id of it; return what may not."""
        refused = []
        for waited in (self._waiting.pop(message_id, None) or Recent(1)).values():
            message = self.message(message_id)
            assert message is not None
            outcome = self._change(waited, message)
            if isinstance(outcome, Refused):
                refused.append(outcome)
        return tuple(refused)

    def _wait(
        self, received: Received, payload: EditMessage | DeleteMessage | PinMessage
    ) -> Waiting | Refused:
        waiting = self._waiting.get(payload.message_id)
        if waiting is None:
            waiting = self._waiting[payload.message_id] = Recent(self._limits.waiting_for_one)
        writer = received.signer, type(payload)
        earlier = waiting.get(writer)
        waits = None if earlier is None else earlier.payload
        if isinstance(waits, ChatPayload) and waits.clock >= payload.clock:
            return _refused(received, RefusalReason.OUTDATED, "a later one waits")
        waiting[writer] = received
        return Waiting(received)

    def _change(self, received: Received, message: MessageState) -> Applied | Refused:
        payload, signer = received.payload, received.signer
        assert isinstance(payload, EditMessage | DeleteMessage | PinMessage)
        if payload.chat_id != message.chat_id:
            return _elsewhere(received, message)
        is_author = signer == message.author
        match payload:
            case EditMessage():
                if not is_author:
                    return _refused(received, RefusalReason.NOT_ALLOWED, "another wrote it")
                if payload.clock <= message.edit_clock:
                    return _refused(received, RefusalReason.OUTDATED, "a later edit was here")
                changed = replace(message, text=payload.text, edit_clock=payload.clock)
            case DeleteMessage():
                if not is_author and not self._is_privileged(signer, message.chat_id):
                    return _refused(received, RefusalReason.NOT_ALLOWED, "another wrote it")
                changed = replace(message, is_deleted=True)
            case PinMessage():
                if not self._may_pin(signer, message.chat_id):
                    return _refused(received, RefusalReason.NOT_ALLOWED, "may not pin there")
                if payload.clock <= message.pin_clock:
                    return _refused(received, RefusalReason.OUTDATED, "a later pin was here")
                changed = replace(message, is_pinned=payload.pinned, pin_clock=payload.clock)
        self._messages[message.message_id] = changed
        return Applied(received, message, changed)

    def _react(self, received: Received, payload: EmojiReaction) -> Applied | Refused:
        message = self.message(payload.message_id)
        if message is not None and payload.chat_id != message.chat_id:
            return _elsewhere(received, message)
        message_id = payload.message_id if message is None else message.message_id
        key = message_id, received.signer, payload.text
        if payload.clock <= self._reactions.get(key, 0):
            return _refused(received, RefusalReason.OUTDATED, "a later reaction was here")
        self._reactions[key] = payload.clock
        return Applied(received, message, message)


def _elsewhere(received: Received, message: MessageState) -> Refused:
    detail = f"{message.message_id} is a message of another chat"
    return _refused(received, RefusalReason.WRONG_CHAT, detail)


def _refused(received: Received, reason: RefusalReason, detail: str) -> Refused:
    detail = f"{type(received.payload).__name__}: {detail}"
    return Refused(reason, detail, received.signer, received.message_id)
