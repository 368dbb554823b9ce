"""A bot runs a community: another joins, speaks, is kicked, and is heard no more by anybody."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any, Final

import pytest

from reliable_channel_status import (
    Access,
    CommunityProfile,
    InviteLink,
    NotControlNode,
    PrivateKey,
    Role,
    Sealer,
    Topic,
    contact_code_topic,
    join_request,
    keccak256,
    open_ecies,
    seal_ecies,
)
from reliable_channel_status.bot import (
    BotOptions,
    CannotJoin,
    JoinRequest,
    MembershipChange,
    Message,
    OwnedCommunity,
    StatusBot,
)
from reliable_channel_status.testing import BotTester
from reliable_channel_status.testing.fake_user import key_of
from reliable_channel_status.testing.tester import START_MS
from reliable_channel_status.wire import payload_builders
from status_tests.world import ALICE, BOB, COMMUNITY, GENERAL, HOURLY, MALLORY, OWNER, said
from waku import WakuMessage

REQUESTS: Final = COMMUNITY.requests_topic.content_topic
PROFILE: Final = CommunityProfile(name="Tea", description="All about tea")
MANUAL: Final = CommunityProfile(
    name="Tea", description="All about tea", access=Access.MANUAL_ACCEPT
)


def owner_bot(profile: CommunityProfile = PROFILE, **options: Any) -> StatusBot:
    """A bot that founds its community, once."""
    bot = StatusBot(node="http://node", options=BotOptions(display_name="owner", **options))

    @bot.task
    async def found() -> None:
        if bot.owned.description is None:
            await bot.owned.found(profile)
            await bot.owned.add_channel("general", "For all", channel=GENERAL)

    return bot


def of_the_community(tester: BotTester) -> list[WakuMessage]:
    """What was relayed, but for the name that the bot publishes each day."""
    code = contact_code_topic(tester.public_key).content_topic
    return [one for one in tester.relayed if one.content_topic != code]


def publish_request(
    tester: BotTester, key: PrivateKey, name: str, asked_ms: int, *, settle: bool = True
) -> None:
    """Publish a user's request to join that was made at a time."""
    topic = COMMUNITY.requests_topic
    request = join_request(key, COMMUNITY, asked_ms, display_name=name)
    sealed = Sealer(key).seal(request, topic, tester.now_ms(), receiver=COMMUNITY.public_key)
    tester.publish(sealed.messages[0], settle=settle)


class Guest:
    """A bot that joins, and notes what becomes of it."""

    def __init__(self) -> None:
        self.bot = StatusBot(
            node="http://node",
            community=COMMUNITY,
            channels=[GENERAL],
            options=BotOptions(display_name="guest"),
        )
        self.changes: list[str] = []
        for name in ("joined", "kicked", "rejected"):
            getattr(self.bot, f"on_{name}")(self._note(name))

    def _note(self, name: str) -> Callable[[MembershipChange], Awaitable[None]]:
        async def note(change: MembershipChange) -> None:
            self.changes.append(name)

        return note

    async def say(self, text: str) -> None:
        await self.bot.channel(GENERAL).send(text)


def test_a_member_bot_joins_speaks_and_is_kicked() -> None:
    owner, guest, heard = owner_bot(), Guest(), []

    @owner.on_message
    async def note(message: Message) -> None:
        heard.append(message.text)

    with BotTester(owner, community_key=OWNER) as tester:
        reader = tester.client(COMMUNITY)
        newer = tester.client(COMMUNITY, versions=(0, 1, None))
        me = tester.starts(guest.bot, "guest")
        tester.wait(5)
        assert guest.changes == ["joined"] and guest.bot.standing(COMMUNITY) == "member"
        assert set(owner.owned.members) == {tester.public_key, me}
        tester.run(guest.say("hello"))
        assert (heard, reader.texts, newer.texts) == (["hello"], ["hello"], ["hello"])
        tester.run(owner.owned.kick(me))
        tester.wait(5)
        assert guest.changes == ["joined", "kicked"]
        at_ms = tester.now_ms()
        still_here = said("still here", clock=at_ms, timestamp=at_ms)
        sealed = Sealer(key_of("guest")).seal(still_here, COMMUNITY.universal_topic, at_ms)
        tester.publish(sealed.messages[0])  # a bot that does not care that it was kicked
        assert (heard, reader.texts, newer.texts) == (["hello"], ["hello"], ["hello"])
        assert reader.refused == newer.refused == ["user can't post in community"]
        assert owner.reporter.counts["refused", "not_a_member"] == 1


def test_a_community_is_kept_over_restarts_and_published_every_day() -> None:
    owner = owner_bot(**HOURLY)
    with BotTester(owner, community_key=OWNER) as tester:
        reader = tester.client(COMMUNITY)
        tester.wait(2)
        first = owner.owned.description
        assert reader.description == first and first is not None
        assert list(first.chats) == [GENERAL], "one description for all that a function changed"
        tester.crash()
        tester.start()
        assert owner.owned.description == first
        heard = len(of_the_community(tester))
        tester.wait(86_000)
        assert len(of_the_community(tester)) == heard
        tester.wait(1_000)
        assert len(of_the_community(tester)) == heard + 1 and reader.description == first


def test_what_was_decided_before_a_crash_is_published_after_it() -> None:
    owner = owner_bot(MANUAL)
    with BotTester(owner, community_key=OWNER) as tester:
        reader = tester.client(COMMUNITY)
        tester.user("Alice", ALICE).requests_to_join(COMMUNITY)
        assert [request.display_name for request in owner.owned.requests] == ["Alice"]
        owner.owned.decide(ALICE.public_key, accepted=True)
        tester.crash()  # after it was written, and before the bot had its turn
        tester.start()
        tester.wait(2)
        assert reader.description is not None
        assert ALICE.public_key.hex in reader.description.members
        assert not list(owner.owned._node.unanswered())  # noqa: SLF001


def test_a_request_in_the_second_in_which_the_bot_began_is_told_of() -> None:
    """Its clock is in seconds, and so seems to be from before."""
    owner, asked = owner_bot(MANUAL), []

    @owner.on_join_request
    async def note(request: JoinRequest) -> None:
        asked.append(request.display_name)

    began_ms = START_MS + 300
    with BotTester(owner, community_key=OWNER, now_ms=began_ms) as tester:
        publish_request(tester, ALICE, "Alice", began_ms + 200)
        tester.wait(2)
        assert asked == ["Alice"]


def test_users_are_accepted_moderate_are_muted_and_banned() -> None:
    owner, heard = owner_bot(MANUAL), []

    @owner.on_join_request
    async def decide(request: JoinRequest) -> None:
        await request.answer(accepted=request.display_name != "Bob")

    @owner.on_message
    async def note(message: Message) -> None:
        heard.append((message.author_name, message.by_moderator))
        if message.text == "spam":
            await message.delete()
        if message.text == "important":
            await message.pin()

    with BotTester(owner, community_key=OWNER) as tester:
        reader = tester.client(COMMUNITY)
        alice, bob = tester.user("Alice", ALICE), tester.user("Bob", BOB)
        for user in (alice, bob):
            user.requests_to_join(COMMUNITY)
        tester.wait(2)
        assert set(owner.owned.members) == {tester.public_key, ALICE.public_key}
        for user in (bob, alice):
            user.says(f"hi, {user.name} here", channel=GENERAL)
        assert (reader.texts, heard) == (["hi, Alice here"], [("Alice", False)])
        for text in ("spam", "important"):
            alice.says(text, channel=GENERAL)
        assert reader.texts == ["hi, Alice here", "important"], "its owner deleted the other"
        assert reader.pinned == ["important"]
        tester.run(owner.owned.set_role(ALICE.public_key, Role.ROLE_ADMIN))
        alice.says("as an admin", channel=GENERAL)
        assert heard[-1] == ("Alice", True)
        tester.run(owner.owned.mute(ALICE.public_key))
        alice.says("muted", channel=GENERAL)
        tester.run(owner.owned.mute(ALICE.public_key, is_muted=False))
        alice.says("not muted", channel=GENERAL)
        assert reader.texts[-2:] == ["as an admin", "not muted"]
        tester.run(owner.owned.ban(ALICE.public_key))
        alice.says("banned", channel=GENERAL)
        tester.wait(10)
        alice.requests_to_join(COMMUNITY)
        assert "banned" not in reader.texts and ALICE.public_key not in owner.owned.members
        assert owner.reporter.counts["requests_refused", "banned"] == 1
        tester.run(owner.owned.unban(ALICE.public_key))
        tester.wait(10)
        alice.requests_to_join(COMMUNITY)
        alice.says("back", channel=GENERAL)
        assert reader.texts[-1] == "back"


def test_words_that_come_before_the_description_wait_for_it() -> None:
    """Of a new member, whose request the owner granted; not what a stranger wrote before."""
    guest = Guest()
    heard = []

    @guest.bot.on_message
    async def note(message: Message) -> None:
        heard.append(message.text)

    with BotTester(guest.bot) as tester:
        owner = tester.owner(OWNER)
        owner.publishes()
        tester.wait(2)
        alice = tester.user("Alice", ALICE)
        alice.says("before", channel=GENERAL)
        assert heard == [] and guest.bot.reporter.counts["refused", "not_a_member"] == 1
        owner.members[ALICE.public_key] = None
        owner.publishes()
        assert heard == ["before"], "this description does not say since when she is a member"


def test_a_replayed_request_and_a_forged_description_change_nothing() -> None:
    owner = owner_bot()
    with BotTester(owner, community_key=OWNER) as tester:
        reader = tester.client(COMMUNITY)
        tester.wait(2)
        before = owner.owned.description
        assert before is not None
        alice = tester.user("Alice", ALICE)
        alice.requests_to_join(COMMUNITY)
        requests = [m for m in tester.relayed if m.content_topic == REQUESTS]
        tester.wait(2)
        tester.run(owner.owned.kick(ALICE.public_key))
        kicked = owner.owned.description
        assert kicked is not None
        sealed = seal_ecies(open_ecies(requests[0].payload, OWNER).payload, OWNER.public_key, BOB)
        tester.publish(replace(requests[0], payload=sealed))  # sealed anew by somebody else
        tester.crash()
        tester.start()
        tester.publish(replace(requests[0], payload=sealed, timestamp=tester.now_ms() * 1_000_000))
        assert owner.reporter.counts["requests_refused", "replayed"] == 0, "Store has it for weeks"
        assert ALICE.public_key not in owner.owned.members
        ahead = replace(kicked, clock=kicked.clock + 10, members={})
        outdated = owner.reporter.counts["descriptions_outdated", ""]
        for key, description in ((MALLORY, ahead), (OWNER, replace(before, tags=("x",)))):
            forged = Sealer(key).seal(description, COMMUNITY.description_topic, tester.now_ms())
            tester.publish(forged.messages[0])
        assert owner.owned.is_active and owner.owned.description == kicked
        assert reader.description == kicked
        assert reader.refused == ["not authorized", "invalid community description outdated clock"]
        assert owner.reporter.counts["descriptions_outdated", ""] == outdated + 1


def is_run_by(bot: StatusBot) -> bool:
    return bot.owned.is_active


def test_a_second_control_node_stops_the_first_until_it_takes_over() -> None:
    owner = owner_bot(**HOURLY)
    with BotTester(owner, community_key=OWNER) as tester:
        tester.wait(2)
        description = owner.owned.description
        assert description is not None
        elsewhere = replace(description, clock=tester.now_ms(), intro_message="from my laptop")
        sealed = Sealer(OWNER).seal(elsewhere, COMMUNITY.description_topic, tester.now_ms())
        tester.publish(sealed.messages[0])
        assert not is_run_by(owner)
        assert any(one.event == "another_control_node" for one in owner.reporter.since(0))
        with pytest.raises(NotControlNode, match="another control node runs"):
            tester.run(owner.owned.kick(ALICE.public_key))
        published = len(of_the_community(tester))
        tester.user("Alice", ALICE).requests_to_join(COMMUNITY)
        tester.wait(100_000)
        assert len(of_the_community(tester)) == published + 1, "the request alone"
        tester.run(owner.owned.take_over())
        assert is_run_by(owner) and owner.owned.description is not None
        assert owner.owned.description.intro_message == "from my laptop"
        assert InviteLink.parse(owner.owned.invite_link).data is not None


def test_a_flood_of_requests_makes_few_descriptions() -> None:
    owner = owner_bot()
    with BotTester(owner, community_key=OWNER) as tester:
        reader = tester.client(COMMUNITY)
        tester.wait(2)
        before = len(of_the_community(tester))
        users = [PrivateKey(keccak256(f"user {n}".encode())) for n in range(45)]
        for number, key in enumerate(users):
            publish_request(tester, key, f"user {number}", tester.now_ms(), settle=False)
        tester.wait(5)
        published = COMMUNITY.description_topic.content_topic
        descriptions = [
            m for m in of_the_community(tester)[before:] if m.content_topic == published
        ]
        assert len(owner.owned.members) == 46 and 1 < len(descriptions) <= 4
        assert reader.description == owner.owned.description


def test_a_banned_bot_does_not_ask_again_in_vain() -> None:
    owner, guest = owner_bot(), Guest()
    with BotTester(owner, community_key=OWNER) as tester:
        me = tester.starts(guest.bot, "guest")
        tester.wait(5)
        tester.run(owner.owned.ban(me))
        tester.wait(5)
        assert guest.changes == ["joined", "kicked"]
        with pytest.raises(CannotJoin, match="banned"):
            tester.run(guest.bot.request_to_join(COMMUNITY))
        tester.run(owner.owned.unban(me))
        tester.wait(5)
        tester.run(guest.bot.request_to_join(COMMUNITY))
        tester.wait(5)
        assert guest.bot.standing(COMMUNITY) == "member"


def test_the_owner_hears_a_new_channel_on_its_own_topic() -> None:
    owner = owner_bot()
    told: list[str] = []

    @owner.on_message
    async def message(message: Message) -> None:
        told.append(message.text)

    with BotTester(owner, community_key=OWNER) as tester:
        tester.user("Alice", ALICE).requests_to_join(COMMUNITY)
        tester.wait(2)
        channel = tester.run(owner.owned.add_channel("tea"))
        room = tester.room(channel)
        payload = payload_builders.message(room, "heard")(tester.next_clock(), tester.now_ms())
        sealed = Sealer(ALICE).seal(payload, Topic(room.chat_id), tester.now_ms())
        tester.publish(sealed.messages[0])
    assert told == ["heard"]


def test_a_bot_without_the_key_owns_nothing() -> None:
    guest = Guest()
    with (
        BotTester(guest.bot),
        pytest.raises(ValueError, match="does not have the key of a community"),
    ):
        _: OwnedCommunity = guest.bot.owned
