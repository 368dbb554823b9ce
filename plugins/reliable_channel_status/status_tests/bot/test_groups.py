"""Private groups: recorded events of real clients, who may do what, and bots in groups."""

import json
from pathlib import Path
from typing import Any, Final

import pytest

from reliable_channel_status import (
    ChatMessage,
    EditMessage,
    MembershipUpdateMessage,
    MessageType,
    PrivateKey,
    PublicKey,
    decode_payload,
)
from reliable_channel_status.bot import GroupChange, Message, StatusBot
from reliable_channel_status.testing import BotTester
from reliable_channel_status.testing.fake_user import key_of
from reliable_channel_status.testing.tester import START_MS
from reliable_channel_status.wire import status_pb2
from reliable_channel_status.wire.direct import (
    BadGroup,
    Group,
    MembershipEvent,
    MembershipEventType,
    read_event,
    sign_event,
)
from reliable_channel_status.wire.direct.groups import MAX_EVENTS
from status_tests.world import ALICE, BOB, MALLORY, NOW_MS

DATA: Final = Path(__file__).parents[4] / "tests/vectors/data/status-real"
MESSAGES: Final[list[Any]] = json.loads((DATA / "messages.json").read_text())
E: Final = MembershipEventType
CHAT: Final = f"4e8118d8-4247-4300-8da7-86f0f1726414-{ALICE.public_key.hex}"


def event(key: PrivateKey, kind: MembershipEventType, clock: int, **fields: Any) -> MembershipEvent:
    return sign_event(key, CHAT, kind, clock, **fields)


CREATED: Final = event(ALICE, E.CHAT_CREATED, 1, name="tea")
ADDED: Final = event(ALICE, E.MEMBERS_ADDED, 2, members=[BOB.public_key])


def keys(*private: PrivateKey) -> frozenset[PublicKey]:
    return frozenset(one.public_key for one in private)


def updates() -> list[tuple[Any, MembershipUpdateMessage]]:
    found = []
    for case in MESSAGES:
        if "group" in case["name"] and case["messages"][0]["type"] == 3:
            signed = bytes.fromhex(case["messages"][0]["signed_hex"])
            raw = status_pb2.ApplicationMetadataMessage.FromString(signed)
            payload = decode_payload(raw.type, raw.payload)  # type: ignore[arg-type]
            assert isinstance(payload, MembershipUpdateMessage)
            found.append((case, payload))
    return found


def test_the_groups_of_real_clients() -> None:
    assert len(updates()) == 4
    for case, update in updates():
        group = Group.of(update.chat_id, [read_event(update.chat_id, one) for one in update.events])
        author = PublicKey.parse(case["messages"][0]["author"])
        assert group.creator == author and author in group.admins
        assert len(group.members) == 2
        assert group.name in ("the group", "bot group")
        assert group.color.startswith("#")
        if update.message is not None:
            assert update.message.message_type is MessageType.PRIVATE_GROUP
            assert update.message.chat_id == update.chat_id


def test_an_event_is_written_as_a_real_client_writes_it() -> None:
    """Signed again by the recorded key it has the same bytes."""
    all_keys = json.loads((DATA / "keys.json").read_text())["keys"]
    written = 0
    for _, update in updates():
        for data in update.events:
            one = read_event(update.chat_id, data)
            if one.type is E.MEMBER_JOINED:
                continue
            (private,) = (k for k in all_keys.values() if k["public"] == one.author.hex)
            again = sign_event(
                PrivateKey.from_hex(private["private_hex"]),
                update.chat_id,
                one.type,
                one.clock,
                members=one.members,
                name=one.name,
                color=one.color,
            )
            assert again.data == data
            written += 1
    assert written == 8


def test_what_members_and_admins_may_do() -> None:
    group = Group.of(CHAT, [ADDED, CREATED, ADDED, event(BOB, E.MEMBER_JOINED, 3)])
    assert group.members == group.joined == keys(ALICE, BOB)
    assert group.admins == keys(ALICE) and group.name == "tea"
    more = [*group.events, event(ALICE, E.ADMINS_ADDED, 4, members=[BOB.public_key])]
    more.append(event(BOB, E.NAME_CHANGED, 5, name="coffee"))
    more.append(event(ALICE, E.ADMIN_REMOVED, 6, members=[ALICE.public_key]))
    more.append(event(BOB, E.MEMBER_REMOVED, 7, members=[ALICE.public_key]))
    changed = Group.of(CHAT, reversed(more))
    assert (changed.name, changed.members, changed.admins) == ("coffee", keys(BOB), keys(BOB))
    assert changed.ever_members == keys(ALICE, BOB)


@pytest.mark.parametrize(
    "bad",
    [
        event(BOB, E.MEMBERS_ADDED, 3, members=[MALLORY.public_key]),
        event(BOB, E.NAME_CHANGED, 3, name="mine"),
        event(BOB, E.MEMBER_REMOVED, 3, members=[ALICE.public_key]),
        event(ALICE, E.MEMBER_REMOVED, 3, members=[ALICE.public_key, BOB.public_key]),
        event(MALLORY, E.MEMBER_JOINED, 3),
        event(MALLORY, E.CHAT_CREATED, 0, name="mine"),
        event(ALICE, E.ADMINS_ADDED, 3, members=[MALLORY.public_key]),
        event(ALICE, E.NAME_CHANGED, 3),
        event(ALICE, E.UNKNOWN, 3),
        event(ALICE, MembershipEventType(77), 3),
    ],
    ids=lambda one: one.type.name,
)
def test_what_nobody_may_do(bad: MembershipEvent) -> None:
    with pytest.raises(BadGroup):
        Group.of(CHAT, [CREATED, ADDED, bad])


def test_events_of_another_group_and_too_many_are_refused() -> None:
    other = f"4e8118d8-4247-4300-8da7-86f0f1726415-{ALICE.public_key.hex}"
    moved = read_event(other, CREATED.data)  # signed for another group: its author is nobody
    assert moved.author != ALICE.public_key
    with pytest.raises(BadGroup):
        Group.of(other, [moved])
    with pytest.raises(BadGroup):
        Group.of(CHAT, [])
    names = [event(ALICE, E.NAME_CHANGED, 10 + n, name=f"{n}") for n in range(MAX_EVENTS)]
    with pytest.raises(BadGroup, match="events"):
        Group.of(CHAT, [CREATED, *names])
    for data in (b"", bytes(65), bytes(70), CREATED.data[:66]):
        with pytest.raises(BadGroup):
            read_event(CHAT, data)


# -- bots -----------------------------------------------------------------------------------------


class Member:
    """A bot that joins groups and answers there."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self.bot = bot = StatusBot(node="http://node")

        @bot.on_group_change
        async def changed(change: GroupChange) -> None:
            self.told.append(f"{change.group.name}: {len(change.group.members)} members")
            if change.is_member:
                await change.join()

        @bot.on_group_message
        async def answer(message: Message) -> str | None:
            if message.text.startswith("!"):
                return None
            self.told.append(message.text)
            return f"you said {message.text}"

        @bot.command("ping")
        async def ping(message: Message) -> str:
            return "pong"


def group_of(tester: BotTester, *names: str, bot: bool = True) -> Group:
    """A group that the first of some users made."""
    creator = key_of(names[0])
    chat_id = f"4e8118d8-4247-4300-8da7-86f0f1726414-{creator.public_key.hex}"
    members = [key_of(name).public_key for name in names[1:]] + [tester.public_key] * bot
    return Group.of(
        chat_id,
        [
            sign_event(creator, chat_id, E.CHAT_CREATED, START_MS, name="tea"),
            sign_event(creator, chat_id, E.MEMBERS_ADDED, START_MS + 1, members=members),
        ],
    )


def refusals(tester: BotTester) -> dict[str, int]:
    counts = tester.bot.reporter.counts
    return {why: n for (name, why), n in counts.items() if name == "refused"}


def test_a_bot_is_added_joins_answers_and_is_removed() -> None:
    member = Member()
    with BotTester(member.bot) as tester:
        alice, carol = tester.user("Alice").direct, tester.user("Carol").direct
        group = group_of(tester, "Alice", "Carol")
        alice.shows(group)
        (known,) = member.bot.groups
        assert known.joined == {key_of("Alice").public_key, tester.public_key}
        sent = alice.in_group(group, "hello")
        for user in (alice, carol):
            answer = user.heard[-1].payload
            assert isinstance(answer, MembershipUpdateMessage) and answer.message is not None
            assert answer.message.text == "you said hello"
            assert answer.message.response_to == sent
            assert answer.message.chat_id == group.chat_id
        assert alice.heard[-1].message_id == carol.heard[-1].message_id
        carol.in_group(group, "!ping")
        last = alice.heard[-1].payload
        assert isinstance(last, MembershipUpdateMessage) and last.message is not None
        assert last.message.text == "pong"
        tester.stop()
        tester.start()
        assert member.bot.groups == (known,)
        gone = sign_event(
            key_of("Alice"),
            group.chat_id,
            E.MEMBER_REMOVED,
            tester.now_ms(),
            members=[tester.public_key],
        )
        alice.shows(Group.of(group.chat_id, [*known.events, gone]))
        assert list(member.bot.groups) == []
        alice.in_group(group, "still there?")
        assert refusals(tester).get("not_allowed") == 1
        assert member.told == ["tea: 3 members", "hello", "tea: 2 members"]


def test_strangers_and_groups_without_the_bot_are_refused_by_name() -> None:
    member = Member()
    with BotTester(member.bot) as tester:
        alice, mallory = tester.user("Alice").direct, tester.user("Mallory").direct
        alice.in_group(group_of(tester, "Alice", "Carol", bot=False), "secret")
        assert refusals(tester) == {"unknown_group": 1}
        group = group_of(tester, "Alice", "Carol")
        alice.shows(group)
        mallory.in_group(group, "let me in")
        assert refusals(tester)["not_allowed"] == 1
        forged = sign_event(
            key_of("Mallory"), group.chat_id, E.MEMBERS_ADDED, tester.now_ms(),
            members=[key_of("Mallory").public_key],
        )  # fmt: skip
        events = tuple(one.data for one in (*group.events, forged))
        mallory.sends(MembershipUpdateMessage(chat_id=group.chat_id, events=events))
        assert refusals(tester)["bad_group"] == 1
        # A message of the group without its events, by no member; and one for another group.
        bare = ChatMessage(
            clock=tester.now_ms(), timestamp=tester.now_ms(), text="bare", chat_id=group.chat_id,
            message_type=MessageType.PRIVATE_GROUP,
        )  # fmt: skip
        mallory.sends(bare)
        assert refusals(tester)["not_allowed"] == 2
        edit = EditMessage(
            clock=tester.now_ms(), text="x", chat_id="another", message_id="0x1",
            message_type=MessageType.PRIVATE_GROUP,
        )  # fmt: skip
        mallory.sends(edit)
        assert refusals(tester)["unknown_group"] == 2
        assert member.told == ["tea: 3 members"]
        assert member.bot.groups[0].members == group.members


def test_the_bot_makes_a_group_changes_it_and_leaves() -> None:
    member = Member()
    with BotTester(member.bot) as tester:
        alice, carol = tester.user("Alice").direct, tester.user("Carol").direct
        users = [key_of("Alice").public_key, key_of("Carol").public_key]
        group = tester.run(member.bot.create_group("coffee", users[:1]))
        tester.run(member.bot.change_group(group.chat_id, add=users[1:], name="more coffee"))

        async def speak() -> None:
            await member.bot.channel(group.chat_id).send("welcome")

        tester.run(speak())
        tester.run(member.bot.change_group(group.chat_id, remove=users[0]))
        tester.run(member.bot.leave_group(group.chat_id))

        def last(heard: list[Any]) -> Group:
            updates = [one.payload for one in heard]
            events = [data for update in updates for data in update.events]
            return Group.of(group.chat_id, [read_event(group.chat_id, one) for one in events])

        texts = [one.payload.message for one in carol.heard]  # type: ignore[union-attr]
        assert [one.text for one in texts if one is not None] == ["welcome"]
        assert last(alice.heard).members == {tester.public_key, users[1]}
        assert last(carol.heard).members == {users[1]}
        assert last(carol.heard).name == "more coffee"
        assert list(member.bot.groups) == []
        with pytest.raises(ValueError, match="not a member of group"):
            tester.run(member.bot.leave_group("another"))
        assert NOW_MS == START_MS
