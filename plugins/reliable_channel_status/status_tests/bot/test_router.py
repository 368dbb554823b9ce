"""Groups of commands, routers, converters, cooldowns, checks, error handlers and languages."""

from datetime import date, timedelta
from typing import Annotated, Any

import pytest

from reliable_channel.spi import SqliteStateStore
from reliable_channel_status.bot import (
    Between,
    BotOptions,
    BotTexts,
    Converter,
    Cooldown,
    Failure,
    Message,
    NotAllowed,
    NotRunning,
    Phrases,
    RateLimit,
    Router,
    StatusBot,
    any_of,
    by_contact,
    by_member,
    by_moderator,
    in_channels,
    in_direct,
)
from reliable_channel_status.bot import texts as languages_module
from reliable_channel_status.bot.commands import Command, UsageError
from reliable_channel_status.bot.limits import Buckets
from reliable_channel_status.testing import BotTester
from status_tests.world import COMMUNITY, GENERAL, OTHER, OWNER

MANY = RateLimit(1000, 1000)


def new_bot(**options: Any) -> StatusBot:
    return StatusBot(
        node="http://node",
        community=COMMUNITY,
        channels=[GENERAL, OTHER],
        options=BotOptions(user_limit=MANY, channel_limit=MANY, **options),
    )


# -- groups and routers ----------------------------------------------------------------------------


def test_a_group_has_commands_of_two_words_and_lists_them() -> None:
    bot = new_bot()
    queue = bot.command_group("queue", "Songs.")

    @queue.command("add")
    async def add(message: Message, *, song: str) -> str:
        """Adds a song."""
        return f"added {song}"

    @queue.command("clear", allow="moderators")
    async def clear(message: Message) -> str:
        """Removes all songs."""
        return "cleared"

    with BotTester(bot) as tester:
        alice, owner = tester.user("Alice"), tester.user("Owner", OWNER)
        assert alice.asks("!queue add  Blue  Moon") == "added Blue  Moon"
        assert alice.asks("!Queue ADD x") == "added x"
        assert owner.asks("!queue clear") == "cleared"
        assert alice.asks("!queue clear") == "You may not use !queue clear."
        assert alice.asks("!queue") == "Songs.\n!queue add <song: text…> — Adds a song."
        assert owner.asks("!help queue").count("\n") == 2
        assert alice.asks("!queue sing").startswith("There is no command 'queue sing'")
        assert alice.asks("!help queue add").startswith("!queue add <song: text…>")
        assert alice.asks("!queue add") == ("`song` is missing. Usage: !queue add <song: text…>")


def test_a_router_brings_its_functions_with_its_checks_and_error_handlers() -> None:
    inner, outer, bot = Router(), Router(checks=[by_moderator]), new_bot()
    heard: list[str] = []
    failed: list[str] = []

    @inner.command("break")
    async def fail(message: Message) -> None:
        raise LookupError("tea")

    @inner.on_error
    async def note(failure: Failure) -> None:
        failed.append(f"inner {failure.handler} {failure.error}")

    @inner.on_message
    async def hear(message: Message) -> None:
        heard.append(message.text)
        assert inner.bot is bot

    @outer.command_group("tea").command("brew")
    async def brew(message: Message) -> str:
        return "brewed"

    with pytest.raises(NotRunning, match=r"call bot\.include\(router\)"):
        _ = inner.bot
    outer.include(inner)

    @outer.on_error
    async def answer(failure: Failure) -> str:
        return f"sorry: {failure.error}"

    bot.include(outer)

    @bot.on_error
    async def never(failure: Failure) -> str:
        raise AssertionError("the router answered already")

    with BotTester(bot) as tester:
        alice, owner = tester.user("Alice"), tester.user("Owner", OWNER)
        assert alice.asks("!tea brew") == "You may not use !tea brew."
        assert owner.asks("!tea brew") == "brewed"
        assert owner.asks("!break") == "sorry: tea"
        assert failed == ["inner !break tea"]
        assert alice.asks("!break") == "You may not use !break."
    assert heard == ["!tea brew", "!tea brew", "!break", "!break"]


def test_a_router_cannot_be_included_twice_nor_added_to_later() -> None:
    router, bot = Router(), new_bot()

    async def ping(message: Message) -> None: ...

    async def do() -> None: ...

    router.command("ping")(ping)
    bot.include(router)
    for late in (
        lambda: bot.include(router),
        lambda: router.command("late")(ping),
        lambda: router.on_message(ping),
        lambda: router.task(do),
        lambda: router.step(ping),
        lambda: router.command_group("late"),
    ):
        with pytest.raises(ValueError, match="included already"):
            late()


def test_a_name_is_taken_once() -> None:
    bot = new_bot()

    async def ping(message: Message) -> None: ...

    bot.command("ping")(ping)
    group = bot.command_group("queue")
    group.command("add")(ping)
    other = Router()
    other.command("queue")(ping)
    for again in (
        lambda: bot.command("PING")(ping),
        lambda: bot.command_group("ping"),
        lambda: bot.command("queue")(ping),
        lambda: group.command("add")(ping),
        lambda: bot.include(other),
    ):
        with pytest.raises(ValueError, match=r"command .* is declared twice"):
            again()
    with pytest.raises(ValueError, match="one word"):
        bot.command_group("two words")


# -- converters ------------------------------------------------------------------------------------


def rgb(word: str) -> int:
    if not word.startswith("#"):
        raise ValueError(word)
    return int(word[1:], 16)


Color = Annotated[int, Converter(rgb, "color", "must be a color such as #ff0000")]


async def paint(
    message: Message, color: Color, size: Annotated[int, Between(1, 9)] = 3
) -> None: ...


async def remind(
    message: Message, after: timedelta, on: date | None = None, *, text: str = ""
) -> None: ...


@pytest.mark.parametrize(
    ("function", "text", "values"),
    [
        (paint, "#00ff00 9", [0xFF00, 9]),
        (paint, "#1", [1, 3]),
        (remind, "2h30m 2026-12-31 tea", [timedelta(hours=2.5), date(2026, 12, 31)]),
        (remind, "1W1D90s", [timedelta(days=8, seconds=90), None]),
    ],
)
def test_annotations_say_how_words_are_read(function: Any, text: str, values: list[Any]) -> None:
    assert Command.of("x", function, (Message,)).read(text)[0] == values


@pytest.mark.parametrize(
    ("function", "text", "why"),
    [
        (paint, "red", "`color` must be a color such as #ff0000 (got 'red')"),
        (paint, "#zz", "`color` must be a color such as #ff0000 (got '#zz')"),
        (paint, "#1 10", "`size` must be between 1 and 9 (got '10')"),
        (paint, "#1 x", "`size` must be a number (got 'x')"),
        (paint, "#1 1.5", "`size` must be a whole number (got '1.5')"),
        (remind, "soon", "`after` must be a duration such as 10m or 2h30m (got 'soon')"),
        (remind, "5", "`after` must be a duration such as 10m or 2h30m (got '5')"),
        (remind, "999999999w", "`after` must be a duration such as 10m or 2h30m (got"),
        (remind, "1m 31.12.", "`on` must be a date such as 2026-12-31 (got '31.12.')"),
    ],
)
def test_a_word_that_does_not_fit_is_explained(function: Any, text: str, why: str) -> None:
    with pytest.raises(UsageError) as raised:
        Command.of("x", function, (Message,)).read(text)
    assert str(raised.value).startswith(why)


def test_the_usage_names_what_a_converter_takes() -> None:
    usage = Command.of("paint", paint, (Message,)).usage("!")
    assert usage == "!paint <color: color> [size: number]"
    usage = Command.of("remind", remind, (Message,)).usage("!")
    assert usage == "!remind <after: duration> [on: date] [text: text…]"


# -- cooldowns -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("by", "same_user_elsewhere", "other_user"),
    [("user", False, True), ("channel", True, False), ("all", False, False)],
)
def test_a_cooldown_counts_by_user_by_channel_or_all(
    by: Any, same_user_elsewhere: bool, other_user: bool
) -> None:
    bot = new_bot()

    @bot.command("spin", cooldown=Cooldown(2, 60, by=by))
    async def spin(message: Message, times: int = 1) -> str:
        return "spun"

    with BotTester(bot) as tester:
        alice, bob = tester.user("Alice"), tester.user("Bob")
        assert "must be a number" in alice.asks("!spin x"), "a typo does not count"
        assert [alice.asks("!spin") for _ in range(2)] == ["spun"] * 2
        assert alice.asks("!spin").startswith("!spin can be used again in 2")
        assert (alice.asks("!spin", channel=OTHER) == "spun") is same_user_elsewhere
        assert (bob.asks("!spin") == "spun") is other_user
        tester.wait(60)
        assert alice.asks("!spin") == "spun"
        assert bot.reporter.counts["cooled_down", "spin"] >= 1


def test_a_cooldown_says_when_it_ends() -> None:
    buckets = Buckets(Cooldown(1, 60).limit)
    assert buckets.wait_ms("a", 0) == 0
    assert buckets.take("a", 0)
    assert buckets.wait_ms("a", 15_000) == 45_000
    assert buckets.wait_ms("a", 60_000) == 0
    assert buckets.wait_ms("a", -5) == 60_000, "a clock that goes back gives nothing"
    with pytest.raises(ValueError, match="`by` must be 'user', 'channel' or 'all'"):
        Cooldown(1, 60, by="planet")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="a limit needs at least 1 call"):
        Cooldown(0, 60)


# -- checks ----------------------------------------------------------------------------------------


def test_checks_decide_and_say_why() -> None:
    bot = new_bot()

    async def is_polite(message: Message) -> bool:
        if "please" not in message.text:
            raise NotAllowed("Say please.")
        return True

    async def answer(message: Message, *, text: str = "") -> str:
        return "yes"

    checks: dict[str, Any] = {
        "member": [by_member],
        "mods": [by_moderator],
        "friend": [by_contact],
        "alone": [in_direct],
        "here": [in_channels(GENERAL)],
        "polite": [is_polite],
        "either": [any_of(is_polite, by_moderator)],
        "neither": [any_of(by_contact, in_direct)],
    }
    for name, needed in checks.items():
        bot.command(name, checks=needed)(answer)
    bot.on_direct_message(answer_direct)
    with BotTester(bot) as tester:
        owner = tester.owner(OWNER)
        owner.publishes()
        tester.wait()
        alice, mallory, leader = (
            tester.user("Alice"),
            tester.user("Mallory"),
            tester.user("O", OWNER),
        )
        owner.lets_in(alice.public_key)
        owner.lets_in(tester.public_key)
        allowed = [name for name in checks if alice.asks(f"!{name}") == "yes"]
        assert allowed == ["member", "here"]
        assert alice.asks("!polite please") == "yes"
        assert alice.asks("!polite") == alice.asks("!either") == "Say please."
        assert leader.asks("!either") == leader.asks("!mods") == "yes"
        assert alice.asks("!here", channel=OTHER) == "You may not use !here."
        assert "!mods" not in alice.asks("!help") and "!member" in alice.asks("!help")
        mallory.direct.says("!member")
        alice.direct.says("!member")
        alice.direct.says("!alone")
        assert mallory.direct.texts == ["You may not use !member."]
        assert alice.direct.texts == ["yes", "yes"]


async def answer_direct(message: Message) -> None: ...


# -- error handlers --------------------------------------------------------------------------------


def test_an_error_handler_knows_what_failed_and_answers() -> None:
    bot = new_bot()
    failures: list[Failure] = []

    @bot.command("break")
    async def fail(message: Message) -> None:
        raise LookupError("tea")

    @bot.on_message
    async def hear(message: Message) -> None:
        if message.text == "boom":
            raise KeyError("boom")

    @bot.every(seconds=3600)
    async def job() -> None:
        raise OSError("no disk")

    @bot.on_error
    async def broken(failure: Failure) -> None:
        failures.append(failure)
        raise RuntimeError("the error handler itself")

    @bot.on_error
    async def answer(failure: Failure) -> str | None:
        return "Boom!" if isinstance(failure.error, KeyError) else None

    with BotTester(bot) as tester:
        alice = tester.user("Alice")
        assert alice.asks("!break") == "!break failed."
        assert alice.asks("boom") == "Boom!"
        tester.wait(3600)
    names = [failure.handler.rsplit(".")[-1] for failure in failures]
    assert names == ["job", "!break", "hear", "job"]
    assert [type(failure.event) for failure in failures] == [
        type(None),
        Message,
        Message,
        type(None),
    ]
    failed = bot.reporter.counts["handlers_failed", failures[0].handler]
    assert failed == 2, "errors of tasks are counted by name, and the task goes on"
    assert bot.reporter.counts["error_handlers_failed", ""] == 4


def test_a_task_stops_with_the_bot() -> None:
    bot, ticks = new_bot(), 0

    @bot.every(seconds=10)
    async def tick() -> None:
        nonlocal ticks
        ticks += 1

    with BotTester(bot) as tester:
        tester.wait(35)
        before = ticks
        tester.stop()
        tester.wait(100)
        assert ticks == before == 4
        tester.start()
        tester.wait(15)
        assert ticks == before + 2


# -- languages -------------------------------------------------------------------------------------

GERMAN = BotTexts(
    missing="`{parameter}` fehlt",
    usage="{problem}. So geht es: {usage}",
    language_chosen="Ich schreibe dir auf Deutsch.",
)
PHRASES = Phrases(en={"hello": "Hello {name}"}, de={"hello": "Hallo {name}"})


def new_polyglot(**options: Any) -> StatusBot:
    bot = new_bot(languages={"de": GERMAN}, **options)

    @bot.command("greet")
    async def greet(message: Message, name: str) -> str:
        return PHRASES(message, "hello", name=name)

    return bot


def test_each_user_has_a_language_that_outlives_a_restart(tmp_path: Any) -> None:
    store = SqliteStateStore(tmp_path / "bot.db")
    with BotTester(new_polyglot(), store=store) as tester:
        alice, bob = tester.user("Alice"), tester.user("Bob")
        assert alice.asks("!language fr") == (
            "`language` must be one of en, de (got 'fr'). Usage: !language <language: en|de>"
        )
        assert alice.asks("!language de") == "Ich schreibe dir auf Deutsch."
        assert alice.asks("!greet") == "`name` fehlt. So geht es: !greet <name: text>"
        assert bob.asks("!greet").startswith("`name` is missing")
        tester.crash()
        tester.start()
        assert alice.asks("!greet Eva") == "Hallo Eva"
        assert bob.asks("!greet Eva") == "Hello Eva"
        assert "!language <language: en|de>" in bob.asks("!help")


def test_the_choices_of_few_users_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(languages_module, "MAX_CHOICES", 2)
    with BotTester(new_polyglot()) as tester:
        users = [tester.user(name) for name in ("A", "B", "C")]
        for user in users:
            user.asks("!language de")
        for _ in range(2):
            assert [user.asks("!greet x") for user in users] == ["Hello x", "Hallo x", "Hallo x"]
            tester.crash()
            tester.start()


@pytest.mark.parametrize(
    ("languages", "why"),
    [
        ({}, "needs at least one language"),
        ({"en": {"a": "x"}, "de": {}}, "`a` is in only one of the languages `en` and `de`"),
        ({"en": {"a": "{n}"}, "de": {"a": "{m}"}}, "`a` in `de` must name the fields of `en`"),
        ({"en": {"a": "{"}}, "`a` must be a template"),
    ],
)
def test_phrases_that_do_not_agree_are_refused_at_once(
    languages: dict[str, dict[str, str]], why: str
) -> None:
    with pytest.raises(ValueError, match=why):
        Phrases(**languages)


@pytest.mark.parametrize(
    "options", [{"language": "De"}, {"languages": {"a b": GERMAN}}, {"languages": {"en": GERMAN}}]
)
def test_names_of_languages_are_checked(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="language"):
        BotOptions(**options)
