"""What a bot meets that it must not fall for: each is refused or stopped, and the bot goes on."""

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import replace
from random import Random
from typing import Any

import anyio
import pytest

from reliable_channel.spi import MemoryStateStore
from reliable_channel_status import (
    ChatMessage,
    DeleteMessage,
    EditMessage,
    Payload,
    Sealer,
    Topic,
    seal_symmetric,
    wrap,
)
from reliable_channel_status.bot import (
    BotContext,
    BotMemory,
    BotOptions,
    BotTexts,
    Edit,
    LoopLimits,
    Message,
    Reliability,
    StatusBot,
)
from reliable_channel_status.testing import BotTester
from reliable_channel_status.testing.fake_user import key_of
from reliable_channel_status.testing.tester import START_MS
from reliable_channel_status.wire import status_pb2
from status_tests.world import COMMUNITY, GENERAL, MALLORY, OTHER
from tests.virtual_time import VirtualLoop
from waku import WakuClient, WakuMessage
from waku.node import EmbeddedNode, NodeOptions

CHAT = COMMUNITY.channel_id(GENERAL)
TOPIC = COMMUNITY.universal_topic


def new_bot(reliability: Reliability = "plain") -> StatusBot:
    options = BotOptions(reliability=reliability)
    bot = StatusBot(node="http://node", community=COMMUNITY, channels=[GENERAL], options=options)

    @bot.command("ping")
    async def ping(message: Message) -> str:
        return "pong"

    return bot


@pytest.fixture(params=["plain", "sds"])
def tester(request: pytest.FixtureRequest) -> Iterator[BotTester]:
    with BotTester(new_bot(request.param)) as tester:
        yield tester
        assert tester.user("Alice").asks("!ping") == "pong", "the bot goes on"


def pinged(tester: BotTester, **fields: Any) -> ChatMessage:
    now_ms = tester.now_ms()
    message = ChatMessage(clock=now_ms, timestamp=now_ms, text="!ping", chat_id=CHAT)
    return replace(message, **fields)


def published(tester: BotTester, payload: Payload, topic: Topic = TOPIC) -> None:
    for message in Sealer(MALLORY).seal(payload, topic, tester.now_ms()).messages:
        tester.publish(message)


def sealed(tester: BotTester) -> WakuMessage:
    """An honest call of a command, before somebody lays hands on it."""
    return Sealer(MALLORY).seal(pinged(tester), TOPIC, tester.now_ms()).messages[0]


def refusals(tester: BotTester) -> dict[str, int]:
    return {of: n for (name, of), n in tester.bot.reporter.counts.items() if name == "refused"}


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda m: replace(m, payload=m.payload[:-1]), "not_for_us"),
        (lambda m: replace(m, payload=m.payload[:10]), "not_for_us"),
        (lambda m: replace(m, payload=bytes([m.payload[0] ^ 1]) + m.payload[1:]), "not_for_us"),
        (lambda m: replace(m, payload=Random(1).randbytes(500)), "not_for_us"),
        (lambda m: replace(m, version=2), "unknown_version"),
        (
            lambda m: replace(m, payload=seal_symmetric(b"\xff\x00", TOPIC.key, MALLORY)),
            "malformed_message",
        ),
        (
            lambda m: replace(m, payload=seal_symmetric(b"unsigned", TOPIC.key, None)),
            "unsigned_envelope",
        ),
        (
            lambda m: replace(m, payload=seal_symmetric(b"wrong key", Topic("x").key, MALLORY)),
            "not_for_us",
        ),
    ],
    ids=[
        "truncated",
        "short",
        "changed",
        "noise",
        "version",
        "no message",
        "unsigned",
        "wrong key",
    ],
)
def test_broken_and_forged_envelopes_are_refused(
    tester: BotTester, change: Callable[[WakuMessage], WakuMessage], reason: str
) -> None:
    tester.publish(change(sealed(tester)))
    assert tester.said() == []
    assert refusals(tester) == {reason: 1}


def test_other_peoples_topics_do_not_even_count(tester: BotTester) -> None:
    other = Topic("other people")
    published(tester, pinged(tester, chat_id="other people"), other)
    assert tester.said() == [] and refusals(tester) == {}


def test_a_signature_of_another_message_makes_nobody_its_author(tester: BotTester) -> None:
    """A signature over another text still names a key: one that nobody has."""
    alice = tester.user("Alice")
    forged = status_pb2.ApplicationMetadataMessage.FromString(wrap(pinged(tester), alice.key).data)
    forged.signature = alice.key.sign(b"what she signed elsewhere")
    signed = replace(wrap(pinged(tester), MALLORY), data=forged.SerializeToString())
    tester.publish(Sealer(MALLORY).seal_signed(signed, TOPIC, tester.now_ms()).messages[0])
    (taken,) = [received for received in tester.heard if received.signer != tester.public_key]
    assert taken.signer not in (alice.public_key, MALLORY.public_key)


def test_clocks_in_the_future_move_nothing(tester: BotTester) -> None:
    published(tester, pinged(tester, clock=tester.now_ms() + 121_000))
    published(tester, pinged(tester, clock=2**63))
    assert tester.said() == [] and refusals(tester) == {"clock_ahead": 2}
    tester.user("Alice").asks("!ping")
    assert tester.said()[-1].clock <= tester.now_ms() + 1000


def test_what_was_said_long_ago_is_not_answered(tester: BotTester) -> None:
    published(tester, pinged(tester, clock=tester.now_ms() - 7_200_000))
    assert tester.said() == []


def test_the_same_signed_words_in_a_new_envelope_are_answered_once(tester: BotTester) -> None:
    signed = wrap(pinged(tester), tester.user("Alice").key)
    for _ in range(3):
        tester.publish(Sealer(MALLORY).seal_signed(signed, TOPIC, tester.now_ms()).messages[0])
    assert [message.text for message in tester.said()] == ["pong"]


def test_what_was_signed_for_another_channel_is_not_taken_here(tester: BotTester) -> None:
    published(tester, pinged(tester, chat_id=COMMUNITY.channel_id(OTHER)), Topic(CHAT))
    assert tester.said() == [] and refusals(tester) == {"wrong_chat": 1}


def test_150_kb_are_read_and_a_text_of_that_size_is_refused(tester: BotTester) -> None:
    published(tester, pinged(tester, text="!ping " + "x" * 150_000))
    assert tester.said() == [] and refusals(tester) == {"invalid": 1}
    huge = WakuMessage(b"x" * 110_000, TOPIC.content_topic, 1, tester.now_ms() * 1_000_000)
    tester.publish(huge)
    assert refusals(tester)["not_for_us"] == 1


def test_nobody_edits_what_others_said() -> None:
    bot, told = new_bot(), []

    @bot.on_edit
    async def note(edit: Edit) -> None:
        told.append(edit.after.text)

    with BotTester(bot) as tester:
        alice = tester.user("Alice")
        said = alice.says("hello")
        tester.user("Mallory").edits(said, "I am a fool")
        assert told == [] and refusals(tester) == {"not_allowed": 1}
        alice.edits(said, "hello!")
        assert told == ["hello!"]
        late = EditMessage(clock=tester.next_clock(), text="x", chat_id=CHAT, message_id="0x00")
        published(tester, late)
        assert told == ["hello!"]


def test_two_bots_that_answer_each_other_are_stopped() -> None:
    bot = StatusBot(node="http://node", community=COMMUNITY, channels=[GENERAL])

    @bot.on_message
    async def echo(message: Message) -> str:
        return f"you said {len(message.text)} letters"

    with BotTester(bot) as tester:
        other = tester.user("another bot")
        said = other.says("hello")
        for _ in range(50):
            *_, answer = [m for m in tester.heard if m.signer == tester.public_key]
            said = other.says("I answer everything", to=answer.message_id)
        *answers, announcement = tester.said()
        assert len(answers) == LoopLimits().turns
        assert announcement.text == (
            "I stop answering another bot here for 10 minutes: 8 times in a row we answered each "
            "other within a second, as two bots do. Commands still work."
        )
        assert tester.answers(said) == []
        assert bot.reporter.counts["loops_stopped", ""] == 1
        assert tester.user("Alice").asks("hi") == "you said 2 letters", "others are answered"
        tester.wait(LoopLimits().silence_ms / 1000)
        assert other.asks("hello again") == "you said 11 letters"


@pytest.mark.parametrize("pause_s", [1, 2, 3])
def test_commands_that_people_call_one_after_the_other_are_all_answered(pause_s: int) -> None:
    """They were taken for a loop: 8 of 30 were answered, and the bot said nothing about it."""
    with BotTester(new_bot()) as tester:
        alice, asked = tester.user("Alice"), []
        for _ in range(30):
            asked.append(alice.says("!ping", settle=False))
            tester.wait(pause_s)
        assert [tester.answers(one) for one in asked] == [["pong"]] * 30
        assert tester.bot.reporter.counts["loops_stopped", ""] == 0


def test_in_a_loop_commands_work_and_handlers_run_to_their_end() -> None:
    bot, ended = new_bot(), []

    @bot.on_message
    async def moderate(message: Message) -> None:
        if "!" in message.text:
            return
        warning = await message.reply("do not write this")
        await message.channel.edit(warning, "really, do not write this")
        await message.delete()
        ended.append(message.message_id)

    with BotTester(bot) as tester:
        spammer = tester.user("spammer")
        written = [spammer.says("spam") for _ in range(30)]
        deleted = [
            received.payload.message_id
            for received in tester.heard
            if isinstance(received.payload, DeleteMessage)
        ]
        assert ended == deleted == written, "no handler is ended, no deletion withheld"
        turns = LoopLimits().turns
        texts = [message.text for message in tester.said()]
        assert len(texts) == turns + 1 and texts[:turns] == ["do not write this"] * turns
        assert texts[turns].startswith("I stop answering spammer here for 10 minutes")
        edits = [one for one in tester.heard if isinstance(one.payload, EditMessage)]
        assert len(edits) == turns, "what was withheld is not edited"
        assert bot.reporter.counts["answers_withheld", ""] == 30 - turns
        assert bot.reporter.counts["handlers_failed", "moderate"] == 0
        assert spammer.asks("!ping") == "pong", "commands are not withheld"


def test_a_loop_of_commands_ends_by_the_limit_of_calls() -> None:
    """Another bot that answers everything by calling a command is stopped, too."""
    bot = new_bot()

    @bot.on_message
    async def echo(message: Message) -> str:
        return "you said " + message.text

    with BotTester(bot) as tester:
        other = tester.user("another bot")
        for _ in range(100):
            other.says("!ping", settle=False)
            tester.wait(0.3)
        assert bot.reporter.counts["loops_stopped", ""] == 1
        before = len(tester.said())
        other.says("hello")
        assert len(tester.said()) == before


def test_what_a_bot_says_of_itself_is_said_in_the_words_of_its_author() -> None:
    texts = BotTexts(
        loop_stopped="{user}, genug!", not_permitted="{command}: nein", failed="{command}: Fehler"
    )
    bot = StatusBot(
        node="http://node",
        community=COMMUNITY,
        channels=[GENERAL],
        options=BotOptions(texts=texts, loops=LoopLimits(turns=1)),
    )

    @bot.on_message
    async def echo(message: Message) -> str | None:
        return None if message.text.startswith("!") else "answer"

    @bot.command("secret", allow=[])
    async def secret(message: Message) -> None: ...

    @bot.command("fail")
    async def fail(message: Message) -> None:
        raise ZeroDivisionError

    with BotTester(bot) as tester:
        alice = tester.user("Alice")
        assert alice.asks("!secret") == "!secret: nein"
        assert alice.asks("!fail") == "!fail: Fehler"
        alice.says("hello")
        alice.says("hello")
        assert tester.said()[-1].text == "Alice, genug!"


def test_two_bots_of_this_make_fall_silent() -> None:
    """Both run: each answers whatever is said, until one of them notices."""
    bots = [StatusBot(node="http://node", community=COMMUNITY, channels=[GENERAL]) for _ in "ab"]
    for bot in bots:

        @bot.on_message
        async def echo(message: Message) -> str:
            return "I answer everything"

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        loop = runner.get_loop()

        def now_ms() -> int:
            return START_MS + round(loop.time() * 1000)

        async def run(bot: StatusBot, node: EmbeddedNode) -> None:
            key = key_of(f"bot {bots.index(bot)}")
            memory = BotMemory(MemoryStateStore(), key.public_key, now_ms())
            async with WakuClient("http://node", app=node.app) as client:
                await bot.serve(BotContext(key=key, memory=memory, client=client, now_ms=now_ms))

        async def main() -> list[int]:
            options = NodeOptions(cluster_id=16, shards=(32, 64), static_sharding=True)
            options = replace(options, now_ns=lambda: now_ms() * 1_000_000)
            async with EmbeddedNode(options) as node, anyio.create_task_group() as tasks:
                for bot in bots:
                    tasks.start_soon(run, bot, node)
                await anyio.sleep(1)
                message = ChatMessage(clock=now_ms(), timestamp=now_ms(), text="hi", chat_id=CHAT)
                sealed = Sealer(MALLORY).seal(message, TOPIC, now_ms())
                node.publish("/waku/2/rs/16/32", sealed.messages[0])
                said = []
                for _ in range(2):
                    await anyio.sleep(30)
                    said.append(sum(bot.reporter.counts["said", "ChatMessage"] for bot in bots))
                for bot in bots:
                    bot.stop()
            return said

        before, after = runner.run(main())
    announced = sum(bot.reporter.counts["loops_stopped", ""] for bot in bots)
    assert before == after <= 2 * (LoopLimits().turns + 1) + announced
    assert sum(bot.reporter.counts["loops_stopped", ""] for bot in bots) >= 1


def test_a_handler_that_raises_is_named_and_the_others_run(
    caplog: pytest.LogCaptureFixture,
) -> None:
    bot, told = new_bot(), []

    @bot.on_message
    async def raises(message: Message) -> None:
        raise ZeroDivisionError("on purpose")

    @bot.on_message
    async def returns_nonsense(message: Message) -> int:
        return 5

    @bot.on_message
    async def runs(message: Message) -> None:
        told.append(message.text)

    with BotTester(bot) as tester:
        assert tester.user("Alice").asks("!ping") == "pong"
    assert told == ["!ping"]
    assert "raises' why=\"ZeroDivisionError('on purpose')\"" in caplog.text
    assert "a handler must return a text, a Reaction, a Question or nothing (got 5)" in caplog.text


def test_a_handler_that_hangs_is_ended_and_holds_nobody_up(
    caplog: pytest.LogCaptureFixture,
) -> None:
    bot, ended = new_bot(), []

    @bot.command("hang")
    async def hang(message: Message) -> None:
        try:
            await anyio.sleep_forever()
        finally:
            ended.append(message.author_name)

    with BotTester(bot) as tester:
        for n in range(10):
            tester.user(f"user {n}").says("!hang")
        assert tester.user("Alice").asks("!ping") == "pong"
        assert ended == []
        tester.wait(31)
        assert len(ended) == 10
    assert "handler_timed_out handler='hang' timeout_s=30.0" in caplog.text
