"""The events that a bot's functions are called with, and what they can do."""

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
    """Interface of the session for functions of a bot."""

    def say(self, room: Room, make: Make, once: str) -> MessageId:
        """Sign, keep and publish a payload, unless that was done before."""

    def may_answer(self, pair: Pair) -> bool:
        """Count an answer, and return False if a loop was found."""

    def withhold(self, room: Room, make: Make) -> MessageId:
        """Return the id that a message would have had."""

    def was_withheld(self, message_id: str) -> bool:
        """Return True if a message was withheld, so that no other user has it."""

    def answer_join_request(self, requester: PublicKey, *, accepted: bool) -> None:
        """Let a requester in, or decline."""

    def accept_contact(self, peer: PublicKey, request_id: MessageId, once: str) -> None:
        """Accept a contact request of a user."""

    @property
    def public_key(self) -> PublicKey:
        """Public key of the bot itself."""

    def join_group(self, chat_id: str) -> None:
        """Announce in a group that the bot joined."""

    def is_contact(self, user: PublicKey) -> bool:
        """Return True if a user and the bot are contacts."""

    def is_privileged(self, user: PublicKey, chat_id: str) -> bool:
        """Return True if a user may delete messages of others, and pin."""

    def is_member(self, user: PublicKey, chat_id: str) -> bool:
        """Return True if a user is a member of the chat's community, or elsewhere of one of the
        bot's."""

    def language_of(self, user: PublicKey) -> str:
        """Return the language of a user."""

    def name_of(self, user: PublicKey) -> str:
        """Return the latest name of a user, or the start of the key."""

    def with_names(self, text: str) -> str:
        """Return a text with names instead of keys in its mentions."""


@dataclass(slots=True, eq=False)
class Turn:
    """Run of one function. It numbers its messages, so that a second run sends none twice."""

    session: Voice
    name: str
    answers: Pair | None = None
    """The chat and the author of the message that it is about."""
    said: int = 0
    is_over_limit: bool = False
    """True if the user is over `user_limit`: what it answers there is withheld."""

    def once(self) -> str:
        """Return the cause of the next message."""
        self.said += 1
        return f"{self.name}#{self.said}"


CURRENT_TURN: Final[ContextVar[Turn]] = ContextVar("CURRENT_TURN")
"""Name of the running function."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BotEvent:
    """Base of all events of a bot."""

    received: Received
    """The payload as it came, with author, id and times."""
    turn: Turn = field(repr=False)

    @property
    def author(self) -> PublicKey:
        """Public key of the user that did it: proven by a signature."""
        return self.received.signer

    @property
    def author_name(self) -> str:
        """Name that the author chose, or the start of its key. Any user may take any name."""
        return self.turn.session.name_of(self.author)

    @property
    def language(self) -> str:
        """The language of the author: what it chose with `!language`, else the bot's."""
        return self.turn.session.language_of(self.author)


@dataclass(frozen=True, slots=True, kw_only=True)
class InRoom(BotEvent):
    """Event that happens in a chat."""

    room: Room

    @property
    def is_direct(self) -> bool:
        """True if it was written to the bot alone."""
        return self.room.peer is not None

    @property
    def channel(self) -> Channel:
        return Channel(self.room, self.turn)


@dataclass(frozen=True, slots=True, kw_only=True)
class AboutMessage(InRoom):
    """Event about one message, which can be answered."""

    message_id: MessageId

    @property
    def by_moderator(self) -> bool:
        """True if the author may moderate here."""
        return self.turn.session.is_privileged(self.author, self.room.chat_id)

    @property
    def by_member(self) -> bool:
        """True if the author is a member of this community, or elsewhere of one of the bot's."""
        return self.turn.session.is_member(self.author, self.room.chat_id)

    @property
    def by_contact(self) -> bool:
        """True if the author is a contact of the bot."""
        return self.turn.session.is_contact(self.author)

    async def reply(self, text: str = "", *, image: bytes | None = None) -> MessageId:
        """Answer the message, so that clients show both together.

        Where the author and the bot were found to answer each other without end, the answer is
        withheld: it is not published, and no other user knows its id.

        Raises:
            OutboxFull: the node has been away for too long.
        """
        return await self.channel.send(text, image=image, response_to=self.message_id)

    async def react(self, reaction: Reaction | str, *, retracted: bool = False) -> None:
        """React to the message, or take a reaction back."""
        await self.channel.react(self.message_id, reaction, retracted=retracted)

    async def pin(self, *, pinned: bool = True) -> None:
        """Pin the message. Clients obey if the bot may pin."""
        await self.channel.pin(self.message_id, pinned=pinned)

    async def delete(self) -> None:
        """Delete the message. Clients obey if it is the bot's, or the bot is a moderator."""
        await self.channel.delete(self.message_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class Message(AboutMessage):
    """A message of another user."""

    payload: ChatMessage
    text: str
    """As it is now: an edit that was here already counts."""

    @property
    def mentions(self) -> tuple[PublicKey, ...]:
        """The users that are mentioned."""
        return mentions(self.text)

    @property
    def text_with_names(self) -> str:
        """The text with `@Alice` instead of her key."""
        return self.turn.session.with_names(self.text)


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit(AboutMessage):
    """A message got another text."""

    before: MessageState
    after: MessageState


@dataclass(frozen=True, slots=True, kw_only=True)
class Deletion(AboutMessage):
    """A message was deleted, by its author or by a moderator."""

    before: MessageState


@dataclass(frozen=True, slots=True, kw_only=True)
class PinChange(AboutMessage):
    """A message was pinned, or is pinned no more."""

    is_pinned: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ReactionChange(AboutMessage):
    """A user reacted to a message, or took the reaction back."""

    reaction: Reaction
    """Kind of reaction, or `UNKNOWN_EMOJI_REACTION_TYPE` with the `emoji`."""
    emoji: str
    retracted: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinRequest(BotEvent):
    """A user asks to be let into a community whose key the bot has. Where all are let in, functions
    are only informed."""

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
    """The bot was accepted, rejected or removed by a community, or is not a member. `received` is
    the owner's description or answer."""

    community: Community
    why: str = ""
    """Reason why no request would help, such as needed tokens (empty if one may)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContactRequest(AboutMessage):
    """A user asks to be a contact. To decline, do nothing: Status has no message for that."""

    text: str
    """Text of the other user."""

    async def accept(self) -> None:
        """Be a contact of the author.

        Raises:
            OutboxFull: the node has been away for too long.
        """
        self.turn.session.accept_contact(self.author, self.message_id, self.turn.once())


@dataclass(frozen=True, slots=True, kw_only=True)
class ContactChange(BotEvent):
    """A user accepted the bot's contact request, or ended the contact."""

    @property
    def is_contact(self) -> bool:
        """True if the author and the bot are contacts now."""
        return self.turn.session.is_contact(self.author)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupChange(BotEvent):
    """The members, the admins or the name of a private group may have changed."""

    group: Group
    """The group as it is now: `members`, `admins`, `joined`, `name`."""

    @property
    def is_member(self) -> bool:
        """True if the bot is in the group."""
        return self.turn.session.public_key in self.group.members

    async def join(self) -> None:
        """Announce to the members that the bot joined. It reads the group without that, too.

        Raises:
            ValueError: the bot is not in the group.
            OutboxFull: the node has been away for too long.
        """
        self.turn.session.join_group(self.group.chat_id)


@dataclass(frozen=True, slots=True)
class Channel:
    """A chat to write in."""

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
        """Publish a message. It is on disk when this returns. In a loop with a user (`LoopLimits`),
        and for direct messages beyond `user_limit`, the answer is withheld. No other user then
        knows its id.

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
        """Give a message of the bot another text."""
        self._change(message_id, payload_builders.edit(self.room, message_id, text))

    async def delete(self, message_id: str) -> None:
        """Delete a message. Clients obey if it is the bot's, or the bot is a moderator."""
        self._change(message_id, payload_builders.deletion(self.room, message_id))

    async def pin(self, message_id: str, *, pinned: bool = True) -> None:
        """Pin a message. Clients obey if the bot may pin."""
        self._change(message_id, payload_builders.pin(self.room, message_id, pinned))

    async def react(
        self, message_id: str, reaction: Reaction | str, *, retracted: bool = False
    ) -> None:
        """React to a message, or take a reaction back. Older clients only show the emoji of
        `Reaction`."""
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
