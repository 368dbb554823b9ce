"""Functions of a bot, each with the kind of event that it handles."""

import inspect
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, TypeAlias, TypeVar

from ..wire.keys import PublicKey
from ..wire.outcomes import Received
from ..wire.payloads import ChatMessage
from ..wire.typed_text import as_name
from .commands import Command, Handler, signature
from .events import (
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
)
from .failures import ErrorHandler
from .limits import Buckets, Cooldown

Check: TypeAlias = Callable[[Message], bool | Awaitable[bool]]


class NotAllowed(Exception):
    """Error of a command that its user may not call. The user gets the text of the error as the
    answer."""


def by_member(message: Message) -> bool:
    """Check that the user is a member of the community (elsewhere, of any community of the bot)."""
    return message.by_member


def by_moderator(message: Message) -> bool:
    """Check that the user may moderate in the chat of the message."""
    return message.by_moderator


def by_contact(message: Message) -> bool:
    return message.by_contact


def in_direct(message: Message) -> bool:
    """Check that the chat is a one-to-one chat with the bot."""
    return message.is_direct


def in_channels(*names: str) -> Check:
    """Check that the chat is one of the given channels (uuids) or public chats (names)."""
    return lambda message: message.room.name in names


def any_of(*checks: Check) -> Check:
    """Check that at least one of several checks allows the call."""

    async def check(message: Message) -> bool:
        refused: NotAllowed | None = None
        for one in checks:
            try:
                if await allows([one], message):
                    return True
            except NotAllowed as error:
                refused = error
        if refused is not None:
            raise refused
        return False

    return check


async def allows(checks: Sequence[Check], message: Message) -> bool:
    """Return True if all checks allow the user to call a command.

    Raises:
        NotAllowed: one does not, and says why.
    """
    for check in checks:
        found = check(message)
        if not (await found if inspect.isawaitable(found) else found):
            return False
    return True


Allow: TypeAlias = (
    Literal["moderators"] | Iterable[PublicKey | str] | Callable[[PublicKey], bool] | None
)
"""Users that may call a command, such as moderators, listed public keys, or users that a function
accepts."""

MESSAGE_FORMS: Final = (ChatMessage, Message)
"""Message types that handlers may request by annotating their first parameter."""

Kind: TypeAlias = Literal[
    "message",
    "mention",
    "edit",
    "deletion",
    "pin",
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
"""Kinds of events that come from direct messages. A bot with a function for one of these events
reads and answers direct messages."""
GIVEN: Final[dict[Kind, tuple[type, ...]]] = {
    "message": MESSAGE_FORMS,
    "mention": MESSAGE_FORMS,
    "edit": (Edit,),
    "deletion": (Deletion,),
    "pin": (PinChange,),
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
"""Argument type for the handlers of each kind of event."""


ErrorChain: TypeAlias = tuple[Sequence[ErrorHandler], ...]
"""Error handlers of a router, followed by the error handlers of the bot. Each list of error
handlers may still grow."""


@dataclass(frozen=True, slots=True)
class BotCommand:
    """Command of a bot, with its allowed users and its rate limit."""

    command: Command
    allow: Literal["moderators"] | Callable[[PublicKey], bool] | None
    checks: tuple[Check, ...] = ()
    cooldown: Cooldown | None = None
    buckets: Buckets | None = None
    """Counter of the command's calls for the cooldown, or None without a cooldown."""
    error_handlers: ErrorChain = ()


@dataclass(frozen=True, slots=True)
class EventHandler:
    """Function of a bot for one kind of event."""

    name: str
    handler: Handler
    wants_payload: bool
    """True if the function's first parameter is the bare `ChatMessage`."""
    error_handlers: ErrorChain = ()


@dataclass(frozen=True, slots=True)
class Step:
    """Function of a bot that gets the answer to a question."""

    command: Command
    error_handlers: ErrorChain = ()


@dataclass(frozen=True, slots=True)
class Job:
    """Background function of a bot, which runs once or repeatedly."""

    name: str
    run: Callable[[], Awaitable[Any]]
    every_s: float | None
    error_handlers: ErrorChain = ()


Registered = TypeVar("Registered", BotCommand, EventHandler, Step, Job)


@dataclass(slots=True)
class Handlers:
    """Functions of a bot or a router."""

    commands: dict[str, BotCommand] = field(default_factory=dict)
    """Commands of the bot by name. The name of a command in a group has two words."""
    groups: dict[str, str] = field(default_factory=dict)
    """Descriptions of command groups, by the name of the group."""
    events: dict[Kind, list[EventHandler]] = field(default_factory=dict)
    steps: dict[str, Step] = field(default_factory=dict)
    jobs: list[Job] = field(default_factory=list)
    error_handlers: list[ErrorHandler] = field(default_factory=list)
    is_included: bool = False
    """True if the functions were included elsewhere, so that no function can be added."""

    def add_command(
        self,
        name: str,
        handler: Handler,
        allow: Allow,
        checks: Iterable[Check] = (),
        cooldown: Cooldown | None = None,
        *,
        group: str = "",
    ) -> None:
        """Add a command to the bot or router.

        Raises:
            ValueError: the name is taken, or not one word.
            TypeError: the function's parameters cannot be read from a text.
        """
        name = _word(name)
        if group:
            name = f"{group} {name}"
        self._check_free(name)
        command = Command.of(name, handler, MESSAGE_FORMS)
        buckets = None if cooldown is None else Buckets(cooldown.limit)
        self.commands[name] = BotCommand(
            command, _allowed(allow), tuple(checks), cooldown, buckets, (self.error_handlers,)
        )

    def add_group(self, name: str, about: str) -> str:
        """Add a group of commands, and return the group's name.

        Raises:
            ValueError: the name is taken, or not one word.
        """
        name = _word(name)
        self._check_free(name)
        self.groups[name] = about
        return name

    def add_step(self, handler: Handler, first: type) -> None:
        """Add a function that gets the answer to a question.

        Raises:
            ValueError: there is one of this name; a question that waits names its function.
            TypeError: the function's parameters cannot be read from a text.
        """
        self._check_open()
        name = handler.__qualname__
        if name in self.steps:
            raise ValueError(f"the step {name!r} is declared twice; rename one function")
        self.steps[name] = Step(Command.of(name, handler, (first,)), (self.error_handlers,))

    def add_event(self, kind: Kind, handler: Handler) -> None:
        """Add a function for a kind of event.

        Raises:
            TypeError: it is not `async`, or takes something else.
        """
        self._check_open()
        hints, parameters = signature(handler)
        asked = hints.get(parameters[0].name) if parameters else None
        given = GIVEN[kind]
        name = f"{handler.__module__}.{handler.__qualname__}"
        if len(parameters) != 1 or (asked is not None and asked not in given):
            kinds = " or ".join(each.__name__ for each in given)
            raise TypeError(f"{name} takes one argument, a {kinds}")
        event = EventHandler(name, handler, asked is ChatMessage, (self.error_handlers,))
        self._put_event(kind, event)

    def add_job(self, function: Callable[[], Awaitable[Any]], every_s: float | None) -> None:
        """Add a background function, which runs beside the events."""
        self._check_open()
        name = getattr(function, "__qualname__", repr(function))
        self.jobs.append(Job(name, function, every_s, (self.error_handlers,)))

    def include(self, other: "Handlers", checks: tuple[Check, ...]) -> None:
        """Include all functions of another collection, which then accepts no more functions.

        Args:
            other: functions of a router.
            checks: of the router, for each of its commands.

        Raises:
            ValueError: a name is taken, or they were included before.
        """
        self._check_open()
        other._check_open()
        for name, about in other.groups.items():
            self._check_free(name)
            self.groups[name] = about
        for name, one in other.commands.items():
            self._check_free(name)
            self.commands[name] = self._own(replace(one, checks=(*checks, *one.checks)))
        for name, step in other.steps.items():
            if name in self.steps:
                raise ValueError(f"the step {name!r} is declared twice; rename one function")
            self.steps[name] = self._own(step)
        for kind, handlers in other.events.items():
            for event in handlers:
                self._put_event(kind, self._own(event))
        self.jobs += map(self._own, other.jobs)
        other.is_included = True

    def _own(self, one: Registered) -> Registered:
        """The same, with these error handlers after its router's."""
        return replace(one, error_handlers=(*one.error_handlers, self.error_handlers))

    def find(self, name: str, rest: str) -> tuple[str, BotCommand | None, str] | None:
        """Return the command that a text calls, its full name, and the arguments.

        For help about a group, the returned command is None. For an unknown name, `find` returns
        None.
        """
        if name in self.groups:
            first, *more = rest.split(maxsplit=1)[:2] or [""]
            full = f"{name} {as_name(first)}"
            if full in self.commands:
                return full, self.commands[full], "".join(more)
            return name, None, f"{name} {first}"
        command = self.commands.get(name)
        return None if command is None else (name, command, rest)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all commands and groups."""
        return (*(name for name in self.commands if " " not in name), *self.groups)

    def _check_open(self) -> None:
        if self.is_included:
            raise ValueError(
                "the router was included already; add functions to a router before include()"
            )

    def _check_free(self, name: str) -> None:
        self._check_open()
        if name in self.commands or name in self.groups:
            raise ValueError(f"the command {name!r} is declared twice; rename one command")

    def _put_event(self, kind: Kind, event: EventHandler) -> None:
        name = event.name
        names = {each.name for handlers in self.events.values() for each in handlers}
        while name in names:  # what they say is told apart by their names
            name += "'"
        self.events.setdefault(kind, []).append(replace(event, name=name))


def _word(name: str) -> str:
    name = as_name(name)
    if not name or name.split() != [name]:
        raise ValueError(f"the name of a command must be one word (got {name!r})")
    return name


def _allowed(allow: Allow) -> Literal["moderators"] | Callable[[PublicKey], bool] | None:
    if allow is None or allow == "moderators":
        return allow
    if callable(allow):
        return allow
    if isinstance(allow, str):
        raise ValueError(
            f"`allow` must be 'moderators', a list of keys, or a function (got {allow!r})"
        )
    keys = {key if isinstance(key, PublicKey) else PublicKey.parse(key) for key in allow}
    return lambda user: user in keys
