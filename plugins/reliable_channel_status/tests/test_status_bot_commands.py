"""How commands are read from texts, and how often they may be called: pure."""

from contextlib import suppress
from enum import Enum
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from status_world import ALICE, BOB

from reliable_channel_status import ChatMessage, PublicKey, mention
from reliable_channel_status.bot import LoopLimits, RateLimit, UsageError
from reliable_channel_status.bot.commands import Command, help_text, split
from reliable_channel_status.bot.limits import Buckets
from reliable_channel_status.bot.loops import LoopGuard


class Color(Enum):
    RED = 1
    BLUE = 2


async def remind(
    message: ChatMessage, minutes: int, loud: bool = False, *, text: str = "tea"
) -> None:
    """Reminds you.

    Later, that is.
    """


async def paint(message: ChatMessage, color: Color, how: Literal["thin", "thick"]) -> None: ...


async def invite(message: ChatMessage, user: PublicKey, *names: str) -> None: ...


async def wait(message: ChatMessage, seconds: float | None = None) -> None: ...


def command(function: Any) -> Command:
    return Command.of(function.__name__, function, (ChatMessage,))


@pytest.mark.parametrize(
    ("function", "text", "positional", "named"),
    [
        (remind, "5", [5, False], {"text": "tea"}),
        (remind, " 5  yes  the tea  is 'ready' ", [5, True], {"text": "the tea  is 'ready'"}),
        (paint, "Red THICK", [Color.RED, "thick"], {}),
        (invite, f"{mention(BOB.public_key)} 'Bob B.' b", [BOB.public_key, "Bob B.", "b"], {}),
        (invite, ALICE.public_key.multibase, [ALICE.public_key], {}),
        (invite, f"{BOB.public_key} it's Bob", [BOB.public_key, "it's", "Bob"], {}),
        (wait, "", [None], {}),
        (wait, '"1.5"', [1.5], {}),
    ],
)
def test_arguments_are_read(
    function: Any, text: str, positional: list[object], named: dict[str, object]
) -> None:
    assert command(function).read(text) == (positional, named)


@pytest.mark.parametrize(
    ("function", "text", "why"),
    [
        (remind, "", "minutes is missing"),
        (remind, "soon", "minutes is 'soon', which is no number"),
        (remind, "5 perhaps", "loud is 'perhaps', which is no yes|no"),
        (paint, "green thin", "color is 'green', which is no red|blue"),
        (paint, "red", "how is missing"),
        (invite, "@0x04ff", "user is '@0x04ff', which is no @user"),
        (invite, f"{BOB.public_key} " + "x " * 201, "201 words"),
        (wait, "inf", "seconds is 'inf', which is no number"),
        (wait, "1 2", "'2' is too much"),
    ],
)
def test_what_does_not_fit_is_explained(function: Any, text: str, why: str) -> None:
    with pytest.raises(UsageError, match=why.replace("|", r"\|")):
        command(function).read(text)


@given(st.sampled_from([remind, paint, invite, wait]), st.text())
def test_any_text_is_read_or_explained(function: Any, text: str) -> None:
    with suppress(UsageError):
        command(function).read(text)
    assert split(text, "!") is None or text.startswith("!")


def test_usage_and_help_come_from_the_function() -> None:
    assert command(remind).usage("!") == "!remind <minutes: number> [loud: yes|no] [text: text…]"
    assert command(invite).usage("/") == "/invite <user: @user> [names: text…]"
    known = {"remind": command(remind), "wait": command(wait)}
    assert help_text(known, "!") == (
        "!remind <minutes: number> [loud: yes|no] [text: text…] — Reminds you.\n"
        "!wait [seconds: number]"
    )
    assert help_text(known, "!", "!Remind").endswith("Later, that is.")
    assert "no command 'x'" in help_text(known, "!", "x")


async def no_message(text: str) -> None: ...


async def no_type(message: ChatMessage, what: dict[str, str]) -> None: ...


async def keywords(message: ChatMessage, **what: str) -> None: ...


def not_async(message: ChatMessage) -> None: ...


@pytest.mark.parametrize("function", [no_message, no_type, keywords, not_async])
def test_a_function_that_no_text_can_call_is_refused_at_once(function: Any) -> None:
    with pytest.raises(TypeError, match=function.__name__):
        command(function)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("!ping", ("ping", "")),
        ("!Ping a  b", ("ping", "a  b")),
        ("!say\nthis", ("say", "this")),
        ("!say\nthis is it", ("say", "this is it")),
        ("!say\tthis", ("say", "this")),
        ("!", None),
        ("! ping", None),
        ("ping", None),
        ("", None),
    ],
)
def test_a_command_begins_with_the_prefix(text: str, found: tuple[str, str] | None) -> None:
    assert split(text, "!") == found


def test_a_bucket_fills_again_with_time() -> None:
    buckets = Buckets(RateLimit(2, 10_000))
    assert [buckets.take("a", 0) for _ in range(3)] == [True, True, False]
    assert buckets.take("b", 0)
    assert not buckets.take("a", 4_999)
    assert buckets.take("a", 5_000)
    assert [buckets.take("a", 1_000_000) for _ in range(3)] == [True, True, False]
    assert not buckets.take("a", 0), "a clock that goes back gives nothing"


def test_few_buckets_are_remembered() -> None:
    buckets = Buckets(RateLimit(1, 1_000), remembered=2)
    assert all(buckets.take(key, 0) for key in "abc")
    assert buckets.take("a", 0), "forgotten"
    assert not buckets.take("c", 0)


PAIR = ("chat", ALICE.public_key)
LIMITS = LoopLimits(turns=3, reflex_ms=1_000, answer_ms=5_000, silence_ms=60_000)


def exchange(guard: LoopGuard, start_ms: int, pause_ms: int, turns: int, answers: bool) -> int:
    """How many turns of two who react after a pause pass before a loop is found."""
    now_ms = start_ms
    for turn in range(turns):
        guard.answered(PAIR, now_ms)
        now_ms += pause_ms
        if guard.heard(PAIR, now_ms, answers_ours=answers):
            assert guard.is_silent(PAIR, now_ms + 59_999)
            assert not guard.is_silent(PAIR, now_ms + 60_000)
            return turn + 1
    return turns + 1


def test_reactions_in_a_row_are_a_loop_and_pauses_are_none() -> None:
    assert exchange(LoopGuard(LIMITS), 0, 900, 10, answers=False) == 3
    assert exchange(LoopGuard(LIMITS), 0, 4_000, 10, answers=True) == 3
    assert exchange(LoopGuard(LIMITS), 0, 4_000, 10, answers=False) == 11
    assert exchange(LoopGuard(LIMITS), 0, 6_000, 10, answers=True) == 11


def test_a_pause_begins_the_count_anew_and_silence_ends() -> None:
    guard = LoopGuard(LIMITS)
    assert exchange(guard, 0, 900, 2, answers=False) == 3
    assert not guard.heard(PAIR, 10_000, answers_ours=False)
    assert exchange(guard, 20_000, 900, 10, answers=False) == 3
    assert exchange(guard, 100_000, 900, 10, answers=False) == 3


def test_who_was_never_answered_is_in_no_loop() -> None:
    guard = LoopGuard(LIMITS)
    assert not any(guard.heard(PAIR, now_ms, answers_ours=True) for now_ms in range(100))


@pytest.mark.parametrize("limits", [{"turns": 0}, {"silence_ms": 0}])
def test_limits_that_are_none_are_refused(limits: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="at least 1"):
        LoopLimits(**limits)
    with pytest.raises(ValueError, match="no limit"):
        RateLimit(0, 1)
