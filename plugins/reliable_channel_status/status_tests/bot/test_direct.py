"""Direct messages and contacts of bots: with users as clients write, and between two bots."""

import asyncio
import copy
import json
from pathlib import Path
from typing import Any, Final

import pytest

from reliable_channel.spi import MemoryStateStore
from reliable_channel_status import (
    AcceptContactRequest,
    ChatMessage,
    ContactUpdate,
    ContentType,
    EmojiReaction,
    MessageId,
    PayloadType,
    PrivateKey,
    PublicKey,
    Reaction,
    Received,
    contact_code_topic,
    open_ecies,
    open_symmetric,
    partitioned_topic,
    wrap,
)
from reliable_channel_status.bot import (
    BotContext,
    BotMemory,
    BotOptions,
    ContactChange,
    ContactRequest,
    Message,
    PinChange,
    RateLimit,
    ReactionChange,
    StatusBot,
)
from reliable_channel_status.bot.options import DirectEncryption
from reliable_channel_status.testing import BotTester
from reliable_channel_status.testing.fake_user import key_of
from reliable_channel_status.testing.tester import START_MS
from reliable_channel_status.wire import payload_builders, status_pb2
from reliable_channel_status.wire.direct import DataSyncPayload
from reliable_channel_status.wire.direct.bundles import read_bundle
from reliable_channel_status.wire.direct.datasync import MAX_SENDS
from reliable_channel_status.wire.payload_builders import message
from reliable_channel_status.wire.rooms import direct_room
from reliable_channel_status.wire.sealing import NS_PER_MS
from reliable_channel_status.wire.topics import CLUSTER_ID
from status_tests.world import HOURLY
from tests.virtual_time import VirtualLoop
from waku import PubsubTopic, WakuClient, WakuMessage
from waku.node import EmbeddedNode, NodeOptions

DATA: Final = Path(__file__).parents[4] / "tests/vectors/data/status-real"
PNG: Final = b"\x89PNG\r\n\x1a\n and so on"


class Penpal:
    """A bot that answers who writes to it alone, and takes all contacts."""

    def __init__(self, **arguments: Any) -> None:
        self.told: list[str] = []
        self.bot = bot = StatusBot(node="http://node", **arguments)

        @bot.on_direct_message
        async def answer(message: Message) -> str:
            self.told.append(message.text)
            assert message.is_direct
            return f"you said {message.text}"

        @bot.on_message
        async def never(message: Message) -> None:
            self.told.append(f"in a channel: {message.text}")

        @bot.on_contact_request
        async def accept(request: ContactRequest) -> None:
            self.told.append(f"asked: {request.text}")
            await request.accept()

        @bot.on_contact_change
        async def change(contact: ContactChange) -> None:
            self.told.append(f"contact: {contact.is_contact}")

        @bot.on_reaction
        async def reaction(change: ReactionChange) -> None:
            self.told.append(f"reaction {change.reaction.name} to {change.message_id}")

        @bot.command("ping")
        async def ping(message: Message) -> str:
            return "pong"


def refusals(tester: BotTester) -> dict[str, int]:
    counts = tester.bot.reporter.counts
    return {why: n for (name, why), n in counts.items() if name == "refused"}


def test_a_message_is_answered_and_both_are_acknowledged() -> None:
    penpal = Penpal()
    with BotTester(penpal.bot) as tester:
        alice = tester.user("Alice").direct
        asked = alice.says("hello")
        tester.wait()
        assert alice.texts == ["you said hello"]
        (answer,) = alice.heard
        assert isinstance(answer.payload, ChatMessage)
        assert answer.payload.response_to == asked
        assert answer.payload.chat_id == key_of("Alice").public_key.hex
        assert alice.delivered == {asked}
        assert penpal.bot.is_acknowledged(answer.message_id)
        assert penpal.told == ["hello"]
        assert tester.bot.reporter.counts["delivered", ""] == 1


def test_commands_images_replies_and_reactions_work_there_too() -> None:
    penpal = Penpal()
    with BotTester(penpal.bot) as tester:
        alice = tester.user("Alice").direct
        alice.says("!ping")
        assert alice.texts == ["pong"]
        assert penpal.told == []
        room = direct_room(tester.public_key)
        alice.does(message(room, "look", image=PNG))
        assert alice.texts == ["pong", "you said look"]
        alice.reacts(alice.heard[0].message_id, Reaction.LOVE)
        assert penpal.told[-1] == f"reaction LOVE to {alice.heard[0].message_id}"

        async def speak() -> MessageId:
            channel = penpal.bot.direct(alice.correspondence.public_key)
            sent = await channel.send("a picture", image=PNG)
            await channel.react(alice.heard[0].message_id, Reaction.SAD)
            return sent

        sent = tester.run(speak())
        tester.wait()
        assert penpal.bot.is_acknowledged(sent)
        *_, picture, reaction = [received.payload for received in alice.heard]
        assert isinstance(picture, ChatMessage) and picture.image is not None
        assert picture.image.payload == PNG
        assert isinstance(reaction, EmojiReaction) and reaction.type is Reaction.SAD
        assert reaction.chat_id == key_of("Alice").public_key.hex


def test_a_message_of_another_is_no_answer_to_a_user() -> None:
    penpal = Penpal()
    with BotTester(penpal.bot) as tester:
        alice, carol = tester.user("Alice").direct, tester.user("Carol").direct
        alice.says("from alice")
        carol.says("from carol")
        assert alice.texts == ["you said from alice"]
        assert carol.texts == ["you said from carol"]


def test_a_contact_request_is_accepted_and_the_contact_ended() -> None:
    penpal = Penpal()
    with BotTester(penpal.bot) as tester:
        alice = tester.user("Alice").direct
        request = alice.asks_to_be_contact("let me in")
        (accepted,) = alice.heard
        assert accepted.payload.id == request  # type: ignore[union-attr]
        assert list(penpal.bot.contacts) == [ALICE_KEY]
        alice.retracts()
        assert list(penpal.bot.contacts) == []
        assert penpal.told == ["asked: let me in", "contact: False"]


def test_the_bot_asks_and_remembers_who_accepted() -> None:
    penpal = Penpal()
    with BotTester(penpal.bot) as tester:
        alice = tester.user("Alice").direct
        alice.accepts("0x00")  # nobody asked
        assert list(penpal.bot.contacts) == []
        tester.run(penpal.bot.request_contact(key_of("Alice").public_key, "may I?"))
        (request,) = alice.heard
        payload = request.payload
        assert isinstance(payload, ChatMessage)
        assert payload.content_type is ContentType.CONTACT_REQUEST
        assert payload.contact_request_propagated_state is not None
        alice.accepts(request.message_id)
        assert list(penpal.bot.contacts) == [ALICE_KEY]
        tester.stop()
        tester.start()
        assert list(penpal.bot.contacts) == [ALICE_KEY]
        tester.run(penpal.bot.remove_contact(key_of("Alice").public_key))
        assert list(penpal.bot.contacts) == []


def test_both_ask_and_are_contacts() -> None:
    bot = StatusBot(node="http://node")
    bot.on_direct_message(_silent)
    with BotTester(bot) as tester:
        alice = tester.user("Alice").direct
        tester.run(bot.request_contact(key_of("Alice").public_key, "may I?"))
        alice.asks_to_be_contact("may I, too?")
        assert bot.contacts == (key_of("Alice").public_key,)


ALICE_KEY: Final = key_of("Alice").public_key


async def _silent(message: Message) -> None:
    return None


def test_what_nobody_acknowledges_is_repeated_over_a_restart_and_then_given_up() -> None:
    bot = StatusBot(node="http://node", options=BotOptions(**HOURLY))
    bot.on_direct_message(_silent)
    with BotTester(bot) as tester:
        alice = tester.user("Alice").direct
        alice.acknowledges = False

        async def speak() -> MessageId:
            return await bot.direct(ALICE_KEY).send("are you there?")

        sent = tester.run(speak())

        def copies() -> int:
            return sum(isinstance(one, Received) for one in alice.outcomes)

        assert copies() == 1
        tester.wait(31)
        assert copies() == 2
        tester.crash()
        tester.start()
        tester.wait(61)
        assert copies() == 3
        assert alice.texts == ["are you there?"]
        tester.wait(3 * 3600)
        assert copies() == MAX_SENDS
        assert tester.bot.reporter.counts["not_delivered", ""] == 1
        assert not bot.is_acknowledged(sent)
        tester.wait(24 * 3600)
        assert copies() == MAX_SENDS


def test_what_is_repeated_is_answered_once_and_acknowledged_again() -> None:
    penpal = Penpal()
    with BotTester(penpal.bot) as tester:
        alice = tester.user("Alice").direct
        one, _ = alice.datasync.send(
            tester.public_key, MessageId("0x0"), wrapped("once", tester.public_key), tester.now_ms()
        )
        payload = DataSyncPayload(messages=(one.message,)).encode()
        for restarts in (False, False, True):
            if restarts:
                tester.stop()
                tester.start()
            before = len(tester.relayed)
            alice.publish(payload)
            tester.wait()
            acks = [m for m in tester.relayed[before:] if m.content_topic == ALICE_TOPIC]
            assert acks, "each copy is acknowledged"
        assert penpal.told == ["once"]
        assert alice.texts == ["you said once"]


ALICE_TOPIC: Final = partitioned_topic(ALICE_KEY).content_topic


def wrapped(text: str, receiver: PublicKey) -> bytes:
    payload = message(direct_room(receiver), text)(START_MS, START_MS)
    return wrap(payload, key_of("Alice")).data


def test_who_passes_on_a_letter_is_refused() -> None:
    penpal = Penpal()
    with BotTester(penpal.bot) as tester:
        mallory = tester.user("Mallory").direct
        # Alice wrote that to Mallory, who encrypts it for the bot.
        mallory.publish(wrapped("I love you", key_of("Mallory").public_key))
        mallory.publish(wrapped("I love you", tester.public_key))
        tester.user("Alice").direct.publish(wrapped("for Carol", key_of("Carol").public_key))
        tester.wait()
        assert penpal.told == []
        assert refusals(tester) == {"forged_direct": 2, "wrong_chat": 1}


def test_changed_bytes_and_a_strange_device_are_refused() -> None:
    penpal = Penpal()
    with BotTester(penpal.bot) as tester:
        alice = tester.user("Alice").direct
        good = alice.correspondence.encrypt(wrapped("hi", tester.public_key), tester.public_key)

        for change in ("payload", "key", "device", "ratchet"):
            raw = status_pb2.ProtocolMessage.FromString(good)
            encrypted = raw.encrypted_message["none"]
            if change == "payload":
                encrypted.payload = encrypted.payload[:-1] + b"?"
            elif change == "key":
                encrypted.dh_header.key = b"\x02" + bytes(32)
            elif change == "ratchet":
                encrypted.dr_header.n = 4_000_000_000
                encrypted.ClearField("dh_header")
            else:
                raw.encrypted_message["another phone"].CopyFrom(encrypted)
                del raw.encrypted_message["none"]
            alice.publish_protocol(raw.SerializeToString())
        assert penpal.told == []
        assert refusals(tester) == {
            "bad_ciphertext": 2,
            "not_for_this_device": 1,
            "unknown_session": 1,
        }
        alice.publish_protocol(good)
        assert penpal.told == ["hi"]


def test_a_bot_without_a_function_for_them_refuses_and_acknowledges_nothing() -> None:
    bot = StatusBot(node="http://node")
    bot.join_public("tea")
    with BotTester(bot) as tester:
        alice = tester.user("Alice").direct
        alice.says("anybody?")
        tester.wait(60)
        assert alice.outcomes == [] and alice.delivered == set()
        assert refusals(tester) == {"direct_message_not_supported": 1}
        with pytest.raises(ValueError, match="0 chats"):
            bot.direct(ALICE_KEY)
        with pytest.raises(ValueError, match="on_direct_message"):
            tester.run(bot.request_contact(ALICE_KEY, "hello"))


def test_a_real_client_is_heard_and_acknowledged() -> None:
    """The recorded bytes of the client that wrote to a bot without a bundle."""
    cases = json.loads((DATA / "messages.json").read_text())
    wanted = [one for one in cases if "to a bot without bundle" in one["name"]]
    key = PrivateKey.from_hex(wanted[0]["opens_with"]["private_key_hex"])
    start_ms = wanted[0]["timestamp"] // NS_PER_MS - 60_000
    penpal = Penpal()
    with BotTester(penpal.bot, now_ms=start_ms) as tester:
        tester.stop()
        tester.key = key
        tester.forget()
        tester.start()
        for case in wanted[:2]:
            tester.wait(max(0, case["timestamp"] // NS_PER_MS - tester.now_ms()) / 1000)
            payload = bytes.fromhex(case["payload_hex"])
            message = WakuMessage(
                payload, case["content_topic"], case["version"], case["timestamp"]
            )
            tester.publish(message, shard=PubsubTopic.parse(case["pubsub_topic"]))
        assert penpal.told == ["asked: hi bot", "private hello"]
        bob = PublicKey.parse(wanted[0]["envelope"]["signer"])
        assert penpal.bot.contacts == (bob,)
        keys = json.loads((DATA / "keys.json").read_text())["keys"]
        client = tester.direct("Bob", PrivateKey.from_hex(keys["bob"]["private_hex"]))
        for one in tester.relayed:
            client.hear(one)
        acks = [ack for data in client.payloads for ack in data.acks]
        assert [ack.hex() for ack in acks] == [
            ack for one in wanted[:2] for ack in one["mvds"]["messages"]
        ]
        assert "you said private hello" in client.texts


def test_two_bots_become_contacts_and_talk() -> None:
    """Both run at the same time against one embedded node, each through REST."""
    bots, told = [StatusBot(node="http://node") for _ in range(2)], []
    keys = [key_of("one"), key_of("two")]
    one, two = bots

    @two.on_contact_request
    async def accept(request: ContactRequest) -> None:
        told.append(f"two was asked: {request.text}")
        await request.accept()

    @one.on_contact_change
    async def accepted(change: ContactChange) -> None:
        told.append(f"one has a contact: {change.is_contact}")
        await one.direct(change.author).send("first letter")

    @two.on_direct_message
    async def reply(message: Message) -> str:
        told.append(f"two read: {message.text}")
        return "second letter"

    @one.on_direct_message
    async def last(message: Message) -> Reaction:
        told.append(f"one read: {message.text}")
        return Reaction.LOVE

    @two.on_reaction
    async def reacted(change: ReactionChange) -> None:
        told.append(f"two got {change.reaction.name}")

    @one.task
    async def ask() -> None:
        await one.request_contact(keys[1].public_key, "be my contact")

    async def run() -> None:
        loop = asyncio.get_running_loop()
        options = NodeOptions(
            cluster_id=CLUSTER_ID,
            shards=(32, 64),
            static_sharding=True,
            now_ns=lambda: (START_MS + round(loop.time() * 1000)) * NS_PER_MS,
        )
        async with EmbeddedNode(options) as node, asyncio.TaskGroup() as tasks:
            for bot, key in zip(bots, keys, strict=True):
                tasks.create_task(serve(node, bot, key))
            await asyncio.sleep(120)
            assert len(one.contacts) == len(two.contacts) == 1
            for bot in bots:
                bot.stop()

    async def serve(node: EmbeddedNode, bot: StatusBot, key: PrivateKey) -> None:
        loop = asyncio.get_running_loop()

        def now_ms() -> int:
            return START_MS + round(loop.time() * 1000)

        memory = BotMemory(MemoryStateStore(), key.public_key, now_ms())
        async with WakuClient("http://node", app=node.app) as client:
            await bot.serve(BotContext(key=key, memory=memory, client=client, now_ms=now_ms))

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.run(run())
    assert told == [
        "two was asked: be my contact",
        "one has a contact: True",
        "two read: first letter",
        "one read: second letter",
        "two got LOVE",
    ]
    assert [bot.reporter.counts["delivered", ""] for bot in bots] == [2, 2]
    assert not any(bot.reporter.counts["not_delivered", ""] for bot in bots)


# -- with a double ratchet ------------------------------------------------------------------------


def ratcheting() -> Penpal:
    return Penpal(options=BotOptions(direct_encryption="ratchet"))


def headers(message: WakuMessage, key: PrivateKey) -> set[str]:
    """How a direct message to a user is encrypted."""
    plain = open_ecies(message.payload, key).payload
    raw = status_pb2.ProtocolMessage.FromString(plain)
    return {
        field.name
        for one in raw.encrypted_message.values()
        for field, _ in one.ListFields()
        if field.name != "payload"
    }


def test_a_ratchet_begins_with_the_first_answer_and_outlives_a_kill() -> None:
    penpal = ratcheting()
    with BotTester(penpal.bot) as tester:
        alice = tester.direct("Alice", device="phone")
        alice.says("one")
        tester.wait()
        to_alice = [one for one in tester.relayed if one.content_topic == ALICE_TOPIC]
        assert headers(to_alice[0], key_of("Alice")) == {"x3dh_header", "dr_header"}
        for text in ("two", "three"):
            alice.says(text)
            tester.wait()
            tester.crash()
            tester.start()
        to_alice = [one for one in tester.relayed if one.content_topic == ALICE_TOPIC]
        assert headers(to_alice[-1], key_of("Alice")) == {"dr_header"}
        assert alice.texts == [f"you said {text}" for text in ("one", "two", "three")]
        assert len(alice.delivered) == 3 and penpal.told == ["one", "two", "three"]
        assert set(refusals(tester)) == {"repeated_key"}, "what Store had of before the restarts"
        assert not tester.bot.reporter.counts["sessions_renegotiated", ""]


def test_users_with_several_devices_and_without_bundles_read_the_bot() -> None:
    penpal = ratcheting()
    with BotTester(penpal.bot) as tester:
        phone, tablet = (tester.direct("Alice", device=name) for name in ("phone", "tablet"))
        old = tester.user("Carol").direct
        phone.says("from the phone")
        tablet.says("from the tablet")
        assert tablet.texts == ["you said from the tablet"]
        assert phone.texts == ["you said from the phone", "you said from the tablet"]
        old.says("from Carol")
        assert old.texts == ["you said from Carol"]


def test_a_bot_with_an_old_state_begins_new_sessions_and_loses_nothing() -> None:
    penpal = ratcheting()
    with BotTester(penpal.bot) as tester:
        alice = tester.direct("Alice", device="phone")
        alice.says("before")
        tester.wait()
        tester.stop()
        tester.forget()  # no backup at all
        tester.start()
        alice.says("lost at first")
        tester.wait()
        assert tester.bot.reporter.counts["sessions_renegotiated", ""] == 1
        for _ in range(4):
            tester.wait(31)
            alice.repeat()
        tester.wait()
        assert penpal.told == ["before", "lost at first"]
        assert alice.texts[-1] == "you said lost at first"
        assert len(alice.delivered) == 2


@pytest.mark.parametrize("speaks", ["Alice", "the bot"])
def test_an_older_copy_of_the_state_heals_with_one_message(speaks: str) -> None:
    """As status-go keeps sessions, a conversation was dead for good."""
    penpal = ratcheting()
    store = MemoryStateStore()
    with BotTester(penpal.bot, store=store) as tester:
        alice, carol = tester.direct("Alice", device="phone"), tester.direct("Carol", device="pc")

        def turn(text: str) -> None:
            alice.says(text)
            tester.wait()
            carol.says(text)
            tester.wait()

        turn("before")
        tester.stop()
        backup = copy.deepcopy(store)
        tester.start()
        for number in range(3):
            turn(f"turn {number}")
        tester.stop()
        tester.restore(backup)
        tester.start()
        if speaks == "the bot":
            tester.run(penpal.bot.direct(ALICE_KEY).send("do you hear me?"))
        alice.says("lost or not")
        tester.wait()
        alice.says("heard at once")
        carol.says("and I?")
        tester.wait()
        assert alice.texts[-1] == "you said heard at once" and carol.texts[-1] == "you said and I?"
        tester.wait(31)
        alice.repeat()
        tester.wait(61)
        assert penpal.told.count("lost or not") == penpal.told.count("heard at once") == 1
        assert len(alice.delivered) == 6, "what was repeated is acknowledged once it opens"
        assert ("do you hear me?" in alice.texts) == (speaks == "the bot")


@pytest.mark.parametrize("encryption", ["dh", "ratchet"])
def test_name_and_picture_are_shown_before_the_first_word(
    encryption: DirectEncryption, tmp_path: Path
) -> None:
    picture = tmp_path / "tea.png"
    picture.write_bytes(PNG)
    options = BotOptions(
        display_name="tea bot", image=picture, direct_encryption=encryption, **HOURLY
    )
    penpal = Penpal(options=options)
    with BotTester(penpal.bot) as tester:

        def codes() -> list[status_pb2.ContactCodeAdvertisement]:
            topic = contact_code_topic(tester.public_key)
            found = []
            for one in tester.relayed:
                if one.content_topic == topic.content_topic:
                    opened = open_symmetric(one.payload, topic.key)
                    assert opened.signer == tester.public_key
                    protocol = status_pb2.ProtocolMessage.FromString(opened.payload)
                    assert [read_bundle(bundle).identity for bundle in protocol.bundles] == (
                        [tester.public_key] if encryption == "ratchet" else []
                    )
                    signed = status_pb2.ApplicationMetadataMessage.FromString(
                        protocol.public_message
                    )
                    assert signed.type == PayloadType.CONTACT_CODE_ADVERTISEMENT
                    found.append(status_pb2.ContactCodeAdvertisement.FromString(signed.payload))
            return found

        (code,) = codes()
        identity = code.chat_identity
        assert identity.display_name == "tea bot"
        assert {image.payload for image in identity.images.values()} == {PNG}
        assert set(identity.images) == {"thumbnail", "large"}
        tester.stop()
        tester.start()
        assert len(codes()) == 1, "once a day"
        tester.wait(25 * 3600)
        assert len(codes()) == 2
        alice = tester.user("Alice").direct
        alice.asks_to_be_contact("let me in")
        accepted, named = (one.payload for one in alice.heard)
        assert isinstance(accepted, AcceptContactRequest)
        assert isinstance(named, ContactUpdate) and named.display_name == "tea bot"


def test_each_direct_message_is_heard_and_answers_are_limited() -> None:
    penpal = Penpal(options=BotOptions(user_limit=RateLimit(calls=10, per_ms=10_000_000)))
    with BotTester(penpal.bot) as tester:
        alice = tester.user("Alice").direct
        sent = [alice.says(f"{number}") for number in range(40)]
        tester.wait()
        assert penpal.told == [f"{number}" for number in range(40)]
        assert alice.delivered == set(sent)
        assert len(alice.texts) == 10
        withheld = tester.bot.reporter.counts["answers_withheld", ""]
        assert withheld == 40 - len(alice.texts) == tester.bot.reporter.counts["rate_limited", ""]
        alice.says("!ping")
        assert "pong" not in alice.texts and penpal.told[40:] == [], "a command is no message"


def test_both_pin_in_a_direct_chat_and_others_do_not() -> None:
    penpal = Penpal()
    pins: list[tuple[str, bool]] = []

    @penpal.bot.on_pin
    async def note(pin: PinChange) -> None:
        pins.append((pin.message_id, pin.is_pinned))

    with BotTester(penpal.bot) as tester:
        alice, room = tester.user("Alice").direct, direct_room(tester.public_key)
        said = alice.says("pin me")
        (answer,) = [one.message_id for one in alice.heard]
        for message_id in (said, answer):
            alice.does(payload_builders.pin(room, message_id, True))
        tester.run(penpal.bot.direct(ALICE_KEY).pin(said, pinned=False))
        assert pins == [(said, True), (answer, True)]
        assert refusals(tester) == {}


def test_a_million_messages_ahead_and_an_unknown_session_are_refused_by_name() -> None:
    penpal = ratcheting()
    with BotTester(penpal.bot) as tester:
        alice = tester.direct("Alice", device="phone")
        alice.says("one")
        tester.wait()
        good = alice.correspondence.encrypt(wrapped("two", tester.public_key), tester.public_key)
        for change in ("n", "session"):
            raw = status_pb2.ProtocolMessage.FromString(good)
            for one in raw.encrypted_message.values():
                if change == "n":
                    one.dr_header.n = 1_000_000
                else:
                    one.dr_header.id = bytes(33)
            alice.publish_protocol(raw.SerializeToString())
        assert refusals(tester) == {"too_many_skipped": 1, "unknown_session": 1}
        alice.publish_protocol(good)
        assert penpal.told == ["one", "two"]


def test_an_unknown_encryption_is_refused() -> None:
    with pytest.raises(ValueError, match="direct_encryption"):
        BotOptions(direct_encryption="none")  # type: ignore[arg-type]
