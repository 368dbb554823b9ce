"""Calls of commands and dialogue steps, and answers from their return values."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from math import ceil
from typing import Any, Final, Literal

import anyio

from ..wire.enums import Reaction
from ..wire.mentioning import mention
from ..wire.typed_text import after_prefix
from .commands import Command, UsageError, help_text, split
from .dialogues import Dialogue, Dialogues, Question, Talk, after
from .events import AboutMessage, BotEvent, Message
from .failures import Failures
from .handlers import BotCommand, EventHandler, Handlers, NotAllowed, allows
from .limits import Pair
from .options import BotOptions
from .session import Session

HELP: Final = "help"
CANCEL: Final = "cancel"
LANGUAGE: Final = "language"

Asked = tuple[str, BotCommand | None, str]
"""Full name of a called command, the command (None for help), and the rest of the message text."""


class Caller:
    """Calls the functions of commands and dialogue steps for a message.

    Args:
        session: of this run.
        handlers: the bot's functions.
        options: of the bot.
    """

    def __init__(self, session: Session, handlers: Handlers, options: BotOptions) -> None:
        self._session = session
        self._handlers = handlers
        self._options = options
        self._failures = Failures(session.reporter)
        self._dialogues = Dialogues(session.memory)
        self._own = self._own_commands()
        self._locks: dict[Pair, tuple[anyio.Lock, int]] = {}
        self._next: dict[bytes, tuple[Pair, Dialogue | None]] = {}

    # -- commands ---------------------------------------------------------------------------------

    def asked(self, text: str) -> Asked | None:
        """Return the command that a message text calls."""
        called = split(text, self._options.prefix)
        me = mention(self._session.public_key)
        if called is None and (rest := after_prefix(text, me)) is not None:
            called = split(rest.lstrip(" ,:"), "")
        if called is None:
            return None
        name, rest = called
        if found := self._handlers.find(name, rest):
            return found
        if name == HELP:
            return name, None, rest
        return (name, self._own[name], rest) if name in self._own else None

    async def command(self, message: Message, asked: Asked, at_ms: int) -> None:
        """Call a command, and send the return value as the answer."""
        message.turn.answers = None  # answers to commands are no rounds of a loop
        name, command, rest = asked
        if command is None:
            await message.reply(await self._help(message, rest))
            return
        async with self._alone(message):
            await self._failures.guard(
                f"{self._options.prefix}{name}",
                command.error_handlers,
                message,
                partial(self._command, message, command, rest, at_ms),
                otherwise=self._text(message, "failed", command=f"{self._options.prefix}{name}"),
            )

    async def _command(self, message: Message, asked: BotCommand, rest: str, at_ms: int) -> None:
        command, called = asked.command, f"{self._options.prefix}{asked.command.name}"
        try:
            is_allowed = await self._may(asked, message)
            why = self._text(message, "not_permitted", command=called)
        except NotAllowed as error:
            is_allowed, why = False, str(error)
        if not is_allowed:
            self._session.reporter.count("not_permitted", command.name)
            await message.reply(why)
            return
        try:
            positional, named = command.read(rest)
        except UsageError as error:
            texts = self._session.languages.texts(message.author)
            usage = command.usage(self._options.prefix, texts)
            await message.reply(texts.render("usage", problem=error.text(texts), usage=usage))
            return
        if wait_ms := _cooldown_ms(asked, message, at_ms):
            self._session.reporter.count("cooled_down", command.name)
            seconds = ceil(wait_ms / 1000)
            await message.reply(self._text(message, "cooldown", command=called, seconds=seconds))
            return
        given = message if command.first is Message else message.payload
        await self.say(message, await command.handler(given, *positional, **named))

    async def _may(self, asked: BotCommand, message: Message) -> bool:
        if asked.allow == "moderators":
            if not message.by_moderator:
                return False
        elif asked.allow is not None and not asked.allow(message.author):
            return False
        return await allows(asked.checks, message)

    async def _help(self, message: Message, name: str) -> str:
        allowed: dict[str, Command] = {}
        for asked in (*self._handlers.commands.values(), *self._own.values()):
            try:
                if await self._may(asked, message):
                    allowed.setdefault(asked.command.name, asked.command)
            except NotAllowed:
                continue
        texts = self._session.languages.texts(message.author)
        text = help_text(allowed, self._options.prefix, name.strip(), texts)
        about = self._handlers.groups.get(name.strip().removeprefix(self._options.prefix).lower())
        return f"{about}\n{text}" if about else text

    # -- dialogues --------------------------------------------------------------------------------

    def is_talking(self, pair: Pair) -> bool:
        """Return True if a user's next message may be an answer to a question."""
        is_open = self._dialogues.of(pair, self._session.now_ms()) is not None
        return is_open or pair in self._locks

    async def answer(self, message: Message, otherwise: Callable[[], Awaitable[Any]]) -> None:
        """Handle a message as the answer to the question that its author was asked. If the author
        was asked no question, call the given function."""
        async with self._alone(message):
            pair = _pair(message)
            dialogue = self._dialogues.of(pair, self._session.now_ms())
            if dialogue is not None:
                await self._step(message, pair, dialogue)
                return
        await otherwise()

    async def _step(self, message: Message, pair: Pair, dialogue: Dialogue) -> None:
        step = self._handlers.steps.get(dialogue.step)
        if step is None:  # the bot's author gave it another name
            self._go_on(message, pair, None)
            await message.reply(self._text(message, "question_forgotten"))
            return
        cancel = f"{self._options.prefix}{CANCEL}"
        try:
            positional, named = step.command.read(message.text)
        except UsageError as error:
            problem = error.text(self._session.languages.texts(message.author))
            text = self._text(message, "answer_again", problem=problem, cancel=cancel)
            await message.reply(text)
            return
        talk = Talk(
            received=message.received,
            turn=message.turn,
            room=message.room,
            message_id=message.message_id,
            payload=message.payload,
            text=message.text,
            data=dialogue.data,
        )

        async def call() -> None:
            result = await step.command.handler(talk, *positional, **named)
            self._go_on(message, pair, None)
            await self.say(talk, result)

        await self._failures.guard(
            dialogue.step,
            step.error_handlers,
            message,
            call,
            otherwise=self._text(message, "step_failed", cancel=cancel),
        )

    def keep(self, fingerprint: bytes) -> None:
        """Keep the change that an event made to a dialogue, with the next `BotMemory.write`."""
        if (change := self._next.pop(fingerprint, None)) is not None:
            self._dialogues.put(*change)

    def drop(self, fingerprint: bytes) -> None:
        """Forget the change that an event made to a dialogue, because the event was not handled."""
        self._next.pop(fingerprint, None)

    def _go_on(self, message: Message, pair: Pair, dialogue: Dialogue | None) -> None:
        self._next[message.received.signed.fingerprint] = pair, dialogue

    @asynccontextmanager
    async def _alone(self, message: Message) -> AsyncIterator[None]:
        """One user's messages in one chat one after the other, where there are dialogues."""
        if not self._handlers.steps:
            yield
            return
        pair = _pair(message)
        lock, users = self._locks.get(pair, (anyio.Lock(), 0))
        self._locks[pair] = lock, users + 1
        try:
            async with lock:
                yield
        finally:
            lock, users = self._locks.pop(pair)
            if users > 1:
                self._locks[pair] = lock, users - 1

    # -- what functions return --------------------------------------------------------------------

    async def tell(self, each: EventHandler, event: BotEvent, given: object | None = None) -> None:
        """Call a function with an event, or with another argument if it is given. The function's
        return value is sent as the answer."""
        if given is None:
            given = event.received.payload if each.wants_payload else event

        async def call() -> None:
            await self.say(event, await each.handler(given))

        await self._failures.guard(each.name, each.error_handlers, event, call)

    async def say(self, event: BotEvent, result: object) -> None:
        """Send the return value of a function as the answer to an event.

        Raises:
            TypeError: it is nothing that can be said there.
        """
        match result:
            case None:
                return
            case str() if isinstance(event, AboutMessage):
                await event.reply(result)
            case Reaction() if isinstance(event, AboutMessage):
                await event.react(result)
            case Question() if isinstance(event, Message):
                await self._ask(event, result)
            case _:
                raise TypeError(
                    "a handler must return a text, a Reaction, a Question or nothing (got "
                    f"{result!r})"
                )

    async def _ask(self, message: Message, question: Question) -> None:
        name = question.then.__qualname__
        if name not in self._handlers.steps:
            raise TypeError(f"`then` must be a step of a dialogue: declare {name} with @bot.step")
        before = message.data if isinstance(message, Talk) else {}
        dialogue = after(question, before, self._session.now_ms())
        await message.reply(question.text)
        self._go_on(message, _pair(message), dialogue)

    # -- the bot's own commands -------------------------------------------------------------------

    def _own_commands(self) -> dict[str, BotCommand]:
        texts, languages = self._options.texts, self._session.languages

        async def cancel(message: Message) -> str:
            pair = _pair(message)
            if self._dialogues.of(pair, self._session.now_ms()) is None:
                return self._text(message, "nothing_to_cancel")
            self._go_on(message, pair, None)
            return self._text(message, "cancelled")

        async def choose(message: Message, language: str) -> str:
            languages.choose(message.author, language)
            return self._text(message, "language_chosen", language=language)

        cancel.__doc__, choose.__doc__ = texts.cancel_about, texts.language_about
        choose.__annotations__["language"] = Literal[languages.names]
        found: dict[str, Callable[..., Awaitable[str]]] = {}
        if self._handlers.steps:
            found[CANCEL] = cancel
        if len(languages.names) > 1:
            found[LANGUAGE] = choose
        return {
            name: BotCommand(Command.of(name, function, (Message,)), None)
            for name, function in found.items()
            if name not in self._handlers.names
        }

    def _text(self, message: Message, name: str, **given: Any) -> str:
        return self._session.languages.texts(message.author).render(name, **given)


def _pair(message: Message) -> Pair:
    return message.room.chat_id, message.author


def _cooldown_ms(asked: BotCommand, message: Message, now_ms: int) -> int:
    """Count a call; after how long it is possible again, if it is not now."""
    if asked.cooldown is None or asked.buckets is None:
        return 0
    keys = {"user": message.author, "channel": message.room.chat_id, "all": None}
    key = keys[asked.cooldown.by]
    return 0 if asked.buckets.take(key, now_ms) else asked.buckets.wait_ms(key, now_ms)
