"""A bot among people: the embedded node, real envelopes, virtual time."""

import logging
import sys
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from io import BytesIO
from random import Random
from typing import Any

import anyio
import httpx
import pytest
from PIL import Image

from reliable_channel_status import (
    Access,
    BridgeMessage,
    ChatMessage,
    ChatPayload,
    Community,
    CommunityAdminSettings,
    CommunityMember,
    CommunityProfile,
    CommunityRequestToJoinResponse,
    ContentType,
    DeleteMessage,
    EmojiReaction,
    ImageFormat,
    Opener,
    PinMessage,
    PrivateKey,
    PublicKey,
    Reaction,
    Received,
    Role,
    Sealer,
    Topic,
    mention,
    partitioned_topic,
)
from reliable_channel_status.bot import (
    BotOptions,
    Channel,
    Deletion,
    Edit,
    JoinRequest,
    Message,
    NotRunning,
    PinChange,
    ReactionChange,
    StatusBot,
)
from reliable_channel_status.bot.link import Fetched, Link
from reliable_channel_status.community.edits import with_channel
from reliable_channel_status.testing import BotTester
from reliable_channel_status.wire import payload_builders
from reliable_channel_status.wire.payload_builders import MAX_IMAGE_BYTES, Make
from reliable_channel_status.wire.rooms import Room
from reliable_channel_status.wire.rules import MAX_CLOCK_AHEAD_MS
from reliable_channel_status.wire.topics import AUTO_SHARD, DEFAULT_SHARD, NON_PROTECTED_SHARD
from status_tests.world import BOB, COMMUNITY, GENERAL, OTHER, OWNER, describing
from waku import WakuClient
from waku.errors import BadRequest
from waku.node import NodeOptions

PNG = b"\x89PNG\r\n\x1a\n" + Random(3).randbytes(300_000)


def new_bot(**arguments: Any) -> StatusBot:
    return StatusBot(
        **{"node": "http://node", "community": COMMUNITY.id, "channels": [GENERAL], **arguments}
    )


@pytest.fixture(params=["plain", "sds"])
def bot(request: pytest.FixtureRequest) -> StatusBot:
    """Whatever a bot does, it does in both ways."""
    return new_bot(options=BotOptions(reliability=request.param))


def test_the_bot_of_the_issue_answers_in_the_thread(bot: StatusBot) -> None:
    @bot.command("ping")
    async def ping(message: ChatMessage) -> str:
        return f"pong to {message.display_name}"

    with BotTester(bot) as tester:
        asked = tester.user("Alice").says("!ping")
        assert tester.answers(asked) == ["pong to Alice"]
        tester.user("Alice").says("no command")
        tester.user("Alice").says("!unknown")
        assert len(tester.said()) == 1


def test_a_command_is_called_by_mention_and_help_is_there(bot: StatusBot) -> None:
    @bot.command("add")
    async def add(message: Message, a: int, b: int = 1) -> str:
        """Adds two numbers."""
        return str(a + b)

    with BotTester(bot) as tester:
        alice = tester.user("Alice")
        assert alice.asks(f"{mention(tester.public_key)} add 2 3") == "5"
        assert alice.asks("!add 2") == "3"
        assert alice.asks("!add x") == (
            "`a` must be a number (got 'x'). Usage: !add <a: number> [b: number]"
        )
        assert alice.asks("!help") == "!add <a: number> [b: number] — Adds two numbers."
        assert alice.asks("!help add").endswith("Adds two numbers.")


def test_events_of_all_kinds_arrive_once(bot: StatusBot) -> None:
    told: list[object] = []

    @bot.on_message
    async def message(message: Message) -> None:
        told.append((message.author_name, message.text))

    @bot.on_edit
    async def edit(edit: Edit) -> None:
        told.append((edit.before.text, edit.after.text))

    @bot.on_reaction
    async def reaction(change: ReactionChange) -> None:
        told.append((change.message_id, change.reaction, change.emoji, change.retracted))

    @bot.on_mention
    async def mentioned(message: Message) -> Reaction:
        told.append(message.text_with_names)
        return Reaction.LOVE

    with BotTester(bot) as tester:
        alice, bob = tester.user("Alice"), tester.user("Bob")
        said = alice.says("hello")
        alice.edits(said, "hello!")
        bob.reacts(said, Reaction.THUMBS_UP)
        bob.reacts(said, Reaction.THUMBS_UP, retracted=True)
        assert told == [
            ("Alice", "hello"),
            ("hello", "hello!"),
            (said, Reaction.THUMBS_UP, "👍", False),
            (said, Reaction.THUMBS_UP, "👍", True),
        ]
        told.clear()
        text = f"who is {mention(alice.public_key)}, {mention(tester.public_key)}?"
        asked = bob.says(text)
        (me,) = [f"@{tester.public_key.multibase[:12]}…"]
        assert told == [("Bob", text), f"who is @Alice, {me}?"]
        payload = tester.heard[-1].payload
        assert isinstance(payload, EmojiReaction)
        assert (payload.type, payload.message_id) == (Reaction.LOVE, asked)


def test_deletions_and_pins_are_told(bot: StatusBot) -> None:
    told: list[object] = []

    @bot.on_deletion
    async def deletion(deletion: Deletion) -> None:
        told.append(("deleted", deletion.author_name, deletion.before.text))

    @bot.on_pin
    async def pin(pin: PinChange) -> None:
        told.append(("pin", pin.author_name, pin.is_pinned))

    with BotTester(bot) as tester:
        alice, owner, room = tester.user("Alice"), tester.user("Owner", OWNER), tester.room()
        said = alice.says("hello")
        owner.says("I am here")
        owner.does(payload_builders.pin(room, said, True), room)
        owner.does(payload_builders.pin(room, said, False), room)
        alice.does(payload_builders.pin(room, said, True), room)  # no description lets her
        alice.deletes(said)
        owner.deletes(said)  # it is gone already
    pins = [("pin", "Owner", True), ("pin", "Owner", False)]
    assert told == [*pins, ("deleted", "Alice", "hello")]
    assert bot.reporter.counts["refused", "not_allowed"] == 1


@pytest.mark.parametrize("all_may", [True, False])
def test_members_pin_where_the_description_lets_them(all_may: bool) -> None:
    bot = StatusBot(node="http://node", community=COMMUNITY)
    told: list[bool] = []

    @bot.on_pin
    async def pin(pin: PinChange) -> None:
        told.append(pin.is_pinned)

    @bot.command("pin")
    async def pins(message: Message) -> None:
        await message.pin()

    with BotTester(bot) as tester:
        alice, mallory = tester.user("Alice"), tester.user("Mallory")
        settings = CommunityAdminSettings(pin_message_all_members_enabled=all_may)
        members = {key: CommunityMember() for key in (alice.public_key, tester.public_key)}
        description = replace(describing(members), admin_settings=settings)
        topic, now_ms = COMMUNITY.description_topic, tester.now_ms()
        tester.publish(Sealer(OWNER).seal(description, topic, now_ms).messages[0])
        said, room = alice.says("pin me", channel=GENERAL), tester.room(GENERAL)
        for user in (alice, mallory):
            user.does(payload_builders.pin(room, said, True), room)
        asked = alice.says("!pin", channel=GENERAL)
        tester.wait(61)  # the bot's own pin comes back
        state = bot._running._inbox.conversation.message(asked)  # type: ignore[union-attr]  # noqa: SLF001
        assert state is not None and state.is_pinned == all_may
    assert told == [True] * all_may


@pytest.mark.parametrize("ahead_s", [180, 1_700])
def test_a_fast_clock_is_heard_at_once_and_moves_no_other(bot: StatusBot, ahead_s: int) -> None:
    told: list[str] = []

    @bot.on_message
    async def message(message: Message) -> str:
        told.append(message.text)
        return "heard"

    with BotTester(bot) as tester:
        alice, room = tester.user("Alice"), tester.room()
        fast_ms = tester.now_ms() + ahead_s * 1000
        payload = payload_builders.message(room, "I am fast")(fast_ms, fast_ms)
        tester.publish(Sealer(alice.key).seal(payload, room.topic, fast_ms).messages[0])
        tester.wait(2)
        assert told == ["I am fast"]
        (answer,) = tester.said()
        assert answer.clock < answer.timestamp + MAX_CLOCK_AHEAD_MS, "clients read it"
        alice.says("and now")
        for _ in range(2):
            tester.wait(2_000)
            tester.crash()
            tester.start()
        assert told == ["I am fast", "and now"], "Store has it once more, and it is handled"
        far_ms = tester.now_ms() + 2 * 3_600_000
        payload = payload_builders.message(room, "I am from far")(far_ms, far_ms)
        tester.publish(Sealer(alice.key).seal(payload, room.topic, far_ms).messages[0])
        assert told[2:] == [] and bot.reporter.counts["refused", "clock_ahead"] == 1


def test_a_large_image_is_made_smaller_or_refused(
    bot: StatusBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    noise = Image.effect_noise((1_500, 1_500), 90)
    file = BytesIO()
    noise.save(file, "PNG")
    assert file.tell() > MAX_IMAGE_BYTES

    @bot.command("picture")
    async def picture(message: Message) -> None:
        await message.reply(image=file.getvalue())

    with BotTester(bot) as tester:
        alice = tester.user("Alice")
        alice.says("!picture")
        (said,) = tester.said()
        assert said.image is not None and said.image.format is ImageFormat.JPEG
        assert len(said.image.payload) <= MAX_IMAGE_BYTES
        monkeypatch.setitem(sys.modules, "PIL", None)
        alice.says("!picture")
        (failed,) = [one for one in bot.reporter.since(0) if one.event == "handler_failed"]
        assert "at most 1000000 bytes" in str(failed.fields["why"])
        assert "reliable-channel-status[images]" in str(failed.fields["why"])
        monkeypatch.undo()
        with pytest.raises(ValueError, match="Pillow cannot read it"):
            tester.run(bot.channel(GENERAL).send(image=PNG + bytes(MAX_IMAGE_BYTES)))


def test_a_bot_of_a_whole_community_hears_what_is_said_on_a_channels_own_topic() -> None:
    """Clients of 2024 write there; a new channel is heard as well, and what Store has of it."""
    bot = StatusBot(node="http://node", community=COMMUNITY)
    told: list[str] = []

    @bot.on_message
    async def message(message: Message) -> None:
        told.append(f"{message.channel.room.name[:8]} {message.text}")

    with BotTester(bot) as tester:
        alice = tester.user("Alice")
        members = {key: CommunityMember() for key in (alice.public_key, tester.public_key)}

        def publishes(*channels: str) -> None:
            description = replace(describing(members, tester.now_ms()), chats={})
            for channel in channels:
                description = with_channel(channel, channel)(description)
            topic, now_ms = COMMUNITY.description_topic, tester.now_ms()
            tester.publish(Sealer(OWNER).seal(description, topic, now_ms).messages[0])
            tester.wait(61)

        def says(channel: str, text: str) -> None:
            room = tester.room(channel)
            payload = payload_builders.message(room, text)(tester.next_clock(), tester.now_ms())
            topic = Topic(room.chat_id)
            sealed = Sealer(alice.key).seal(payload, topic, tester.now_ms())
            tester.publish(sealed.messages[0])

        says(GENERAL, "before the description")
        publishes(GENERAL)
        assert told == ["1dc14fd8 before the description"]
        says(GENERAL, "after it")
        says(OTHER, "in a channel to come")
        assert told[1:] == ["1dc14fd8 after it"]
        publishes(GENERAL, OTHER)
        says(OTHER, "in it")
        assert told[2:] == ["00000000 in a channel to come", "00000000 in it"]
        publishes(OTHER)
        says(GENERAL, "in a channel that is gone")
        assert len(told) == 4


def test_what_comes_on_the_shard_of_auto_sharding_is_reported(bot: StatusBot) -> None:
    told: list[str] = []

    @bot.on_message
    async def message(message: Message) -> None:
        told.append(message.text)

    with BotTester(bot) as tester:
        alice, room = tester.user("Alice"), tester.room()
        for text in ("one", "two"):
            payload = payload_builders.message(room, text)(tester.next_clock(), tester.now_ms())
            sealed = Sealer(alice.key).seal(payload, room.topic, tester.now_ms())
            tester.publish(sealed.messages[0], shard=AUTO_SHARD)
        assert told == ["one", "two"]
        assert [one.event for one in bot.reporter.since(0)].count("shard_in_use") == 1


def test_a_node_without_the_further_shards_serves_the_first(
    bot: StatusBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    subscribe = WakuClient.relay_subscribe

    async def picky(client: WakuClient, pubsub_topics: Iterable[str]) -> None:
        if not {str(DEFAULT_SHARD)}.issuperset(topics := list(pubsub_topics)):
            raise BadRequest("relay_subscribe", status=400, detail="no such shard")
        await subscribe(client, topics)

    with BotTester(bot) as tester:
        tester.stop()
        monkeypatch.setattr(WakuClient, "relay_subscribe", picky)
        bot.command("ping")(pong)
        tester.start()
        assert tester.user("Alice").asks("!ping") == "pong"
        lacking = [one for one in bot.reporter.since(0) if one.event == "shard_not_served"]
        assert [one.fields["shard"] for one in lacking] == [str(NON_PROTECTED_SHARD)]


async def pong(message: Message) -> str:
    return "pong"


def test_another_reader_of_the_nodes_cache_is_noticed() -> None:
    bot = new_bot(options=BotOptions())
    with BotTester(bot) as tester:
        alice = tester.user("Alice")
        for number in range(4):
            alice.says(f"heard {number}")
            tester.wait(60)
        assert not reported(bot, "cache_lacks_messages")
        for number in range(4):
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(Link, "look", nothing_there)
                alice.says(f"taken by another {number}")
            tester.wait(60)
        assert reported(bot, "cache_lacks_messages")


async def nothing_there(link: Link) -> list[Fetched]:
    return []


def reported(bot: StatusBot, event: str) -> bool:
    return any(one.event == event for one in bot.reporter.since(0))


def test_any_emoji_is_a_reaction_and_newer_clients_are_read(bot: StatusBot) -> None:
    told: list[object] = []

    @bot.on_reaction
    async def reaction(change: ReactionChange) -> None:
        told.append((change.emoji, change.retracted))
        await change.react("🦄")

    @bot.on_message
    async def message(message: Message) -> None:
        told.append(message.text)

    with BotTester(bot) as tester:
        bob, room = tester.user("Bob"), tester.room()
        said = bob.says("hello")
        bob.reacts(said, "🎉")
        bob.reacts(said, "👍")  # by its number, as one of six
        bob.reacts(said, "🎉", retracted=True)
        assert told == ["hello", ("🎉", False), ("👍", False), ("🎉", True)]
        sent = [r.payload for r in tester.heard if isinstance(r.payload, EmojiReaction)]
        assert [one.text for one in sent] == ["🎉", "🦄", "👍", "🦄", "🎉", "🦄"]
        told.clear()
        for number in (0, 77):  # an emoji without a number, then one of newer clients
            payload = EmojiReaction(
                clock=tester.next_clock(),
                chat_id=room.chat_id,
                message_id=said,
                type=Reaction(number),
                emoji="👨‍👩‍👧‍👦" if not number else "",
            )
            bob.does(as_it_is(payload), room)
        newer = partial(message_of_a_newer_client, room)
        bob.does(newer, room)
        assert told == [("👨‍👩‍👧‍👦", False), ("UNKNOWN_77", False), "from tomorrow"]
        empty = EmojiReaction(clock=tester.next_clock(), chat_id=room.chat_id, message_id=said)
        long = replace(empty, clock=tester.next_clock(), emoji="🎉" * 33)
        for bad in (empty, long):
            bob.does(as_it_is(bad), room)
        assert tester.bot.reporter.counts["refused", "invalid"] == 2


def as_it_is(payload: ChatPayload) -> Make:
    return lambda clock, _: payload


def message_of_a_newer_client(room: Room, clock: int, now_ms: int) -> ChatMessage:
    """A message with a type of content that is unknown here."""
    made = payload_builders.message(room, "from tomorrow")(clock, now_ms)
    assert isinstance(made, ChatMessage)
    return replace(made, content_type=ContentType(77))


def test_what_a_bot_can_say(bot: StatusBot) -> None:
    bridged = BridgeMessage(bridge_name="irc", user_name="carol", content="hi from there")

    @bot.command("all")
    async def everything(message: Message) -> None:
        channel = message.channel
        own = await channel.send("first")
        await channel.edit(own, "second")
        await message.pin()
        await message.react(Reaction.LAUGH)
        await message.delete()
        await message.reply(image=PNG)
        await channel.send(bridged=bridged)

    with BotTester(bot) as tester:
        asked = tester.user("Alice").says("!all")
        said = [r.payload for r in tester.heard if r.signer == tester.public_key]
        assert [type(payload).__name__ for payload in said] == [
            "ChatMessage",
            "EditMessage",
            "PinMessage",
            "EmojiReaction",
            "DeleteMessage",
            "ChatMessage",
            "ChatMessage",
        ]
        pin, deletion, picture, bridge = said[2], said[4], said[5], said[6]
        assert isinstance(pin, PinMessage) and pin.message_id == asked
        assert isinstance(deletion, DeleteMessage) and deletion.message_id == asked
        assert isinstance(picture, ChatMessage) and picture.image is not None
        assert (picture.image.payload, picture.response_to) == (PNG, asked)
        assert isinstance(bridge, ChatMessage) and bridge.bridge_message == bridged
        clocks = [payload.clock for payload in said if isinstance(payload, ChatPayload)]
        assert len(clocks) == len(said)
        assert clocks == sorted(set(clocks)), "Lamport clocks grow"


def test_only_whom_a_command_allows(bot: StatusBot) -> None:
    bot = new_bot(moderators=[BOB.public_key])

    @bot.command("moderate", allow="moderators")
    async def moderate(message: Message) -> str:
        return "done"

    @bot.command("mine", allow=[BOB.public_key.hex])
    async def mine(message: Message) -> str:
        return "yours"

    with BotTester(bot) as tester:
        alice, bob = tester.user("Alice"), tester.user("Bob", BOB)
        assert alice.asks("!moderate") == "You may not use !moderate."
        assert alice.asks("!mine") == "You may not use !mine."
        assert (bob.asks("!moderate"), bob.asks("!mine")) == ("done", "yours")
        assert alice.asks("!help") == "There are no commands."
        admin = CommunityMember(roles=(Role.ROLE_ADMIN,))
        description = describing({alice.public_key: admin, tester.public_key: CommunityMember()})
        forged = Sealer(BOB).seal(description, COMMUNITY.description_topic, tester.now_ms())
        tester.publish(forged.messages[0])
        assert alice.asks("!moderate") == "You may not use !moderate."
        owned = Sealer(OWNER).seal(description, COMMUNITY.description_topic, tester.now_ms())
        tester.publish(owned.messages[0])
        assert alice.asks("!moderate") == "done"


def test_users_and_channels_have_limits(bot: StatusBot) -> None:
    @bot.command("ping")
    async def ping(message: ChatMessage) -> str:
        return "pong"

    with BotTester(bot) as tester:
        asked = [tester.user("Alice").says("!ping", settle=False) for _ in range(12)]
        tester.wait()
        assert sum(len(tester.answers(one)) for one in asked) == 10
        others = [tester.user(f"user {n}").says("!ping", settle=False) for n in range(20)]
        tester.wait()
        assert sum(len(tester.answers(one)) for one in others) == 10 + 2  # 1 s gives 2 more
        assert bot.reporter.counts["rate_limited", ""] == 2 + 8
        tester.wait(10)
        assert tester.user("Alice").asks("!ping") == "pong"


def test_functions_of_one_name_both_speak(bot: StatusBot) -> None:
    def speaking(text: str) -> None:
        @bot.on_message
        async def answer(message: Message) -> str:
            return text

    speaking("one")
    speaking("two")
    with BotTester(bot) as tester:
        assert tester.answers(tester.user("Alice").says("hello")) == ["one", "two"]


def test_several_communities_and_public_chats_share_a_subscription(bot: StatusBot) -> None:
    second = Community(BOB.public_key)
    bot.join(second, [OTHER])
    bot.join_public("python")

    @bot.command("where")
    async def where(message: Message) -> str:
        return message.room.name

    with BotTester(bot) as tester:
        alice = tester.user("Alice")
        assert alice.asks("!where") == GENERAL
        assert alice.asks("!where", channel=OTHER) == OTHER
        assert alice.asks("!where", channel="python") == "python"


def test_other_channels_are_not_the_bots_unless_it_is_in_all(bot: StatusBot) -> None:
    def where(bot: StatusBot) -> list[str]:
        heard: list[str] = []

        @bot.on_message
        async def note(message: Message) -> None:
            heard.append(message.room.name)

        with BotTester(bot) as tester:
            bob = Sealer(BOB)
            for channel in (GENERAL, OTHER):
                payload = ChatMessage(
                    clock=tester.now_ms(),
                    timestamp=tester.now_ms(),
                    text="hi",
                    chat_id=COMMUNITY.channel_id(channel),
                )
                topic = COMMUNITY.universal_topic
                tester.publish(bob.seal(payload, topic, tester.now_ms()).messages[0])
        return heard

    assert where(bot) == [GENERAL]
    assert where(new_bot(channels=None)) == [GENERAL, OTHER]


def test_channels_with_topics_of_their_own_are_heard_too(bot: StatusBot) -> None:
    bot = new_bot(options=BotOptions(derivation="per-channel"))

    @bot.command("ping")
    async def ping(message: Message) -> str:
        return "pong"

    with BotTester(bot) as tester:
        assert tester.room().topic == Topic(COMMUNITY.channel_id(GENERAL))
        assert tester.user("Alice").asks("!ping") == "pong"


def test_schedules_and_tasks_run_in_time(bot: StatusBot) -> None:
    runs = 0

    @bot.every(seconds=600)
    async def regularly() -> None:
        nonlocal runs
        runs += 1
        await bot.channel(GENERAL).send(f"run {runs}")
        if runs == 2:
            raise RuntimeError("this run fails")

    @bot.task
    async def once() -> None:
        await anyio.sleep(800)
        await bot.channel(GENERAL).send("800 s are over")

    with BotTester(bot) as tester:
        start_ms = tester.now_ms()
        tester.wait(3 * 600)
        said = [
            (message.text, (message.timestamp - start_ms) // 60_000) for message in tester.said()
        ]
    assert said == [
        ("run 1", -1),
        ("run 2", 9),
        ("800 s are over", 13),
        ("run 3", 19),
        ("run 4", 29),
    ]


def test_people_ask_to_be_let_in() -> None:
    bot = new_bot()

    @bot.on_join_request
    async def let_in(request: JoinRequest) -> None:
        await request.answer(accepted=request.display_name != "Mallory")

    answers = {}

    @bot.task
    async def found() -> None:
        access = Access.MANUAL_ACCEPT
        await bot.owned.found(CommunityProfile(name="tea", description="tea", access=access))

    with BotTester(bot, community_key=OWNER) as tester:
        for name in ("Alice", "Mallory"):
            user = tester.user(name)
            opener = Opener([partitioned_topic(user.public_key)], private_keys=[user.key])
            user.requests_to_join(COMMUNITY)
            for message in tester.relayed:
                for outcome in opener.receive(message, tester.now_ms()):
                    if isinstance(outcome, Received):
                        assert isinstance(outcome.payload, CommunityRequestToJoinResponse)
                        assert outcome.signer == COMMUNITY.public_key
                        answers[name] = outcome.payload.accepted
        assert tester.user("Alice").public_key in bot.owned.members
        assert tester.user("Mallory").public_key not in bot.owned.members
    assert answers == {"Alice": True, "Mallory": False}


def test_what_bots_keep_outlives_them(bot: StatusBot) -> None:
    @bot.command("count")
    async def count(message: Message) -> str:
        bot.keep("count", (bot.note("count") or 0) + 1)
        return str(bot.note("count"))

    with BotTester(bot) as tester:
        assert tester.user("Alice").asks("!count") == "1"
        tester.crash()
        tester.start()
        assert tester.user("Alice").asks("!count") == "2"
    with pytest.raises(NotRunning):
        bot.keep("count", 1)


async def takes_nothing() -> None: ...


async def takes_a_number(number: int) -> None: ...


@pytest.mark.parametrize("function", [takes_nothing, takes_a_number])
def test_functions_that_cannot_be_told_are_refused(bot: StatusBot, function: Any) -> None:
    with pytest.raises(TypeError, match="takes one argument"):
        bot.on_message(function)


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda: new_bot(community="0x02"), "community"),
        (lambda: StatusBot(node="x"), r"^`node` must be .*'x'\); write 'http://127.0.0.1:8645'"),
        (lambda: StatusBot(node="localhost:8645"), r"^`node` must be the address"),
        (lambda: new_bot(channels=["general"]), "uuid"),
        (lambda: new_bot(channels=[]), "`channels` is empty"),
        (lambda: new_bot(moderators=["Bob"]), "public key"),
        (lambda: new_bot(options=BotOptions(poll_ms=0)), "poll_ms"),
        (lambda: new_bot(options=BotOptions(prefix=" ")), "prefix"),
        (lambda: new_bot().join_public(""), "name"),
        (lambda: new_bot().every(seconds=0), "interval"),
        (lambda: new_bot().command("a b"), "one word"),
    ],
)
def test_settings_that_cannot_be_are_refused(make: Callable[[], Any], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        declared = make()
        declared(takes_a_number)  # a decorator says it when it is used


def test_logs_name_what_happened_and_no_text(
    bot: StatusBot, caplog: pytest.LogCaptureFixture
) -> None:
    @bot.command("fail")
    async def fail(message: Message) -> None:
        raise RuntimeError("on purpose")

    with caplog.at_level(logging.DEBUG, "reliable_channel_status.bot"), BotTester(bot) as tester:
        assert tester.user("Alice").asks("!fail secret") == (
            "I do not understand 'secret' at the end. Usage: !fail"
        )
        assert tester.user("Alice").asks("!fail") == "!fail failed."
    (record,) = [r for r in caplog.records if r.__dict__.get("event") == "handler_failed"]
    assert record.__dict__["fields"] == {"handler": "fail", "why": "RuntimeError('on purpose')"}
    assert "secret" not in caplog.text


def test_what_a_busy_node_drops_is_fetched_from_store(bot: StatusBot) -> None:
    heard: list[str] = []

    @bot.on_message
    async def note(message: Message) -> None:
        heard.append(message.text)

    with BotTester(bot, node=NodeOptions(cache_capacity=50)) as tester:
        alice = Sealer(tester.user("Alice").key)
        for number in range(120):  # no turn of the event loop in between
            clock = tester.next_clock()
            chat_id = tester.room().chat_id
            payload = ChatMessage(clock=clock, timestamp=clock, text=str(number), chat_id=chat_id)
            sealed = alice.seal(payload, tester.room().topic, tester.now_ms())
            tester.node.publish(str(bot.options.shard), sealed.messages[0])
        tester.user("Bob").says("last")
        tester.wait(120)
    assert sorted(heard) == sorted([*map(str, range(120)), "last"])


def test_a_node_that_goes_away_is_waited_for(
    bot: StatusBot, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    @bot.command("ping")
    async def ping(message: Message) -> str:
        return "pong"

    with BotTester(bot) as tester:
        asked = tester.user("Alice").says("!ping", settle=False)
        with monkeypatch.context() as patch:
            handle = httpx.ASGITransport.handle_async_request

            async def refuse(
                transport: httpx.ASGITransport, request: httpx.Request
            ) -> httpx.Response:
                if request.method == "POST":
                    raise httpx.ConnectError("nobody is there")
                return await handle(transport, request)

            patch.setattr(httpx.ASGITransport, "handle_async_request", refuse)
            tester.wait(300)
        assert tester.answers(asked) == []
        assert "publish_failed" in caplog.text
        tester.wait(60)
        assert tester.answers(asked) == ["pong"]


def test_a_node_without_store_serves_what_is_live(
    bot: StatusBot, caplog: pytest.LogCaptureFixture
) -> None:
    @bot.command("ping")
    async def ping(message: Message) -> str:
        return "pong"

    with BotTester(bot, node=NodeOptions(store=False, cache_capacity=1000)) as tester:
        assert tester.user("Alice").asks("!ping") == "pong"
    assert "history_unavailable" in caplog.text


def test_prometheus_finds_the_counts() -> None:
    bot = new_bot(options=BotOptions(metrics_port=0))

    @bot.command("ping")
    async def ping(message: ChatMessage) -> str:
        return "pong"

    with BotTester(bot) as tester:
        tester.user("Alice").asks("!ping")
        assert bot.reporter.metrics_url is not None
        answer = httpx.get(bot.reporter.metrics_url, trust_env=False)
    assert 'status_bot_said_total{of="ChatMessage"} 1.0' in answer.text
    assert 'status_bot_handlers_run_total{of="ping"} 1.0' in answer.text


def test_types_of_the_public_names_are_what_handlers_get(bot: StatusBot) -> None:
    seen: list[object] = []

    @bot.on_message
    async def note(message: Message) -> None:
        seen.extend([message.channel, message.author])

    with BotTester(bot) as tester:
        tester.user("Alice").says("hi")
    assert isinstance(seen[0], Channel) and isinstance(seen[1], PublicKey)
    assert isinstance(tester.key, PrivateKey)


def test_run_says_that_it_needs_signals(bot: StatusBot, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "win32")
    with pytest.raises(NotImplementedError, match=r"call `anyio\.run\(bot\.run_async\)`"):
        bot.run()
