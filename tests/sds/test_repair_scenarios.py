"""The testing scenarios of the SDS-R implementation guide, in virtual time."""

import pytest

from reliable_channel.sds import NIM, RepairOptions
from reliable_channel.sds.events import OutgoingKind, RepairRequested
from reliable_channel.sds.repair.buffers import in_response_group, t_resp

from .world import MINUTE, NOW_MS, SECOND, Weather, World, decode

NAMES = ["alice", "bob", "carol", "dave", "erin"]
GROUPS = 3


def miss(world: World, who: str, content: bytes) -> str:
    """Alice writes; `who` does not get it, and retries do not help."""
    world.islands = [{who}]
    message_id = world["alice"].send(content)
    world.run(SECOND)
    world["alice"].core.outgoing_buffer.remove([message_id])
    world.islands = []
    return message_id


def repairs(world: World) -> list[str]:
    return [
        driver.name
        for driver in world.drivers.values()
        for _ in driver.broadcasts(OutgoingKind.REPAIR)
    ]


def test_single_missing_message_takes_one_request_and_one_response() -> None:
    world = World(NAMES)
    missing = miss(world, "carol", b"missing")
    world["bob"].send(b"refers to it")
    assert world.run(3 * MINUTE, until=lambda: missing in world["carol"].core.log)
    world.run(5 * MINUTE)
    requests = [event for d in world.drivers.values() for event in d.seen(RepairRequested)]
    assert [event.message_ids for event in requests] == [(missing,)]
    assert repairs(world) == ["alice"]
    assert world.is_quiet()


def test_many_who_miss_the_same_message_ask_about_once() -> None:
    world = World([f"p{i:02}" for i in range(30)] + ["alice", "bob"], seed=3)
    world.islands = [{"alice", "bob"}]
    missing = world["alice"].send(b"missing")
    world.run(SECOND)
    world["alice"].core.outgoing_buffer.remove([missing])
    world.islands = []
    world["bob"].send(b"refers to it")
    world.run(5 * MINUTE)
    requests = [event for d in world.drivers.values() for event in d.seen(RepairRequested)]
    assert all(missing in d.core.log for d in world.drivers.values())
    assert len(requests) <= 2
    assert repairs(world) == ["alice"] * len(repairs(world))
    assert len(repairs(world)) <= 2


@pytest.mark.parametrize("seed", [1, 2])
def test_without_sync_messages_own_messages_carry_the_requests_of_a_silent_participant(
    seed: int,
) -> None:
    names, weather = NAMES[:4], Weather(loss=0.3, latency_ms=(50, 300))
    bloom, t_max_ms = NIM.options.bloom, NIM.options.repair.t_max_ms
    world = World(
        names,
        seed=seed,
        weather=weather,
        profiles=dict.fromkeys(names, NIM),
        sync_min_interval_ms=0,
        causal_history_size=NIM.options.causal_history_size,
        bloom=bloom,
        repair=RepairOptions(t_max_ms=t_max_ms),
    )
    for number in range(40):
        for name in names:
            world[name].send(b"%d" % number)
            world.run(250)
    world.run(20 * MINUTE)
    assert all(len(driver.core.log) >= 159 for driver in world.drivers.values())
    assert not any(d.broadcasts(OutgoingKind.SYNC) for d in world.drivers.values())


def test_cascade_recovery() -> None:
    # The missing message itself refers to another missing one.
    world = World(NAMES, causal_history_size=1)
    first = miss(world, "carol", b"first")
    second = miss(world, "carol", b"second")
    world["bob"].send(b"third")
    world.run(SECOND)
    assert [m.entry.message_id for m in world["carol"].core.missing()] == [second]
    assert world.run(10 * MINUTE, until=lambda: len(world["carol"].core.log) == 3)
    assert world["carol"].delivered()[:2] == [first, second]
    assert world["carol"].core.log.digest() == world["alice"].core.log.digest()


def test_original_sender_offline_the_next_closest_responds() -> None:
    world = World(NAMES)
    missing = miss(world, "carol", b"missing")
    world.islands = [{"alice"}]
    world["bob"].send(b"refers to it")
    assert world.run(5 * MINUTE, until=lambda: missing in world["carol"].core.log)
    holders = ["bob", "dave", "erin"]
    closest = min(holders, key=lambda name: t_resp(name, "alice", missing, NOW_MS, RepairOptions()))
    assert repairs(world) == [closest]


def test_response_group_isolation() -> None:
    world = World(
        [*NAMES, "frank", "grace", "heidi"], repair=RepairOptions(num_response_groups=GROUPS)
    )
    missing = miss(world, "carol", b"missing")
    world["bob"].send(b"refers to it")
    world.run(4 * MINUTE)
    for driver in world.drivers.values():
        if not in_response_group(driver.name, "alice", missing, GROUPS):
            assert driver.broadcasts(OutgoingKind.REPAIR) == []
    assert repairs(world) == ["alice"]
    assert missing in world["carol"].core.log


def test_buffer_overflow_evicts_and_recovers() -> None:
    world = World(["alice", "bob"], repair=RepairOptions(buffer_size=4))
    world.islands = [{"bob"}]
    for number in range(20):
        world.run(10)
        world["alice"].send(b"%d" % number)
    for message_id in list(world["alice"].core.outgoing_buffer.entries):
        world["alice"].core.outgoing_buffer.remove([message_id])
    world.islands = []
    world["alice"].send(b"last")
    world.run(SECOND)
    assert len(world["bob"].core.repair_requests) == 4
    assert len(world["bob"].core.missing()) == 20
    assert world.run(60 * MINUTE, until=lambda: len(world["bob"].core.log) == 21)
    assert world["alice"].core.log.digest() == world["bob"].core.log.digest()


def test_a_lost_request_and_a_lost_answer_are_repeated() -> None:
    world = World(NAMES)
    missing = miss(world, "carol", b"missing")
    world["bob"].send(b"refers to it")
    world.run(SECOND)
    world.islands = [{"carol"}]
    world.run(world["carol"].core.repair_requests.planned()[missing] - world.now_ms + SECOND)
    assert len(world["carol"].seen(RepairRequested)) == 1
    world.islands = []
    assert world.run(4 * MINUTE, until=lambda: missing in world["carol"].core.log)
    assert len(world["carol"].seen(RepairRequested)) == 2


def test_the_answer_is_the_message_as_it_was() -> None:
    world = World(NAMES)
    missing = miss(world, "carol", b"missing")
    world["bob"].send(b"refers to it")
    world.run(4 * MINUTE)
    (original,) = world["alice"].broadcasts(OutgoingKind.CONTENT)
    (answer,) = world["alice"].broadcasts(OutgoingKind.REPAIR)
    assert answer.data == original.data
    assert decode(answer).message_id == missing
