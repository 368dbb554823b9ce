"""The fixtures, used as tests of users do, and in a project in another directory."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pytest_reliable_channel.channels import Channels
from reliable_channel import MessageAcknowledged, ReliableChannel, SendFailed
from reliable_channel.events import StateRolledBack

pytestmark = pytest.mark.anyio
PAGE = Path(__file__).parents[3] / "docs" / "testing.md"


@pytest.fixture
def anyio_backend(virtual_time: tuple[str, dict[str, Any]]) -> tuple[str, dict[str, Any]]:
    return virtual_time


async def test_what_a_participant_misses_it_gets_later(channels: Channels) -> None:
    alice, bob = await channels.open("alice", "bob")
    with bob.cut_off():
        await alice.send("hello")
        await channels.sleep(3600)
        assert bob.received == []
    await bob.receives("hello")
    await channels.agree()


async def test_loss(channels: Channels) -> None:
    alice, bob, carol = await channels.open("alice", "bob", "carol", loss=0.4, seed=7)
    for number in range(20):
        await alice.send(str(number))
    await bob.receives("19")
    await carol.receives("19")
    await channels.agree()


async def test_a_restart_keeps_the_log_and_a_crash_what_was_accepted(channels: Channels) -> None:
    alice, bob = await channels.open("alice", "bob")
    await alice.send("one")
    await bob.receives("one")
    await bob.restart()
    assert bob.log == [b"one"]
    with channels.node_away():
        await alice.send("two")
        await alice.crash()
        assert not alice.is_open
    await alice.start()
    await bob.receives("two")
    assert not [event for event in alice.events if isinstance(event, StateRolledBack | SendFailed)]
    await alice.until(lambda: [e for e in alice.events if isinstance(e, MessageAcknowledged)])
    assert bob.received == [b"one", b"two"]


async def test_what_does_not_happen_is_said(channels: Channels) -> None:
    alice, bob = await channels.open("alice", "bob")
    with pytest.raises(AssertionError, match=r"bob did not receive b'hello' within 5 s; received"):
        await bob.receives("hello", within_s=5)
    with bob.cut_off():
        await alice.send("x")
        with pytest.raises(AssertionError, match="the logs differ after 1 s: alice"):
            await channels.agree(within_s=1)
    with pytest.raises(ValueError, match="`bob` is open already"):
        await channels.open("bob")
    await bob.stop()
    with pytest.raises(AssertionError, match="bob is stopped"):
        await bob.send("y")


def test_a_real_node(waku_node: str) -> None:
    from reliable_channel import BlockingReliableChannel, MessageSent

    with BlockingReliableChannel(waku_node, channel_id="c", sender_id="alice") as channel:
        channel.send(b"hello")
        assert any(isinstance(event, MessageSent) for event in channel.events())


def test_the_tests_of_the_page_pass_in_a_project_of_their_own(tmp_path: Path) -> None:
    """In its own process, with nothing but the installed plugin."""
    for name, text in re.findall(r"```python\n# (\w+\.py)\n(.*?)```", PAGE.read_text(), re.DOTALL):
        (tmp_path / name).write_text(text)
    assert len(list(tmp_path.iterdir())) == 3
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            "-p",
            "no:schemathesis",
            str(tmp_path),
        ],
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "3 passed" in done.stdout


def test_a_users_test_of_a_chat_takes_ten_lines() -> None:
    (text,) = re.findall(r"```python\n# test_chat\.py\n(.*?)```", PAGE.read_text(), re.DOTALL)
    _, first, *_ = text.split("@pytest.mark.anyio\n")
    assert len(first.strip().splitlines()) <= 10
    assert ReliableChannel.__name__ not in text
