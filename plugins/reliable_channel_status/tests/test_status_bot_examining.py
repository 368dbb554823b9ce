"""`bot doctor`: where a bot stands in its communities, from Store alone."""

import os
import sys
from pathlib import Path

import pytest
import typer
from status_world import ALICE, COMMUNITY, GENERAL, OWNER, describing

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
from reliable_channel_status.bot import BotOptions, StatusBot, StatusTestKit
from reliable_channel_status.bot.examining import Finding, Place, examine
from reliable_channel_status.bot.testkit import key_of
from reliable_channel_status.commands import doctor
from tests.cli import forked

ADVICE = "clients drop what it says; run the bot, which asks to join, or ask the owner"


def found(kit: StatusTestKit) -> Finding:
    shards = [str(one) for one in (kit.bot.options.shard, *kit.bot.options.also_listen)]
    client = kit._new_client()
    (finding,) = kit.run(examine(client, kit.key, [COMMUNITY], shards, kit.now_ms()))
    kit.run(client.aclose())
    return finding


def new_bot() -> StatusBot:
    options = BotOptions(request_membership=False)
    return StatusBot(node="http://node", community=COMMUNITY, channels=[GENERAL], options=options)


def test_a_bot_is_found_where_the_owner_lists_it_and_not_where_it_was_removed() -> None:
    with StatusTestKit(new_bot()) as kit:
        assert found(kit).place is Place.UNKNOWN
        forged = Sealer(ALICE).seal(
            describing({kit.public_key: CommunityMember()}, kit.now_ms()),
            COMMUNITY.description_topic,
            kit.now_ms(),
        )
        kit.publish(forged.messages[0])
        assert found(kit).place is Place.UNKNOWN, "another key signed it"
        owner = kit.owner(OWNER)
        owner.publishes()
        assert found(kit) == Finding(COMMUNITY, Place.NOT_A_MEMBER, ADVICE)
        owner.lets_in(kit.public_key)
        assert str(found(kit)) == f"{COMMUNITY}: member"
        kit.stop()
        owner.removes(kit.public_key)
        assert found(kit).place is Place.NOT_A_MEMBER


def test_members_of_an_encrypted_community_are_known_to_members() -> None:
    with StatusTestKit(new_bot()) as kit:
        owner = kit.owner(OWNER, access=Access.MANUAL_ACCEPT, identity=key_of("identity"))
        owner.publishes()
        assert found(kit).advice.startswith("its members are encrypted")
        owner.members[kit.public_key] = None
        owner.publishes()
        assert found(kit).place is Place.MEMBER


def test_what_the_bot_lacks_is_named() -> None:
    gate = CommunityTokenPermission(
        id="snt",
        type=TokenPermissionType.BECOME_MEMBER,
        token_criteria=(TokenCriteria(symbol="SNT", amount="10"),),
    )
    with StatusTestKit(new_bot()) as kit:
        kit.owner(OWNER, token_permissions=[gate]).publishes()
        finding = found(kit)
    assert finding.place is Place.CLOSED
    assert finding.advice == "the bot cannot join: tokens are needed: BECOME_MEMBER (10 SNT)"


@pytest.mark.parametrize(
    ("places", "status"),
    [
        ([Place.MEMBER, Place.MEMBER], 0),
        ([Place.MEMBER, Place.UNKNOWN], 5),
        ([Place.UNKNOWN, Place.NOT_A_MEMBER], 1),
        ([Place.CLOSED], 1),
    ],
)
def test_the_exit_status_says_it(
    places: list[Place],
    status: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    async def examined(bot: StatusBot) -> list[Finding]:
        return [Finding(COMMUNITY, place, "do it") for place in places]

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
