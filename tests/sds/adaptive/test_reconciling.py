"""Participants that repair what their logs differ in, by bundles of messages."""

import zlib
from itertools import count

import pytest

from reliable_channel.sds import Message, RepairOptions, SdsProtocol
from reliable_channel.sds.adaptive.bundles import packed
from reliable_channel.sds.dialects import sds_pb2
from reliable_channel.sds.events import (
    MessageReceived,
    MessageReconciled,
    MessageRejected,
    OutgoingKind,
    RejectionReason,
    RepairBudgetReached,
)
from reliable_channel.sds.message import Reconciling

from ..test_signing import Locked
from ..world import (
    CHANNEL,
    CODEC,
    MINUTE,
    NOW_MS,
    SECOND,
    Driver,
    World,
    delivered,
    events,
    forge,
    participant,
    sync,
    taken,
)

numbers = count()


def bundle(*messages: bytes, sender: str = "carol") -> bytes:
    """A sync message of a participant that broadcasts messages of others."""
    message_id = f"{sender} {next(numbers)}"
    said = Reconciling(packed=packed(messages))
    return CODEC.encode(Message(sender, message_id, CHANNEL, NOW_MS, reconciling=said))


def tuned() -> SdsProtocol:
    return participant("bob", self_tuning=True)


def pass_time(core: SdsProtocol, until_ms: int) -> list[object]:
    """Let a participant do what is due until then; return its events."""
    while (due_ms := core.agenda.next_ms) is not None and due_ms <= until_ms:
        core.on_deadline(due_ms)
    return [*taken(core.events)]


@pytest.mark.parametrize("cache_bytes", [0, 1_000_000])
def test_what_two_lacked_of_each_other_comes_in_bundles(cache_bytes: int) -> None:
    """As it was, or made anew from the log where it is held no more."""
    repair = RepairOptions(cache_bytes=cache_bytes)
    world = World(["alice", "bob"], self_tuning=True, repair=repair)
    for name, other in (("alice", "bob"), ("bob", "alice")):
        for n, after in enumerate(([], [f"{name} 0"], [f"{name} 1"])):
            sender = "carol" if n else f"of {name}"
            message = forge(f"{name} {n}", sender=sender, lamport=NOW_MS + n, after=after)
            world[name].core.receive(message, NOW_MS)
        # Without the reference to the first one, so that nobody knows of it to be missing.
        world[other].core.receive(forge(f"{name} 1", sender="carol", lamport=NOW_MS + 1), NOW_MS)
        world[other].core.receive(forge(f"{name} 2", sender="carol", lamport=NOW_MS + 2), NOW_MS)
    for name in ("alice", "bob"):
        world[name].settle()
    assert world.run(10 * MINUTE, until=world.is_quiet)
    for name, other in (("alice", "bob"), ("bob", "alice")):
        assert world[name].seen(MessageReconciled) == [MessageReconciled(f"{other} 0", other)]
        assert f"of {other}" not in set(world[name].core.participants)  # it was not heard itself
        said = world[name].broadcasts(OutgoingKind.SYNC, OutgoingKind.CONTROL)
        assert world[name].core.counters.syncs_sent == len(said)
    for name in ("alice", "bob"):
        assert not world[name].core.progress().repair_failed


@pytest.mark.parametrize("lost", [{1}, {2}, {1, 2}, {2, 3, 4}])
def test_what_only_one_has_is_repeated_within_seconds_where_bundles_are_lost(
    lost: set[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Carol, who wrote it all, is gone; bob learns of each message from the one after it."""
    world, bundles, carry = World(["alice", "bob"], self_tuning=True), count(1), World.carry
    for n in range(300):
        after = [f"m{n - 1}"] if n else []
        message = forge(f"m{n}", sender="carol", lamport=NOW_MS + n * SECOND, after=after)
        world["alice"].core.receive(message, NOW_MS)

    def lose(world: World, source: Driver, data: bytes) -> None:
        said = CODEC.decode(data).reconciling
        if said is None or not said.packed or next(bundles) not in lost:
            carry(world, source, data)

    monkeypatch.setattr(World, "carry", lose)
    world["alice"].send(b"now")
    assert world.run(MINUTE, until=world.is_quiet)


def test_where_signing_fails_for_a_while_logs_are_repaired_later() -> None:
    seals, bob, now_ms = Locked("alice"), tuned(), NOW_MS
    alice, kinds = participant("alice", self_tuning=True, signing=seals), []
    alice.receive(forge("a"), NOW_MS)
    bob.receive(forge("b"), NOW_MS)
    for seals.is_locked in (True, False):
        for _ in range(5):
            now_ms += MINUTE
            alice.receive(sync(bob, now_ms).data, now_ms)
            pass_time(alice, now_ms + SECOND)
        kinds.append({each.kind for each in taken(alice.outgoing)})
    assert OutgoingKind.CONTROL in kinds[1] and not kinds[0]


def test_a_message_of_a_bundle_waits_as_if_it_came_by_itself() -> None:
    bob = tuned()
    bob.receive(bundle(forge("b", lamport=NOW_MS + 1, after=["a"])), NOW_MS)
    assert MessageReconciled("b", "carol") in pass_time(bob, NOW_MS + SECOND)
    assert "b" not in bob.log
    bob.receive(forge("a", content=b"first"), NOW_MS + SECOND)
    assert delivered(bob) == [b"first", b"content"]


def test_what_was_known_to_be_missing_comes_in_a_bundle() -> None:
    bob = tuned()
    bob.receive(forge("b", lamport=NOW_MS + 1, after=["a"]), NOW_MS)
    pass_time(bob, NOW_MS + SECOND)
    bob.receive(bundle(forge("a", content=b"first")), NOW_MS + SECOND)
    told = pass_time(bob, NOW_MS + 2 * SECOND)
    assert [e.content for e in told if isinstance(e, MessageReceived)] == [b"first", b"content"]


def test_a_bundle_within_a_bundle_is_not_looked_at() -> None:
    bob = tuned()
    bob.receive(bundle(bundle(forge("inner"), sender="mallory"), forge("outer")), NOW_MS)
    told = pass_time(bob, NOW_MS + SECOND)
    assert [e.message_id for e in told if isinstance(e, MessageReconciled)] == ["outer"]
    assert "inner" not in bob.log


def test_nobody_is_heard_through_a_bundle() -> None:
    """Who wrote a message may be gone; who broadcasts it is there."""
    bob = tuned()
    bob.receive(bundle(forge("a", sender="alice")), NOW_MS)
    pass_time(bob, NOW_MS + SECOND)
    assert "a" in bob.log
    assert set(bob.participants) == {"carol"}


def test_who_broadcasts_nonsense_is_named_and_what_is_behind_it_is_skipped() -> None:
    bob = tuned()
    bob.receive(bundle(forge("a"), b"\x00", forge("behind")), NOW_MS)
    told = pass_time(bob, NOW_MS + SECOND)
    (rejected,) = [e for e in told if isinstance(e, MessageRejected)]
    assert (rejected.reason, rejected.sender_id) == (RejectionReason.MALFORMED, "carol")
    assert "a" in bob.log and "behind" not in bob.log


def test_who_broadcasts_more_than_may_wait_is_named() -> None:
    bob, long = tuned(), bytes(2_000_000)
    raw = sds_pb2.Reconciling(bundle=[long]).SerializeToString()
    said = Reconciling(packed=zlib.compress(raw).ljust(100_000, b"\0"))
    for number in range(20):
        message = Message("carol", f"carol {number}", CHANNEL, NOW_MS, reconciling=said)
        bob.receive(CODEC.encode(message), NOW_MS)
    assert events(bob, RepairBudgetReached) == [RepairBudgetReached((), "carol", in_all=True)]
