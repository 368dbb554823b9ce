"""Participants whose logs differ, and that nobody refers to what they lack."""

from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from reliable_channel.sds import SPEC, CoreLimits, SdsProtocol
from reliable_channel.sds.comparison import (
    FORGET_MS,
    MAX_SUSPECTS,
    OVERTAKEN_MS,
    STABLE_MS,
    STAYS_MS,
)
from reliable_channel.sds.events import LogAgrees, LogDiffers
from reliable_channel.sds.message import LogRoot
from reliable_channel.sds.options import JS_WAKU
from reliable_channel.sds.profile import NIM
from tests import inside

from .world import (
    CODEC,
    MINUTE,
    NOW_MS,
    SECOND,
    decode,
    events,
    forge,
    give,
    participant,
    send,
    sync,
)

LATER_MS = NOW_MS + STABLE_MS + MINUTE


def two(**changes: Any) -> tuple[SdsProtocol, SdsProtocol]:
    """Alice and bob, and a message of alice's that bob lacks and that nobody refers to."""
    alice, bob = (participant(name, causal_history_size=1, **changes) for name in ("alice", "bob"))
    send(alice, b"hidden", NOW_MS)
    for n in range(3):
        message = send(alice, b"%d" % n, NOW_MS + SECOND)
        if n:
            give(bob, message, now_ms=NOW_MS + SECOND)
    # What bob knows by reference to be missing, he gives up.
    for core in (alice, bob):
        give_up(core, NOW_MS + SECOND + core.options.timeout_for_lost_messages_ms + 1)
    for core in (alice, bob):
        sync(core, NOW_MS + 2 * SECOND)
    return alice, bob


def give_up(core: SdsProtocol, now_ms: int) -> None:
    """Let time pass in which a participant says nothing to others."""
    core.on_deadline(now_ms)
    core.outgoing.clear()


def talk(*cores: SdsProtocol, now_ms: int, rounds: int = 2) -> None:
    """Each says a sync message to all others, twice as far apart as a difference must stay."""
    for n in range(rounds):
        at_ms = now_ms + n * STAYS_MS
        for core in cores:
            said = sync(core, at_ms)
            for other in cores:
                if other is not core:
                    give(other, said, now_ms=at_ms)


def test_what_nobody_refers_to_is_noticed_by_both() -> None:
    alice, bob = two()
    assert bob.progress().missing == alice.progress().missing == 0
    talk(alice, bob, now_ms=LATER_MS)
    assert alice.progress().different_from == ("bob",)
    assert bob.progress().different_from == ("alice",)
    (noticed,) = events(bob, LogDiffers)
    assert (noticed.sender_id, noticed.count_here, noticed.count_there) == ("alice", 2, 4)
    assert noticed.since_ms == 0 and noticed.until_ms <= LATER_MS
    talk(alice, bob, now_ms=LATER_MS + MINUTE)
    assert events(bob, LogDiffers) == []  # told once


def test_logs_that_have_become_equal_agree() -> None:
    alice, bob = two()
    talk(alice, bob, now_ms=LATER_MS)
    for entry in alice.log:
        data = inside.state(alice).held(entry.message_id)
        assert data is not None
        bob.receive(data, LATER_MS + MINUTE)
    talk(bob, alice, now_ms=LATER_MS + 2 * MINUTE, rounds=1)
    for core in (alice, bob):
        assert core.progress().different_from == ()
        assert len(events(core, LogAgrees)) == 1


def test_equal_logs_are_not_called_different() -> None:
    alice, bob = participant("alice"), participant("bob")
    for n in range(50):
        give(bob, send(alice, b"a%d" % n, NOW_MS + n * MINUTE), now_ms=NOW_MS + n * MINUTE)
        give(alice, send(bob, b"b%d" % n, NOW_MS + n * MINUTE), now_ms=NOW_MS + n * MINUTE)
        talk(alice, bob, now_ms=NOW_MS + n * MINUTE + SECOND)
    assert decode(sync(alice, NOW_MS + 50 * MINUTE)).log_root is not None
    assert events(alice, LogDiffers) == events(bob, LogDiffers) == []


def test_a_message_on_its_way_is_no_difference() -> None:
    alice, bob = participant("alice"), participant("bob")
    give(bob, send(alice, b"1", NOW_MS))
    talk(alice, bob, now_ms=LATER_MS)
    talk(alice, bob, now_ms=LATER_MS + STABLE_MS + MINUTE)
    send(alice, b"not there yet", LATER_MS + STABLE_MS + 2 * MINUTE)
    talk(alice, bob, now_ms=LATER_MS + STABLE_MS + 3 * MINUTE, rounds=6)
    assert events(bob, LogDiffers) == []


def test_a_difference_that_is_gone_at_the_next_root_is_none() -> None:
    alice, bob = two()
    talk(alice, bob, now_ms=LATER_MS, rounds=1)
    assert bob.progress().different_from == ()
    assert events(bob, LogDiffers) == []


def root_of(core: SdsProtocol, now_ms: int) -> LogRoot | None:
    return decode(sync(core, now_ms)).log_root


def test_the_newest_messages_are_left_out() -> None:
    alice = participant("alice")
    assert root_of(alice, NOW_MS) is None
    send(alice, b"1", NOW_MS)
    assert root_of(alice, NOW_MS + 2 * MINUTE) is None
    send(alice, b"2", NOW_MS + 4 * MINUTE)
    root = root_of(alice, NOW_MS + 2 * MINUTE + STABLE_MS)
    assert root is not None
    assert (root.start, root.end, root.count) == (0, NOW_MS // 1_000 + 1, 1)


def test_a_second_that_new_messages_still_fall_into_is_left_out() -> None:
    """One whose clock is an hour ahead has moved all others there: each message is a millisecond
    after the one before."""
    alice = participant("alice")
    ahead_ms = NOW_MS + 60 * MINUTE
    alice.receive(forge("ahead", lamport=ahead_ms), NOW_MS)
    sync(alice, NOW_MS)
    send(alice, b"1", NOW_MS + SECOND)
    root = root_of(alice, NOW_MS + STABLE_MS)
    assert root is not None
    assert (root.end, root.count) == (ahead_ms // 1_000, 0)


def test_a_second_ahead_of_the_time_is_compared_once_the_log_has_rested() -> None:
    """Else one lie about the time would hide all differences for as long as it reaches ahead."""
    alice, bob = (participant(name, causal_history_size=1) for name in ("alice", "bob"))
    for core in (alice, bob):
        core.receive(forge("ahead", lamport=NOW_MS + 60 * MINUTE), NOW_MS)
        sync(core, NOW_MS)
    send(alice, b"hidden", NOW_MS + SECOND)
    give(bob, send(alice, b"seen", NOW_MS + SECOND), now_ms=NOW_MS + SECOND)
    for core in (alice, bob):
        give_up(core, NOW_MS + SECOND + core.options.timeout_for_lost_messages_ms + 1)
    talk(alice, bob, now_ms=NOW_MS + 2 * SECOND)
    talk(alice, bob, now_ms=NOW_MS + STABLE_MS - MINUTE)
    assert not events(alice, LogDiffers) + events(bob, LogDiffers)
    talk(alice, bob, now_ms=NOW_MS + STABLE_MS + MINUTE)
    talk(alice, bob, now_ms=NOW_MS + 2 * STABLE_MS + 2 * MINUTE)
    assert [event.count_here for event in events(alice, LogDiffers)] == [3]
    assert [event.count_here for event in events(bob, LogDiffers)] == [2]


def test_a_log_that_others_speak_of_all_the_time_rests_all_the_same() -> None:
    alice, at_ms = participant("alice"), NOW_MS
    alice.receive(forge("ahead", lamport=NOW_MS + 60 * MINUTE), NOW_MS)
    while at_ms < NOW_MS + 2 * STABLE_MS + MINUTE:
        at_ms += 10 * SECOND
        root = root_of(alice, at_ms)
    assert root is not None and root.count == 1


def test_what_came_just_now_into_a_second_ahead_of_the_time_is_no_difference() -> None:
    alice, bob = (participant(name) for name in ("alice", "bob"))
    for core in (alice, bob):
        core.receive(forge("ahead", lamport=NOW_MS + 60 * MINUTE), NOW_MS)
        sync(core, NOW_MS)
    rested_ms = NOW_MS + 2 * STABLE_MS + MINUTE
    talk(alice, bob, now_ms=rested_ms - MINUTE)
    send(alice, b"on its way", rested_ms)
    talk(alice, bob, now_ms=rested_ms + SECOND, rounds=4)
    assert not events(alice, LogDiffers) + events(bob, LogDiffers)


@pytest.mark.parametrize("changes", [{"behaviour": JS_WAKU}, {"profile": NIM}])
def test_peers_that_know_no_roots_are_sent_none(changes: dict[str, Any]) -> None:
    alice = participant("alice", **changes)
    send(alice, b"1", NOW_MS)
    sync(alice, NOW_MS + MINUTE)
    message = decode(sync(alice, NOW_MS + MINUTE + STABLE_MS))
    assert message.log_root is None


def test_content_carries_no_root() -> None:
    alice, _ = two()
    assert decode(sync(alice, LATER_MS)).log_root is not None
    assert decode(send(alice, b"new", LATER_MS)).log_root is None


def said(name: str, root: LogRoot, lamport: int) -> bytes:
    message = replace(CODEC.decode(forge(f"{name} {lamport}", sender=name, content=None)))
    return CODEC.encode(replace(message, lamport_timestamp=lamport, log_root=root))


FALSE = LogRoot(0, NOW_MS // 1_000 + 9, 5, bytes(16))


def test_a_replayed_or_overtaken_root_counts_for_nothing() -> None:
    alice = participant("alice")
    send(alice, b"1", NOW_MS)
    for _ in range(5):
        alice.receive(said("mallory", FALSE, NOW_MS), LATER_MS)
        alice.receive(said("mallory", FALSE, NOW_MS - 1), LATER_MS + MINUTE)
    assert alice.progress().different_from == ()


def test_a_forged_root_from_far_ahead_keeps_its_victim_unheard_for_minutes_alone() -> None:
    alice, bob = participant("alice"), participant("bob")
    give(bob, send(alice, b"1", NOW_MS))
    sync(bob, NOW_MS)
    for n in range(2):
        alice.receive(said("bob", FALSE, NOW_MS + 60 * MINUTE + n), LATER_MS + n * STAYS_MS)
    heard_ms = LATER_MS + STAYS_MS
    give(alice, sync(bob, LATER_MS), now_ms=heard_ms + OVERTAKEN_MS - 1)
    assert alice.progress().different_from == ("bob",)
    give(alice, sync(bob, LATER_MS + MINUTE), now_ms=heard_ms + OVERTAKEN_MS)
    assert alice.progress().different_from == ()


def test_whom_nobody_hears_any_more_is_not_counted() -> None:
    alice, bob = participant("alice"), participant("bob")
    give(bob, send(alice, b"1", NOW_MS))
    sync(bob, NOW_MS)
    for n in range(2):
        alice.receive(said("mallory", FALSE, NOW_MS + n), LATER_MS + n * STAYS_MS)
    assert alice.progress().different_from == ("mallory",)
    give(alice, sync(bob, LATER_MS), now_ms=LATER_MS + FORGET_MS // 2)
    assert alice.progress().different_from == ("mallory",)
    give(alice, sync(bob, LATER_MS + MINUTE), now_ms=LATER_MS + 2 * FORGET_MS)
    assert alice.progress().different_from == ()
    assert len(events(alice, LogAgrees)) == 1


def test_what_is_remembered_of_others_is_bounded() -> None:
    alice = participant("alice")
    send(alice, b"1", NOW_MS)
    for n in range(100):
        alice.receive(said(f"m{n}", FALSE, NOW_MS), LATER_MS + n * MINUTE)
    assert len(alice.progress().different_from) == MAX_SUSPECTS
    assert len(events(alice, LogDiffers)) == 1


def test_a_root_that_makes_no_sense_is_ignored() -> None:
    alice = participant("alice")
    send(alice, b"1", NOW_MS)
    for n in range(4):
        root = LogRoot(9, 9 - n, 5, bytes(16))
        alice.receive(said("mallory", root, NOW_MS + n), LATER_MS + n * MINUTE)
    short = said("mallory", LogRoot(0, 9, 5, bytes(15)), NOW_MS + 9)
    assert CODEC.decode(short).log_root is None
    assert alice.progress().different_from == ()


def test_one_who_joined_late_compares_what_it_wants_alone() -> None:
    """And the others ask in its range, so that it can notice, too."""
    alice, carol = participant("alice"), participant("carol")
    joined_ms = NOW_MS + 10 * MINUTE
    send(alice, b"before", NOW_MS)
    carol.join(joined_ms, wanted_from=joined_ms, presume_ms=0)
    give(carol, send(alice, b"1", joined_ms), now_ms=joined_ms)
    for core in (alice, carol):
        sync(core, joined_ms + MINUTE)
    later_ms = joined_ms + MINUTE + STABLE_MS
    talk(alice, carol, now_ms=later_ms, rounds=4)
    for core in (alice, carol):
        assert core.progress().different_from == ()
    send(alice, b"hidden", later_ms + 2 * MINUTE)
    for core in (alice, carol):
        sync(core, later_ms + 3 * MINUTE)
    give(carol, send(alice, b"2", later_ms + 3 * MINUTE), now_ms=later_ms + 3 * MINUTE)
    give_up(carol, later_ms + 20 * MINUTE)
    talk(alice, carol, now_ms=later_ms + 20 * MINUTE, rounds=1)
    talk(alice, carol, now_ms=later_ms + 30 * MINUTE, rounds=6)
    assert alice.progress().different_from == ("carol",)
    assert carol.progress().different_from == ("alice",)
    for entry in list(alice.log)[1:]:
        data = inside.state(alice).held(entry.message_id)
        assert data is not None
        carol.receive(data, later_ms + 40 * MINUTE)
    talk(alice, carol, now_ms=later_ms + 41 * MINUTE, rounds=4)
    assert alice.progress().different_from == carol.progress().different_from == ()


def test_who_compares_less_hears_when_the_other_has_caught_up() -> None:
    """Carol started again and compares what is new since; it was alice who lacked a message."""
    alice, carol = participant("alice"), participant("carol")
    joined_ms = NOW_MS + 10 * MINUTE
    carol.join(joined_ms, wanted_from=joined_ms, presume_ms=0)
    hidden = send(carol, b"hidden", joined_ms)
    give(alice, send(carol, b"1", joined_ms + SECOND), now_ms=joined_ms + SECOND)
    later_ms = joined_ms + 20 * MINUTE
    give_up(alice, later_ms)
    for core in (alice, carol):
        sync(core, later_ms)
    later_ms += MINUTE + STABLE_MS
    talk(alice, carol, now_ms=later_ms, rounds=6)
    assert carol.progress().different_from == ("alice",)
    give(alice, hidden, now_ms=later_ms + 10 * MINUTE)
    talk(alice, carol, now_ms=later_ms + 11 * MINUTE, rounds=4)
    assert carol.progress().different_from == ()


def test_what_the_log_has_let_go_is_not_compared() -> None:
    alice = participant("alice")
    bob = participant("bob", limits=CoreLimits(log_entries=2))
    for n in range(5):
        give(bob, send(alice, b"%d" % n, NOW_MS + n * SECOND), now_ms=NOW_MS + n * SECOND)
    for core in (alice, bob):
        sync(core, NOW_MS + MINUTE)
    talk(alice, bob, now_ms=LATER_MS + MINUTE, rounds=4)
    root = root_of(bob, LATER_MS + 5 * MINUTE)
    assert root is not None
    assert (root.start, root.count) == (NOW_MS // 1_000 + 3, 2)
    assert alice.progress().different_from == bob.progress().different_from == ()


def test_a_root_is_some_forty_bytes_and_others_read_past_it() -> None:
    alice, _ = two()
    message = decode(sync(alice, LATER_MS))
    assert len(CODEC.encode(message)) - len(CODEC.encode(replace(message, log_root=None))) <= 42
    assert SPEC.codec.decode(CODEC.encode(message)) == message


def differs(core: SdsProtocol, name: str, at_ms: int, root: LogRoot = FALSE) -> None:
    """A participant says a root that is not that of our log."""
    core.receive(said(name, root, at_ms), at_ms)


def test_a_difference_is_said_with_its_range_and_both_counts() -> None:
    alice, root = participant("alice"), replace(FALSE, start=7)
    send(alice, b"1", NOW_MS)
    for n in range(2):
        differs(alice, "mallory", LATER_MS + n * STAYS_MS, root)
    (noticed,) = events(alice, LogDiffers)
    assert (noticed.since_ms, noticed.until_ms) == (7 * SECOND, root.end * SECOND)
    assert (noticed.count_here, noticed.count_there) == (1, 5)


def test_a_root_that_is_replayed_later_shows_no_difference_that_stays() -> None:
    alice = participant("alice")
    send(alice, b"1", NOW_MS)
    for n in range(3):
        alice.receive(said("mallory", FALSE, NOW_MS), LATER_MS + n * STAYS_MS)
    assert alice.progress().different_from == ()


def test_a_root_that_agrees_makes_a_difference_to_others_begin_anew() -> None:
    alice, bob = participant("alice"), participant("bob")
    give(bob, send(alice, b"1", NOW_MS))
    sync(bob, NOW_MS)
    differs(alice, "mallory", LATER_MS)
    give(alice, sync(bob, LATER_MS + STAYS_MS // 2), now_ms=LATER_MS + STAYS_MS // 2)
    differs(alice, "mike", LATER_MS + STAYS_MS)
    assert alice.progress().different_from == ()
    differs(alice, "mike", LATER_MS + 2 * STAYS_MS - 1)
    assert alice.progress().different_from == ()
    differs(alice, "mike", LATER_MS + 2 * STAYS_MS)
    assert alice.progress().different_from == ("mike",)


def test_who_asks_in_a_small_range_all_the_time_is_answered_every_other_time() -> None:
    alice, starts = participant("alice"), []
    send(alice, b"1", NOW_MS)
    sync(alice, NOW_MS)
    late = NOW_MS // 1_000 - 10
    for n in range(6):
        at_ms = LATER_MS + n * MINUTE
        differs(alice, "mallory", at_ms, replace(FALSE, start=late))
        root = root_of(alice, at_ms)
        assert root is not None
        starts.append(root.start)
    assert sorted(starts) == [0] * 3 + [late] * 3
    assert all(a != b for a, b in pairwise(starts))


def test_after_the_clock_was_set_back_logs_are_compared_again_in_time() -> None:
    alice = participant("alice")
    send(alice, b"1", NOW_MS)
    ahead_ms = NOW_MS + 600 * MINUTE
    for n in range(2):
        root = root_of(alice, ahead_ms + n * STABLE_MS)
    assert root is not None
    assert root_of(alice, LATER_MS) is None
    assert root_of(alice, LATER_MS + STABLE_MS) == root
