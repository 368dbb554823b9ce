"""Why a message is late, from the journals of real channels."""

from pathlib import Path
from typing import Any

import pytest

from pytest_reliable_channel.channels import Channels
from reliable_channel_watch.explaining import MessageView, explain
from reliable_channel_watch.model import View
from watch_tests.world import view_of

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend(virtual_time: tuple[str, dict[str, Any]]) -> tuple[str, dict[str, Any]]:
    return virtual_time


def explained(view: View, number: int) -> MessageView:
    return explain(view, list(view.messages.values())[number])


async def test_a_message_that_waited_for_another_one_names_it(
    channels: Channels, tmp_path: Path
) -> None:
    alice, bob = [
        (await channels.open(name, journal=tmp_path / f"{name}.jsonl"))[0]
        for name in ("alice", "bob")
    ]
    with bob.cut_off():
        await alice.send("missed")
        await channels.sleep(3)
    await alice.send("arrives")
    await bob.receives("arrives")
    await channels.sleep(120)
    await alice.stop()
    await bob.stop()
    view = view_of(tmp_path)
    missed, arrives = explained(view, 0), explained(view, 1)
    assert missed.sender == "alice" and missed.has == ["bob"] and missed.has_not == []
    assert arrives.after == [(0, missed.message_id, "alice")]
    assert missed.before == [(1, arrives.message_id, "alice")]
    delay = missed.delays[0]
    assert delay.participant == "bob" and (delay.delay_ms or 0) >= 3_000
    assert delay.why == (
        "it did not arrive; it was noticed as missing after 3.0 s, through a message of alice; "
        "Store had it after 4.0 s"
    )
    parked = arrives.delays[0]
    assert f"for {missed.message_id[:8]} of alice" in parked.why or (parked.delay_ms or 0) < 1_000
    words = [step.what for step in missed.history]
    assert words[:2] == ["accepted, and entered the log of its sender", "sent"]
    assert "entered the log of bob" in words
    assert "acknowledged, by the causal history of bob" in words or any(
        word.startswith("acknowledged, by the bloom filter") for word in words
    )
    assert missed.to_dict()["message_id"] == missed.message_id


async def test_a_sender_that_could_not_send_is_the_reason(
    channels: Channels, tmp_path: Path
) -> None:
    alice, bob = [
        (await channels.open(name, journal=tmp_path / f"{name}.jsonl"))[0]
        for name in ("alice", "bob")
    ]
    with channels.node_away():
        await alice.send("one")
        await channels.sleep(20)
        await alice.send("two")
        await channels.sleep(20)
    await bob.receives("two")
    await channels.sleep(60)
    await alice.stop()
    await bob.stop()
    why = explained(view_of(tmp_path), 1).delays[0].why
    assert why.startswith("it waited 2") and "at its sender, which could not send: " in why


def test_what_is_not_there_has_a_reason() -> None:
    view = View()
    for name in ("alice", "absent", "asking", "gave up", "parked"):
        view.opened(name, 0)
    view.entered_log("alice", "m", "alice", 0)
    view.is_missing("asking", "m", 1, sender="alice", hint=bytes(32))
    view.asked_others("asking", ["m"], 2)
    view.is_missing("gave up", "m", 1, sender="alice", hint=None)
    view.was_lost("gave up", "m", 3)
    view.came_in("parked", "m", "live", 2, parked=True)
    found = explained(view, 0)
    whys = {each.participant: each.why for each in found.delays}
    assert whys == {
        "absent": "it did not arrive, and nothing that arrived refers to it",
        "asking": "missing; asked are: Store, by its hint; all others, once; alice answers first",
        "gave up": "declared lost",
        "parked": "it arrived, and waits for messages that it refers to",
    }
    words = [step.what for step in found.history]
    assert "asking asks the others for it" in words and "gave up declared it lost" in words
