"""A bot that was away, or was killed, neither repeats its answers nor misses what it was asked."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

import anyio
import pytest

from reliable_channel.spi import (
    Changes,
    MemoryStateStore,
    SqliteStateStore,
    StateError,
    StateMismatch,
    StateUnavailable,
)
from reliable_channel_status import (
    DEFAULT_SHARD,
    ChatMessage,
    Opener,
    PrivateKey,
    Received,
    SdsWrapper,
    Sealer,
    wrap,
    write_key,
)
from reliable_channel_status.bot import (
    BotMemory,
    BotOptions,
    Edit,
    Message,
    OutboxFull,
    Reliability,
    StatusBot,
)
from reliable_channel_status.testing import BotTester
from status_tests.world import ALICE, COMMUNITY, GENERAL, OTHER
from waku import StoreQuery, WakuClient, WakuMessage
from waku.errors import NodeFailure
from waku.node import EmbeddedNode, NodeOptions, serve_node

TOPIC = COMMUNITY.universal_topic
SHARD = str(DEFAULT_SHARD)


def new_bot(answers: int = 1, reliability: Reliability = "plain") -> StatusBot:
    options = BotOptions(reliability=reliability)
    bot = StatusBot(node="http://node", community=COMMUNITY, channels=[GENERAL], options=options)

    @bot.command("ask")
    async def ask(message: Message, *, text: str) -> None:
        for number in range(answers):
            await message.reply(f"{text} {number}")
            await anyio.sleep(1)

    return bot


@pytest.mark.parametrize("reliability", ["plain", "sds"])
def test_what_was_asked_while_the_bot_was_away_is_answered_in_order(
    tmp_path: Path, reliability: Reliability
) -> None:
    store = SqliteStateStore(tmp_path / "bot.db")
    with BotTester(new_bot(reliability=reliability), store=store) as tester:
        alice = tester.user("Alice")
        before = alice.says("!ask before")
        tester.stop()
        away = [alice.says(f"!ask {n}") for n in range(5)]
        tester.wait(3000)
        assert [tester.answers(one) for one in away] == [[]] * 5
        tester.start()
        tester.wait(10)
        assert [tester.answers(one) for one in away] == [[f"{n} 0"] for n in range(5)]
        assert tester.answers(before) == ["before 0"]
        assert [message.text for message in tester.said()[1:]] == [f"{n} 0" for n in range(5)]


def test_what_was_asked_before_the_bot_was_born_is_not_answered() -> None:
    with BotTester(new_bot()) as tester:
        tester.stop()
        tester.forget()
        tester.user("Alice").says("!ask old")
        tester.start()
        assert tester.said() == []
        assert tester.user("Alice").asks("!ask new") == "new 0"


@pytest.mark.parametrize("reliability", ["plain", "sds"])
def test_who_was_away_for_days_answers_what_was_asked_at_last(reliability: Reliability) -> None:
    with BotTester(new_bot(reliability=reliability)) as tester:
        tester.stop()
        tester.wait(3 * 86_400)
        asked = tester.user("Alice").says("!ask late")
        tester.wait(86_400)
        tester.start()
        assert tester.answers(asked) == ["late 0"]


@pytest.mark.parametrize("reliability", ["plain", "sds"])
def test_edits_of_what_was_said_before_are_understood(reliability: Reliability) -> None:
    bot, texts = new_bot(reliability=reliability), []

    @bot.on_edit
    async def note(edit: Edit) -> None:
        texts.append(edit.after.text)

    with BotTester(bot) as tester:
        said = tester.user("Alice").says("hello")
        tester.crash()
        tester.start()
        tester.user("Alice").edits(said, "hello!")
    assert texts == ["hello!"]


class Killed(BaseException):
    """Power was lost."""


class FailingStore(MemoryStateStore):
    """Loses power at one of its writes: before it, or after."""

    at = -1
    writes = 0
    is_after = False

    def write(self, changes: Changes) -> None:
        self.writes += 1
        if self.writes == self.at and not self.is_after:
            raise Killed
        super().write(changes)
        if self.writes == self.at:
            raise Killed


@pytest.mark.parametrize("reliability", ["plain", "sds"])
@pytest.mark.parametrize("is_after", [False, True])
@pytest.mark.parametrize("at", range(2, 9))
def test_a_crash_at_any_write_repeats_and_loses_nothing(
    at: int, is_after: bool, reliability: Reliability
) -> None:
    store = FailingStore()
    store.at, store.is_after = at, is_after
    crashed = False
    with BotTester(new_bot(3, reliability), store=store) as tester:
        asked = tester.user("Alice").says("!ask me", settle=False)
        try:
            tester.wait(100)  # until Store was looked into
        except BaseExceptionGroup as group:
            assert group.subgroup(Killed)
            crashed = True
            tester.start()
            tester.wait(10)
        assert tester.answers(asked) == ["me 0", "me 1", "me 2"]
    assert crashed


def test_a_bot_that_cannot_write_ends_and_says_so() -> None:
    class FullDisk(MemoryStateStore):
        is_full = False

        def write(self, changes: Changes) -> None:
            if self.is_full:
                raise StateUnavailable("no space left")
            super().write(changes)

    store = FullDisk()
    with BotTester(new_bot(), store=store) as tester:
        store.is_full = True
        with pytest.raises(StateUnavailable, match="no space left"):
            tester.user("Alice").says("!ask me")
        assert tester.said() == []
        tester.crash()


def test_what_is_said_once_is_said_once() -> None:
    bot = StatusBot(node="http://node", community=COMMUNITY, channels=[GENERAL, OTHER])

    @bot.every(seconds=60)
    async def news() -> None:
        for channel in (GENERAL, OTHER):
            await bot.channel(channel).send("item 7", once="item 7")

    with BotTester(bot) as tester:
        tester.wait(300)
        tester.crash()
        tester.start()
        tester.wait(300)
        assert [len(tester.said(channel)) for channel in (GENERAL, OTHER)] == [1, 1]


@pytest.mark.parametrize("reliability", ["plain", "sds"])
def test_what_was_refused_for_its_number_is_refused_after_a_restart_as_well(
    reliability: Reliability,
) -> None:
    with BotTester(new_bot(reliability=reliability)) as tester:
        alice = tester.user("Alice")
        asked = [alice.says(f"!ask {n}", settle=False) for n in range(20)]
        tester.wait(60)
        answers = [tester.answers(one) for one in asked]
        assert sum(map(len, answers)) == 10
        tester.crash()
        tester.start()
        tester.wait(60)
        assert [tester.answers(one) for one in asked] == answers


def test_what_one_shard_gave_is_kept_when_the_other_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    with BotTester(new_bot()) as tester:
        messages = WakuClient.relay_messages

        async def fails_for_one(client: WakuClient, shard: str) -> list[WakuMessage]:
            if shard != SHARD:
                raise NodeFailure("relay_messages", detail="on purpose")
            return await messages(client, shard)

        with monkeypatch.context() as patch:
            patch.setattr(WakuClient, "relay_messages", fails_for_one)
            asked = tester.user("Alice").says("!ask me")
            tester.wait(60)
        assert tester.answers(asked) == ["me 0"]


def test_what_a_function_says_elsewhere_is_not_repeated_either() -> None:
    bot = StatusBot(node="http://node", community=COMMUNITY, channels=[GENERAL, OTHER])

    @bot.on_message
    async def forward(message: Message) -> None:
        await bot.channel(OTHER).send(message.text)
        await anyio.sleep(5)

    with BotTester(bot) as tester:
        tester.user("Alice").says("hello")
        tester.crash()
        tester.start()
        tester.wait(10)
        assert [message.text for message in tester.said(OTHER)] == ["hello"]


def test_a_state_belongs_to_one_bot() -> None:
    store = MemoryStateStore()
    BotMemory(store, ALICE.public_key, 1)
    with pytest.raises(StateMismatch) as error:
        BotMemory(store, PrivateKey.generate().public_key, 1)
    assert isinstance(error.value, StateError)


def test_a_fast_clock_that_is_forgotten_refuses_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reliable_channel_status.bot.memory.HANDLED", 1)
    memory = BotMemory(MemoryStateStore(), ALICE.public_key, 1_000)
    memory.heard_until(2_000)
    memory.handled(b"fast", 1_800_000)
    memory.handled(b"another", 2_000)
    assert memory.answers_since_ms == 2_001


def test_memory_is_bounded_and_what_is_forgotten_is_not_answered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("reliable_channel_status.bot.memory.HANDLED", 3)
    monkeypatch.setattr("reliable_channel_status.bot.memory.UNPUBLISHED", 2)
    monkeypatch.setattr("reliable_channel_status.bot.memory.CHATS", 2)
    monkeypatch.setattr("reliable_channel_status.bot.memory.SAID", 2)
    store = MemoryStateStore()
    memory = BotMemory(store, ALICE.public_key, 1_000)
    for clock in range(2_000, 2_005):
        memory.heard_until(clock)
        memory.handled(bytes([clock % 256]), clock)
    assert memory.answers_since_ms == 2_002
    again = BotMemory(store, ALICE.public_key, 9_000)
    assert again.answers_since_ms == 2_002
    assert [again.was_handled(bytes([c % 256])) for c in range(2_000, 2_005)] == [
        False,
        False,
        True,
        True,
        True,
    ]
    for number in range(5):
        memory.clock(f"chat {number}").observe(7, 7)
        memory.keep_clock(f"chat {number}")
    assert [memory.clock(f"chat {number}").last for number in (3, 4, 0)] == [7, 7, 0]
    outgoing = Sealer(ALICE).seal(_message("x", 5), TOPIC, 5)
    for number in range(2):
        again.say(f"{number}", outgoing.message_id, SHARD, outgoing.messages)
    with pytest.raises(OutboxFull, match="check that the node runs"):
        again.say("3", outgoing.message_id, SHARD, outgoing.messages)
    waiting = BotMemory(store, ALICE.public_key, 9_000).next_unpublished()
    assert waiting is not None and (waiting.once, waiting.messages) == ("0", outgoing.messages)


def _message(text: str, now_ms: int) -> ChatMessage:
    chat_id = COMMUNITY.channel_id(GENERAL)
    return ChatMessage(clock=now_ms, timestamp=now_ms, text=text, chat_id=chat_id)


BOT = f"""
from reliable_channel_status.bot import BotOptions, Message, StatusBot
import sys

bot = StatusBot(
    node=sys.argv[1],
    key_file=sys.argv[2],
    community={COMMUNITY.id!r},
    options=BotOptions(reliability=sys.argv[3]),
)

@bot.command("ask")
async def ask(message: Message, *, text: str) -> str:
    await message.reply(f"{{text}} 0")
    return f"{{text}} 1"

bot.run()
"""


@contextmanager
def running(
    url: str, folder: Path, reliability: Reliability
) -> Iterator["subprocess.Popen[bytes]"]:
    """The bot as a process of its own."""
    program = folder / "program.py"
    program.write_text(BOT)
    command = [sys.executable, str(program), url, str(folder / "bot.key"), reliability]
    with (folder / "log").open("ab") as log:
        process = subprocess.Popen(
            command, stderr=log, env={**os.environ, "PYTHONWARNINGS": "error"}
        )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()


async def _answered(client: WakuClient, bot: PrivateKey) -> dict[str, list[str]]:
    """What Store holds of the bot's answers, by the message that they answer."""
    opener = Opener([TOPIC])
    found: dict[str, dict[str, str]] = {}
    query = StoreQuery(content_topics=(TOPIC.content_topic,), pubsub_topic=SHARD, page_size=100)
    async for entry in client.store_all(query):
        assert entry.message is not None
        for outcome in opener.receive(entry.message, time.time_ns() // 1_000_000):
            assert isinstance(outcome, Received), outcome
            if outcome.signer == bot.public_key and isinstance(outcome.payload, ChatMessage):
                answers = found.setdefault(outcome.payload.response_to, {})
                answers[outcome.message_id] = outcome.payload.text
    return {question: sorted(texts.values()) for question, texts in found.items()}


@pytest.mark.slow
@pytest.mark.parametrize("reliability", ["plain", "sds"])
def test_a_killed_process_repeats_and_misses_nothing(
    tmp_path: Path, reliability: Reliability
) -> None:
    """SIGKILL at moments that a seed decides, in the middle of a stream of questions."""
    seed = int(os.environ.get("SEED", "7"))
    print("seed", seed)
    random, key = Random(seed), PrivateKey.generate()
    write_key(tmp_path / "bot.key", key)
    asked: dict[str, str] = {}
    wrapper = SdsWrapper(COMMUNITY.id)

    async def ask(client: WakuClient, text: str) -> None:
        now_ms = time.time_ns() // 1_000_000
        user = PrivateKey.generate()  # each asks once, so that no limit is met
        signed = wrap(_message(f"!ask {text}", now_ms), user)
        (message,) = Sealer(user).seal_signed(signed, TOPIC, now_ms).messages
        if reliability == "sds":
            data = wrapper.wrap(signed.data, now_ms)
            (message,) = Sealer(user).seal_sds(data, TOPIC, now_ms * 1_000_000)
        await client.relay_publish(SHARD, message)
        asked[signed.message_id] = text

    async def main() -> None:
        options = NodeOptions(cluster_id=16, shards=(32, 64), static_sharding=True)
        urls: list[str] = []
        up = anyio.Event()

        def started(url: str) -> None:
            urls.append(url)
            up.set()

        async with EmbeddedNode(options) as node, anyio.create_task_group() as tasks:
            tasks.start_soon(lambda: serve_node(node, port=0, started=started))
            await up.wait()
            async with WakuClient(urls[0]) as client:
                for life in range(2):
                    if life:  # before its first start nobody could have asked it
                        await ask(client, f"away {life}")
                    with running(urls[0], tmp_path, reliability) as process:
                        await _until(lambda: _started(tmp_path) > life)  # noqa: B023
                        for number in range(3):
                            await ask(client, f"{life}.{number}")
                            await anyio.sleep(random.uniform(0.1, 0.5))
                        process.send_signal(signal.SIGKILL)
                with running(urls[0], tmp_path, reliability) as process:
                    await _until(lambda: _started(tmp_path) > 2)
                    await _until_answered(client, key, asked)
                    process.send_signal(signal.SIGTERM)
                    await _until(lambda: process.poll() is not None)
                    assert process.returncode == 0
                assert await _answered(client, key) == _expected(asked)
            tasks.cancel_scope.cancel()

    anyio.run(main)
    states = ["bot.db"] + ([f"bot.{COMMUNITY.id}.db"] if reliability == "sds" else [])
    names = {"bot.key", "log", "program.py"}
    names |= {state + end for state in states for end in ("", ".lock", ".commits")}
    assert {file.name for file in tmp_path.iterdir()} == names
    events = [json.loads(line)["event"] for line in (tmp_path / "log").read_text().splitlines()]
    assert events[-1] == "bot_stopped" and "handler_failed" not in events


def _expected(asked: dict[str, str]) -> dict[str, list[str]]:
    return {question: [f"{text} 0", f"{text} 1"] for question, text in asked.items()}


async def _until_answered(client: WakuClient, key: PrivateKey, asked: dict[str, str]) -> None:
    while await _answered(client, key) != _expected(asked):  # noqa: ASYNC110
        await anyio.sleep(0.3)


async def _until(condition: Callable[[], bool]) -> None:
    while not condition():  # noqa: ASYNC110 - it is another process
        await anyio.sleep(0.1)


def _started(folder: Path) -> int:
    return (folder / "log").read_text().count("bot_started")
