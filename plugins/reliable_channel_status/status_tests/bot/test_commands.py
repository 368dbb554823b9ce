"""How commands are read from texts, and how often they may be called: pure."""

from contextlib import suppress
from dataclasses import fields
from enum import Enum
from typing import Any, Literal
from unicodedata import normalize

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reliable_channel_status import ChatMessage, PublicKey, mention
from reliable_channel_status.bot import BotTexts, LoopLimits, RateLimit, UsageError
from reliable_channel_status.bot.commands import Command, help_text, split
from reliable_channel_status.bot.limits import Buckets, LoopGuard
from reliable_channel_status.bot.texts import GIVEN
from reliable_channel_status.wire.typed_text import without_marks
from status_tests.world import ALICE, BOB


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
        (remind, "", "`minutes` is missing"),
        (remind, "soon", "`minutes` must be a number (got 'soon')"),
        (remind, "2.5", "`minutes` must be a whole number (got '2.5')"),
        (remind, "5 perhaps", "`loud` must be yes or no (got 'perhaps')"),
        (paint, "green thin", "`color` must be one of red, blue (got 'green')"),
        (paint, "red", "`how` is missing"),
        (invite, "@0x04ff", "`user` must be a mention of a user or a public key (got '@0x04ff')"),
        (invite, f"{BOB.public_key} " + "x " * 201, "A command can have 200 words (got 201)"),
        (wait, "inf", "`seconds` must be a number (got 'inf')"),
        (wait, "1 2", "I do not understand '2' at the end"),
        (wait, "x" * 60, f"`seconds` must be a number (got '{'x' * 50}')"),
    ],
)
def test_what_does_not_fit_is_explained(function: Any, text: str, why: str) -> None:
    with pytest.raises(UsageError) as raised:
        command(function).read(text)
    assert str(raised.value) == raised.value.text(BotTexts()) == why


GERMAN = BotTexts(
    missing="`{parameter}` fehlt",
    not_a_number="`{parameter}` muss eine Zahl sein, nicht {got}",
    number="Zahl",
    command_line="{usage}: {about}",
    no_such_command="Unbekannt: {got}",
    no_commands="Es gibt keine Befehle.",
)


def test_every_text_can_be_replaced() -> None:
    with pytest.raises(UsageError) as raised:
        command(wait).read("soon")
    assert raised.value.text(GERMAN) == "`seconds` muss eine Zahl sein, nicht 'soon'"
    assert command(wait).usage("!", GERMAN) == "!wait [seconds: Zahl]"
    known = {"remind": command(remind)}
    assert help_text(known, "!", "", GERMAN).endswith(": Reminds you.")
    assert help_text(known, "!", "x", GERMAN) == "Unbekannt: 'x'"
    assert help_text({}, "!", "", GERMAN) == "Es gibt keine Befehle."


@pytest.mark.parametrize(
    ("texts", "why"),
    [
        ({"failed": "{nonsense}"}, "`failed` must be a template with {command} (got '{nonsense}')"),
        ({"failed": "{command"}, "`failed` must be a template with {command} (got '{command')"),
        ({"failed": "{}"}, "`failed` must be a template with {command} (got '{}')"),
        ({"number": "{n}"}, "`number` must be a template with no names in braces (got '{n}')"),
        ({"usage": "{usage.x}"}, "`usage` must be a template with {problem}, {usage} (got "),
        ({"missing": " "}, "`missing` must be a text (got ' ')"),
        ({"missing": None}, "`missing` must be a text (got None)"),
    ],
)
def test_a_text_that_cannot_be_filled_in_is_refused_at_once(
    texts: dict[str, Any], why: str
) -> None:
    with pytest.raises(ValueError, match="must be a") as raised:
        BotTexts(**texts)
    assert str(raised.value).startswith(why)


def test_every_text_is_given_what_its_table_says() -> None:
    for field in fields(BotTexts):
        given = dict.fromkeys(GIVEN.get(field.name, ()), "…")
        assert BotTexts().render(field.name, **given)
    assert set(GIVEN) < {field.name for field in fields(BotTexts)}


@given(st.sampled_from([remind, paint, invite, wait]), st.text())
def test_any_text_is_read_or_explained(function: Any, text: str) -> None:
    with suppress(UsageError):
        command(function).read(text)
    assert split(text, "!") is None or normalize("NFKC", without_marks(text)[:1]) == "!"


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
LIMITS = LoopLimits(turns=3, reflex_ms=1_000, silence_ms=60_000)


def rounds(
    guard: LoopGuard, start_ms: int, *, theirs_ms: int, ours_ms: int, most: int = 30
) -> int | None:
    """How many rounds pass before a loop is found, or None; each side takes so long to answer."""
    now_ms = start_ms
    guard.heard(PAIR, now_ms)
    for number in range(1, most + 1):
        now_ms += ours_ms
        guard.answered(PAIR, now_ms)
        now_ms += theirs_ms
        if guard.heard(PAIR, now_ms):
            assert guard.is_silent(PAIR, now_ms + 59_999)
            assert not guard.is_silent(PAIR, now_ms + 60_000)
            return number
    return None


@pytest.mark.parametrize(
    ("theirs_ms", "ours_ms", "found"),
    [(900, 50, 3), (1_000, 1_000, 3), (1_001, 50, None), (50, 1_001, None), (3_000, 50, None)],
)
def test_only_rounds_with_both_answers_within_a_second_are_a_loop(
    theirs_ms: int, ours_ms: int, found: int | None
) -> None:
    assert rounds(LoopGuard(LIMITS), 0, theirs_ms=theirs_ms, ours_ms=ours_ms) == found


def test_a_pause_begins_the_count_anew_and_silence_ends() -> None:
    guard = LoopGuard(LIMITS)
    assert rounds(guard, 0, theirs_ms=900, ours_ms=50, most=2) is None
    assert not guard.heard(PAIR, 10_000)
    assert rounds(guard, 20_000, theirs_ms=900, ours_ms=50) == 3
    assert rounds(guard, 100_000, theirs_ms=900, ours_ms=50) == 3


def test_several_messages_in_a_round_neither_count_nor_hide_the_loop() -> None:
    guard, found = LoopGuard(LIMITS), []
    for now_ms in range(0, 4_000, 1_000):
        found += [guard.heard(PAIR, now_ms), guard.heard(PAIR, now_ms + 10)]
        guard.answered(PAIR, now_ms + 200)
        guard.answered(PAIR, now_ms + 300)
    assert found == [False] * 6 + [True, False]


def test_who_was_never_answered_is_in_no_loop() -> None:
    guard = LoopGuard(LIMITS)
    assert not any(guard.heard(PAIR, now_ms) for now_ms in range(100))


def test_few_exchanges_are_remembered() -> None:
    guard = LoopGuard(LIMITS, remembered=1)
    assert rounds(guard, 0, theirs_ms=1, ours_ms=1) == 3
    guard.heard(("other chat", ALICE.public_key), 10)
    assert not guard.is_silent(PAIR, 11)


@pytest.mark.parametrize("limits", [{"turns": 0}, {"silence_ms": 0}])
def test_limits_that_are_none_are_refused(limits: dict[str, int]) -> None:
    with pytest.raises(ValueError, match=r"must be at least 1 \(got 0\)"):
        LoopLimits(**limits)
    with pytest.raises(ValueError, match="a limit needs at least 1 call"):
        RateLimit(0, 1)
