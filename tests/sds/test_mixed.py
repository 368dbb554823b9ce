"""Channels of participants of one dialect or of both end with one log, in causal order."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reliable_channel.sds import NIM, SPEC, WireProfile
from reliable_channel.sds.events import MessageAcknowledged, MessageReceived, OutgoingKind

from .test_convergence import HOURS_UNTIL_QUIET, NAMES, Story, stories
from .world import (
    MINUTE,
    NOW_MS,
    Weather,
    World,
    decode,
    delivered,
    events,
    give,
    only,
    participant,
    promises_broken,
    send,
)

DIALECTS = st.lists(st.sampled_from([SPEC, NIM]), min_size=6, max_size=6)


def tell(story: Story, dialects: list[WireProfile]) -> World:
    profiles = dict(zip(NAMES, dialects, strict=True))
    names = NAMES[: story.size]
    world = World(names, seed=story.seed, weather=story.weather, profiles=profiles)
    for number, turn in enumerate(story.turns):
        world.run(turn.pause_ms)
        world[names[turn.who]].send(b"message %d" % number)
        if turn.away is not None:
            world.islands = [{names[who] for who in turn.away}]
    world.calm()
    assert world.run(HOURS_UNTIL_QUIET * 60 * MINUTE, until=world.is_quiet), promises_broken(world)
    return world


def order_broken(world: World) -> list[str]:
    """The references to what stands later in the log."""
    log = [entry.message_id for entry in next(iter(world.drivers.values())).core.log]
    position = {message_id: n for n, message_id in enumerate(log)}
    return [
        f"{outgoing.message_id} refers to {message_id}"
        for driver in world.drivers.values()
        for outgoing in driver.broadcasts(OutgoingKind.CONTENT)
        for message_id in decode(outgoing).causal_ids
        if position[message_id] >= position[outgoing.message_id]
    ]


@settings(max_examples=50, deadline=None, derandomize=True)
@given(stories(), DIALECTS)
def test_all_end_with_the_same_log(story: Story, dialects: list[WireProfile]) -> None:
    world = tell(story, dialects)
    assert promises_broken(world) == []
    assert order_broken(world) == []


@pytest.mark.parametrize("dialects", [[NIM] * 3, [SPEC, NIM, NIM], [NIM, SPEC, SPEC]])
def test_a_quiet_channel_acknowledges_everything(dialects: list[WireProfile]) -> None:
    names = NAMES[:3]
    world = World(names, profiles=dict(zip(names, dialects, strict=True)), weather=Weather(0.2))
    for number in range(30):
        world[names[number % 3]].send(b"%d" % number)
        world.run(300)
    world.calm()
    assert world.run(30 * MINUTE, until=world.is_quiet)
    for driver in world.drivers.values():
        acknowledged = {event.message_id for event in driver.seen(MessageAcknowledged)}
        assert acknowledged == set(driver.sent)
    assert promises_broken(world) == []


def test_who_listens_to_one_dialect_waits_for_the_other_until_it_counts_as_lost() -> None:
    nim, both = participant("nim", profile=NIM), participant("both")
    narrow = participant("narrow", listen_to=[SPEC])
    first = send(nim, b"nim")
    give(both, first)
    second = send(both, b"spec, after nim")
    give(narrow, first, second)
    assert delivered(narrow) == []
    narrow.on_deadline(NOW_MS + 6 * MINUTE)
    received = only(events(narrow, MessageReceived))
    assert [entry.message_id for entry in received.missing] == [first.message_id]
