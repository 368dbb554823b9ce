"""Attack: old messages and syncs again and again, and everything that is heard a thousand times."""

from reliable_channel.sds import CoreLimits, Outcome
from reliable_channel.sds.events import (
    MessageReceived,
    MessageRejected,
    OutgoingKind,
    RejectionReason,
    SyncReceived,
)
from tests.sds.world import (
    MINUTE,
    NOW_MS,
    SECOND,
    World,
    beyond_limits,
    delivered,
    events,
    forge,
    give,
    participant,
    send,
    sync,
    taken,
)

from .cost import calls, kept_bytes


def test_replayed_messages_are_duplicates_and_leave_nothing_behind() -> None:
    bob, alice = participant("bob"), participant("alice")
    messages = [send(alice, b"%d" % n) for n in range(50)]
    give(bob, *messages)
    bob.events.clear()
    digest = bob.log.digest()

    def replay() -> None:
        for _ in range(40):
            for message in messages:
                assert bob.receive(message.data, NOW_MS).outcome is Outcome.DUPLICATE

    replay()
    assert kept_bytes(replay) < 50_000
    assert bob.log.digest() == digest
    assert taken(bob.events) == []
    give(bob, send(alice, b"honest"))
    assert delivered(bob) == [b"honest"]


def test_what_the_log_has_let_go_does_not_come_back() -> None:
    bob, alice = participant("bob", limits=CoreLimits(log_entries=10)), participant("alice")
    messages = [send(alice, b"%d" % n) for n in range(30)]
    give(bob, *messages)
    bob.events.clear()
    for message in messages[:20] * 20:
        assert bob.receive(message.data, NOW_MS).outcome is Outcome.REJECTED
    reasons = {e.reason for e in events(bob, MessageRejected)}
    assert reasons == {RejectionReason.OLDER_THAN_LOG}
    give(bob, send(alice, b"honest"))
    assert delivered(bob) == [b"honest"]


def test_replayed_syncs_are_not_answered_and_cost_the_same_each() -> None:
    bob, alice = participant("bob"), participant("alice")
    message = send(alice, b"honest")
    give(bob, message)
    old = sync(alice)

    def replay() -> None:
        for _ in range(500):
            give(bob, old)
        assert len(events(bob, SyncReceived)) == 500

    events(bob, MessageReceived)
    first = calls(replay)
    assert calls(replay) <= 1.05 * first
    assert [o for o in taken(bob.outgoing) if o.kind is not OutgoingKind.SYNC] == []
    assert beyond_limits(bob) == []


def test_old_syncs_do_not_silence_those_who_know_more() -> None:
    """A sync that does not know our newest message spares nobody his own."""
    world = World(["alice", "bob"], seed=4)
    world.islands = [{"alice"}]
    stale = forge("old sync", content=None)
    message_id = world["alice"].send(b"honest")
    world.islands = []
    for _ in range(300):
        world["alice"].receive(stale)
        world["bob"].receive(stale)
        world.run(SECOND)
    assert message_id in world["bob"].delivered()


def test_an_echo_storm_dies_at_once() -> None:
    """Mallory repeats whatever anybody says, to everybody, twenty times."""
    world = World(["alice", "bob", "carol"], seed=5)
    said: set[int] = set()

    def echo() -> None:
        for driver in world.drivers.values():
            for at, (_, outgoing) in enumerate(driver.broadcast):
                if (key := hash((driver.name, at))) in said:
                    continue
                said.add(key)
                for target in world.drivers.values():
                    for _ in range(20):
                        target.receive(outgoing.data)

    for n in range(20):
        world["alice" if n % 2 else "bob"].send(b"%d" % n)
        echo()
        world.run(SECOND)
    for _ in range(10):
        echo()
        world.run(MINUTE)
    broadcast = sum(len(driver.broadcast) for driver in world.drivers.values())
    assert broadcast < 20 + 60  # twenty messages, and some syncs in ten minutes
    for driver in world.drivers.values():
        received = driver.delivered()
        assert len(received) == len(set(received))
        assert len(driver.core.log) == 20
