"""Attack: repair requests for everything, so that everybody broadcasts everything again."""

import pytest

from reliable_channel.sds import HistoryEntry, RepairOptions, SdsProtocol
from reliable_channel.sds.events import (
    MessageRejected,
    OutgoingKind,
    RejectionReason,
    RepairBudgetReached,
)
from tests.sds.world import (
    MINUTE,
    NOW_MS,
    SECOND,
    World,
    events,
    forge,
    give,
    only,
    participant,
    send,
    taken,
)

REPAIR = RepairOptions(
    answers_per_minute=40,
    answer_bytes_per_minute=100_000,
    requester_answers_per_minute=10,
    requester_answer_bytes_per_minute=25_000,
)
HELD = 60


def holder() -> tuple[SdsProtocol, list[str]]:
    """One who holds messages of alice, and their ids."""
    bob, alice = participant("bob", repair=REPAIR), participant("alice", causal_history_size=0)
    messages = [send(alice, b"%d" % n) for n in range(HELD)]
    give(bob, *messages)
    bob.events.clear()
    return bob, [message.message_id for message in messages]


def ask(
    core: SdsProtocol, requester: str, ids: list[str], now_ms: int, carrier: str | None = None
) -> None:
    requests = [HistoryEntry(i, None, "alice") for i in ids]
    carrier = carrier or f"{requester} {ids[0]} {now_ms}"
    core.receive(
        forge(carrier, sender=requester, content=None, requests=requests, lamport=now_ms), now_ms
    )


def answers(core: SdsProtocol, until_ms: int) -> tuple[int, int]:
    """How many messages, and how many bytes, are broadcast again until then."""
    core.on_deadline(until_ms)
    sent = [o for o in taken(core.outgoing) if o.kind is OutgoingKind.REPAIR]
    return len(sent), sum(len(o.data) for o in sent)


def test_one_who_asks_for_everything_again_and_again_gets_its_budget() -> None:
    bob, ids = holder()
    asked_bytes = count = size = 0
    now_ms = NOW_MS
    for second in range(600):
        now_ms = NOW_MS + second * SECOND
        ask(bob, "mallory", ids, now_ms)
        asked_bytes += 60 * 70
        more, more_bytes = answers(bob, now_ms)
        count, size = count + more, size + more_bytes
    minutes = 600 // 60 + 1
    assert count <= REPAIR.requester_answers_per_minute * minutes
    assert size <= (REPAIR.requester_answer_bytes_per_minute + 3_000) * minutes
    assert size < asked_bytes  # less than it takes to ask: no amplification at all
    told = events(bob, RepairBudgetReached)
    assert 9 <= len(told) <= 11
    assert {(e.sender_id, e.in_all) for e in told} == {("mallory", False)}


def test_an_honest_requester_is_served_beside_it() -> None:
    bob, ids = holder()
    for second in range(60):
        ask(bob, "mallory", ids[:50], NOW_MS + second * SECOND)
    wanted = ids[50:53]
    ask(bob, "carol", wanted, NOW_MS + MINUTE)
    bob.on_deadline(NOW_MS + 4 * MINUTE)
    assert set(wanted) <= {o.message_id for o in taken(bob.outgoing)}


def test_a_crowd_of_requesters_shares_the_budget_of_all() -> None:
    bob, ids = holder()
    for n in range(100):
        ask(bob, f"mallory {n}", ids, NOW_MS)
    count, size = answers(bob, NOW_MS + 3 * MINUTE)
    assert count <= REPAIR.answers_per_minute
    assert size <= REPAIR.answer_bytes_per_minute + 3_000
    assert any(event.in_all for event in events(bob, RepairBudgetReached))


def test_an_answer_of_somebody_else_costs_the_requester_nothing() -> None:
    bob, ids = holder()
    alice = participant("alice", causal_history_size=0)
    messages = [send(alice, b"%d" % n) for n in range(HELD)]
    assert [m.message_id for m in messages] == ids
    for start in range(0, 50, 10):
        ask(bob, "carol", ids[start : start + 10], NOW_MS)
        give(bob, *messages[start : start + 10])  # another one answers first
    assert events(bob, RepairBudgetReached) == []


def test_asking_for_more_than_may_be_asked_for_is_refused() -> None:
    bob, _ = holder()
    ask(bob, "mallory", [f"u{n}" for n in range(101)], NOW_MS)
    rejected = only(events(bob, MessageRejected))
    assert rejected.reason is RejectionReason.EXCESSIVE_REFERENCES


def test_a_replayed_request_is_not_answered_again() -> None:
    """Replayed in the name of carol: neither her budget nor the network pays twice."""
    bob, ids = holder()
    for n in range(200):
        ask(bob, "carol", ids[:3], NOW_MS + n * 5 * SECOND, carrier="the same sync")
        bob.on_deadline(NOW_MS + n * 5 * SECOND)
    repairs = [o for o in taken(bob.outgoing) if o.kind is OutgoingKind.REPAIR]
    assert len(repairs) == 3
    assert events(bob, RepairBudgetReached) == []


def test_whoever_takes_the_id_of_a_sync_first_does_not_silence_its_requests() -> None:
    bob, ids = holder()
    ask(bob, "mallory", ["nothing"], NOW_MS, carrier="sync-1")
    ask(bob, "carol", ids[:1], NOW_MS, carrier="sync-1")
    assert answers(bob, NOW_MS + 3 * MINUTE)[0] == 1


@pytest.mark.parametrize("sender", [None, "", "alice"])
def test_asking_in_vain_does_not_keep_others_from_asking(sender: str | None) -> None:
    """Carol misses a message. Mallory asks for it all the time, in ways that nobody answers."""
    world = World(["alice", "carol"], seed=2)
    world.islands = [{"alice"}]
    message_id = world["alice"].send(b"honest")
    world.islands = []
    reference = forge("after", sender="dave", after=[HistoryEntry(message_id, None, "alice")])
    world["carol"].receive(reference)
    for n in range(240):
        entry = HistoryEntry(message_id, None, sender)
        world["carol"].receive(forge(f"r{n}", content=None, requests=[entry]))
        world.run(SECOND)
    assert message_id in world["carol"].delivered()


def test_a_sync_that_bears_the_id_of_a_message_stops_no_answer() -> None:
    bob, ids = holder()
    ask(bob, "carol", ids[:1], NOW_MS)
    bob.receive(forge(ids[0], content=None), NOW_MS)
    count, _ = answers(bob, NOW_MS + 3 * MINUTE)
    assert count == 1
