"""Attack: very long chains of dependencies, and cycles."""

from collections.abc import Iterable

import pytest

from reliable_channel.sds import Outcome, SdsProtocol
from reliable_channel.sds.events import MessageLost, MessageReceived
from tests.sds.world import MINUTE, NOW_MS, delivered, events, forge, participant, taken
from tests.slow import slow

from .cost import calls

LATER_MS = NOW_MS + 6 * MINUTE


def link(n: int) -> bytes:
    """Number `n` of a chain, whose first is missing."""
    return forge(f"m{n:05}", lamport=NOW_MS + n, after=[f"m{n - 1:05}"])


def take(core: SdsProtocol, numbers: Iterable[int], now_ms: int = NOW_MS) -> None:
    for n in numbers:
        assert core.receive(link(n), now_ms).outcome is Outcome.PARKED
    for _ in taken(core.events):
        pass


def honest(core: SdsProtocol, now_ms: int) -> None:
    """A message beside the attack arrives."""
    core.receive(forge(f"honest {now_ms}", sender="alice", content=b"honest"), now_ms)
    assert b"honest" in delivered(core)


@pytest.mark.parametrize("backwards", [False, True])
@pytest.mark.parametrize("length", [2_000, *slow(10_000)])
def test_a_long_chain_is_released_in_order(length: int, backwards: bool) -> None:
    bob = participant("bob")
    numbers = range(1, length)
    take(bob, reversed(numbers) if backwards else numbers)
    honest(bob, NOW_MS)
    bob.receive(forge("m00000", lamport=NOW_MS), NOW_MS)
    received = [e.message_id for e in events(bob, MessageReceived)]
    assert received == [f"m{n:05}" for n in range(length)]


@pytest.mark.parametrize("backwards", [False, True])
def test_looking_for_cycles_costs_no_more_than_the_chain_is_long(backwards: bool) -> None:
    """The chain is overdue, and what it waits for is missed only since a moment ago."""
    costs = []
    for length in (500, 1_000, 2_000):
        bob = participant("bob")
        numbers = range(2, length)
        take(bob, reversed(numbers) if backwards else numbers)
        take(bob, [1], LATER_MS)
        costs.append(calls(lambda bob=bob: bob.on_deadline(LATER_MS)))  # type: ignore[misc]
        assert len(bob.incoming_buffer.parked) == length - 1
        honest(bob, LATER_MS)
    assert costs[2] < 5 * costs[0]


def test_a_mesh_of_references_is_looked_through_once() -> None:
    """A hundred messages, each of which waits for all the others and for one that is missing."""

    def cost(size: int) -> int:
        bob = participant("bob")
        for n in range(size):
            after = [f"m{i}" for i in range(size) if i != n]
            bob.receive(forge(f"m{n}", after=after), NOW_MS)
        bob.receive(forge("m0 again", after=["u", *(f"m{i}" for i in range(size))]), LATER_MS)
        return calls(lambda: bob.incoming_buffer.deadlocked(LATER_MS, MINUTE))

    assert cost(120) < 5 * cost(60)  # four times as many references


def test_cycles_are_cut_and_named_and_delivered_with_what_they_lack() -> None:
    bob = participant("bob")
    for n in range(1_000):
        message = forge(f"m{n}", lamport=NOW_MS + n, after=[f"m{(n + 1) % 1_000}"])
        bob.receive(message, NOW_MS)
    honest(bob, NOW_MS)
    bob.on_deadline(LATER_MS)
    told = taken(bob.events)
    lost = [e for e in told if isinstance(e, MessageLost)]
    assert {e.reason for e in lost} == {"it waits for a message that waits for it"}
    received = [e for e in told if isinstance(e, MessageReceived)]
    assert len(received) == len({e.message_id for e in received}) == 1_000
    assert bob.incoming_buffer.size_bytes == 0
