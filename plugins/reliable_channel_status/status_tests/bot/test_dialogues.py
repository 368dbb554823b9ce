"""Dialogues of several steps: in order, by user, over restarts and crashes, and bounded."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Literal

import anyio
import pytest

from reliable_channel.spi import Changes, MemoryStateStore, SqliteStateStore, StateUnavailable
from reliable_channel_status.bot import (
    BotOptions,
    Message,
    Question,
    RateLimit,
    StatusBot,
    Talk,
)
from reliable_channel_status.bot import dialogues as dialogues_module
from reliable_channel_status.testing import BotTester
from status_tests.world import COMMUNITY, GENERAL, OTHER

MANY = RateLimit(1000, 1000)


def new_bot(orders: list[str] | None = None, *, slow_s: float = 0) -> StatusBot:
    bot = StatusBot(
        node="http://node",
        community=COMMUNITY,
        channels=[GENERAL, OTHER],
        options=BotOptions(user_limit=MANY, channel_limit=MANY),
    )
    taken = orders if orders is not None else []

    @bot.command("order")
    async def order(message: Message) -> Question:
        await anyio.sleep(slow_s)
        return Question("Which tea?", then=kind)

    @bot.step
    async def kind(talk: Talk, kind: Literal["green", "black"]) -> Question:
        await anyio.sleep(slow_s)
        return Question("How many cups?", then=cups, data={"kind": kind}, expires_s=600)

    @bot.step
    async def cups(talk: Talk, cups: int) -> str:
        if cups > 99:
            raise OverflowError("too many")
        taken.append(f"{talk.author_name}: {cups} {talk.data['kind']}")
        return f"{cups} {talk.data['kind']}"

    @bot.command("ping")
    async def ping(message: Message) -> str:
        return "pong"

    @bot.on_mention
    async def mentioned(message: Message) -> str:
        return "yes?"

    return bot


def test_a_dialogue_is_of_one_user_in_one_chat() -> None:
    orders: list[str] = []
    with BotTester(new_bot(orders)) as tester:
        alice, bob = tester.user("Alice"), tester.user("Bob")
        assert alice.asks("!order") == "Which tea?"
        bob.says("green")
        alice.says("green", channel=OTHER)
        assert bob.asks("!order") == "Which tea?"
        assert alice.asks("green") == "How many cups?"
        assert bob.asks("black") == "How many cups?"
        assert alice.asks("!ping") == "pong", "commands go on"
        assert alice.asks("two") == "`cups` must be a number (got 'two'). " + AGAIN
        assert alice.asks("2") == "2 green"
        assert bob.asks("3") == "3 black"
        said = len(tester.said())
        alice.says("4")
        assert len(tester.said()) == said
    assert orders == ["Alice: 2 green", "Bob: 3 black"]


AGAIN = "Please answer again, or write !cancel."


def test_a_dialogue_ends_by_cancel_and_by_time() -> None:
    with BotTester(new_bot()) as tester:
        alice = tester.user("Alice")
        assert alice.asks("!cancel") == "There is nothing to cancel."
        alice.asks("!order")
        assert alice.asks("!cancel") == "Cancelled."
        said = len(tester.said())
        alice.says("green")
        assert len(tester.said()) == said
        alice.asks("!order")
        tester.wait(3600)
        alice.says("green")
        assert len(tester.said()) == said + 1
        assert "!cancel — Ends what I asked you about." in alice.asks("!help")


def test_a_step_that_fails_can_be_answered_again() -> None:
    with BotTester(new_bot()) as tester:
        alice = tester.user("Alice")
        alice.asks("!order")
        alice.asks("green")
        assert alice.asks("100").startswith("That failed.")
        assert alice.asks("5") == "5 green"


def test_quick_answers_are_taken_in_their_order() -> None:
    orders: list[str] = []
    with BotTester(new_bot(orders, slow_s=5)) as tester:
        alice = tester.user("Alice")
        for text in ("!order", "black", "3", "!order", "green"):
            alice.says(text, settle=False)
        tester.wait(60)
        texts = [message.text for message in tester.said()]
        assert texts == ["Which tea?", "How many cups?", "3 black", "Which tea?", "How many cups?"]
        assert tester.user("Alice").asks("4") == "4 green"
    assert orders == ["Alice: 3 black", "Alice: 4 green"]


def test_a_message_after_the_last_answer_is_an_ordinary_one() -> None:
    with BotTester(new_bot(slow_s=5)) as tester:
        alice = tester.user("Alice")
        alice.says("!order", settle=False)
        alice.says("!cancel", settle=False)
        mentioned = alice.says(f"@{tester.public_key.hex} hello", settle=False)
        tester.wait(60)
        assert tester.answers(mentioned) == ["yes?"]


def test_a_dialogue_outlives_a_restart(tmp_path: Path) -> None:
    store = SqliteStateStore(tmp_path / "bot.db")
    orders: list[str] = []
    with BotTester(new_bot(orders), store=store) as tester:
        alice = tester.user("Alice")
        alice.asks("!order")
        tester.crash()
        away = alice.says("green")
        tester.start()
        tester.wait(10)
        assert tester.answers(away) == ["How many cups?"]
        tester.stop()
        tester.start()
        assert alice.asks("2") == "2 green"
        tester.crash()
        tester.start()
        said = len(tester.said())
        alice.says("3")
        assert len(tester.said()) == said, "it has ended"
    assert orders == ["Alice: 2 green"]


class FailsAt(MemoryStateStore):
    """Takes so many writes, and then no more until `mend`."""

    def __init__(self) -> None:
        super().__init__()
        self.left: int | None = None

    def write(self, changes: Changes) -> None:
        if self.left is not None:
            if self.left == 0:
                raise StateUnavailable("no space left")
            self.left -= 1
        super().write(changes)


@pytest.mark.parametrize("writes", range(6))
def test_a_crash_at_any_write_neither_asks_twice_nor_takes_an_answer_twice(writes: int) -> None:
    store = FailsAt()
    with BotTester(new_bot(), store=store) as tester:
        alice = tester.user("Alice")
        alice.asks("!order")
        store.left = writes
        try:
            alice.says("green")
            tester.wait(30)
        except StateUnavailable:
            pass
        tester.crash()
        store.left = None
        tester.start()
        tester.wait(30)
        assert alice.asks("2") == "2 green"
        assert [m.text for m in tester.said()] == ["Which tea?", "How many cups?", "2 green"]


def test_a_question_of_another_version_of_the_bot_is_given_up() -> None:
    def changed() -> StatusBot:
        bot = StatusBot(node="http://node", community=COMMUNITY, channels=[GENERAL])

        @bot.step
        async def another(talk: Talk) -> None: ...

        return bot

    with BotTester(new_bot()) as tester:
        alice = tester.user("Alice")
        alice.asks("!order")
        tester.stop()
        tester.bot = changed()
        tester.start()
        assert alice.asks("green").startswith("I do not know any more what I asked you.")
        said = len(tester.said())
        alice.says("green")
        assert len(tester.said()) == said


def test_few_dialogues_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dialogues_module, "MAX_DIALOGUES", 2)
    with BotTester(new_bot()) as tester:
        users = [tester.user(name) for name in ("A", "B", "C")]
        for user in users:
            user.asks("!order")
        tester.crash()
        tester.start()
        said = len(tester.said())
        users[0].says("green")
        assert len(tester.said()) == said
        assert users[2].asks("green") == users[1].asks("green") == "How many cups?"


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda then: Question("?", then, expires_s=0), ValueError),
        (lambda then: Question("?", then, data={"a": "x" * 10_001}), ValueError),
        (lambda then: Question("?", then, data={"a": object()}), TypeError),
    ],
)
def test_a_question_that_cannot_be_kept_is_refused(
    make: Callable[[Any], Question], error: type[Exception]
) -> None:
    async def then(talk: Talk) -> None: ...

    with pytest.raises(error):
        make(then)


def test_what_is_no_step_is_named() -> None:
    bot = StatusBot(node="http://node", community=COMMUNITY, channels=[GENERAL])

    async def nowhere(talk: Talk) -> None: ...

    @bot.command("ask")
    async def ask(message: Message) -> Question:
        return Question("?", then=nowhere)

    @bot.on_message
    async def hear(message: Message) -> Iterable[str] | None:
        return ["what"] if message.text == "list" else None

    with BotTester(bot) as tester:
        alice = tester.user("Alice")
        assert alice.asks("!ask") == "!ask failed."
        alice.says("list")
        whys = [str(record.fields.get("why")) for record in bot.reporter.since(0)]
        assert any("with @bot.step" in why for why in whys)
        assert any("return a text, a Reaction, a Question or nothing" in why for why in whys)


def test_two_steps_of_one_name_are_refused() -> None:
    bot = StatusBot(node="http://node", community=COMMUNITY, channels=[GENERAL])

    async def one(talk: Talk) -> None: ...

    bot.step(one)
    with pytest.raises(ValueError, match=r"step .* is declared twice"):
        bot.step(one)
