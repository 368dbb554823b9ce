"""Encrypted communities and channels: two bots, members' clients, and an owner as of status-go."""

from typing import Any, Final

import pytest

from reliable_channel_status import (
    DEFAULT_SHARD,
    NON_PROTECTED_SHARD,
    Access,
    CommunityEncryptionKeysRequest,
    CommunityRequestToLeave,
    CommunityUserKicked,
    Opener,
    PrivateKey,
    Received,
    Sealer,
    partitioned_topic,
    wrap,
)
from reliable_channel_status.bot import Message, OutboxFull, StatusBot
from reliable_channel_status.bot.outbox import ASK_KEYS_MS
from reliable_channel_status.bot.session import Session
from reliable_channel_status.community.member_keys import ASKED_AGAIN_MS, REKEY_MS
from reliable_channel_status.testing import BotTester, FakeOwner
from reliable_channel_status.testing.fake_user import key_of
from reliable_channel_status.wire.sealing import NS_PER_MS
from status_tests.bot.test_memory import FailingStore, Killed
from status_tests.bot.test_owned import Guest, owner_bot
from status_tests.world import ALICE, COMMUNITY, GENERAL, HOURLY, MALLORY, OWNER, said

GROUP: Final = COMMUNITY.public_key.compressed
IDENTITY: Final = key_of("the owner's client")


def session(bot: StatusBot) -> Session:
    return bot._now()  # noqa: SLF001


def encrypted_bot(**options: Any) -> StatusBot:
    bot = owner_bot(**options)

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


def is_readable(tester: BotTester, text: str) -> bool:
    """Whether a user without a group key reads a text of the bot's or of its users'."""
    texts = [getattr(one.payload, "text", "") for one in tester.heard]
    return text in texts


def test_members_read_and_others_do_not() -> None:
    owner, guest = encrypted_bot(), Guest()
    heard = listening(guest)
    with BotTester(owner, community_key=OWNER) as tester:
        outside = tester.client(COMMUNITY)
        reader = tester.client(COMMUNITY, key=ALICE)
        tester.user("Alice", ALICE).requests_to_join(COMMUNITY)
        me = tester.starts(guest.bot, "guest")
        tester.wait(5)
        assert guest.changes == ["joined"] and me in owner.owned.members
        tester.run(guest.say("ping"))
        tester.wait(5)
        assert heard == ["pong"]
        assert reader.texts == ["ping", "pong"]
        assert outside.texts == [] and not is_readable(tester, "ping")
        assert outside.description is not None and outside.description.members == {}
        assert reader.description is not None and me.hex in reader.description.members
        tester.run(owner.owned.kick(me))
        tester.wait(5)
        assert guest.changes == ["joined", "kicked"]
        tester.run(owner.channel(GENERAL).send("without you"))
        tester.wait(5)
        assert heard == ["pong"] and reader.texts[-1] == "without you"


def test_a_private_channel_is_for_its_members() -> None:
    owner, guest = owner_bot(), Guest()
    heard = listening(guest)
    with BotTester(owner, community_key=OWNER) as tester:
        reader, me = tester.client(COMMUNITY, key=ALICE), tester.starts(guest.bot, "guest")
        tester.user("Alice", ALICE).requests_to_join(COMMUNITY)
        tester.wait(5)
        tester.run(owner.owned.make_private(GENERAL, [me]))
        tester.wait(5)
        tester.run(owner.channel(GENERAL).send("for two"))
        tester.wait(5)
        assert heard == ["for two"] and reader.texts == [] and not is_readable(tester, "for two")
        tester.run(owner.owned.make_private(GENERAL, [ALICE.public_key]))
        tester.wait(5)
        tester.run(owner.channel(GENERAL).send("for two others"))
        tester.wait(5)
        assert heard == ["for two"], "the key was replaced, and the guest has the old one"
        assert reader.texts == ["for two", "for two others"], "with the history"
        tester.run(owner.owned.make_public(GENERAL))
        tester.wait(5)
        tester.run(owner.channel(GENERAL).send("for all"))
        tester.wait(5)
        assert heard[-1] == "for all" and is_readable(tester, "for all")


def test_restarts_keep_keys_and_write_on() -> None:
    owner, guest = encrypted_bot(), Guest()
    heard = listening(guest)
    with BotTester(owner, community_key=OWNER) as tester:
        tester.starts(guest.bot, "guest")
        tester.wait(5)
        before = session(owner).group_keys.current(GROUP)
        tester.crash()
        tester.start()
        tester.wait(5)
        assert owner.owned.is_active, "its own description is read as its own"
        assert session(owner).group_keys.current(GROUP) == before
        tester.run(owner.channel(GENERAL).send("again"))
        tester.wait(5)
        assert heard == ["again"]


def test_an_owner_of_status_go_lets_a_bot_in() -> None:
    bot, heard = StatusBot(node="http://node", community=COMMUNITY, channels=[GENERAL]), []

    @bot.on_message
    async def note(message: Message) -> str:
        heard.append(message.text)
        return "yes"

    with BotTester(bot) as tester:
        owner = tester.owner(OWNER, access=Access.MANUAL_ACCEPT, identity=IDENTITY)
        owner.members[ALICE.public_key] = None
        owner.publishes()
        tester.wait(5)
        assert owner.requests == [tester.public_key]
        owner.lets_in(tester.public_key)
        tester.wait(5)
        assert bot.standing(COMMUNITY) == "member"
        says(tester, owner, ALICE, "are you there?")
        tester.wait(5)
        assert heard == ["are you there?"] and not is_readable(tester, "yes")
        assert owner.texts == ["are you there?", "yes"]
        tester.crash()
        tester.start()
        owner.rekeys()
        says(tester, owner, ALICE, "with a new key")  # and the key comes later
        assert heard == ["are you there?"]
        assert bot.reporter.counts["refused", "waits_for_key"] >= 1
        tester.crash()
        tester.start()
        owner.publishes()
        tester.wait(5)
        assert heard == ["are you there?", "with a new key"], "it waited, over a restart"
        owner.removes(tester.public_key)
        tester.wait(5)
        assert bot.standing(COMMUNITY) == "kicked"


def says(tester: BotTester, owner: FakeOwner, key: PrivateKey, text: str) -> None:
    """What a member writes, encrypted with the owner's key."""
    now_ms = tester.now_ms()
    signed = wrap(said(text, clock=tester.next_clock(), timestamp=now_ms), key)
    data = owner.own_keys.encrypt(GROUP, signed.data)
    for message in Sealer(key).seal_protocol(data, COMMUNITY.universal_topic, now_ms * NS_PER_MS):
        tester.publish(message)


def test_a_bot_asks_for_a_key_that_does_not_come() -> None:
    bot = StatusBot(node="http://node", community=COMMUNITY, channels=[GENERAL])
    with BotTester(bot) as tester:
        owner = tester.owner(OWNER, identity=IDENTITY)
        owner.publishes()
        tester.wait(5)
        assert bot.standing(COMMUNITY) == "member"
        owner.rekeys()
        says(tester, owner, ALICE, "early")
        tester.wait(ASK_KEYS_MS / 1000 + 120)
        assert bot.reporter.counts["keys_requested", ""] == 1
        tester.wait(ASK_KEYS_MS / 1000 + 120)
        assert bot.reporter.counts["keys_requested", ""] == 2


def test_members_that_ask_get_their_keys_again_and_others_do_not() -> None:
    owner = encrypted_bot()
    with BotTester(owner, community_key=OWNER) as tester:
        tester.user("Alice", ALICE).requests_to_join(COMMUNITY)
        tester.wait(5)
        assert owner.reporter.counts["keys_sent", ""] == 0, "the description brought the only key"
        for key, sent in ((ALICE, 1), (ALICE, 1), (MALLORY, 1)):
            asks_for_keys(tester, key)
            assert owner.reporter.counts["keys_sent", ""] == sent
        assert owner.reporter.counts["requests_refused", "invalid"] == 1
        tester.wait(ASKED_AGAIN_MS / 1000)
        asks_for_keys(tester, ALICE)
        assert owner.reporter.counts["keys_sent", ""] == 2


def asks_for_keys(tester: BotTester, key: PrivateKey) -> None:
    request, topic = CommunityEncryptionKeysRequest(community_id=GROUP), COMMUNITY.requests_topic
    sealed = Sealer(key).seal(request, topic, tester.now_ms(), receiver=OWNER.public_key)
    tester.publish(sealed.messages[0])
    tester.wait(5)


def test_new_members_read_what_was_said_under_earlier_keys() -> None:
    owner = encrypted_bot()
    with BotTester(owner, community_key=OWNER) as tester:
        tester.user("Alice", ALICE).requests_to_join(COMMUNITY)
        tester.wait(5)
        tester.run(owner.channel(GENERAL).send("the first"))
        tester.run(owner.owned.kick(ALICE.public_key))
        tester.wait(5)
        tester.run(owner.channel(GENERAL).send("the second"))
        tester.user("Mallory", MALLORY).requests_to_join(COMMUNITY)
        tester.wait(5)
        assert owner.reporter.counts["keys_sent", ""] == 1
        assert set(tester.client(COMMUNITY, key=MALLORY).texts) == {"the first", "the second"}
        assert tester.client(COMMUNITY, key=ALICE).texts == ["the first"]


def notices(tester: BotTester, key: PrivateKey) -> list[CommunityUserKicked]:
    """What told a member that it was removed, from the owner's shard."""
    opener = Opener([partitioned_topic(key.public_key)], private_keys=[key])
    found = [one for message in tester.relayed for one in opener.receive(message, 0)]
    read = [one.payload for one in found if isinstance(one, Received)]
    return [one for one in read if isinstance(one, CommunityUserKicked)]


@pytest.mark.parametrize("how", ["kick", "ban"])
def test_a_removed_member_is_told_on_both_shards(how: str) -> None:
    owner, both = encrypted_bot(), (DEFAULT_SHARD, NON_PROTECTED_SHARD)
    with BotTester(owner, community_key=OWNER) as tester:
        tester.user("Alice", ALICE).requests_to_join(COMMUNITY)
        tester.user("Mallory", MALLORY).requests_to_join(COMMUNITY)
        tester.wait(5)
        clients = [tester.client(COMMUNITY, key=ALICE, shards=[shard]) for shard in both]
        another = tester.client(COMMUNITY, key=MALLORY)
        tester.run(getattr(owner.owned, how)(ALICE.public_key))
        tester.wait(5)
        assert [one.kicks for one in (*clients, another)] == [1, 1, 0]
        (notice,) = notices(tester, ALICE)
        assert owner.owned.description is not None
        assert notice.clock == owner.owned.description.clock + 1
        assert notice.community_id == COMMUNITY.public_key.compressed
        leaving = CommunityRequestToLeave(clock=tester.now_ms() // 1000, community_id=GROUP)
        topic, now_ms = COMMUNITY.requests_topic, tester.now_ms()
        sealed = Sealer(MALLORY).seal(leaving, topic, now_ms, receiver=OWNER.public_key)
        tester.publish(sealed.messages[0])
        tester.wait(5)
        assert MALLORY.public_key not in owner.owned.members
        assert another.kicks == 0, "who leaves knows it"


def test_of_a_community_in_the_clear_the_description_tells() -> None:
    owner = owner_bot()
    with BotTester(owner, community_key=OWNER) as tester:
        tester.user("Alice", ALICE).requests_to_join(COMMUNITY)
        tester.wait(5)
        tester.run(owner.owned.kick(ALICE.public_key))
        tester.wait(5)
        assert notices(tester, ALICE) == []


@pytest.mark.parametrize("is_after", [False, True])
@pytest.mark.parametrize("at", range(1, 7))
def test_an_owner_that_is_killed_tells_a_removed_member_once(at: int, is_after: bool) -> None:
    store = FailingStore()
    owner = encrypted_bot()
    with BotTester(owner, community_key=OWNER, store=store) as tester:
        tester.user("Alice", ALICE).requests_to_join(COMMUNITY)
        tester.wait(5)
        store.at, store.is_after = store.writes + at, is_after
        try:
            tester.run(owner.owned.kick(ALICE.public_key))
            tester.wait(100)
        except (Killed, BaseExceptionGroup) as end:
            assert isinstance(end, Killed) or end.subgroup(Killed)
            tester.crash()
            tester.start()
        tester.wait(100)
        assert len({one.clock for one in notices(tester, ALICE)}) == 1
        assert ALICE.public_key not in owner.owned.members


def test_a_notice_alone_removes_no_bot() -> None:
    """It names no member, so that one that was removed can pass it on."""
    guest = Guest()
    with BotTester(guest.bot) as tester:
        owner = tester.owner(OWNER)
        owner.lets_in(tester.public_key)
        tester.wait(5)
        notice = CommunityUserKicked(clock=tester.now_ms() + 1, community_id=GROUP)
        topic = partitioned_topic(tester.public_key)
        sealed = Sealer(OWNER).seal(notice, topic, tester.now_ms(), receiver=tester.public_key)
        tester.publish(sealed.messages[0])
        assert guest.bot.standing(COMMUNITY) == "member"
        assert guest.bot.reporter.counts["kick_notices", ""] == 1


def test_a_flood_of_keys_waits_for_the_node(monkeypatch: pytest.MonkeyPatch) -> None:
    owner, people = owner_bot(), [key_of(f"{n}") for n in range(6)]
    with BotTester(owner, community_key=OWNER) as tester:
        for one in people:
            tester.user("one", one).requests_to_join(COMMUNITY)
        tester.wait(5)
        memory, refused = session(owner).memory, 3
        say = memory.say

        def full(once: str, *arguments: Any) -> None:
            nonlocal refused
            if once.startswith("keys ") and refused:
                refused -= 1
                raise OutboxFull("it is away")
            say(once, *arguments)

        monkeypatch.setattr(memory, "say", full)
        tester.run(owner.owned.make_private(GENERAL, [one.public_key for one in people]))
        tester.wait(10)
        assert refused == 0 and owner.reporter.counts["keys_sent", ""] >= 5
        reader = tester.client(COMMUNITY, key=people[-1])
        tester.run(owner.channel(GENERAL).send("hello"))
        assert reader.texts == ["hello"]


def test_a_key_is_replaced_after_two_days() -> None:
    owner = encrypted_bot(**HOURLY)
    with BotTester(owner, community_key=OWNER) as tester:
        tester.user("Alice", ALICE).requests_to_join(COMMUNITY)
        reader = tester.client(COMMUNITY, key=ALICE)
        tester.wait(5)
        before = session(owner).group_keys.current(GROUP)
        tester.wait(REKEY_MS / 1000 + 600)
        assert session(owner).group_keys.current(GROUP) != before
        tester.run(owner.channel(GENERAL).send("with the new one"))
        tester.wait(5)
        assert reader.texts == ["with the new one"]


@pytest.mark.parametrize("is_after", [False, True])
@pytest.mark.parametrize("at", [4, 7, 10])
def test_an_owner_that_is_killed_gives_its_members_keys(at: int, is_after: bool) -> None:
    store = FailingStore()
    owner = encrypted_bot()
    with BotTester(owner, community_key=OWNER, store=store) as tester:
        reader = tester.client(COMMUNITY, key=ALICE)
        tester.wait(5)
        store.at, store.is_after = store.writes + at, is_after
        try:
            tester.user("Alice", ALICE).requests_to_join(COMMUNITY)
            tester.wait(5)
            tester.run(owner.channel(GENERAL).send("once"))
            tester.wait(100)
        except (Killed, BaseExceptionGroup) as end:
            assert isinstance(end, Killed) or end.subgroup(Killed)
            tester.crash()
            tester.start()
            tester.wait(100)
        tester.run(owner.channel(GENERAL).send("hello"))
        tester.wait(5)
        assert reader.texts[-1] == "hello"
