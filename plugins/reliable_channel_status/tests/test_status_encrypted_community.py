"""Encrypted communities and channels: two bots, members' clients, and an owner as of status-go."""

from typing import Any, Final

import pytest
from status_world import ALICE, COMMUNITY, GENERAL, MALLORY, OWNER, said
from test_status_bot_restart import FailingStore, Killed
from test_status_owned_community import Guest, owner_bot

from reliable_channel_status import (
    Access,
    CommunityEncryptionKeysRequest,
    PrivateKey,
    Sealer,
    wrap,
)
from reliable_channel_status.bot import KitOwner, Message, OutboxFull, StatusBot, StatusTestKit
from reliable_channel_status.bot.owned_keys import ASKED_AGAIN_MS, REKEY_MS
from reliable_channel_status.bot.session import ASK_KEYS_MS
from reliable_channel_status.bot.testkit import key_of
from reliable_channel_status.pipeline import NS_PER_MS

GROUP: Final = COMMUNITY.public_key.compressed
IDENTITY: Final = key_of("the owner's client")


def encrypted_bot() -> StatusBot:
    bot = owner_bot()

    @bot.task
    async def encrypt() -> None:
        description = bot.owned.description
        if description is not None and not description.token_permissions:
            await bot.owned.encrypt()

    @bot.on_message
    async def answer(message: Message) -> None:
        if message.text == "ping":
            await message.reply("pong")

    return bot


def listening(guest: Guest) -> list[str]:
    heard: list[str] = []

    @guest.bot.on_message
    async def note(message: Message) -> None:
        heard.append(message.text)

    return heard


def is_readable(kit: StatusTestKit, text: str) -> bool:
    """Whether a user without a group key reads a text of the bot's or of its users'."""
    texts = [getattr(one.payload, "text", "") for one in kit.heard]
    return text in texts


def test_members_read_and_others_do_not() -> None:
    owner, guest = encrypted_bot(), Guest()
    heard = listening(guest)
    with StatusTestKit(owner, community_key=OWNER) as kit:
        outside = kit.client(COMMUNITY)
        reader = kit.client(COMMUNITY, key=ALICE)
        kit.user("Alice", ALICE).requests_to_join(COMMUNITY)
        me = kit.starts(guest.bot, "guest")
        kit.wait(5)
        assert guest.changes == ["joined"] and me in owner.owned.members
        kit.run(guest.say("ping"))
        kit.wait(5)
        assert heard == ["pong"]
        assert reader.texts == ["ping", "pong"]
        assert outside.texts == [] and not is_readable(kit, "ping")
        assert outside.description is not None and outside.description.members == {}
        assert reader.description is not None and me.hex in reader.description.members
        kit.run(owner.owned.kick(me))
        kit.wait(5)
        assert guest.changes == ["joined", "kicked"]
        kit.run(owner.channel(GENERAL).send("without you"))
        kit.wait(5)
        assert heard == ["pong"] and reader.texts[-1] == "without you"


def test_a_private_channel_is_for_its_members() -> None:
    owner, guest = owner_bot(), Guest()
    heard = listening(guest)
    with StatusTestKit(owner, community_key=OWNER) as kit:
        reader, me = kit.client(COMMUNITY, key=ALICE), kit.starts(guest.bot, "guest")
        kit.user("Alice", ALICE).requests_to_join(COMMUNITY)
        kit.wait(5)
        kit.run(owner.owned.make_private(GENERAL, [me]))
        kit.wait(5)
        kit.run(owner.channel(GENERAL).send("for two"))
        kit.wait(5)
        assert heard == ["for two"] and reader.texts == [] and not is_readable(kit, "for two")
        kit.run(owner.owned.make_private(GENERAL, [ALICE.public_key]))
        kit.wait(5)
        kit.run(owner.channel(GENERAL).send("for two others"))
        kit.wait(5)
        assert heard == ["for two"], "the key was replaced, and the guest has the old one"
        assert reader.texts == ["for two", "for two others"], "with the history"
        kit.run(owner.owned.make_public(GENERAL))
        kit.wait(5)
        kit.run(owner.channel(GENERAL).send("for all"))
        kit.wait(5)
        assert heard[-1] == "for all" and is_readable(kit, "for all")


def test_restarts_keep_keys_and_write_on() -> None:
    owner, guest = encrypted_bot(), Guest()
    heard = listening(guest)
    with StatusTestKit(owner, community_key=OWNER) as kit:
        kit.starts(guest.bot, "guest")
        kit.wait(5)
        before = owner._now().group_keys.current(GROUP)
        kit.crash()
        kit.start()
        kit.wait(5)
        assert owner.owned.is_active, "its own description is read as its own"
        assert owner._now().group_keys.current(GROUP) == before
        kit.run(owner.channel(GENERAL).send("again"))
        kit.wait(5)
        assert heard == ["again"]


def test_an_owner_of_status_go_lets_a_bot_in() -> None:
    bot, heard = StatusBot(node="http://node", community=COMMUNITY, channels=[GENERAL]), []

    @bot.on_message
    async def note(message: Message) -> str:
        heard.append(message.text)
        return "yes"

    with StatusTestKit(bot) as kit:
        owner = kit.owner(OWNER, access=Access.MANUAL_ACCEPT, identity=IDENTITY)
        owner.members[ALICE.public_key] = None
        owner.publishes()
        kit.wait(5)
        assert owner.requests == [kit.public_key]
        owner.lets_in(kit.public_key)
        kit.wait(5)
        assert bot.standing(COMMUNITY) == "member"
        says(kit, owner, ALICE, "are you there?")
        kit.wait(5)
        assert heard == ["are you there?"] and not is_readable(kit, "yes")
        assert owner.texts == ["are you there?", "yes"]
        kit.crash()
        kit.start()
        owner.rekeys()
        says(kit, owner, ALICE, "with a new key")  # and the key comes later
        assert heard == ["are you there?"]
        assert bot.watch.counts["refused", "waits_for_key"] >= 1
        kit.crash()
        kit.start()
        owner.publishes()
        kit.wait(5)
        assert heard == ["are you there?", "with a new key"], "it waited, over a restart"
        owner.removes(kit.public_key)
        kit.wait(5)
        assert bot.standing(COMMUNITY) == "kicked"


def says(kit: StatusTestKit, owner: KitOwner, key: PrivateKey, text: str) -> None:
    """What a member writes, encrypted with the owner's key."""
    now_ms = kit.now_ms()
    signed = wrap(said(text, clock=kit.next_clock(), timestamp=now_ms), key)
    data = owner.own_keys.encrypt(GROUP, signed.data)
    for message in Sealer(key).seal_protocol(data, COMMUNITY.universal_topic, now_ms * NS_PER_MS):
        kit.publish(message)


def test_a_bot_asks_for_a_key_that_does_not_come() -> None:
    bot = StatusBot(node="http://node", community=COMMUNITY, channels=[GENERAL])
    with StatusTestKit(bot) as kit:
        owner = kit.owner(OWNER, identity=IDENTITY)
        owner.publishes()
        kit.wait(5)
        assert bot.standing(COMMUNITY) == "member"
        owner.rekeys()
        says(kit, owner, ALICE, "early")
        kit.wait(ASK_KEYS_MS / 1000 + 120)
        assert bot.watch.counts["keys_requested", ""] == 1
        kit.wait(ASK_KEYS_MS / 1000 + 120)
        assert bot.watch.counts["keys_requested", ""] == 2


def test_members_that_ask_get_their_keys_again_and_others_do_not() -> None:
    owner = encrypted_bot()
    with StatusTestKit(owner, community_key=OWNER) as kit:
        kit.user("Alice", ALICE).requests_to_join(COMMUNITY)
        kit.wait(5)
        assert owner.watch.counts["keys_sent", ""] == 0, "the description brought the only key"
        for key, sent in ((ALICE, 1), (ALICE, 1), (MALLORY, 1)):
            asks_for_keys(kit, key)
            assert owner.watch.counts["keys_sent", ""] == sent
        assert owner.watch.counts["requests_refused", "invalid"] == 1
        kit.wait(ASKED_AGAIN_MS / 1000)
        asks_for_keys(kit, ALICE)
        assert owner.watch.counts["keys_sent", ""] == 2


def asks_for_keys(kit: StatusTestKit, key: PrivateKey) -> None:
    request, topic = CommunityEncryptionKeysRequest(community_id=GROUP), COMMUNITY.requests_topic
    sealed = Sealer(key).seal(request, topic, kit.now_ms(), receiver=OWNER.public_key)
    kit.publish(sealed.messages[0])
    kit.wait(5)


def test_new_members_read_what_was_said_under_earlier_keys() -> None:
    owner = encrypted_bot()
    with StatusTestKit(owner, community_key=OWNER) as kit:
        kit.user("Alice", ALICE).requests_to_join(COMMUNITY)
        kit.wait(5)
        kit.run(owner.channel(GENERAL).send("the first"))
        kit.run(owner.owned.kick(ALICE.public_key))
        kit.wait(5)
        kit.run(owner.channel(GENERAL).send("the second"))
        kit.user("Mallory", MALLORY).requests_to_join(COMMUNITY)
        kit.wait(5)
        assert owner.watch.counts["keys_sent", ""] == 1
        assert set(kit.client(COMMUNITY, key=MALLORY).texts) == {"the first", "the second"}
        assert kit.client(COMMUNITY, key=ALICE).texts == ["the first"]


def test_a_flood_of_keys_waits_for_the_node(monkeypatch: pytest.MonkeyPatch) -> None:
    owner, people = owner_bot(), [key_of(f"{n}") for n in range(6)]
    with StatusTestKit(owner, community_key=OWNER) as kit:
        for one in people:
            kit.user("one", one).requests_to_join(COMMUNITY)
        kit.wait(5)
        memory, refused = owner._now().memory, 3
        say = memory.say

        def full(once: str, *arguments: Any) -> None:
            nonlocal refused
            if once.startswith("keys ") and refused:
                refused -= 1
                raise OutboxFull("it is away")
            say(once, *arguments)

        monkeypatch.setattr(memory, "say", full)
        kit.run(owner.owned.make_private(GENERAL, [one.public_key for one in people]))
        kit.wait(10)
        assert refused == 0 and owner.watch.counts["keys_sent", ""] >= 5
        reader = kit.client(COMMUNITY, key=people[-1])
        kit.run(owner.channel(GENERAL).send("hello"))
        assert reader.texts == ["hello"]


def test_a_key_is_replaced_after_two_days() -> None:
    owner = encrypted_bot()
    with StatusTestKit(owner, community_key=OWNER) as kit:
        kit.user("Alice", ALICE).requests_to_join(COMMUNITY)
        reader = kit.client(COMMUNITY, key=ALICE)
        kit.wait(5)
        before = owner._now().group_keys.current(GROUP)
        kit.wait(REKEY_MS / 1000 + 600)
        assert owner._now().group_keys.current(GROUP) != before
        kit.run(owner.channel(GENERAL).send("with the new one"))
        kit.wait(5)
        assert reader.texts == ["with the new one"]


@pytest.mark.parametrize("is_after", [False, True])
@pytest.mark.parametrize("at", [4, 7, 10])
def test_an_owner_that_is_killed_gives_its_members_keys(at: int, is_after: bool) -> None:
    store = FailingStore()
    owner = encrypted_bot()
    with StatusTestKit(owner, community_key=OWNER, store=store) as kit:
        reader = kit.client(COMMUNITY, key=ALICE)
        kit.wait(5)
        store.at, store.is_after = store.writes + at, is_after
        try:
            kit.user("Alice", ALICE).requests_to_join(COMMUNITY)
            kit.wait(5)
            kit.run(owner.channel(GENERAL).send("once"))
            kit.wait(100)
        except (Killed, BaseExceptionGroup) as end:
            assert isinstance(end, Killed) or end.subgroup(Killed)
            kit.crash()
            kit.start()
            kit.wait(100)
        kit.run(owner.channel(GENERAL).send("hello"))
        kit.wait(5)
        assert reader.texts[-1] == "hello"
