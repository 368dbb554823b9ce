"""`BotTester` says why an answer is missing."""

from collections.abc import Callable

import anyio
import pytest

from reliable_channel_status import Reaction, mention
from reliable_channel_status.bot import (
    BotOptions,
    LoopLimits,
    Message,
    RateLimit,
    StatusBot,
)
from reliable_channel_status.testing import BotTester
from status_tests.world import COMMUNITY, GENERAL


def new_bot(**options: object) -> StatusBot:
    bot = StatusBot(
        node="http://node",
        community=COMMUNITY,
        channels=[GENERAL],
        options=BotOptions(**options),  # type: ignore[arg-type]
    )

    @bot.command("ping")
    async def ping(message: Message) -> str:
        return "pong"

    @bot.command("nothing")
    async def nothing(message: Message) -> None: ...

    @bot.command("aside")
    async def aside(message: Message) -> None:
        await message.channel.send("by the way")

    @bot.command("like")
    async def like(message: Message) -> Reaction:
        return Reaction.LOVE

    @bot.command("hang")
    async def hang(message: Message) -> None:
        await anyio.sleep_forever()

    return bot


def why(text: str, bot: StatusBot | None = None, before: int = 0) -> str:
    """What stands in the error after `before` answered questions."""
    with BotTester(bot or new_bot()) as tester:
        alice = tester.user("Alice")
        for _ in range(before):
            alice.asks("!ping")
        with pytest.raises(AssertionError) as raised:
            alice.asks(text)
        start = f"the bot did not answer {text!r} of Alice: "
        assert str(raised.value).startswith(start)
        return str(raised.value).removeprefix(start)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "!pong",
            "there is no command !pong; the bot has !ping, !nothing, !aside, !like, !hang, !help",
        ),
        ("hello", "it calls no command (they begin with '!'), and the bot has no @bot.on_message"),
        ("!nothing", "`nothing` ran and said nothing; return a text or await message.reply()"),
        (
            "!aside",
            (
                "`aside` ran and said 'by the way', not as an answer to it; "
                "use message.reply() or tester.said()"
            ),
        ),
        ("!like", "`like` ran and sent EmojiReaction but no text; see tester.heard"),
        ("!hang", "`hang` did not end within 30.0 s (`handler_timeout_ms`)"),
        (
            "x" * 5000,
            (
                "the message was refused as invalid: "
                "ChatMessage: text has 5000 characters; at most 4096"
            ),
        ),
    ],
)
def test_the_reason_stands_in_the_error(text: str, expected: str) -> None:
    assert why(text) == expected


def test_a_mention_that_no_function_takes() -> None:
    bot = new_bot()
    with BotTester(bot) as tester, pytest.raises(AssertionError, match=r"no @bot\.on_mention"):
        tester.user("Alice").asks(f"hello {mention(tester.public_key)}")


def test_a_limit() -> None:
    bot = new_bot(user_limit=RateLimit(2, 3_600_000))
    expected = "the call was beyond `user_limit` or `channel_limit`"
    assert why("!ping", bot, before=2) == expected


def _fails(bot: StatusBot) -> None:
    @bot.on_message
    async def fails(message: Message) -> None:
        raise ZeroDivisionError("on purpose")


def _answers(bot: StatusBot) -> None:
    @bot.on_message
    async def answers(message: Message) -> str:
        return "I answer everything"


@pytest.mark.parametrize(
    ("add", "expected"),
    [
        (_fails, "fails` failed with ZeroDivisionError('on purpose')"),
        (_answers, "the answer was withheld, as user and bot were in a loop (`loops`)"),
    ],
)
def test_functions_that_fail_and_answers_that_are_withheld(
    add: Callable[[StatusBot], None], expected: str
) -> None:
    bot = new_bot(loops=LoopLimits(turns=1))
    add(bot)
    with BotTester(bot) as tester:
        alice = tester.user("Alice")
        alice.says("hello")
        with pytest.raises(AssertionError) as raised:
            alice.asks("hello again")
    assert str(raised.value).endswith(expected)


def test_a_function_that_has_not_ended() -> None:
    bot = new_bot(handler_timeout_ms=3_600_000, stop_timeout_ms=1)
    assert why("!hang", bot) == "a function that was called has not ended yet"


def test_a_bot_that_does_not_run_and_one_that_talks_to_itself() -> None:
    with BotTester(new_bot()) as tester:
        with pytest.raises(AssertionError, match=r"no function was called: .* or wrote it itself"):
            tester.user("me", tester.key).asks("!ping")
        tester.stop()
        with pytest.raises(AssertionError, match=r"does not run; call tester\.start\(\)"):
            tester.user("Alice").asks("!ping")
