"""`reliable-channel doctor` with a bot configured: its membership, from a node's Store."""

import json
import os
import time
from pathlib import Path

import anyio
import pytest

from reliable_channel_status import CommunityMember, PrivateKey, PublicKey, Sealer, write_key
from reliable_channel_status.cli.doctor_check import check_membership
from status_tests.world import COMMUNITY, OWNER, describing
from tests.cli import forked
from tests.cli.processes import Node
from waku import WakuClient

SHARD = "/waku/2/rs/16/32"


@pytest.fixture
def bot(tmp_path: Path) -> PublicKey:
    """A bot's key and settings in the folder."""
    key = PrivateKey.generate()
    write_key(tmp_path / "bot.key", key)
    settings = f'[bot]\ncommunity = "{COMMUNITY.id}"\nkey_file = "{tmp_path / "bot.key"}"\n'
    (tmp_path / "bot.toml").write_text(settings)
    return key.public_key


def membership(file: Path, node: str) -> tuple[int, dict[str, str]]:
    """The exit status of the doctor, and its finding on the bot; the channel needs no node."""
    flags = ("--sender-id", "me", "--node", "memory://doctor", "--json", "--config", str(file))
    environment = os.environ | {
        "RELIABLE_CHANNEL_BOT_NODE": node,
        "RELIABLE_CHANNEL_PLUGINS": "status",
        "RELIABLE_CHANNEL_STATE": "memory:",
    }
    done = forked.run("doctor", *flags, env=environment)
    found = [json.loads(line) for line in done.stdout.splitlines()]
    (one,) = [finding for finding in found if finding["check"] == "status.membership"]
    return done.returncode, one


def test_the_doctor_finds_whether_the_owner_lists_the_bot(tmp_path: Path, bot: PublicKey) -> None:
    async def publish(node: Node, *members: PublicKey) -> None:
        now_ms = time.time_ns() // 1_000_000
        description = describing({one: CommunityMember() for one in members}, now_ms)
        sealed = Sealer(OWNER).seal(description, COMMUNITY.description_topic, now_ms)
        async with WakuClient(node.address) as client:
            await client.relay_publish(SHARD, sealed.messages[0])

    file = tmp_path / "bot.toml"
    with Node("--network", "status.prod") as node:
        status, found = membership(file, node.address)
        assert (status, found["level"], found["text"]) == (0, "warning", "unknown")
        anyio.run(publish, node)
        status, found = membership(file, node.address)
        assert (status, found["level"], found["text"]) == (1, "problem", "not a member")
        assert found["where"] == COMMUNITY.id and "ask the owner" in found["advice"]
        anyio.run(publish, node, bot)
        status, found = membership(file, node.address)
        assert (status, found["level"], found["text"]) == (0, "ok", "member")


def test_a_node_that_is_not_there_is_a_problem(tmp_path: Path, bot: PublicKey) -> None:
    (found,) = check_membership(("http://127.0.0.1:9",), tmp_path / "bot.toml")
    assert found.level == "problem" and "Store cannot be asked" in found.text


def test_a_key_that_is_not_there_is_a_problem(tmp_path: Path, bot: PublicKey) -> None:
    (tmp_path / "bot.key").unlink()
    (found,) = check_membership(("http://127.0.0.1:9",), tmp_path / "bot.toml")
    assert found.level == "problem" and "bot.key" in found.text and found.advice


def test_an_unknown_setting_is_a_problem(tmp_path: Path) -> None:
    (tmp_path / "bot.toml").write_text('[bot]\ncomunity = "x"\n')
    (found,) = check_membership((), tmp_path / "bot.toml")
    assert found.level == "problem" and "did you mean `community`?" in found.text


def test_without_a_community_nothing_is_examined(tmp_path: Path) -> None:
    (tmp_path / "bot.toml").write_text('[bot]\nnode = ["http://127.0.0.1:9"]\n')
    assert check_membership((), tmp_path / "bot.toml") == []
