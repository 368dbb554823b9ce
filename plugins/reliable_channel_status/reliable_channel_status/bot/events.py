"""Events with which a bot's functions are called, and the actions on each event."""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Final, Protocol

from ..wire import payload_builders
from ..wire.chats import Community
from ..wire.conversation import MessageState
from ..wire.direct.groups import Group
from ..wire.enums import Reaction
from ..wire.keys import PublicKey
from ..wire.mentioning import mentions
from ..wire.outcomes import MessageId, Received
from ..wire.payload_builders import Make
from ..wire.payloads import BridgeMessage, ChatMessage
from ..wire.rooms import Room
from .limits import Pair


class Voice(Protocol):
    """Interface of a running bot for its functions."""

    def say(self, room: Room, make: Make, once: str) -> MessageId:
        """Sign, store and publish a payload, unless that was done before."""

    def may_answer(self, pair: Pair) -> bool:
        """Count an answer, and return False if the chat with the user is a loop."""

    def withhold(self, room: Room, make: Make) -> MessageId:
        """Return the message id of a payload that the bot does not publish."""

    def was_withheld(self, message_id: str) -> bool:
        """Return True if a message was withheld, so that no other user has it."""

    def answer_join_request(self, requester: PublicKey, *, accepted: bool) -> None:
        """Admit a requester to the community, or decline the request."""

    def accept_contact(self, peer: PublicKey, request_id: MessageId, once: str) -> None:
        """Accept a contact request of another user."""

    @property
    def public_key(self) -> PublicKey:
        """Public key of the bot itself."""

    def join_group(self, chat_id: str) -> None:
        """Announce to a private group that the bot joined it."""

    def is_contact(self, user: PublicKey) -> bool:
        """Return True if a user is a contact of the bot."""

    def is_privileged(self, user: PublicKey, chat_id: str) -> bool:
        """Return True if a user may pin messages, and delete messages of others."""

    def is_member(self, user: PublicKey, chat_id: str) -> bool:
        """Return True if a user is a member of the chat's community (elsewhere, of any community of
        the bot)."""

    def language_of(self, user: PublicKey) -> str:
        """Return the language in which the bot answers a user."""

    def name_of(self, user: PublicKey) -> str:
        """Return the latest display name of a user, or the start of the user's key."""

    def with_names(self, text: str) -> str:
        """Return a text in which mentions show names instead of keys."""


@dataclass(slots=True, eq=False)
class Turn:
    """Run of a bot's function for an event. `Turn` numbers the messages of the run, so that a
    repeated run sends no message twice."""

    session: Voice
    name: str
    answers: Pair | None = None
    """Chat and author of the message that the function answers."""
    said: int = 0
    is_over_limit: bool = False
    """True if the user is over `user_limit`, so that answers to the user are withheld."""

    def once(self) -> str:
        """Return the identifier of the next message, from its event and its number."""
        self.said += 1
        return f"{self.name}#{self.said}"


CURRENT_TURN: Final[ContextVar[Turn]] = ContextVar("CURRENT_TURN")
"""Run of the current function, as a context variable."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BotEvent:
    """Base class of all events of a bot."""

    received: Received
    """Received payload of the event, with author, id and times."""
    turn: Turn = field(repr=False)

    @property
    def author(self) -> PublicKey:
        """Public key of the event's author, proven by a signature."""
        return self.received.signer

    @property
    def author_name(self) -> str:
        """Display name that the author chose, or the start of the author's key. Display names are
        not unique, because any user may take any name."""
        return self.turn.session.name_of(self.author)

    @property
    def language(self) -> str:
        """Language of the author, which is the bot's unless the author chose another with
        `!language`."""
        return self.turn.session.language_of(self.author)


@dataclass(frozen=True, slots=True, kw_only=True)
class InRoom(BotEvent):
    """Event that happens in a chat."""

    room: Room

    @property
    def is_direct(self) -> bool:
        """True if the event happened in a one-to-one chat with the bot."""
        return self.room.peer is not None

    @property
    def channel(self) -> Channel:
        return Channel(self.room, self.turn)


@dataclass(frozen=True, slots=True, kw_only=True)
class AboutMessage(InRoom):
    """Event about one message, which the bot can answer."""

    message_id: MessageId

    @property
    def by_moderator(self) -> bool:
        """True if the author of the event may moderate in this chat."""
        return self.turn.session.is_privileged(self.author, self.room.chat_id)

    @property
    def by_member(self) -> bool:
        """True if the author is a member of this community (elsewhere, of any community of the
        bot)."""
        return self.turn.session.is_member(self.author, self.room.chat_id)

    @property
    def by_contact(self) -> bool:
        """True if the author of the event is a contact of the bot."""
        return self.turn.session.is_contact(self.author)

    async def reply(self, text: str = "", *, image: bytes | None = None) -> MessageId:
        """Answer the message, so that clients show answer and message together.

        If the bot and the author answer each other in a loop, the answer is not published.

        Raises:
            OutboxFull: the node has been away for too long.
        """
        return await self.channel.send(text, image=image, response_to=self.message_id)

    async def react(self, reaction: Reaction | str, *, retracted: bool = False) -> None:
        """React to the message with an emoji, or take the reaction back."""
        await self.channel.react(self.message_id, reaction, retracted=retracted)

    async def pin(self, *, pinned: bool = True) -> None:
        """Pin the message, or unpin it. Clients show the message as pinned if the bot may pin
        there."""
        await self.channel.pin(self.message_id, pinned=pinned)

    async def delete(self) -> None:
        """Delete the message for all users. Clients delete the message if the bot wrote it or is a
        moderator."""
        await self.channel.delete(self.message_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class Message(AboutMessage):
    """Event that another user wrote a message."""

    payload: ChatMessage
    text: str
    """Present text of the message, with all edits that have arrived."""

    @property
    def mentions(self) -> tuple[PublicKey, ...]:
        """Users that the message mentions."""
        return mentions(self.text)

    @property
    def text_with_names(self) -> str:
        """Text of the message with names such as `@Alice` instead of keys."""
        return self.turn.session.with_names(self.text)


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit(AboutMessage):
    """Event that the text of a message was changed."""

    before: MessageState
    after: MessageState


@dataclass(frozen=True, slots=True, kw_only=True)
class Deletion(AboutMessage):
    """Event that a message was deleted by its author or a moderator."""

    before: MessageState


@dataclass(frozen=True, slots=True, kw_only=True)
class PinChange(AboutMessage):
    """Event that a message was pinned or unpinned."""

    is_pinned: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ReactionChange(AboutMessage):
    """Event that a user reacted to a message, or took the reaction back."""

    reaction: Reaction
    """Kind of the reaction, or `UNKNOWN_EMOJI_REACTION_TYPE` if only `emoji` describes it."""
    emoji: str
    retracted: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinRequest(BotEvent):
    """Event that a user asks to join a community whose key the bot has. If the community admits all
    users, the bot's functions are only informed about the request."""

    display_name: str

    async def answer(self, *, accepted: bool) -> None:
        """Accept the requester with a new description, or reject the request with an answer.

        Raises:
            NotControlNode: the community is run elsewhere, or does not exist yet.
            ValueError: the opposite was decided before.
            StateError: it cannot be written.
        """
        self.turn.session.answer_join_request(self.author, accepted=accepted)


@dataclass(frozen=True, slots=True, kw_only=True)
class MembershipChange(BotEvent):
    """Event that a community accepted, rejected or removed the bot, or does not list it as a
    member. `received` is the description or the answer of the community's owner."""

    community: Community
    why: str = ""
    """Reason why a request to join would not help, such as needed tokens (empty if a request may
    help)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContactRequest(AboutMessage):
    """Event that a user asks to be a contact of the bot. To decline the request, do nothing,
    because Status has no message for that."""

    text: str
    """Text that the other user wrote with the contact request."""

    async def accept(self) -> None:
        """Accept the request, so that the author is a contact of the bot.

        Raises:
            OutboxFull: the node has been away for too long.
        """
        self.turn.session.accept_contact(self.author, self.message_id, self.turn.once())


@dataclass(frozen=True, slots=True, kw_only=True)
class ContactChange(BotEvent):
    """Event that a user accepted the bot's contact request, or ended the contact."""

    @property
    def is_contact(self) -> bool:
        """True if the author of the event is a contact of the bot now."""
        return self.turn.session.is_contact(self.author)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupChange(BotEvent):
    """Event that the members, the admins or the name of a private group may have changed."""

    group: Group
    """Present state of the private group, with `members`, `admins`, `joined` and `name`."""

    @property
    def is_member(self) -> bool:
        """True if the bot is a member of the private group."""
        return self.turn.session.public_key in self.group.members

    async def join(self) -> None:
        """Announce to the members of the private group that the bot joined. The bot reads the
        group's messages even without joining.

        Raises:
            ValueError: the bot is not in the group.
            OutboxFull: the node has been away for too long.
        """
        self.turn.session.join_group(self.group.chat_id)


@dataclass(frozen=True, slots=True)
class Channel:
    """Chat in which the bot can write."""

    room: Room
    turn: Turn = field(repr=False)

    async def send(
        self,
        text: str = "",
        *,
        image: bytes | None = None,
        bridged: BridgeMessage | None = None,
        response_to: str = "",
        once: str | None = None,
    ) -> MessageId:
        """Publish a message in the chat. The message is on disk when `send` returns. In a loop with
        a user (`LoopLimits`), or for direct messages beyond `user_limit`, the answer is not
        published.

        Args:
            text: may be empty beside an image or a bridged message.
            image: PNG, JPEG, GIF or WebP. One above 1 MB is made smaller where Pillow is installed
                (`reliable-channel-status[images]`).
            bridged: a message from another network.
            response_to: the id of the message that it answers.
            once: a key, such as the id of a news item; a message with it is published once, also
                over restarts.

        Raises:
            ValueError: no text, or more than 4096 characters; an image of an unknown kind, or one
                above 1 MB that cannot be made smaller.
            OutboxFull: the node has been away for too long.
        """
        session, pair = self.turn.session, self.turn.answers
        image = image and payload_builders.fitting(image)
        make = payload_builders.message(self.room, text, image, bridged, response_to)
        is_answer = pair is not None and pair[0] == self.room.chat_id
        if (
            pair is not None
            and is_answer
            and (self.turn.is_over_limit or not session.may_answer(pair))
        ):
            return session.withhold(self.room, make)
        return self._say(make, once)

    async def edit(self, message_id: str, text: str) -> None:
        """Replace the text of a message that the bot sent."""
        self._change(message_id, payload_builders.edit(self.room, message_id, text))

    async def delete(self, message_id: str) -> None:
        """Delete a message in the chat for all users. Clients delete the message if the bot wrote
        it or is a moderator."""
        self._change(message_id, payload_builders.deletion(self.room, message_id))

    async def pin(self, message_id: str, *, pinned: bool = True) -> None:
        """Pin a message in the chat, or unpin it. Clients show the message as pinned if the bot may
        pin there."""
        self._change(message_id, payload_builders.pin(self.room, message_id, pinned))

    async def react(
        self, message_id: str, reaction: Reaction | str, *, retracted: bool = False
    ) -> None:
        """React to a message with an emoji, or take the reaction back. Older clients show only the
        emoji that `Reaction` lists."""
        self._change(
            message_id, payload_builders.reaction(self.room, message_id, reaction, retracted)
        )

    def _change(self, message_id: str, make: Make) -> None:
        """Publish something about a message, unless that was withheld, so that no other user has
        it."""
        if not self.turn.session.was_withheld(message_id):
            self._say(make)

    def _say(self, make: Make, once: str | None = None) -> MessageId:
        key = self.turn.once() if once is None else f"once {self.room.chat_id} {once}"
        return self.turn.session.say(self.room, make, key)
