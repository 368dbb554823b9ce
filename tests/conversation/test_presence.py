"""Participants are those that were heard; silence follows the sync schedule."""

import anyio
import pytest

from pytest_reliable_channel.channels import Channels, Participant
from reliable_channel.conversation import presence
from reliable_channel.conversation.presence import ROUNDS, Presence
from reliable_channel.events import AnyEvent, MessageReceived, ParticipantSeen, ParticipantSilent

pytestmark = pytest.mark.anyio
NOW_MS = 1_700_000_000_000


def names(
    participant: Participant, kind: type[ParticipantSeen] | type[ParticipantSilent]
) -> list[str]:
    return [event.sender_id for event in participant.events if isinstance(event, kind)]


@pytest.mark.parametrize("preset", ["documented", "auto"])
async def test_a_quiet_participant_is_seen_one_that_left_is_silent(
    preset: str, channels: Channels, virtual_time: None
) -> None:
    alice, bob, carol = await channels.open("alice", "bob", "carol", preset=preset, loss=0.3)
    await bob.send("hello")
    await alice.receives("hello")
    await channels.sleep(2 * 3600)  # bob and carol say nothing: their sync messages do
    assert {one.sender_id for one in alice.channel.participants()} == {"bob", "carol"}
    assert names(alice, ParticipantSilent) == []
    await carol.stop()
    await alice.until(lambda: names(alice, ParticipantSilent) == ["carol"], within_s=3600)
    silent = {one.sender_id: one.is_silent for one in alice.channel.participants()}
    assert silent == {"bob": False, "carol": True}
    await carol.start()
    await alice.until(lambda: names(alice, ParticipantSeen).count("carol") == 2, within_s=7200)
    assert names(alice, ParticipantSeen).count("bob") == 1


async def test_the_participant_heard_last_is_first_with_the_kind_of_its_sign(
    channels: Channels,
) -> None:
    alice, bob, carol = await channels.open("alice", "bob", "carol")
    assert alice.channel.participants() == ()
    await bob.send("hello")
    await alice.receives("hello")
    await channels.sleep(1)
    await carol.channel.send_ephemeral(b"typing")
    await channels.sleep(1)
    first, second = alice.channel.participants()
    assert (first.sender_id, first.heard_by) == ("carol", "ephemeral")
    assert (second.sender_id, second.heard_by) == ("bob", "message")
    assert 0 < first.last_heard_ms - second.last_heard_ms < 2_000


def received(sender_id: str, lamport_timestamp: int) -> MessageReceived:
    return MessageReceived("m", sender_id, b"x", lamport_timestamp, 0)


def test_an_old_message_is_no_sign_of_life() -> None:
    events: list[AnyEvent] = []
    found = Presence("alice", 1_000, events.append, lambda: NOW_MS)
    found.note(received("bob", NOW_MS - 3_600_000), NOW_MS)
    found.note(received("alice", NOW_MS), NOW_MS)
    assert events == []
    assert [(one.sender_id, one.is_silent) for one in found.participants()] == [("bob", True)]
    found.note(received("bob", NOW_MS - 10), NOW_MS)
    found.note(received("counter", 17), NOW_MS)  # its Lamport timestamps are no time
    assert [event.sender_id for event in events if isinstance(event, ParticipantSeen)] == [
        "bob",
        "counter",
    ]
    found.note(received("bob", NOW_MS - 5_000), NOW_MS)
    assert found.participants()[-1].last_heard_ms == NOW_MS - 10, "time goes forward"


def test_without_sync_messages_silence_says_nothing() -> None:
    found = Presence("alice", 0, lambda event: None, lambda: NOW_MS)
    found.note(received("bob", NOW_MS - 3_600_000), NOW_MS)
    assert found.silent_after_ms is None and not found.participants()[0].is_silent


def test_the_threshold_grows_with_the_group_and_the_number_is_bounded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(presence, "PARTICIPANTS_LIMIT", 10)
    found = Presence("alice", 1_000, lambda event: None, lambda: NOW_MS)
    assert found.silent_after_ms == ROUNDS * 2_000
    for number in range(20):
        found.note(received(f"p{number}", NOW_MS - 20 + number), NOW_MS)
    assert found.silent_after_ms == ROUNDS * 11_000
    found.note(received("gone", NOW_MS - 3_600_000), NOW_MS)
    assert found.silent_after_ms == ROUNDS * 10_000, "those that are silent do not count"
    assert found.participants()[0].sender_id == "p19"
    assert len(found.participants()) == 10


async def test_nothing_is_emitted_while_no_participant_is_there() -> None:
    found = Presence("alice", 1_000, lambda event: None, lambda: NOW_MS)
    with anyio.move_on_after(3600) as waiting:
        await found.run()
    assert waiting.cancelled_caught
