"""Moderation at work in a bot: among unkind users, over restarts, with and without power."""

from pathlib import Path
from typing import Any

import pytest

from reliable_channel_moderation import Moderation, Policy
from reliable_channel_moderation import record as record_module
from reliable_channel_moderation.audit_log import read_log
from reliable_channel_moderation.record import Case, Record
from reliable_channel_status import (
    Access,
    Community,
    CommunityProfile,
    DeleteMessage,
    PrivateKey,
    mention,
)
from reliable_channel_status.bot import BotOptions, RateLimit, StatusBot
from reliable_channel_status.testing import BotTester
from reliable_channel_status.testing.fake_user import key_of

OWNER = PrivateKey(bytes([4]) * 32)
COMMUNITY = Community(OWNER.public_key)
GENERAL = "1dc14fd8-9a8b-4df5-a358-2c3067be5439"
MODS = "00000000-9a8b-4df5-a358-2c3067be5439"
MANY = RateLimit(1000, 1000)
LINK = "look at http://evil.example"


class World:
    """A bot with moderation; `new` is the same after a restart."""

    def __init__(
        self, folder: Path, policy: Policy | None = None, *, is_owner: bool = False
    ) -> None:
        self.folder = folder
        self.policy = policy or Policy(allowed_hosts=frozenset({"status.app"}))
        self.is_owner = is_owner
        self.kit: BotTester
        self.moderation: Moderation

    def bot(self) -> StatusBot:
        options = BotOptions(user_limit=MANY, channel_limit=MANY)
        where: dict[str, Any] = {} if self.is_owner else {"community": COMMUNITY}
        if not self.is_owner:
            where |= {"channels": [GENERAL, MODS]}
        mods = [key_of("Mod").public_key]
        bot = StatusBot(node="http://node", options=options, moderators=mods, **where)
        file = self.folder / "audit.jsonl"
        self.moderation = Moderation(
            MODS, policy=self.policy, audit_file=file, admits=self.is_owner
        )
        bot.include(self.moderation.router)
        if self.is_owner:

            @bot.task
            async def found() -> None:
                if bot.owned.description is None:
                    await bot.owned.found(
                        CommunityProfile(name="Tea", description="Tea", access=Access.MANUAL_ACCEPT)
                    )
                    await bot.owned.add_channel("general", "For all", channel=GENERAL)
                    await bot.owned.add_channel("mods", "For some", channel=MODS)

        return bot

    def __enter__(self) -> "World":
        key = OWNER if self.is_owner else None
        self.kit = BotTester(self.bot(), community_key=key).__enter__()
        self.kit.wait(2)
        return self

    def __exit__(self, *error: Any) -> None:
        self.kit.__exit__(*error)

    def restart(self) -> None:
        """Kill the bot, and start it as a new process would."""
        self.kit.crash()
        self.kit.bot = self.bot()
        self.kit.start()

    @property
    def deleted(self) -> list[str]:
        """The messages that the bot deleted."""
        return [
            one.payload.message_id
            for one in self.kit.heard
            if isinstance(one.payload, DeleteMessage) and one.signer == self.kit.public_key
        ]

    def told(self, channel: str) -> list[str]:
        return [message.text for message in self.kit.said(channel)]

    @property
    def actions(self) -> list[str]:
        return [entry.action for entry in read_log(self.folder / "audit.jsonl")]


def test_a_strange_link_is_deleted_explained_reported_and_appealed(tmp_path: Path) -> None:
    with World(tmp_path) as world:
        alice, mod = world.kit.user("Alice"), world.kit.user("Mod")
        direct = alice.direct
        alice.says("see https://status.app")
        message = alice.says(LINK, channel=GENERAL)
        assert world.deleted == [message]
        (told,) = world.told(GENERAL)
        assert told == (
            f"{mention(alice.public_key)}: link to evil.example (delete). "
            "To appeal, write: !appeal 1 why"
        )
        assert "Case 1, open" in world.told(MODS)[0]
        bob = world.kit.user("Bob")
        assert bob.asks("!appeal 1 me too") == "You have no case 1."
        assert bob.asks("!mod pardon 1") == "You may not use !mod pardon."
        assert alice.asks("!appeal 1 it is my site") == "The moderators read your appeal of case 1."
        assert alice.asks("!appeal 1 again") == "Case 1 is appealed."
        assert "it is my site" in world.told(MODS)[1]
        assert "Appeal: it is my site" in mod.asks("!mod case 1", channel=MODS)
        assert mod.asks("!mod pardon 1 sorry", channel=MODS) == "Case 1 is pardoned."
        assert direct.texts == ["Case 1 is pardoned. sorry"]
        assert world.moderation.record.points(alice.public_key.hex) == 0
        assert "pardoned" in mod.asks("!mod cases", channel=MODS)
        assert "pardon 1 by Mod: sorry" in mod.asks("!mod log", channel=MODS)
    assert world.actions == ["delete", "appeal", "pardon"]


def test_a_link_that_comes_in_by_an_edit_is_deleted_once(tmp_path: Path) -> None:
    with World(tmp_path) as world:
        alice = world.kit.user("Alice")
        message = alice.says("a harmless text")
        alice.edits(message, LINK)
        alice.edits(message, LINK + "/2")
        assert world.deleted == [message]
        assert world.actions == ["delete"]


def test_a_flood_mutes_and_makes_one_case(tmp_path: Path) -> None:
    policy = Policy(flood_messages=3, flood_s=10, mute_s=60)
    with World(tmp_path, policy) as world:
        alice, bob = world.kit.user("Alice"), world.kit.user("Bob")
        for n in range(30):
            alice.says(f"flood {n}", settle=False)
        world.kit.wait(5)
        assert bob.says("hello") not in world.deleted
        assert len(world.deleted) == 27 and world.actions == ["mute"]
        assert len(world.told(GENERAL)) == len(world.told(MODS)) == 1
        world.restart()
        message = alice.says("still muted")
        assert world.deleted[-1] == message
        world.kit.wait(60)
        alice.says("I am back")
        assert len(world.deleted) == 28 and world.moderation.record.muted == {}


def test_points_lead_from_deletion_to_mute_kick_and_ban(tmp_path: Path) -> None:
    policy = Policy(
        allowed_hosts=frozenset(), mute_at=2, kick_at=3, ban_at=4, mute_s=5, forget_s=10_000
    )
    with World(tmp_path, policy) as world:
        alice = world.kit.user("Alice")
        for word in ("tea", "bread", "music", "trains"):
            alice.says(f"{word} {LINK}")
            world.kit.wait(30)
        assert world.actions == ["delete", "mute", "kick", "ban"]
        assert "Please ban the user: the bot does not run the community." in world.told(MODS)[-1]
        world.kit.wait(10_001)
        alice.says(LINK)
        assert world.actions[-1] == "delete", "points are forgotten"


def test_where_the_bot_runs_the_community_users_are_muted_kicked_and_banned(
    tmp_path: Path,
) -> None:
    policy = Policy(allowed_hosts=frozenset(), mute_at=1, kick_at=2, ban_at=3, mute_s=60)
    with World(tmp_path, policy, is_owner=True) as world:
        kit, owned = world.kit, world.kit.bot.owned
        alice, mod = kit.user("Alice"), kit.user("Mod")
        for user in (alice, mod):
            user.requests_to_join(COMMUNITY)
        kit.wait(5)
        assert {alice.public_key, mod.public_key} < set(owned.members)
        alice.says(LINK, channel=GENERAL)
        client = kit.client(COMMUNITY)
        kit.wait(5)
        alice.says("muted", channel=GENERAL)
        assert client.refused[-1:] == ["user can't post in community"]
        kit.wait(60)
        alice.says(f"{LINK}/2", channel=GENERAL)
        assert alice.public_key not in owned.members, "kicked"
        alice.requests_to_join(COMMUNITY)
        kit.wait(65)
        assert alice.public_key in owned.members
        alice.says(f"{LINK}/3", channel=GENERAL)
        kit.wait(5)
        alice.requests_to_join(COMMUNITY)
        kit.wait(5)
        assert alice.public_key not in owned.members, "banned"
        alice.direct.says("!appeal 3 please")
        assert alice.direct.texts[-1] == "The moderators read your appeal of case 3."
        assert mod.asks("!mod pardon 3", channel=MODS) == "Case 3 is pardoned."
        alice.requests_to_join(COMMUNITY)
        kit.wait(5)
        assert alice.public_key in owned.members
    assert world.actions == ["mute", "kick", "ban", "appeal", "pardon"]


def test_a_raid_is_reported_once_and_its_messages_deleted_silently(tmp_path: Path) -> None:
    policy = Policy(raid_newcomers=5, raid_s=60, raid_quiet_s=300, learn_s=10)
    with World(tmp_path, policy) as world:
        old, mod = world.kit.user("Old"), world.kit.user("Mod")
        old.says("I was here before")
        world.kit.wait(20)
        for n in range(20):
            world.kit.user(f"raider {n}").says(f"raid {n}", settle=False)
        world.kit.wait(5)
        assert len(world.deleted) == 16
        old.says("what is this")
        assert len(world.deleted) == 16
        assert world.told(GENERAL) == [] and len(world.told(MODS)) == 1
        world.kit.wait(320)
        assert world.told(MODS)[1] == "The raid is over; 16 messages were deleted."
        assert mod.asks("!mod raid yes", channel=MODS) == "Messages of newcomers are deleted."
        world.kit.user("late").says("hello")
        assert len(world.deleted) == 17
        assert mod.asks("!mod raid no", channel=MODS) == "Newcomers may write."
        assert "raid over" in world.actions


def test_requests_to_join_wait_during_a_raid(tmp_path: Path) -> None:
    policy = Policy(raid_newcomers=5, learn_s=1)
    with World(tmp_path, policy, is_owner=True) as world:
        for n in range(8):
            world.kit.user(f"raider {n}").requests_to_join(COMMUNITY)
        world.kit.wait(5)
        assert len(world.kit.bot.owned.members) == 6, "the bot, one while it learned, and four"
        assert len(world.kit.bot.owned.requests) == 3
        assert sum("asks to join during a raid" in text for text in world.told(MODS)) == 3


def test_after_a_crash_nothing_is_done_twice(tmp_path: Path) -> None:
    with World(tmp_path) as world:
        alice = world.kit.user("Alice")
        for n in range(3):
            alice.says(f"{LINK}/{n}", settle=False)
            world.kit.wait(0.3)
            world.restart()
            world.kit.wait(5)
        assert len(world.deleted) == len(set(world.deleted)) == 3
        assert world.actions == ["delete", "delete", "mute"]
        assert len(world.told(MODS)) == len(world.told(GENERAL)) == 3


def test_moderators_act_by_hand(tmp_path: Path) -> None:
    with World(tmp_path) as world:
        mod, alice = world.kit.user("Mod"), world.kit.user("Alice")
        alice.says("hello")
        name = mention(alice.public_key)
        assert mod.asks(f"!mod mute {name} 1h rude", channel=MODS) == "Alice is muted for 1:00:00."
        message = alice.says("what?")
        assert world.deleted == [message]
        assert mod.asks(f"!mod unmute {name}", channel=MODS) == "Alice is not muted."
        alice.says("thanks")
        assert world.deleted == [message]
        not_here = "the bot does not run the community."
        assert mod.asks(f"!mod ban {name} rude", channel=MODS) == not_here
        assert mod.asks(f"!mod unban {name}", channel=MODS) == not_here
        for command in ("case 9", "pardon 9"):
            assert mod.asks(f"!mod {command}", channel=MODS) == "There is no case 9."
        assert mod.asks("!mod uphold 9", channel=MODS) == "There is no appeal of case 9."
        assert mod.asks("!mod cases", channel=MODS) == "There are no cases."
        direct = alice.direct
        alice.says(LINK)
        alice.asks("!appeal 1 oh")
        assert mod.asks("!mod uphold 1 no", channel=MODS) == "Case 1 is upheld."
        assert direct.texts == ["Your appeal of case 1 is rejected. no"]
        mod.says(LINK)
        assert len(world.deleted) == 2, "moderators may"


class Notes(dict[str, Any]):
    def note(self, name: str) -> Any:
        return self.get(name)

    def keep(self, name: str, value: Any) -> None:
        if value is None:
            self.pop(name, None)
        else:
            self[name] = value


def test_few_cases_and_their_users_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record_module, "MAX_CASES", 10)
    monkeypatch.setattr(record_module, "MAX_MUTED", 3)
    notes = Notes()
    record = Record(lambda: notes, Policy())
    for n in range(100):
        case = record.open(
            at_ms=n,
            user=f"user {n}",
            message_id=f"m {n}",
            chat="c",
            rule="link",
            why="x" * 900,
            points=1,
            is_reported=False,
        )
        record.mute(f"user {n}", n + 1)
    assert isinstance(case, Case) and record.about("m 99") == case and len(case.why) == 500
    assert len(notes) == 3 * 10 + 2
    assert list(record.muted) == ["user 97", "user 98", "user 99"]
