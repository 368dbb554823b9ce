"""Bots and what real Status clients sent: recorded bytes of `tests/vectors/data/status-real`."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest

from reliable_channel.spi import MemoryStateStore
from reliable_channel_status import (
    CONTENT_SHARD,
    DEFAULT_SHARD,
    NON_PROTECTED_SHARD,
    ChatMessage,
    Community,
    PayloadType,
    PrivateKey,
    Sealer,
    WakuVersion,
    wrap,
)
from reliable_channel_status.bot import (
    BotMemory,
    BotOptions,
    Edit,
    JoinRequest,
    Message,
    ReactionChange,
    Reliability,
    StatusBot,
)
from reliable_channel_status.testing import BotTester
from reliable_channel_status.testing.fake_user import key_of
from reliable_channel_status.testing.tester import START_MS
from reliable_channel_status.wire import status_pb2
from status_tests.world import ALICE, COMMUNITY, GENERAL, said
from waku import PubsubTopic, WakuMessage

DATA: Final = Path(__file__).parents[3] / "tests/vectors/data/status-real"
MESSAGES: Final[list[Any]] = json.loads((DATA / "messages.json").read_text())
KEYS: Final[Any] = json.loads((DATA / "keys.json").read_text())
OPEN: Final = PrivateKey.from_hex(KEYS["communities"]["open"]["private_hex"])
NS_PER_MS: Final = 1_000_000


def waku_message(case: Any) -> WakuMessage:
    """A message as it was relayed."""
    return WakuMessage(
        bytes.fromhex(case["payload_hex"]),
        case["content_topic"],
        case["version"],
        case["timestamp"],
        ephemeral=case["ephemeral"],
    )


def recorded(*, version: int) -> list[Any]:
    return sorted((m for m in MESSAGES if m["version"] == version), key=lambda m: m["timestamp"])


def relay(tester: BotTester, cases: list[Any]) -> None:
    """Relay messages on the shards and at the times at which they were recorded."""
    for case in cases:
        tester.wait(max(0.0, case["timestamp"] / 1e9 - tester.now_ms() / 1e3))
        tester.publish(waku_message(case), shard=PubsubTopic.parse(case["pubsub_topic"]))


def ids_in_the_community(cases: list[Any], payload_type: PayloadType) -> list[str]:
    """The recorded ids of messages of one type in the open community."""
    return [
        message["message_id"]
        for case in cases
        if "(open)" in str(case["opens_with"])
        for message in case["messages"]
        if message["type"] == payload_type
    ]


class Told:
    """What the functions of a bot were called with."""

    def __init__(self, bot: StatusBot) -> None:
        self.messages: list[str] = []
        self.edits: list[str] = []
        self.reactions: list[tuple[str, bool]] = []
        self.requests: list[str] = []

        @bot.on_message
        async def message(message: Message) -> None:
            self.messages.append(message.message_id)

        @bot.on_edit
        async def edit(edit: Edit) -> None:
            self.edits.append(edit.after.text)

        @bot.on_reaction
        async def reaction(change: ReactionChange) -> None:
            self.reactions.append((change.reaction.name, change.retracted))

        @bot.on_join_request
        async def request(request: JoinRequest) -> None:
            self.requests.append(request.received.message_id)


@pytest.mark.parametrize("version", [1, 0])
def test_a_bot_with_default_options_hears_real_clients(version: int) -> None:
    """It was deaf: it listened to other shards, and refused what clients from 2.40 on send."""
    bot = StatusBot(
        node="http://node",
        community=Community(OPEN.public_key),
        channels=KEYS["communities"]["open"]["chats"],
    )
    told = Told(bot)
    cases = recorded(version=version)
    start_ms = cases[0]["timestamp"] // NS_PER_MS - 1000
    with BotTester(bot, community_key=OPEN, now_ms=start_ms) as tester:
        relay(tester, cases)
    assert sorted(told.messages) == sorted(ids_in_the_community(cases, PayloadType.CHAT_MESSAGE))
    assert told.requests == ids_in_the_community(cases, PayloadType.COMMUNITY_REQUEST_TO_JOIN)
    assert told.edits == (["golden hello, edited"] if version else ["golden sds, edited"])
    refused = {of for name, of in bot.reporter.counts if name == "refused"}
    # Pins, as the description with the owner was not recorded; and its own request on two shards.
    assert refused <= {"not_allowed", "repeated"}


def test_what_each_client_broadcasts_is_counted_as_ignored_and_not_as_refused() -> None:
    bot = StatusBot(node="http://node", community=COMMUNITY, channels=[GENERAL])
    advertisement = status_pb2.ApplicationMetadataMessage(
        payload=b"bundle",
        signature=ALICE.sign(b"bundle"),
        type=PayloadType.CONTACT_CODE_ADVERTISEMENT,
    ).SerializeToString()
    topic = COMMUNITY.universal_topic
    with BotTester(bot) as tester:
        signed = replace(wrap(said(), ALICE), data=advertisement)
        tester.publish(Sealer(ALICE).seal_signed(signed, topic, tester.now_ms()).messages[0])
    assert bot.reporter.counts["ignored", "CONTACT_CODE_ADVERTISEMENT"] == 1
    assert not [of for name, of in bot.reporter.counts if name == "refused"]


@pytest.mark.parametrize("reliability", ["plain", "sds"])
@pytest.mark.parametrize("version", [0, 1])
def test_a_bot_writes_on_the_shard_of_clients_in_the_version_of_its_option(
    version: WakuVersion, reliability: Reliability
) -> None:
    options = BotOptions(reliability=reliability, waku_version=version)
    bot = StatusBot(node="http://node", community=COMMUNITY, channels=[GENERAL], options=options)

    @bot.command("ping")
    async def ping(message: ChatMessage) -> str:
        return "pong"

    assert (options.shard, options.also_listen) == (DEFAULT_SHARD, (NON_PROTECTED_SHARD,))
    with BotTester(bot) as tester:
        assert tester.user("Alice").asks("!ping") == "pong"
        answer = tester.relayed[-1]
    assert answer.version == version
    assert BotOptions().waku_version == 1
    with pytest.raises(ValueError, match=r"`waku_version` must be 0 or 1 \(got 2\)"):
        BotOptions(waku_version=2)  # type: ignore[arg-type]


def test_other_shards_are_heard_and_written_on_request() -> None:
    options = BotOptions(shard=CONTENT_SHARD, also_listen=(DEFAULT_SHARD,))
    bot = StatusBot(node="http://node", community=COMMUNITY, channels=[GENERAL], options=options)
    told = Told(bot)
    with BotTester(bot) as tester:
        alice = tester.user("Alice")
        message_id = alice.says("on 256")
        sealed = Sealer(ALICE).seal(
            said(clock=tester.now_ms(), timestamp=tester.now_ms()),
            COMMUNITY.universal_topic,
            tester.now_ms(),
        )
        tester.publish(sealed.messages[0], shard=DEFAULT_SHARD)
    assert told.messages == [message_id, sealed.message_id]


def test_what_waited_for_a_shard_that_the_bot_left_goes_out_on_its_new_one() -> None:
    """A bot of before has messages for shard 256 in its state file."""
    store, key = MemoryStateStore(), key_of("the bot")
    memory = BotMemory(store, key.public_key, START_MS)
    topic = COMMUNITY.universal_topic
    waiting = Sealer(key).seal(said(clock=START_MS, timestamp=START_MS), topic, START_MS)
    memory.say("news", waiting.message_id, str(CONTENT_SHARD), waiting.messages)
    memory.close()
    bot = StatusBot(node="http://node", community=COMMUNITY, channels=[GENERAL])
    with BotTester(bot, store=store) as tester:
        assert [message.text for message in tester.said()] == ["hello"]
        assert not bot.reporter.counts["unpublishable", ""]
