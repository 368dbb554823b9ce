"""What a bot's author wrote: which function is called for what."""

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias

from ..keys import PublicKey
from ..outcomes import Received
from ..payloads import ChatMessage
from .commands import Command, Handler, signature
from .happenings import (
    ContactChange,
    ContactRequest,
    Edit,
    GroupChange,
    JoinRequest,
    MembershipChange,
    Message,
    ReactionChange,
)

Allow: TypeAlias = (
    Literal["moderators"] | Iterable[PublicKey | str] | Callable[[PublicKey], bool] | None
)
"""Users that may call a command: moderators, listed public keys, those that a function accepts, or
all."""

MESSAGE_FORMS: Final = (ChatMessage, Message)
"""What handlers of messages may ask for by annotating their first parameter."""

Kind: TypeAlias = Literal[
    "message",
    "mention",
    "edit",
    "reaction",
    "join_request",
    "payload",
    "joined",
    "rejected",
    "kicked",
    "not_a_member",
    "direct_message",
    "contact_request",
    "contact_change",
    "group_message",
    "group_change",
]
DIRECT: Final[tuple[Kind, ...]] = (
    "direct_message",
    "contact_request",
    "contact_change",
    "group_message",
    "group_change",
)
"""Kinds that are of direct messages: a bot with a function for one reads and answers them."""
GIVEN: Final[dict[Kind, tuple[type, ...]]] = {
    "message": MESSAGE_FORMS,
    "mention": MESSAGE_FORMS,
    "edit": (Edit,),
    "reaction": (ReactionChange,),
    "join_request": (JoinRequest,),
    "payload": (Received,),
    "joined": (MembershipChange,),
    "rejected": (MembershipChange,),
    "kicked": (MembershipChange,),
    "not_a_member": (MembershipChange,),
    "direct_message": MESSAGE_FORMS,
    "contact_request": (ContactRequest,),
    "contact_change": (ContactChange,),
    "group_message": MESSAGE_FORMS,
    "group_change": (GroupChange,),
}
"""What handlers of each kind of event are given."""


@dataclass(frozen=True, slots=True)
class BotCommand:
    """A command, and the users that may call it."""

    command: Command
    allow: Literal["moderators"] | Callable[[PublicKey], bool] | None


@dataclass(frozen=True, slots=True)
class EventHandler:
    """A function for one kind of event."""

    name: str
    handler: Handler
    wants_payload: bool
    """Whether it asks for the bare `ChatMessage`."""


@dataclass(frozen=True, slots=True)
class Job:
    """What runs beside the events: once, or again and again."""

    name: str
    run: Callable[[], Awaitable[Any]]
    every_s: float | None


@dataclass(slots=True)
class Handlers:
    """All of a bot's functions."""

    commands: dict[str, BotCommand] = field(default_factory=dict)
    events: dict[Kind, list[EventHandler]] = field(default_factory=dict)
    jobs: list[Job] = field(default_factory=list)

    def add_command(self, name: str, handler: Handler, allow: Allow) -> None:
        """Add a command.

        Raises:
            ValueError: the name is taken, or not one word.
            TypeError: the function's parameters cannot be read from a text.
        """
        name = name.lower()
        if not name or name.split() != [name]:
            raise ValueError(f"a command's name is one word, not {name!r}")
        if name in self.commands:
            raise ValueError(f"there are two commands {name!r}")
        command = Command.of(name, handler, MESSAGE_FORMS)
        self.commands[name] = BotCommand(command, _allowed(allow))

    def add_event(self, kind: Kind, handler: Handler) -> None:
        """Add a function for a kind of event.

        Raises:
            TypeError: it is not `async`, or takes something else.
        """
        hints, parameters = signature(handler)
        name = f"{handler.__module__}.{handler.__qualname__}"
        asked = hints.get(parameters[0].name) if parameters else None
        given = GIVEN[kind]
        if len(parameters) != 1 or (asked is not None and asked not in given):
            kinds = " or ".join(each.__name__ for each in given)
            raise TypeError(f"{name} takes one argument, a {kinds}")
        asks_payload = asked is ChatMessage
        names = {each.name for handlers in self.events.values() for each in handlers}
        while name in names:  # what they say is told apart by their names
            name += "'"
        self.events.setdefault(kind, []).append(EventHandler(name, handler, asks_payload))


def _allowed(allow: Allow) -> Literal["moderators"] | Callable[[PublicKey], bool] | None:
    if allow is None or allow == "moderators":
        return allow
    if callable(allow):
        return allow
    if isinstance(allow, str):
        raise ValueError(f"allow is {allow!r}; it is 'moderators', a list of keys, or a function")
    keys = {key if isinstance(key, PublicKey) else PublicKey.parse(key) for key in allow}
    return lambda user: user in keys
