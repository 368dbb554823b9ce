"""Conversations: the results of requests, and the verbs of channels through a hub, over a node."""

from pathlib import Path
from typing import Any

import anyio
import pytest

from pytest_reliable_channel.channels import Channels
from pytest_reliable_channel.nodes import served_node
from reliable_channel import ChannelHub, MessageAcknowledged, ReliableChannel, run
from reliable_channel.conversation import conversation
from reliable_channel.conversation.conversation import Outcomes
from reliable_channel.errors import ChannelClosed, NotAcknowledged
from reliable_channel.events import AcknowledgementSource

pytestmark = pytest.mark.anyio


async def test_send_waits_until_a_participant_has_the_message(channels: Channels) -> None:
    alice, bob = await channels.open("alice", "bob", preset="auto")
    request = await alice.channel.send(b"one", wait="acknowledged", within_s=60)
    assert b"one" in bob.log
    await request.acknowledged(within_s=0)
    late = await alice.channel.send(b"two")
    await channels.sleep(60)
    await late.acknowledged(within_s=0)


async def test_not_in_time_names_what_was_missing_and_the_preset(channels: Channels) -> None:
    alice, bob = await channels.open("alice", "bob")
    await bob.send("I am here")
    await alice.receives("I am here")
    with bob.cut_off(), pytest.raises(NotAcknowledged) as caught:
        await alice.channel.send(b"one", wait="acknowledged", within_s=5)
    text = str(caught.value)
    assert caught.value.message_id in text and "within 5 s" in text
    assert "published once" in text and "heard bob" in text
    assert "preset 'documented'" in text and "sync messages each 30 s" in text
    assert "preset='auto'" in text
    await channels.sleep(3600)
    assert b"one" in bob.log, "it was retried all the same"


async def test_a_message_that_failed_is_not_acknowledged(channels: Channels) -> None:
    alice, bob = await channels.open("alice", "bob", max_retry_attempts=1)
    with bob.cut_off():
        with pytest.raises(NotAcknowledged, match="and failed"):
            await alice.channel.send(b"one", wait="acknowledged")
        request = await alice.channel.send(b"two")
        assert await alice.channel.cancel(request)
        with pytest.raises(NotAcknowledged, match="cancelled"):
            await request.acknowledged()


async def test_a_repeated_send_waits_across_a_restart(channels: Channels) -> None:
    alice, bob = await channels.open("alice", "bob", preset="auto")
    with bob.cut_off():
        await alice.channel.send(b"one", idempotency_key="k")
        await alice.crash()
        await alice.start()
        with pytest.raises(NotAcknowledged):
            await alice.channel.send(b"one", idempotency_key="k", wait="acknowledged", within_s=1)
    await alice.channel.send(b"one", idempotency_key="k", wait="acknowledged", within_s=600)
    await alice.restart()
    await alice.channel.send(b"one", idempotency_key="k", wait="acknowledged", within_s=0)
    assert bob.log.count(b"one") == 1


async def test_a_result_is_there_after_closing(tmp_path: Path) -> None:
    names: dict[str, Any] = {"channel_id": "c", "preset": "auto"}
    state = f"sqlite:///{tmp_path}/alice.db"
    async with ReliableChannel("memory://after", sender_id="bob", **names):
        alice = ReliableChannel("memory://after", sender_id="alice", state=state, **names)
        async with alice, alice.events(confirm=False) as events:
            request = await alice.send(b"one")
            while not isinstance(await anext(events), MessageAcknowledged):
                pass
        with anyio.fail_after(60):
            await request.acknowledged()


async def test_closing_the_channel_ends_the_wait(channels: Channels) -> None:
    alice, _ = await channels.open("alice", "bob")

    async def wait() -> None:
        with pytest.raises(ChannelClosed, match="before the message was acknowledged"):
            await alice.channel.send(b"one", wait="acknowledged")

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(wait)
        await channels.sleep(1)
        await alice.stop()


async def test_a_request_keeps_its_failure_however_many_results_come_later(
    channels: Channels, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conversation, "RESULTS_LIMIT", 2)
    alice, _ = await channels.open("alice", "bob", preset="auto")
    request = await alice.channel.send(b"one")
    assert await alice.channel.cancel(request)
    for payload in (b"two", b"three", b"four"):
        await alice.channel.send(payload, wait="acknowledged", within_s=60)
    with pytest.raises(NotAcknowledged, match="cancelled"):
        await request.acknowledged()


def test_results_are_bounded_and_a_held_one_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conversation, "RESULTS_LIMIT", 2)
    outcomes = Outcomes()
    held = outcomes.earlier("0", is_pending=True)
    for number in range(4):
        source = AcknowledgementSource.CAUSAL_HISTORY
        outcomes.note(MessageAcknowledged(str(number), source, "bob"), 0)
    assert held.event is not None and held.event.message_id == "0"
    assert outcomes.of("3") is not None
    assert outcomes.of("1") is None


async def _answer(channel: ReliableChannel) -> None:
    async for question in channel.questions():
        await question.answer(question.content.upper())


def test_channels_of_a_hub_ask_and_answer() -> None:
    async def main(address: str) -> None:
        async with ChannelHub(address) as hub, ChannelHub(address) as other:
            alice = hub.channel(channel_id="c", sender_id="alice", preset="auto")
            bob = other.channel(channel_id="c", sender_id="bob", preset="auto")
            async with alice, bob, anyio.create_task_group() as tasks:
                tasks.start_soon(_answer, bob)
                answer = await alice.ask(b"hello", within_s=600)
                assert (answer.sender_id, answer.content) == ("bob", b"HELLO")
                await alice.send(b"one", wait="acknowledged", within_s=600)
                assert [one.sender_id for one in alice.participants()] == ["bob"]
                assert f"node={address}" in alice.invite()
                tasks.cancel_scope.cancel()

    with served_node() as address:
        run(main, address)
