"""Where the owner decides from when others are asked for what is missing."""

from reliable_channel.sds import RepairOptions, SdsProtocol
from reliable_channel.sds.changes import Recorder
from reliable_channel.sds.repair.buffers import t_req

from .world import CHANNEL, NOW_MS, SECOND, options, participant, send, taken

REPAIR = RepairOptions(repair_on_demand=True)


def missing_one() -> tuple[SdsProtocol, str]:
    """Bob, who misses a message of alice, and its id."""
    alice = participant("alice")
    missed = send(alice, b"missed")
    bob = participant("bob", repair=REPAIR)
    bob.receive(send(alice, b"refers to it").data, NOW_MS)
    return bob, missed.message_id


def test_nobody_is_asked_before() -> None:
    bob, message_id = missing_one()
    assert bob.repair_requests.planned() == {}
    (wanted,) = taken(bob.wanted)
    assert (wanted.entry.message_id, wanted.since_ms, wanted.referrer_id) == (
        message_id, NOW_MS, "alice",
    )  # fmt: skip
    assert taken(bob.wanted) == []
    bob.receive(send(participant("carol"), b"of something else").data, NOW_MS)
    assert taken(bob.wanted) == []


def test_t_req_counts_from_the_word() -> None:
    bob, message_id = missing_one()
    (wanted,) = taken(bob.wanted)
    told_ms = NOW_MS + 20 * SECOND
    bob.ask_participants(wanted, told_ms)
    due_ms = t_req("bob", message_id, told_ms, REPAIR)
    assert bob.repair_requests.planned() == {message_id: due_ms}
    bob.ask_participants(wanted, told_ms + 5 * SECOND)
    assert bob.repair_requests.planned() == {message_id: due_ms}


def test_after_a_restart_it_is_open_anew() -> None:
    alice, recorder = participant("alice"), Recorder()
    missed = send(alice, b"missed")

    def bob() -> SdsProtocol:
        return SdsProtocol(
            CHANNEL,
            "bob",
            now_ms=NOW_MS,
            random=lambda: 0.5,
            options=options(repair=REPAIR),
            recorder=recorder,
        )

    first = bob()
    first.receive(send(alice, b"refers to it").data, NOW_MS)
    first.wanted.clear()
    rows = first.changes().rows
    tables = {
        table.name: [row for (of, _), row in rows.items() if of is table and row is not None]
        for table, _ in rows
    }
    again = bob()
    again.restore(tables, [], NOW_MS + SECOND)
    (wanted,) = taken(again.wanted)
    assert (wanted.entry.message_id, wanted.since_ms) == (missed.message_id, NOW_MS)


def test_where_nothing_is_asked_nothing_is_wanted() -> None:
    alice = participant("alice")
    send(alice, b"missed")
    bob = participant("bob", repair=RepairOptions(enabled=False, repair_on_demand=True))
    bob.receive(send(alice, b"refers to it").data, NOW_MS)
    assert taken(bob.wanted) == []
