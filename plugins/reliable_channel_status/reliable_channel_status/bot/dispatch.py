"""Calls the bot's functions for each event.

An event is handled when all its functions have ended. After a crash, functions run again, but
messages of the first run are not published again (`Turn.once`).
"""

from collections.abc import Callable
from functools import partial
from typing import Any, Final

import anyio
from anyio.abc import TaskGroup

from ..wire.chats import Community
from ..wire.community_payloads import CommunityRequestToJoin
from ..wire.enums import ContentType, MessageType
from ..wire.mentioning import mentions
from ..wire.outcomes import MessageId, Received
from ..wire.payloads import (
    AcceptContactRequest,
    ChatMessage,
    ChatPayload,
    DeleteMessage,
    EditMessage,
    EmojiReaction,
    MembershipUpdateMessage,
    PinMessage,
    RetractContactRequest,
)
from .calling import Caller
from .direct import is_contact_request
from .events import (
    BotEvent,
    ContactChange,
    ContactRequest,
    Deletion,
    Edit,
    GroupChange,
    JoinRequest,
    MembershipChange,
    Message,
    PinChange,
    ReactionChange,
    Turn,
)
from .failures import Call, Isolation
from .handlers import EventHandler, Handlers, Kind
from .inbox import Arrival, Inbox, clock_ms
from .limits import Buckets, Pair
from .options import BotOptions
from .session import Session

ANSWER: Final = "answer"
"""Name of the call that treats a message as an answer to a question."""
NOT_ANSWERED: Final = "not answered"
"""Placeholder for functions that were not called, because the call exceeded a limit."""
_SAID_BY_PEOPLE: Final = (ContentType.TEXT_PLAIN, ContentType.EMOJI, ContentType.IMAGE)


class Dispatcher:
    """Calls the bot's functions, each in a task of its own with a time limit."""

    def __init__(
        self,
        session: Session,
        inbox: Inbox,
        handlers: Handlers,
        options: BotOptions,
        isolation: Isolation,
    ) -> None:
        self._session = session
        self._isolation = isolation
        self._inbox = inbox
        self._handlers = handlers
        self._options = options
        self._of_users = Buckets(options.user_limit)
        self._of_channels = Buckets(options.channel_limit)
        self._caller = Caller(session, handlers, options)
        self._slots = anyio.Semaphore(options.handlers_at_once)
        self._pending: dict[bytes, int] = {}

    @property
    def is_busy(self) -> bool:
        """True if one of the bot's functions has not ended yet."""
        return bool(self._pending)

    @property
    def handled_until_ms(self) -> int:
        """Time up to which all received events are handled."""
        return min([self._session.now_ms(), *self._pending.values()])

    async def tell(self, arrival: Arrival, tasks: TaskGroup) -> None:
        """Start the bot's functions for an event. While too many functions run, `tell` waits."""
        fingerprint = arrival.received.signed.fingerprint
        memory = self._session.memory
        if memory.was_handled(fingerprint):
            self._session.settled(arrival.received)
            return
        calls = self._of_membership(arrival)  # of which old descriptions tell as well
        since_ms = memory.answers_since_ms
        if arrival.received.waiting_id is not None:  # its key came late, and it is handled once
            since_ms = memory.born_ms
        if arrival.clock_ms >= since_ms:
            calls += self._calls(arrival)
        if not calls:
            self._keep_membership(arrival)
            self._session.settled(arrival.received)
            return
        await self._slots.acquire()
        self._pending[fingerprint] = arrival.clock_ms
        tasks.start_soon(self._run_all, arrival, calls)

    async def _run_all(self, arrival: Arrival, calls: list[Call]) -> None:
        fingerprint = arrival.received.signed.fingerprint
        try:
            for name, call in calls:
                turn = Turn(self._session, f"{fingerprint.hex()} {name}", _pair(arrival))
                await self._isolation.run(name, call, turn)
            self._keep_membership(arrival)
            self._caller.keep(fingerprint)
            # Not `arrival.clock_ms`: Store returns a message from a fast clock until its own time.
            self._session.memory.handled(fingerprint, clock_ms(arrival.received))
            self._session.settled(arrival.received)
        finally:
            self._caller.drop(fingerprint)
            del self._pending[fingerprint]
            self._slots.release()

    def _keep_membership(self, arrival: Arrival) -> None:
        if arrival.membership is not None:
            self._session.memberships.keep(Community(arrival.received.signer))

    # -- which functions --------------------------------------------------------------------------

    def _calls(self, arrival: Arrival) -> list[Call]:
        received, payload = arrival.received, arrival.received.payload
        calls: list[Call] = [
            (each.name, partial(self._tell_payload, each, received))
            for each in self._handlers.events.get("payload", ())
        ]
        if received.signer == self._session.public_key:
            return calls
        match payload:
            case ChatMessage():
                calls += self._of_message(arrival, payload)
            case EditMessage() | EmojiReaction() | DeleteMessage() | PinMessage():
                calls += self._of_change(arrival, payload)
            case AcceptContactRequest() | RetractContactRequest() if received.is_direct:
                calls += self._of(
                    "contact_change",
                    lambda turn: ContactChange(received=received, turn=turn),
                )
            case MembershipUpdateMessage(chat_id=chat_id) if self._session.groups is not None:
                group = self._session.groups.of(chat_id)
                calls += self._of(
                    "group_change",
                    lambda turn: GroupChange(received=received, turn=turn, group=group),
                )
            case CommunityRequestToJoin() if arrival.taken is not None:
                calls += self._of(
                    "join_request",
                    lambda turn: JoinRequest(
                        received=received, turn=turn, display_name=payload.display_name
                    ),
                )
        return calls

    def _of_message(self, arrival: Arrival, payload: ChatMessage) -> list[Call]:
        received, after = arrival.received, arrival.applied.after
        room = self._session.rooms.find(payload.chat_id)
        if room is None or after is None or after.is_deleted:
            return []
        pair = payload.chat_id, received.signer

        def make(turn: Turn) -> Message:
            return Message(
                received=received,
                turn=turn,
                room=room,
                message_id=received.message_id,
                payload=payload,
                text=after.text,
            )

        if is_contact_request(received):
            text = after.text
            return self._of(
                "contact_request",
                lambda turn: ContactRequest(
                    received=received,
                    turn=turn,
                    room=room,
                    message_id=received.message_id,
                    text=text,
                ),
            )
        is_group = room.message_type is MessageType.PRIVATE_GROUP
        calls = self._of("group_message" if is_group else "message", make)
        if room.peer is not None:
            calls = []
        is_by_people = payload.content_type in _SAID_BY_PEOPLE
        asked = self._caller.asked(after.text) if is_by_people else None
        mentioned = self._of("mention", make) if is_by_people and self._is_me(after.text) else []
        if room.peer is not None:
            # Whoever writes to the bot alone means it; a command is not told twice.
            mentioned = [] if asked else self._of("direct_message", make)
        is_answer = is_by_people and asked is None and self._caller.is_talking(pair)
        is_for_me = bool(asked or mentioned or is_answer)
        is_allowed = is_for_me and self._within_limits(pair, arrival)
        if asked is not None and is_allowed:  # and so no round of a loop
            at_ms = self._time_of(arrival)
            return [*calls, (asked[0], lambda turn: self._caller.command(make(turn), asked, at_ms))]
        if arrival.is_live:  # what comes from Store was not said in reaction to anything of now
            self._session.heard(pair, room)
        if is_answer and is_allowed:
            return [*calls, (ANSWER, lambda turn: self._answer(make(turn), mentioned))]
        if room.peer is not None:  # heard in any case: it is acknowledged as delivered
            return [*calls, *(mentioned if is_allowed else map(_over_limit, mentioned))]
        if is_allowed:
            return calls + mentioned
        return [*calls, (NOT_ANSWERED, _nothing)] if is_for_me else calls

    async def _answer(self, message: Message, mentioned: list[Call]) -> None:
        """Take a message as an answer to a question; else as a mention, if it is one."""

        async def otherwise() -> None:
            for name, call in mentioned:
                turn = Turn(self._session, f"{message.turn.name} {name}", message.turn.answers)
                await self._isolation.run(name, call, turn)

        await self._caller.answer(message, otherwise)

    def _is_me(self, text: str) -> bool:
        return self._session.public_key in mentions(text)

    def _of_change(
        self, arrival: Arrival, payload: EditMessage | EmojiReaction | DeleteMessage | PinMessage
    ) -> list[Call]:
        received = arrival.received
        before, after = arrival.applied.before, arrival.applied.after
        room = self._session.rooms.find(payload.chat_id)
        if room is None:
            return []
        if isinstance(payload, EmojiReaction):
            return self._of(
                "reaction",
                lambda turn: ReactionChange(
                    received=received,
                    turn=turn,
                    room=room,
                    message_id=after.message_id if after else MessageId(payload.message_id),
                    reaction=payload.type,
                    emoji=payload.text,
                    retracted=payload.retracted,
                ),
            )
        if before is None or after is None:
            return []
        about: dict[str, Any] = {
            "received": received,
            "room": room,
            "message_id": after.message_id,
        }
        if isinstance(payload, DeleteMessage):
            if before.is_deleted:
                return []
            return self._of("deletion", lambda turn: Deletion(turn=turn, before=before, **about))
        if isinstance(payload, PinMessage):
            is_pinned = payload.pinned
            return self._of("pin", lambda turn: PinChange(turn=turn, is_pinned=is_pinned, **about))
        return self._of("edit", lambda turn: Edit(turn=turn, before=before, after=after, **about))

    def _of_membership(self, arrival: Arrival) -> list[Call]:
        if arrival.membership is None:
            return []
        received = arrival.received
        community = Community(received.signer)
        return self._of(
            arrival.membership,
            lambda turn: MembershipChange(
                received=received,
                turn=turn,
                community=community,
                why=self._session.memberships.why(community),
            ),
        )

    def _of(self, kind: Kind, make: Callable[[Turn], BotEvent]) -> list[Call]:
        handlers = self._handlers.events.get(kind, ())
        return [(each.name, partial(self._tell, each, make)) for each in handlers]

    async def _tell_payload(self, each: EventHandler, received: Received, turn: Turn) -> None:
        await self._caller.tell(each, BotEvent(received=received, turn=turn), received)

    async def _tell(self, each: EventHandler, make: Callable[[Turn], BotEvent], turn: Turn) -> None:
        await self._caller.tell(each, make(turn))

    def _time_of(self, arrival: Arrival) -> int:
        """When something was asked: slow questions while the bot was away are not many at once."""
        return self._session.now_ms() if arrival.is_live else arrival.clock_ms

    def _within_limits(self, pair: Pair, arrival: Arrival) -> bool:
        chat_id, user = pair
        now_ms = self._time_of(arrival)
        if self._of_users.take(user, now_ms) and self._of_channels.take(chat_id, now_ms):
            return True
        self._session.reporter.count("rate_limited")
        self._session.reporter.log("rate_limited", chat=chat_id, user=user.hex)
        return False


def _pair(arrival: Arrival) -> Pair | None:
    """The receiver of an answer, and the chat."""
    payload = arrival.received.payload
    return (payload.chat_id, arrival.received.signer) if isinstance(payload, ChatPayload) else None


def _over_limit(call: Call) -> Call:
    """A call whose answers are withheld."""
    name, function = call

    async def run(turn: Turn) -> None:
        turn.is_over_limit = True
        await function(turn)

    return name, run


async def _nothing(turn: Turn) -> None:
    """So that what was refused counts as handled, and is not answered after a restart."""
