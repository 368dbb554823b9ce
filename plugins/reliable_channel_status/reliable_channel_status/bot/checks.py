"""Conditions under which a user may call a command: `@bot.command("close", checks=[by_member])`.

A check is any function of a `Message` that returns a bool, `async` or not. It may raise
`NotAllowed` with a text for the user; else the user reads `BotTexts.not_permitted`.
"""

import inspect
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeAlias

from .happenings import Message

Check: TypeAlias = Callable[[Message], bool | Awaitable[bool]]


class NotAllowed(Exception):
    """A user may not call a command; the text is for the user."""


def by_member(message: Message) -> bool:
    """Members of the community; elsewhere those of any community of the bot."""
    return message.by_member


def by_moderator(message: Message) -> bool:
    """Users that may moderate where the message was written."""
    return message.by_moderator


def by_contact(message: Message) -> bool:
    """Contacts of the bot."""
    return message.by_contact


def in_direct(message: Message) -> bool:
    """Calls in a one-to-one chat with the bot."""
    return message.is_direct


def in_channels(*names: str) -> Check:
    """Calls in some channels, by uuid or a public chat's name."""
    return lambda message: message.room.name in names


def any_of(*checks: Check) -> Check:
    """Calls that at least one of several checks allows."""

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
    """Whether all checks allow a call.

    Raises:
        NotAllowed: one does not, and says why.
    """
    for check in checks:
        found = check(message)
        if not (await found if inspect.isawaitable(found) else found):
            return False
    return True
