"""A bot and two users talk through go-waku nodes on cluster 16, a node each around one with Store:
plain, and inside an SDS channel.

The bot is a separate process. It is killed in the middle of the conversation, and once its node
with it, so that no cache waits there with what it was asked meanwhile: Store has it.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random
from typing import Final

import anyio
import pytest

from reliable_channel_status import (
    DEFAULT_SHARD,
    NON_PROTECTED_SHARD,
    ChatMessage,
    Community,
    MessageId,
    Opener,
    PrivateKey,
    Received,
    SdsWrapper,
    Sealer,
    mention,
    wrap,
    write_key,
)
from reliable_channel_status.bot import Reliability
from waku import WakuClient

from ..needed import PATIENCE_S
from ..waku.bench import REST_PORT, Bench
from ..waku.container import Container

pytestmark = pytest.mark.timeout(1200)  # the first run makes the images

COMMUNITY: Final = Community(PrivateKey(b"c" * 32).public_key)
CHANNEL: Final = "1dc14fd8-9a8b-4df5-a358-2c3067be5439"
TOPIC: Final = COMMUNITY.universal_topic
SHARD: Final = str(DEFAULT_SHARD)
SHARDS: Final = f"16:{DEFAULT_SHARD.shard},{NON_PROTECTED_SHARD.shard}"
QUIET_S: Final = 5
"""After the last answer: a repeated one would come now."""
PASSING_ON_S: Final = 1
"""So that the bot's node does not die with an answer that only this node has."""
KILLS: Final = 3

BOT: Final = f"""
import sys

import anyio

from reliable_channel_status.bot import BotOptions, LoopLimits, Message, RateLimit, StatusBot

many = RateLimit(calls=1000, per_ms=1000)
options = BotOptions(
    reliability=sys.argv[3], user_limit=many, channel_limit=many, loops=LoopLimits(turns=1000)
)
bot = StatusBot(
    node=sys.argv[1], key_file=sys.argv[2], community={COMMUNITY.id!r}, channels=[{CHANNEL!r}],
    options=options,
)

@bot.command("ask")
async def ask(message: Message, *, text: str) -> str:
    await message.reply(f"{{text}}, first")
    await anyio.sleep(0.2)
    return f"{{text}}, second"

@bot.on_mention
async def greet(message: Message) -> str:
    return f"hello {{message.author_name}}"

bot.run()
"""


class User:
    """A user with a separate node that remembers all messages."""

    def __init__(self, name: str, client: WakuClient, reliability: Reliability) -> None:
        self.name = name
        self.key = PrivateKey.generate()
        self.heard: list[Received] = []
        self._client = client
        self._wrapper = SdsWrapper(COMMUNITY.id)
        self._is_inside_sds = reliability == "sds"
        self._sealer = Sealer(self.key)
        self._opener = Opener([TOPIC], on_sds=self._wrapper.heard)
        self._clock = 0

    async def says(self, text: str, to: str = "") -> MessageId:
        """Write into the channel, as an answer or on its own."""
        now_ms = _now_ms()
        self._clock = max(now_ms, self._clock + 1)
        message = ChatMessage(
            clock=self._clock,
            timestamp=now_ms,
            text=text,
            response_to=to,
            chat_id=COMMUNITY.channel_id(CHANNEL),
            display_name=self.name,
        )
        signed = wrap(message, self.key)
        parts = self._sealer.seal_signed(signed, TOPIC, now_ms).messages
        if self._is_inside_sds:
            data = self._wrapper.wrap(signed.data, now_ms)
            parts = self._sealer.seal_sds(data, TOPIC, now_ms * 1_000_000)
        for part in parts:
            await self._client.relay_publish(SHARD, part)
        return signed.message_id

    async def listen(self) -> None:
        """Take what the node has, for ever."""
        while True:
            for message in await self._client.relay_messages(SHARD):
                for outcome in self._opener.receive(message, _now_ms()):
                    assert isinstance(outcome, Received), outcome
                    self.heard.append(outcome)
            await anyio.sleep(0.1)

    def answers(self, bot: PrivateKey) -> dict[str, Counter[str]]:
        """What the bot answered to each message, each text as often as it said it."""
        found: dict[str, Counter[str]] = {}
        for message_id, received in {one.message_id: one for one in self.heard}.items():
            assert message_id, received
            if received.signer == bot.public_key and isinstance(received.payload, ChatMessage):
                answers = found.setdefault(received.payload.response_to, Counter())
                answers[received.payload.text] += 1
        return found


class BotProcess:
    """The bot, killed and started again."""

    def __init__(self, node: str, folder: Path, reliability: Reliability) -> None:
        self.reliability = reliability
        self.key = PrivateKey.generate()
        self._folder = folder
        (folder / "program.py").write_text(BOT)
        write_key(folder / "bot.key", self.key)
        arguments = str(folder / "program.py"), node, str(folder / "bot.key"), reliability
        self._command = [sys.executable, *arguments]
        self._process: subprocess.Popen[bytes] | None = None
        self._lives = 0

    def start(self) -> None:
        """Start it; `is_up` says when it runs."""
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                self._command, stderr=log, env={**os.environ, "PYTHONWARNINGS": "error"}
            )
        self._lives += 1

    def is_up(self) -> bool:
        """Whether this life has begun."""
        return self.events()["bot_started"] == self._lives

    def end(self, how: signal.Signals) -> int:
        """End it; return how it ended."""
        if self._process is None:
            return 0
        process, self._process = self._process, None
        process.send_signal(how)
        return process.wait(PATIENCE_S)

    def events(self) -> Counter[str]:
        """What it logged, over all its lives; a kill may cut a line off."""
        events: Counter[str] = Counter()
        for line in (self._folder / "log").read_text().splitlines():
            try:
                events[json.loads(line)["event"]] += 1
            except ValueError:
                continue
        return events


@pytest.mark.parametrize("reliability", ["plain", "sds"])
def test_a_killed_bot_repeats_no_answer_and_misses_no_question(
    bench: Bench, tmp_path: Path, reliability: Reliability
) -> None:
    seed = int(os.environ.get("SEED", "16"))
    print("seed", seed)
    with bench.network("store", shards=SHARDS) as network:
        nodes = [network.gateway(name) for name in ("Bot", "Alice", "Bob")]
        bot = BotProcess(rest(nodes[0]), tmp_path, reliability)
        try:
            anyio.run(converse, bot, nodes, Random(seed))
        finally:
            bot.end(signal.SIGKILL)
        queries = network.node.emitted("store_query")
    assert any(query["found"] for query in queries), "the bot read nothing from Store"
    events = bot.events()
    assert events["bot_started"] == 1 + KILLS and events["bot_stopped"] == 1
    assert not events["handler_failed"]


async def converse(bot: BotProcess, nodes: list[Container], random: Random) -> None:
    """Ask, kill, ask, start again; in the end all answers are with both users, each once."""
    async with (
        user("Alice", nodes[1], bot.reliability) as alice,
        user("Bob", nodes[2], bot.reliability) as bob,
    ):
        expected: dict[str, Counter[str]] = {}

        async def ask(who: User, text: str) -> None:
            answers = Counter([f"{text}, first", f"{text}, second"])
            expected[await who.says(f"!ask {text}")] = answers

        bot.start()
        await until(bot.is_up, "bot")
        greeting = await alice.says(f"{mention(bot.key.public_key)} hi")
        expected[greeting] = Counter(["hello Alice"])
        await until(lambda: bob.answers(bot.key) == expected, "greeting with Bob")
        for life in range(KILLS):
            for number in range(4):
                await ask(random.choice((alice, bob)), f"{life}.{number}")
                await anyio.sleep(random.uniform(0.05, 0.4))
            bot.end(signal.SIGKILL)
            if is_last := life == KILLS - 1:
                await anyio.sleep(PASSING_ON_S)
                nodes[0].kill()
            await ask(alice, f"{life}, Alice, to nobody")
            await ask(bob, f"{life}, Bob, to nobody")
            if is_last:
                nodes[0].restart()
            bot.start()
            await until(bot.is_up, "bot")
        await until(lambda: alice.answers(bot.key) == expected, "all answers with Alice")
        await until(lambda: bob.answers(bot.key) == expected, "all answers with Bob")
        await anyio.sleep(QUIET_S)
        assert alice.answers(bot.key) == bob.answers(bot.key) == expected
        assert bot.end(signal.SIGTERM) == 0


@asynccontextmanager
async def user(name: str, node: Container, reliability: Reliability) -> AsyncIterator[User]:
    async with WakuClient(rest(node)) as client, anyio.create_task_group() as tasks:
        await client.relay_subscribe([SHARD])
        somebody = User(name, client, reliability)
        tasks.start_soon(somebody.listen)
        yield somebody
        tasks.cancel_scope.cancel()


def rest(node: Container) -> str:
    """Where a node serves REST."""
    return f"http://{node.address}:{REST_PORT}"


async def until(holds: Callable[[], bool], what: str) -> None:
    """Poll for a condition that has no event."""
    with anyio.move_on_after(PATIENCE_S):
        while not holds():  # noqa: ASYNC110
            await anyio.sleep(0.1)
    assert holds(), f"no {what} within {PATIENCE_S} s"


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
