"""A community's stored messages as tables, and the report for moderators."""

import json
import re
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from runpy import run_path
from types import SimpleNamespace
from typing import Any

import pytest

from reliable_channel_status import (
    ChatPayload,
    Community,
    CommunityBanInfo,
    CommunityMember,
    DeleteMessage,
    EditMessage,
    EmojiReaction,
    Payload,
    PinMessage,
    PrivateKey,
    Reaction,
    Role,
    Sealer,
    Topic,
)
from reliable_channel_status.community.edits import with_channel
from reliable_channel_status.community.history import RIGHTS_UNKNOWN, CommunityHistory
from reliable_channel_status.community.history_tables import (
    AuthorRate,
    Change,
    CommunityTables,
    Flood,
    HistoryOptions,
    MemberChange,
    Post,
    StandingReaction,
)
from reliable_channel_status.testing import BotTester
from status_tests.test_real_clients import MESSAGES, OPEN, waku_message
from status_tests.world import (
    ALICE,
    BOB,
    CHAT_ID,
    COMMUNITY,
    GENERAL,
    MALLORY,
    NOW_MS,
    OTHER,
    OWNER,
    describing,
    said,
)
from waku import WakuMessage, message_hash
from waku.node.store import Archive

PAGE = Path(__file__).parents[4] / "docs" / "status-communities.md"
EXAMPLES = Path(__file__).parents[4] / "examples" / "status_bots"
ADMIN = CommunityMember(roles=(Role.ROLE_ADMIN,))
MEMBER = CommunityMember()


def example(name: str) -> Any:
    return SimpleNamespace(**run_path(str(EXAMPLES / f"{name}.py")))


class World:
    """People that write to a Store, a second after each other."""

    def __init__(self) -> None:
        self.stored: list[WakuMessage] = []
        self.now_ms = NOW_MS

    def says(
        self,
        key: PrivateKey,
        payload: Payload,
        *,
        after_ms: int = 1_000,
        topic: Topic | None = None,
    ) -> str:
        """Store a payload; returns its id."""
        self.now_ms += after_ms
        if isinstance(payload, ChatPayload):
            payload = replace(payload, clock=self.now_ms)
        sealed = Sealer(key).seal(payload, topic or COMMUNITY.universal_topic, self.now_ms)
        self.stored += sealed.messages
        return sealed.message_id

    def describes(self, *users: PrivateKey, **fields: object) -> None:
        """The owner publishes a description; ALICE is an admin."""
        members = {user.public_key: ADMIN if user is ALICE else MEMBER for user in users}
        description = describing(members, self.now_ms)
        self.says(OWNER, replace(description, **fields), topic=COMMUNITY.description_topic)  # type: ignore[arg-type]


def tables(world: World, **options: int) -> CommunityTables:
    history = CommunityHistory(COMMUNITY, options=HistoryOptions(**options))
    for message in world.stored:
        history.add(message)
    return history.tables()


def about(kind: Callable[..., ChatPayload], message_id: str, **fields: object) -> ChatPayload:
    return kind(clock=1, chat_id=CHAT_ID, message_id=message_id, **fields)


def test_edits_deletions_pins_and_reactions_are_applied() -> None:
    world = World()
    world.describes(ALICE, BOB)
    hello = world.says(BOB, said("helo"))
    world.says(BOB, about(EditMessage, hello, text="hello"))
    for key, retracted in ((ALICE, False), (BOB, False), (BOB, True)):
        payload = about(EmojiReaction, hello, type=Reaction.LOVE, retracted=retracted)
        world.says(key, payload)
    world.says(ALICE, about(PinMessage, hello, pinned=True))
    rude = world.says(BOB, said("rude"))
    world.says(ALICE, about(DeleteMessage, rude))
    slip = world.says(ALICE, said("a slip", response_to=hello))
    world.says(BOB, about(DeleteMessage, slip))
    world.says(ALICE, about(EditMessage, hello, text="never"))
    found = tables(world)
    first, second, third = found.posts
    assert (first.text, first.first_text, first.edits) == ("hello", "helo", 1)
    assert (first.is_pinned, first.reactions, first.deleted_by) == (True, 1, None)
    assert (second.text, second.deleted_by) == ("rude", ALICE.public_key.hex)
    assert second.deleted_ms == second.sent_ms + 1_000
    assert (third.deleted_by, third.response_to) == (None, hello)
    assert [(each.what, each.message_id, each.refused) for each in found.changes] == [
        ("edit", hello, None),
        ("pin", hello, None),
        ("delete", rude, None),
        ("delete", slip, "DeleteMessage: another wrote it"),
        ("edit", hello, "EditMessage: another wrote it"),
    ]
    (reaction,) = found.reactions
    assert (reaction.author, reaction.reaction) == (ALICE.public_key.hex, "LOVE")
    assert found.refused == {"not_allowed": 2}
    rates = {rate.author: rate for rate in found.rates}
    assert rates[BOB.public_key.hex].deleted_by_others == 1
    assert rates[ALICE.public_key.hex].deleted_by_others == 0


def test_a_change_that_was_stored_before_its_message_is_applied_later() -> None:
    world = World()
    message_id = world.says(BOB, said("late"))
    world.says(BOB, about(EditMessage, message_id, text="edited"))
    world.says(MALLORY, about(DeleteMessage, message_id))
    late, *changes = world.stored
    world.stored = changes
    assert [each.refused for each in tables(world).changes] == ["its message is not here"] * 2
    world.stored = [*changes, late, late]
    found = tables(world)
    (post,) = found.posts
    assert (post.text, post.edits, post.deleted_by) == ("edited", 1, None)
    assert [each.refused for each in found.changes] == [None, "DeleteMessage: another wrote it"]


def test_membership_is_what_descriptions_change() -> None:
    world = World()
    world.says(MALLORY, said("before any description was here"))
    world.describes(ALICE, BOB)
    world.says(MALLORY, said("let me in"))
    world.describes(ALICE, BOB, MALLORY)
    world.says(MALLORY, said("thank you"))
    world.describes(ALICE, banned_members={MALLORY.public_key.hex: CommunityBanInfo()})
    world.says(MALLORY, said("why?"))
    world.stored.append(world.stored[1])  # clients repeat a description
    forged = replace(describing({MALLORY.public_key: ADMIN}, NOW_MS + 10**9), id=COMMUNITY.id)
    world.says(MALLORY, forged, topic=COMMUNITY.description_topic)
    found = tables(world)
    mallory, bob = MALLORY.public_key.hex, BOB.public_key.hex
    assert [(each.member, each.what) for each in found.members] == [
        (mallory, "joined"),
        (mallory, "banned"),
        (bob, "left"),
    ]
    assert [post.text for post in found.posts] == ["before any description was here", "thank you"]
    (rate,) = found.rates
    assert (rate.messages, rate.refused) == (2, 2)
    assert found.refused == {"not_a_member": 2, "invalid description": 1}
    assert found.channel_names == {CHAT_ID: GENERAL, COMMUNITY.channel_id(OTHER): OTHER}


def test_roles() -> None:
    world = World()
    world.describes(ALICE)
    members = {ALICE.public_key.hex: MEMBER}
    world.describes(ALICE, members=members, chats={})
    assert [each.what for each in tables(world).members] == ["roles: none"]


def test_floods_and_what_is_repeated() -> None:
    world = World()
    for number in range(9):
        chat_id = COMMUNITY.channel_id(OTHER if number % 2 else GENERAL)
        text = f"Buy  at https://evil.example {number // 8}"
        world.says(MALLORY, said(text, chat_id=chat_id, display_name="Mal"), after_ms=500)
    world.says(BOB, said("what is that?"))
    for _ in range(3):
        world.says(BOB, said("ok"), after_ms=20_000)
    found = tables(world, flood_messages=6)
    (flood,) = found.floods
    chats = (CHAT_ID, COMMUNITY.channel_id(OTHER))
    assert flood == Flood(MALLORY.public_key.hex, NOW_MS + 500, NOW_MS + 4_500, 9, chats)
    first, *_ = found.rates
    assert (first.chat_id, first.name, first.messages) == (CHAT_ID, "Mal", 5)
    assert (first.repeated, first.with_links, first.most_in_a_minute) == (3, 5, 5)
    assert [r.repeated for r in found.rates if r.author == BOB.public_key.hex] == [2]


def test_two_floods_of_one_author_stand_apart() -> None:
    world = World()
    for begin_after_ms in (1_000, 60_000):
        world.says(BOB, said("a"), after_ms=begin_after_ms)
        for text in "bc":
            world.says(BOB, said(text), after_ms=10)
    assert [each.messages for each in tables(world, flood_messages=2).floods] == [3, 3]


def test_only_so_much_is_kept() -> None:
    world = World()
    for number in range(5):
        message_id = world.says(BOB, said(str(number)))
    world.says(BOB, about(EditMessage, message_id, text="last"))
    found = tables(world, messages=2)
    assert [post.text for post in found.posts] == ["3", "last"]
    with pytest.raises(ValueError, match="`messages` must be at least 1"):
        HistoryOptions(messages=0)


def test_other_bytes_are_counted() -> None:
    world = World()
    world.stored.append(WakuMessage(b"noise", COMMUNITY.universal_topic.content_topic))
    world.stored.append(WakuMessage(b"noise", "/another/1/topic/proto"))
    found = tables(world)
    assert found.refused == {"not_for_us": 1, "unknown_topic": 1}
    assert not found.posts


def test_what_real_clients_sent() -> None:
    community = Community(OPEN.public_key)
    cases = sorted(MESSAGES, key=lambda case: case["timestamp"])
    channels = {
        text.removeprefix(community.id)
        for case in cases
        if (text := case["opens_with"].get("topic_text", "")).startswith(community.id)
        and len(text) == len(community.id) + 36
    }
    history = CommunityHistory(community, channels=sorted(channels), private_keys=[OPEN])
    for case in cases:
        history.add(waku_message(case))
    found = history.tables()
    first, second, *_ = found.posts
    assert (first.first_text, first.text) == ("golden hello äöü 🫖", "golden hello, edited")
    assert (second.text, second.response_to) == ("golden reply", first.message_id)
    assert [post.text for post in found.posts[3:]] == ["a picture", "album", "sticker", "🫖"]
    assert not found.reactions, "it was taken back"
    alice, carol = first.author, found.rates[1].author
    assert [(each.signer, each.what, each.refused) for each in found.changes] == [
        (alice, "edit", None),
        (alice, "delete", "its message is not here"),  # it was not recorded
        (alice, "pin", RIGHTS_UNKNOWN),
        (alice, "unpin", RIGHTS_UNKNOWN),
        *((carol, what, "user can't post in community") for what in ("edit", "pin", "delete")),
    ]
    assert [each.what for each in found.members] == [
        "asked to join",
        "joined",
        "asked to join",
        "asked to leave",
    ]
    assert [(rate.name, rate.messages, rate.refused) for rate in found.rates] == [
        ("Alice-real", 7, 0),
        ("Carol-real", 0, 3),
    ]
    assert sorted(found.channel_names.values()) == ["general", "second"]


def test_rights_are_unknown_before_the_first_description() -> None:
    world = World()
    message_id = world.says(BOB, said())
    world.says(ALICE, about(DeleteMessage, message_id))
    found = tables(world)
    assert [each.refused for each in found.changes] == [RIGHTS_UNKNOWN]
    assert found.posts[0].deleted_by is None
    world.says(BOB, about(DeleteMessage, message_id))
    assert tables(world).posts[0].deleted_by == BOB.public_key.hex


def test_a_moderator_reads_what_happened(tmp_path: Path) -> None:
    """A moderation bot deletes a flood; the report is of what the node's Store has of it."""
    bot = example("moderation").make_bot("http://node", COMMUNITY.id, OTHER, [])
    with BotTester(bot) as tester, closing(Archive(tmp_path / "store.sqlite3")) as store:
        alice, mallory = tester.user("Alice"), tester.user("Mallory")
        members = {user.public_key: MEMBER for user in (alice, mallory)}
        description = describing({**members, tester.public_key: ADMIN}, tester.now_ms())
        for channel, name in ((GENERAL, "general"), (OTHER, "moderators")):
            description = with_channel(channel, name)(description)
        sealer = Sealer(OWNER)
        for message in sealer.seal(
            description, COMMUNITY.description_topic, tester.now_ms()
        ).messages:
            tester.publish(message)
        said_once = alice.says("helo", channel=GENERAL)
        alice.edits(said_once, "hello", channel=GENERAL)
        for number in range(8):
            mallory.says(f"spam {number // 2}", channel=GENERAL, settle=False)
        tester.wait()
        for message in tester.relayed:
            digest = message_hash("/waku/2/rs/16/32", message)
            store.insert(digest, "/waku/2/rs/16/32", message)
    report = example("community_report")
    tables_in = tmp_path / "tables"
    found = report.history_of(str(tmp_path / "store.sqlite3"), COMMUNITY.id, [])
    report.write(found, tables_in)
    text = "\n".join(report.report(found))
    names = {path.stem: len(path.read_text().splitlines()) for path in tables_in.iterdir()}
    assert names["floods"] == 1 and names["posts"] == len(found.posts)
    assert set(names) == {"posts", "changes", "reactions", "members", "rates", "floods"}
    recorded = [json.loads(line) for line in (tables_in / "changes.jsonl").read_text().splitlines()]
    assert [each["what"] for each in recorded] == ["edit", "delete", "delete"]
    assert f"\n{text}\n```" in PAGE.read_text(), text


@pytest.mark.parametrize(
    ("table", "row"),
    [
        ("posts", Post),
        ("changes", Change),
        ("reactions", StandingReaction),
        ("members", MemberChange),
        ("rates", AuthorRate),
        ("floods", Flood),
    ],
)
def test_the_page_has_all_columns(table: str, row: Any) -> None:
    (line,) = [line for line in PAGE.read_text().splitlines() if line.startswith(f"| `{table}` |")]
    assert tuple(re.findall("`(.*?)`", line.split("|")[3])) == row._fields


def test_names_steer_no_terminal() -> None:
    world = World()
    world.says(BOB, said("line\nfeed", display_name="B\u202eob"))
    world.says(BOB, about(EditMessage, "0x00", text="x"))
    text = "\n".join(example("community_report").report(tables(world)))
    assert "B\\u202eob" in text and "\u202e" not in text
    assert "edit: its message is not here" in text


def test_long_sections_end_with_a_count() -> None:
    world = World()
    for number in range(25):
        world.says(PrivateKey(bytes([9, number + 1]) * 16), said("hello"))
    text = "\n".join(example("community_report").report(tables(world)))
    assert "… and 5 more" in text
