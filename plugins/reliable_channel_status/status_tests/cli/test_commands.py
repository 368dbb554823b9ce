"""`bot doctor`: where a bot stands in its communities, from Store alone."""

import os
import sys
from pathlib import Path

import pytest
import typer

from reliable_channel_status import (
    Access,
    CommunityMember,
    CommunityTokenPermission,
    PrivateKey,
    Sealer,
    TokenCriteria,
    TokenPermissionType,
    write_key,
)
from reliable_channel_status.bot import BotOptions, StatusBot
from reliable_channel_status.bot.membership import MembershipFinding, StoredStanding, examine
from reliable_channel_status.cli.commands import doctor
from reliable_channel_status.testing import BotTester
from reliable_channel_status.testing.fake_user import key_of
from status_tests.world import ALICE, COMMUNITY, GENERAL, OWNER, describing
from tests.cli import forked

ADVICE = "clients drop what it says; run the bot, which asks to join, or ask the owner"


def found(tester: BotTester) -> MembershipFinding:
    shards = [str(one) for one in (tester.bot.options.shard, *tester.bot.options.also_listen)]
    client = tester.node_client()
    (finding,) = tester.run(examine(client, tester.key, [COMMUNITY], shards, tester.now_ms()))
    tester.run(client.aclose())
    return finding


def new_bot() -> StatusBot:
    options = BotOptions(request_membership=False)
    return StatusBot(node="http://node", community=COMMUNITY, channels=[GENERAL], options=options)


def test_a_bot_is_found_where_the_owner_lists_it_and_not_where_it_was_removed() -> None:
    with BotTester(new_bot()) as tester:
        assert found(tester).place is StoredStanding.UNKNOWN
        forged = Sealer(ALICE).seal(
            describing({tester.public_key: CommunityMember()}, tester.now_ms()),
            COMMUNITY.description_topic,
            tester.now_ms(),
        )
        tester.publish(forged.messages[0])
        assert found(tester).place is StoredStanding.UNKNOWN, "another key signed it"
        owner = tester.owner(OWNER)
        owner.publishes()
        assert found(tester) == MembershipFinding(COMMUNITY, StoredStanding.NOT_A_MEMBER, ADVICE)
        owner.lets_in(tester.public_key)
        assert str(found(tester)) == f"{COMMUNITY}: member"
        tester.stop()
        owner.removes(tester.public_key)
        assert found(tester).place is StoredStanding.NOT_A_MEMBER


def test_members_of_an_encrypted_community_are_known_to_members() -> None:
    with BotTester(new_bot()) as tester:
        owner = tester.owner(OWNER, access=Access.MANUAL_ACCEPT, identity=key_of("identity"))
        owner.publishes()
        assert found(tester).advice.startswith("its members are encrypted")
        owner.members[tester.public_key] = None
        owner.publishes()
        assert found(tester).place is StoredStanding.MEMBER


def test_what_the_bot_lacks_is_named() -> None:
    gate = CommunityTokenPermission(
        id="snt",
        type=TokenPermissionType.BECOME_MEMBER,
        token_criteria=(TokenCriteria(symbol="SNT", amount="10"),),
    )
    with BotTester(new_bot()) as tester:
        tester.owner(OWNER, token_permissions=[gate]).publishes()
        finding = found(tester)
    assert finding.place is StoredStanding.CLOSED
    assert finding.advice == "the bot cannot join: tokens are needed: BECOME_MEMBER (10 SNT)"


@pytest.mark.parametrize(
    ("places", "status"),
    [
        ([StoredStanding.MEMBER, StoredStanding.MEMBER], 0),
        ([StoredStanding.MEMBER, StoredStanding.UNKNOWN], 5),
        ([StoredStanding.UNKNOWN, StoredStanding.NOT_A_MEMBER], 1),
        ([StoredStanding.CLOSED], 1),
    ],
)
def test_the_exit_status_says_it(
    places: list[StoredStanding],
    status: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    async def examined(bot: StatusBot) -> list[MembershipFinding]:
        return [MembershipFinding(COMMUNITY, place, "do it") for place in places]

    monkeypatch.setattr(StatusBot, "examine", examined)
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "b_bot.py").write_text(BOT.format(key="bot.key", community=COMMUNITY.id))
    with pytest.raises(typer.Exit) as ended:
        doctor(str(tmp_path / "b_bot.py"))
    assert ended.value.exit_code == status
    assert capsys.readouterr().out.count("do it\n") == len(places)


BOT = """
from reliable_channel_status.bot import StatusBot
bot = StatusBot(node="http://127.0.0.1:9", key_file={key!r}, community={community!r}, state=None)
"""


@pytest.mark.parametrize(
    ("target", "status", "says"),
    [("a_bot.py", 3, "the node does not answer"), ("nowhere.py", 2, "no file")],
)
def test_the_command_without_node_or_bot(
    tmp_path: Path, target: str, status: int, says: str
) -> None:
    key = tmp_path / "bot.key"
    write_key(key, PrivateKey.generate())
    (tmp_path / "a_bot.py").write_text(BOT.format(key=str(key), community=COMMUNITY.id))
    environment = {**os.environ, "RELIABLE_CHANNEL_PLUGINS": "status"}
    done = forked.run("bot", "doctor", str(tmp_path / target), env=environment)
    assert (done.returncode, done.stdout) == (status, "")
    assert says in done.stderr and "Traceback" not in done.stderr
