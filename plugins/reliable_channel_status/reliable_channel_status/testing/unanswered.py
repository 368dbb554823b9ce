"""Explanation why a bot did not answer in a test, from the log and the called functions."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from ..bot.bot import StatusBot
from ..bot.calling import HELP
from ..bot.commands import split
from ..bot.dispatch import NOT_ANSWERED
from ..bot.handlers import Handlers
from ..bot.reporting import Reporter
from ..wire.keys import PublicKey
from ..wire.mentioning import mentions
from ..wire.outcomes import Received
from ..wire.payloads import ChatMessage, Payload

EVENTS: Final = {
    "refused": "the message was refused as {reason}: {detail}",
    "rate_limited": "the call was beyond `user_limit` or `channel_limit`",
    "handler_failed": "`{handler}` failed with {why}",
    "handler_timed_out": "`{handler}` did not end within {timeout_s} s (`handler_timeout_ms`)",
    "answer_withheld": "the answer was withheld, as user and bot were in a loop (`loops`)",
    "node_away": "the node failed: {why}",
    "publish_failed": "the node did not take what the bot said: {why}",
    "unpublishable": "the node refused what the bot said: {why}",
}
"""Explanations of log records for a user that waits for an answer."""


@dataclass(frozen=True, slots=True)
class Mark:
    """Moment of a test, for later comparison."""

    logged: int
    ran: Counter[str]
    heard: int


def runs(reporter: Reporter) -> Counter[str]:
    """Return the number of ended calls of each function."""
    return Counter({of: n for (name, of), n in reporter.counts.items() if name == "handlers_run"})


def why_unanswered(
    text: str, since: Mark, bot: StatusBot, me: PublicKey, heard: Sequence[Received]
) -> str:
    """Return the reason why the bot did not answer a message.

    Args:
        text: of the message.
        since: when it was written.
        bot: the one that should have answered.
        me: its public key.
        heard: all that was said in the test.
    """
    logged, ran = bot.reporter.since(since.logged), runs(bot.reporter) - since.ran
    said = [one.payload for one in heard[since.heard :] if one.signer == me]
    found = [EVENTS[one.event].format(**one.fields) for one in logged if one.event in EVENTS]
    if found:
        return "; ".join(dict.fromkeys(found))
    names = [f"`{name}`" for name, times in ran.items() if times and name != NOT_ANSWERED]
    if bot.is_busy:
        return "a function that was called has not ended yet"
    if names:
        return f"{' and '.join(names)} ran and {_instead(said)}"
    return _not_called(text, me, bot.handlers, bot.options.prefix)


def _instead(said: Sequence[Payload]) -> str:
    """What functions did that did not answer."""
    texts = [repr(one.text) for one in said if isinstance(one, ChatMessage)]
    if texts:
        return (
            f"said {', '.join(texts)}, not as an answer to it; use message.reply() or tester.said()"
        )
    if said:
        return f"sent {type(said[-1]).__name__} but no text; see tester.heard"
    return "said nothing; return a text or await message.reply()"


def _not_called(text: str, bot: PublicKey, handlers: Handlers, prefix: str) -> str:
    """Why no function was called."""
    called = split(text, prefix)
    if called is not None and called[0] not in (*handlers.names, HELP):
        known = ", ".join(f"{prefix}{name}" for name in (*handlers.names, HELP))
        return f"there is no command {prefix}{called[0]}; the bot has {known}"
    if called is None and "message" not in handlers.events:
        is_mention = bot in mentions(text)
        if not (is_mention and "mention" in handlers.events):
            more = " and no @bot.on_mention" if is_mention else ""
            return (
                f"it calls no command (they begin with {prefix!r}), "
                f"and the bot has no @bot.on_message{more}"
            )
    return "no function was called: the bot did not hear it, or knew it already, or wrote it itself"
