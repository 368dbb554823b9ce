"""`Router` holds functions of a bot that are declared in a separate module and included in the bot.

router = Router(checks=[by_member])
@router.command("ping")
async def ping(message: Message) -> str:
    return "pong"
bot.include(router)
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Any, TypeVar

from .actions import BotActions, NotRunning
from .dialogues import Talk
from .failures import ErrorHandler
from .handlers import Allow, Check, Handlers, Kind
from .limits import Cooldown

Function = TypeVar("Function", bound=Callable[..., Awaitable[Any]])
OnError = TypeVar("OnError", bound=ErrorHandler)


class Router:
    """Functions of a bot for commands, events, answers and background tasks.

    Args:
        checks: conditions for each of its commands, beside those of the command.
    """

    def __init__(self, *, checks: Iterable[Check] = ()) -> None:
        self.handlers = Handlers()
        """Its functions."""
        self._checks = tuple(checks)
        self._bot: Callable[[], BotActions] | None = None

    @property
    def bot(self) -> BotActions:
        """Actions of the bot that includes this router.

        Raises:
            NotRunning: none does.
        """
        if self._bot is None:
            raise NotRunning("no bot includes this router; call bot.include(router)")
        return self._bot()

    def include(self, router: Router) -> None:
        """Include all functions of another router, which then accepts no more functions. The
        included router's error handlers are called before those of this router.

        Raises:
            ValueError: a name is taken, or it was included before.
        """
        self.handlers.include(router.handlers, router._checks)
        router._bot = lambda: self.bot

    # -- commands ---------------------------------------------------------------------------------

    def command(
        self,
        name: str,
        *,
        allow: Allow = None,
        checks: Iterable[Check] = (),
        cooldown: Cooldown | None = None,
    ) -> Callable[[Function], Function]:
        """Call a function when a user writes `!name`. The function's return value is sent as the
        answer.

        The function's first parameter is annotated `ChatMessage` or `Message`. The words of the
        message become the other arguments, by the parameters' annotations. The annotations may be
        str, int, float, bool, timedelta, date, PublicKey, Enum and Literal. Each annotation may be
        `| None`, or `Annotated` with a `Between` or `Converter`. A parameter after `*` takes the
        rest of the message text.

        Args:
            name: one word.
            allow: users that may call it: "moderators", public keys, or a function of a key.
            checks: further conditions, see `checks.Check`.
            cooldown: how often it can be used. A call that is not understood does not count.

        Raises:
            ValueError, TypeError: when the function is declared, if it cannot be called so.
        """

        def declare(function: Function) -> Function:
            self.handlers.add_command(name, function, allow, checks, cooldown)
            return function

        return declare

    def command_group(
        self, name: str, about: str = "", *, checks: Iterable[Check] = ()
    ) -> CommandGroup:
        """Return a group of commands of two words, such as `!queue add`. The command `!queue` alone
        lists the commands of the group.

        Args:
            name: the first word.
            about: what they are for; the first line of what `!queue` answers.
            checks: conditions for each of them, beside those of the command.

        Raises:
            ValueError: the name is taken, or not one word.
        """
        return CommandGroup(self.handlers, self.handlers.add_group(name, about), tuple(checks))

    def step(self, function: Function) -> Function:
        """Call a function with a `Talk` and the values of an answer (see `Question`)."""
        self.handlers.add_step(function, Talk)
        return function

    # -- events -----------------------------------------------------------------------------------

    def on_error(self, function: OnError) -> OnError:
        """Call a function with a `Failure` when another function of the bot raises an error. The
        text that the error handler returns is the answer to the user. Error handlers are called in
        order until one returns a text."""
        self.handlers.error_handlers.append(function)
        return function

    def on_message(self, function: Function) -> Function:
        """Call a function with each message of another user, as a `Message` or a `ChatMessage`."""
        return self._on("message", function)

    def on_mention(self, function: Function) -> Function:
        """Call a function with each message that mentions the bot and calls no command."""
        return self._on("mention", function)

    def on_edit(self, function: Function) -> Function:
        """Call a function with each `Edit` of a message."""
        return self._on("edit", function)

    def on_deletion(self, function: Function) -> Function:
        """Call a function with each `Deletion` of a message."""
        return self._on("deletion", function)

    def on_pin(self, function: Function) -> Function:
        """Call a function with each `PinChange` of a message."""
        return self._on("pin", function)

    def on_reaction(self, function: Function) -> Function:
        """Call a function with each `ReactionChange` of a message."""
        return self._on("reaction", function)

    def on_join_request(self, function: Function) -> Function:
        """Call a function with each `JoinRequest` of a user. `on_join_request` needs
        `community_key_file`."""
        return self._on("join_request", function)

    def on_joined(self, function: Function) -> Function:
        """Call a function with a `MembershipChange` when the bot has become a member."""
        return self._on("joined", function)

    def on_rejected(self, function: Function) -> Function:
        """Call a function with a `MembershipChange` when the owner rejects the bot's request to
        join."""
        return self._on("rejected", function)

    def on_kicked(self, function: Function) -> Function:
        """Call a function with a `MembershipChange` when the bot is no longer a member."""
        return self._on("kicked", function)

    def on_not_a_member(self, function: Function) -> Function:
        """Call a function with a `MembershipChange` when a community turns out not to list the
        bot."""
        return self._on("not_a_member", function)

    def on_direct_message(self, function: Function) -> Function:
        """Call a function with each direct message to the bot that calls no command. Any user may
        write direct messages to the bot."""
        return self._on("direct_message", function)

    def on_contact_request(self, function: Function) -> Function:
        """Call a function with each `ContactRequest`."""
        return self._on("contact_request", function)

    def on_contact_change(self, function: Function) -> Function:
        """Call a function with a `ContactChange` when a user accepts the bot's contact request,
        or ends the contact."""
        return self._on("contact_change", function)

    def on_group_message(self, function: Function) -> Function:
        """Call a function with each message of another user in a private group."""
        return self._on("group_message", function)

    def on_group_change(self, function: Function) -> Function:
        """Call a function with a `GroupChange` when a private group changes, such as when the bot
        was added."""
        return self._on("group_change", function)

    def on_payload(self, function: Function) -> Function:
        """Call a function with each `Received` of any type, including the bot's own, for example
        for an archive."""
        return self._on("payload", function)

    # -- tasks ------------------------------------------------------------------------------------

    def task(self, function: Function) -> Function:
        """Run a function in the background, from when the bot has read the history until the bot
        ends."""
        self.handlers.add_job(function, None)
        return function

    def every(self, *, seconds: float) -> Callable[[Function], Function]:
        """Run a function at the start, and again each time that many seconds after it ended.

        Raises:
            ValueError: not a positive time.
        """
        if seconds <= 0:
            raise ValueError(f"an interval of {seconds} seconds is not possible; give more than 0")

        def declare(function: Function) -> Function:
            self.handlers.add_job(function, seconds)
            return function

        return declare

    def _on(self, kind: Kind, function: Function) -> Function:
        self.handlers.add_event(kind, function)
        return function


class CommandGroup:
    """Commands that begin with the same word, as returned by `Router.command_group`."""

    def __init__(self, handlers: Handlers, name: str, checks: tuple[Check, ...]) -> None:
        self._handlers = handlers
        self._name = name
        self._checks = checks

    def command(
        self,
        name: str,
        *,
        allow: Allow = None,
        checks: Iterable[Check] = (),
        cooldown: Cooldown | None = None,
    ) -> Callable[[Function], Function]:
        """Call a function when a user writes the group's word and the command's name, as
        `Router.command` does.

        Raises:
            ValueError, TypeError: as `Router.command`.
        """

        def declare(function: Function) -> Function:
            every = (*self._checks, *checks)
            self._handlers.add_command(name, function, allow, every, cooldown, group=self._name)
            return function

        return declare
