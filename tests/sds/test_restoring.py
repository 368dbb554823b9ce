"""A participant that begins again from what was recorded is the one that recorded it."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any, Final

import pytest

from reliable_channel.engine.archive_overlay import ArchiveOverlay
from reliable_channel.sds import NIM, SPEC, CoreLimits, RepairOptions, SdsProtocol, WireProfile
from reliable_channel.sds.bloom import BloomParameters
from reliable_channel.sds.changes import DamagedRow, Recorder, TypedTable
from reliable_channel.sds.dialects import SpecCodec
from reliable_channel.sds.dialects.codec import MAX_ID_BYTES
from reliable_channel.sds.draft import Draft, SavedDraft
from reliable_channel.sds.errors import ContentTooLong
from reliable_channel.sds.events import MessageReceived, OutgoingKind
from reliable_channel.sds.ids import js_waku_id
from reliable_channel.sds.log.archive import BLOCK_ENTRIES
from reliable_channel.sds.log.root import LogSums
from reliable_channel.sds.message import Message
from reliable_channel.sds.restoring import TABLES
from reliable_channel.sds.signing import Signing, check_signature
from reliable_channel.state import Identity, MemoryStateStore
from tests.slow import slow

from .test_signing import Seals
from .world import (
    CHANNEL,
    CODEC,
    MINUTE,
    NOW_MS,
    SECOND,
    Driver,
    Weather,
    World,
    forge,
    give,
    leave,
    options,
    participant,
    promises_broken,
    send,
    taken,
)

SMALL: Any = {
    "limits": CoreLimits(log_window_entries=8),
    "repair": RepairOptions(t_min_ms=2_000, t_max_ms=8_000, cache_durably=True),
    "retry_interval_ms": 5_000,
    "causal_history_size": 60,
}


BLOOM: Final = BloomParameters(capacity=100)


class Kept:
    """A state store, and the cores that begin from it."""

    def __init__(
        self,
        name: str,
        *,
        profile: WireProfile = SPEC,
        signing: Signing | None = None,
        assembles_late: bool = False,
        **changes: Any,
    ) -> None:
        self.name, self.profile, self.changes = name, profile, changes
        self.signing, self.assembles_late = signing, assembles_late
        self.store = MemoryStateStore()

    def begin(self, now_ms: int = NOW_MS) -> SdsProtocol:
        saved = self.store.open(Identity(CHANNEL, self.name, self.profile.name))
        self.overlay = ArchiveOverlay(self.store.archive())
        core = SdsProtocol(
            CHANNEL,
            self.name,
            now_ms=now_ms,
            random=Random(f"{self.name} {now_ms}").random,
            profile=self.profile,
            options=options(**self.changes),
            recorder=Recorder(),
            archive=self.overlay,
            signing=self.signing,
            assembles_late=self.assembles_late,
        )
        core.restore(saved.tables, saved.newest, now_ms)
        return core

    def write(self, core: SdsProtocol) -> None:
        self.store.write(core.changes())


class KeptDriver(Driver):
    """Writes each step before anything of it is let out."""

    def __init__(self, world: World, name: str, kept: Kept) -> None:
        self.kept = kept
        super().__init__(world, name, kept.begin(world.now_ms))

    def settle(self) -> None:
        self.kept.write(self.core)
        super().settle()
        self.kept.write(self.core)  # of what was dispatched

    def restart(self) -> None:
        before, now_ms = self.core, self.world.now_ms
        self.core = self.kept.begin(now_ms)
        assert remembered(self.core) == remembered(before)
        assert self.core.clock.value >= before.clock.value
        self.settle()


def fixed(data: bytes) -> Message:
    """An own message without what is true only when it leaves."""
    codec = CODEC if CODEC.recognises(data) else NIM.codec
    return replace(codec.decode(data), bloom_filter=None, repair_request=())


def remembered(core: SdsProtocol) -> dict[str, Any]:
    """All that a restart must not change."""
    parked = core.incoming_buffer.parked
    return {
        "log": [entry.row for entry in core.log],
        "length": len(core.log),
        "horizon": core.log.horizon,
        "outgoing": {
            entry.message_id: (fixed(bytes(entry.data)), entry.attempts, entry.possible_acks)
            for entry in core.outgoing_buffer
        },
        "parked": {i: (p.data, p.unmet, sorted(e.message_id for e in p.lost), p.arrived_ms)
                   for i, p in parked.items()},
        "missing": {i: (m.entry, m.since_ms) for i, m in core.incoming_buffer.missing.items()},
        "lost": set(core.incoming_buffer.lost),
        "requests": core.repair_requests.planned(),
        "responses": core.repair_responses.planned(),
        "participants": set(core.participants),
        "newest ids in the bloom filter": all(
            entry.message_id in core.bloom_filter for entry in core.log.last(5)
        ),
    }  # fmt: skip


@pytest.mark.parametrize("profile", [SPEC, NIM], ids=lambda profile: profile.name)
@pytest.mark.parametrize("seed", [*range(6), *slow(*range(6, 15))])
def test_restarts_at_any_time_break_no_promise(seed: int, profile: WireProfile) -> None:
    names = ["alice", "bob", "carol"]
    random = Random(seed)
    world = World(names, seed=seed, profiles=dict.fromkeys(names, profile), **SMALL)
    world.weather = Weather(loss=0.3, duplication=0.2, latency_ms=(10, 3_000))
    drivers = []
    for name in names:
        driver = KeptDriver(world, name, Kept(name, profile=profile, **SMALL))
        world.drivers[name] = driver
        drivers.append(driver)
        driver.settle()
    for number in range(60):
        driver = random.choice(drivers)
        match random.choice(["send", "send", "wait", "restart"]):
            case "send":
                driver.send(b"%d of %d" % (number, seed))
            case "wait":
                world.run(random.randint(1, 20) * SECOND)
            case "restart":
                driver.restart()
    world.calm()
    assert world.run(240 * MINUTE, until=world.is_quiet)
    if profile is SPEC:  # nim's clock runs ahead of the participants that restart
        assert promises_broken(world) == []
    for driver in drivers:
        driver.restart()


def test_what_was_never_dispatched_is_broadcast_again_in_its_order() -> None:
    kept = Kept("alice")
    core = kept.begin()
    ids = [core.send(b"%d" % number, NOW_MS) for number in range(5)]
    core.dispatched(ids[0], NOW_MS)
    kept.write(core)
    again = kept.begin()
    assert [(o.kind, o.message_id) for o in taken(again.outgoing)] == [
        (OutgoingKind.CONTENT, message_id) for message_id in ids[1:]
    ]
    again.on_deadline(NOW_MS + 30 * SECOND)
    assert [o.message_id for o in taken(again.outgoing) if o.kind is OutgoingKind.RETRY] == ids[:1]


def test_a_known_message_is_not_delivered_again_however_old() -> None:
    kept = Kept("alice", limits=CoreLimits(log_window_entries=4))
    core = kept.begin()
    messages = [forge(f"m{number:03}", lamport=NOW_MS + number) for number in range(50)]
    for _ in range(2):
        for data in messages:
            core.receive(data, NOW_MS)
            kept.write(core)
        assert core.counters.delivered in (0, 50)
        assert len(core.log) == 50
        assert [entry.message_id for entry in core.log] == [f"m{n:03}" for n in range(50)]
        core = kept.begin()
    data = forge("late", lamport=NOW_MS + 100, after=["m001", "m049"])
    core.receive(data, NOW_MS)
    (event, *_) = taken(core.events)
    assert event.message_id == "late"  # type: ignore[union-attr]


def test_the_end_of_the_log_may_reach_into_the_archive() -> None:
    kept = Kept("alice", limits=CoreLimits(log_window_entries=4))
    core = kept.begin()
    for number in range(20):
        core.receive(forge(f"m{number:02}", lamport=NOW_MS + number), NOW_MS)
    kept.write(core)
    for each in (core, kept.begin()):
        for count in (0, 3, 4, 5, 19, 20, 30):
            ids = [entry.message_id for entry in each.log.last(count)]
            assert ids == [f"m{number:02}" for number in range(20)][max(0, 20 - count) :]


def test_positions_count_what_is_archived() -> None:
    kept = Kept("alice", limits=CoreLimits(log_window_entries=4))
    core, whole = kept.begin(), SdsProtocol(
        CHANNEL, "alice", now_ms=NOW_MS, random=Random(0).random, options=options()
    )  # fmt: skip
    random = Random(3)
    numbers = [random.randrange(10_000) for _ in range(300)]
    for count, number in enumerate(dict.fromkeys(numbers)):
        data = forge(f"m{number:05}", lamport=NOW_MS + number)
        positions = []
        for each in (core, whole):
            each.receive(data, NOW_MS)
            positions += [e.position for e in taken(each.events) if hasattr(e, "position")]
        assert positions[0] == positions[1]
        kept.write(core)
        if count % 50 == 49:
            core = kept.begin()
    assert core.log.digest() == whole.log.digest()


def test_a_full_log_is_trimmed_by_whole_blocks_and_breaks_no_dependency() -> None:
    limit = 2 * BLOCK_ENTRIES
    kept = Kept("alice", limits=CoreLimits(log_entries=limit, log_window_entries=100))
    core = kept.begin()
    for number in range(4 * BLOCK_ENTRIES):
        before = [f"m{number - 1:06}"] if number else []
        core.receive(forge(f"m{number:06}", lamport=NOW_MS + number, after=before), NOW_MS)
        if number % 500 == 499:
            kept.write(core)
    kept.write(core)
    for each in (core, kept.begin()):
        assert limit <= len(each.log) < limit + BLOCK_ENTRIES
        assert len(list(each.log)) == len(each.log)
        oldest = next(iter(each.log)).message_id
        # What refers to a message that has left the log waits for nothing.
        trimmed = f"m{int(oldest[1:]) - 1:06}"
        each.events.clear()
        after = forge(f"x{id(each)}", lamport=NOW_MS + 10**6, after=[trimmed, oldest])
        each.receive(after, NOW_MS)
        assert [getattr(e, "content", None) for e in taken(each.events)] == [b"content"]


def test_logs_are_compared_whole_after_a_restart() -> None:
    # Found by `reliable-channel simulate --auto --first-seed 178 --seeds 1`.
    kept = Kept("alice", limits=CoreLimits(log_window_entries=4))
    core, whole = kept.begin(), LogSums()
    for number in range(60):
        key = (NOW_MS + number * 700 * (-1) ** number, f"m{number:03}")
        core.receive(forge(key[1], lamport=key[0]), NOW_MS)
        kept.write(core)
        whole.change(key, 1)
        if number % 7 == 0:
            core = kept.begin()
        assert core.log.sums.start == 0
        assert core.log.sums.root(0, 10**10) == whole.root(0, 10**10)


def test_heads_are_referred_to_after_a_restart_and_a_refused_message() -> None:
    kept = Kept("alice", self_tuning=True, limits=CoreLimits(log_window_entries=4))
    core = kept.begin()
    ids = [f"m{number:03}" for number in range(10)]
    for message_id in ids:
        core.receive(forge(message_id, lamport=NOW_MS), NOW_MS)
    kept.write(core)
    core = kept.begin()
    with pytest.raises(ContentTooLong):
        core.send(bytes(1_000_000), NOW_MS)
    core.send(b"first", NOW_MS)
    *_, first = taken(core.outgoing)
    assert set(CODEC.decode(first.data).causal_ids) == set(ids)
    kept.write(core)
    core = kept.begin()
    core.send(b"second", NOW_MS)
    *_, second = taken(core.outgoing)
    assert list(CODEC.decode(second.data).causal_ids) == ["m009", first.message_id]


def test_what_a_sync_alone_named_is_a_head_after_a_restart() -> None:
    kept = Kept("alice", self_tuning=True)
    core = kept.begin()
    core.receive(forge("sync", after=["named"], content=None), NOW_MS)
    core.receive(forge("parked", lamport=NOW_MS + 1, after=["awaited"]), NOW_MS)
    kept.write(core)
    core = kept.begin()
    assert core.incoming_buffer.missing.keys() == {"named", "awaited"}
    for number in range(3):
        core.receive(forge(f"newer{number}", lamport=NOW_MS + 2 + number), NOW_MS)
    core.receive(forge("named", lamport=NOW_MS - 2), NOW_MS)
    core.receive(forge("awaited", lamport=NOW_MS - 1), NOW_MS)
    core.send_sync(NOW_MS)  # acknowledges all, so that what follows refers to heads alone
    core.send(b"next", NOW_MS)
    *_, sent = taken(core.outgoing)
    assert set(CODEC.decode(sent.data).causal_ids) == {
        *("named", "parked", "newer0", "newer1", "newer2")
    }


def test_old_messages_leave_by_age() -> None:
    kept = Kept("alice", limits=CoreLimits(retention_ms=10 * MINUTE, log_window_entries=50))
    core = kept.begin()
    minutes = 60
    for minute in range(minutes):
        for number in range(10):
            data = forge(f"m{minute:02}{number}", lamport=NOW_MS + minute * MINUTE)
            core.receive(data, NOW_MS + minute * MINUTE)
        core.on_deadline(NOW_MS + minute * MINUTE)
        kept.write(core)
    assert len(core.log) <= 50 + BLOCK_ENTRIES
    memory = SdsProtocol(
        CHANNEL, "bob", now_ms=NOW_MS, random=Random(0).random,
        options=options(limits=CoreLimits(retention_ms=10 * MINUTE)),
    )  # fmt: skip
    for minute in range(minutes):
        memory.receive(
            forge(f"m{minute:02}", lamport=NOW_MS + minute * MINUTE), NOW_MS + minute * MINUTE
        )
        memory.on_deadline(NOW_MS + minute * MINUTE)
    assert len(memory.log) == 11


def test_a_forged_message_that_is_archived_makes_way_for_the_true_one() -> None:
    kept = Kept("alice", limits=CoreLimits(log_window_entries=4))
    core = kept.begin()
    content = b"true"
    true_id = js_waku_id("bob", 0, content)  # its id proves its content
    core.receive(forge(true_id, lamport=NOW_MS - 1, content=b"forged"), NOW_MS)
    for number in range(20):
        core.receive(forge(f"m{number}", lamport=NOW_MS + number), NOW_MS)
    kept.write(core)
    core = kept.begin()
    assert true_id not in core.log.entries
    core.receive(forge(true_id, sender="bob", lamport=NOW_MS + 3, content=content), NOW_MS)
    kept.write(core)
    for each in (core, kept.begin()):
        assert [e.content for e in each.log if e.message_id == true_id] == [content]
        assert len(each.log) == len(list(each.log)) == 21


def test_a_log_on_disk_is_bounded_in_bytes_too() -> None:
    large = bytes(10_000)
    limits = CoreLimits(log_window_entries=50, log_bytes=BLOCK_ENTRIES * 2 * len(large))
    kept = Kept("alice", limits=limits)
    core = kept.begin()
    for number in range(3 * BLOCK_ENTRIES):
        core.receive(forge(f"m{number}", lamport=NOW_MS + number, content=large), NOW_MS)
        if number % 500 == 499:
            kept.write(core)
    assert sum(len(entry.content) for entry in core.log) <= limits.log_bytes
    assert core.log.size_bytes <= 50 * len(large)
    assert core.log.evicted > 0


def test_a_clock_set_back_meanwhile_holds_up_nothing() -> None:
    # Found by `reliable_channel_lab.sim`: lab_tests/sim/regressions.py.
    kept = Kept("bob")
    bob = kept.begin()
    bob.receive(forge("waits", after=["never comes"]), NOW_MS)
    mine = bob.send(b"mine", NOW_MS)
    bob.dispatched(mine, NOW_MS)
    kept.write(bob)
    earlier_ms = NOW_MS - 180 * MINUTE
    again = kept.begin(earlier_ms)
    deadlines = [entry.due_ms for entry in again.outgoing_buffer.entries.values()]
    assert all(due_ms is not None and due_ms <= earlier_ms + MINUTE for due_ms in deadlines)
    assert set(again.repair_requests.planned().values()) <= set(
        range(earlier_ms, earlier_ms + 2 * MINUTE + 1)
    )
    again.on_deadline(earlier_ms + 5 * MINUTE + 1)
    assert again.log.get("waits") is not None


def test_positions_below_the_window_count_what_the_same_step_put_there() -> None:
    # Found by `reliable-channel simulate --first-seed 41 --seeds 1`.
    kept = Kept("bob", limits=CoreLimits(log_window_entries=4))
    bob = kept.begin()
    for number in range(10):
        bob.receive(forge(f"new{number}", lamport=NOW_MS + number), NOW_MS)
        kept.write(bob)
    bob.events.clear()
    bob.receive(forge("old2", lamport=NOW_MS - 1, after=["old1"]), NOW_MS)
    bob.receive(forge("old1", lamport=NOW_MS - 2), NOW_MS)
    told = [event for event in taken(bob.events) if isinstance(event, MessageReceived)]
    assert [(event.message_id, event.position) for event in told] == [("old1", 0), ("old2", 1)]


def waiting(core: SdsProtocol) -> list[Draft | SavedDraft]:
    """The drafts of content that wait to leave."""
    content = [each for each in taken(core.outgoing) if each.kind is OutgoingKind.CONTENT]
    return [each.draft for each in content if each.draft is not None]


@pytest.mark.parametrize("cached", [0, 1, 100])
@pytest.mark.parametrize("profile", [SPEC, NIM], ids=lambda profile: profile.name)
@pytest.mark.parametrize("self_tuning", [False, True], ids=["documented", "tuned"])
def test_what_waits_says_the_same_after_a_restart_and_knows_more(
    profile: WireProfile, self_tuning: bool, cached: int
) -> None:
    """Its place in the log, and so what stands before it there, may be another by then."""
    repair = RepairOptions(cache_bytes=cached * 500)
    kept = Kept(
        "alice", profile=profile, assembles_late=True, repair=repair, self_tuning=self_tuning
    )
    core = kept.begin()
    for number in range(5):
        core.receive(forge(f"before{number}", profile=profile), NOW_MS)
    ids = [core.send(b"%d" % number, NOW_MS) for number in range(20)]
    fixed_here = [fixed(bytes(draft)) for draft in waiting(core)]
    assert [message.message_id for message in fixed_here] == ids
    assert all(message.causal_ids for message in fixed_here)
    between = forge("between", lamport=NOW_MS - 1_000, after=["before1"], profile=profile)
    core.receive(between, NOW_MS)
    kept.write(core)
    again = kept.begin()
    again.receive(forge("after", after=["missing"], profile=profile), NOW_MS)
    drafts = waiting(again)
    assert [fixed(bytes(draft)) for draft in drafts] == fixed_here
    later_ms = NOW_MS + 10 * MINUTE
    messages = [profile.codec.decode(leave(draft, later_ms)[0]) for draft in drafts]
    assert [fixed(profile.codec.encode(message)) for message in messages] == fixed_here
    assert [entry.message_id for entry in messages[0].repair_request] == ["missing"]
    if not self_tuning or profile is NIM:
        assert {message.bloom_filter for message in messages} == {bytes(again.bloom_filter)}


def test_what_went_out_goes_again_after_a_restart_with_the_filter_of_then() -> None:
    kept = Kept("alice", assembles_late=True)
    core = kept.begin()
    core.send(b"hello", NOW_MS)
    (draft,) = waiting(core)
    before, _ = leave(draft, NOW_MS)
    core.dispatched(draft.message_id, NOW_MS)
    core.receive(forge("after"), NOW_MS)
    kept.write(core)
    again = kept.begin()
    again.on_deadline(NOW_MS + 31 * SECOND)
    (retry,) = (each for each in taken(again.outgoing) if each.kind is OutgoingKind.RETRY)
    assert retry.draft is not None
    data, _ = leave(retry.draft, NOW_MS + 31 * SECOND)
    assert fixed(data) == fixed(before)
    assert "after" in again.bloom_filter
    assert CODEC.decode(data).bloom_filter == bytes(again.bloom_filter)


@pytest.mark.parametrize("changes", [{"bloom": BloomParameters(50_000)}, {"max_message_bytes": 1}])
def test_what_waits_leaves_without_a_filter_where_other_options_leave_no_room(changes: Any) -> None:
    kept = Kept("alice", assembles_late=True)
    core = kept.begin()
    core.send(bytes(100_000), NOW_MS)
    kept.write(core)
    kept.changes = changes
    (draft,) = waiting(kept.begin())
    assert leave(draft, NOW_MS)[0] == bytes(draft)


def test_what_waits_is_signed_after_a_restart() -> None:
    kept = Kept("alice", assembles_late=True, signing=Seals("alice"))
    core = kept.begin()
    core.send(b"hello", NOW_MS)
    kept.write(core)
    (draft,) = waiting(kept.begin())
    for data in (bytes(draft), leave(draft, NOW_MS)[0]):
        check_signature(Seals("alice"), CODEC.decode(data), data)


def test_a_restart_reads_nothing_of_what_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = Kept("alice", assembles_late=True)
    core = kept.begin()
    core.send(b"hello", NOW_MS)
    kept.write(core)
    with monkeypatch.context() as patched:
        patched.setattr(SpecCodec, "decode", lambda *_: pytest.fail("10,000 of them take seconds"))
        (draft,) = waiting(kept.begin())
    assert CODEC.decode(leave(draft, NOW_MS)[0]).content == b"hello"


def test_what_was_signed_leaves_where_the_key_is_away_since_a_restart() -> None:
    kept = Kept("alice", assembles_late=True, signing=(seals := Seals("alice")))
    core = kept.begin()
    ids = [core.send(b"%d" % number, NOW_MS) for number in range(2)]
    core.dispatched(ids[0], NOW_MS)
    signed = [bytes(draft) for draft in waiting(core)]
    kept.write(core)
    seals.sign = key_away  # type: ignore[method-assign]
    again = kept.begin()
    again.on_deadline(NOW_MS + 31 * SECOND)
    drafts = [each.draft for each in taken(again.outgoing) if each.draft is not None]
    assert {leave(draft, NOW_MS) for draft in drafts} == {(data, False) for data in signed}


def key_away(data: bytes) -> bytes:
    raise OSError("the key is away")


def test_what_cannot_be_read_any_more_leaves_as_it_is() -> None:
    alice, data = participant("alice", assembles_late=True), forge("i" * (MAX_ID_BYTES + 1))
    alice.restore({"outgoing_messages": [("saved", data)]}, (), NOW_MS)
    (draft,) = waiting(alice)
    assert leave(draft, NOW_MS) == (data, False)


def test_what_waits_in_another_dialect_goes_as_it_is() -> None:
    kept = Kept("alice", assembles_late=True)
    core = kept.begin()
    message_id = core.send(b"hello", NOW_MS)
    (draft,) = waiting(core)
    kept.write(core)
    saved = kept.store.open(Identity(CHANNEL, "alice", "spec"))
    again = participant("alice", profile=NIM, assembles_late=True)
    again.restore(saved.tables, saved.newest, NOW_MS)
    (outgoing,) = taken(again.outgoing)
    assert (outgoing.message_id, outgoing.draft, outgoing.data) == (message_id, None, bytes(draft))


def test_what_waits_goes_in_order_though_the_log_has_let_go_of_it() -> None:
    kept = Kept("alice", assembles_late=True)
    core = kept.begin()
    ids = [core.send(b"%d" % number, NOW_MS) for number in range(20)]
    kept.write(core)
    saved = kept.store.open(Identity(CHANNEL, "alice", "spec"))
    again = participant("alice", assembles_late=True)
    again.restore(saved.tables, (), NOW_MS)
    assert [draft.message_id for draft in waiting(again)] == ids


@pytest.mark.parametrize("cached", [0, 1, 3, 100])
def test_the_bytes_of_an_own_message_are_written_once_and_come_back(cached: int) -> None:
    kept = Kept("alice", repair=RepairOptions(cache_bytes=cached * 500), bloom=BLOOM)
    core = kept.begin()
    for number in range(5):
        core.send(bytes(300) + b"%d" % number, NOW_MS)
        kept.write(core)
    saved = kept.store.open(Identity(CHANNEL, "alice", "spec"))
    written = [row[1] for row in saved.tables["outgoing_messages"] if row[1]]
    assert len(written) + len(saved.tables.get("repair_cache", ())) == 5
    assert remembered(kept.begin())["outgoing"] == remembered(core)["outgoing"]


def test_a_smaller_cache_after_a_restart_loses_no_own_message() -> None:
    kept = Kept("alice", bloom=BLOOM)
    core = kept.begin()
    ids = [core.send(bytes(300) + b"%d" % number, NOW_MS) for number in range(5)]
    kept.write(core)
    kept.changes = {"repair": RepairOptions(cache_bytes=500), "bloom": BLOOM}
    for _ in range(2):
        again = kept.begin()
        kept.write(again)
        assert [entry.message_id for entry in again.outgoing_buffer] == ids
        assert all(len(bytes(entry.data)) > 300 for entry in again.outgoing_buffer)


def test_long_messages_without_a_filter_come_back() -> None:
    kept, bob = Kept("alice", self_tuning=True), participant("bob")
    alice, sent = kept.begin(), {}
    for number in range(40):
        if number == 20:
            give(alice, send(bob, b"bob does not tune itself"))
        own = send(alice, bytes([number]) * 3_000)
        sent[own.message_id] = own.data
        alice.dispatched(own.message_id, NOW_MS)
        kept.write(alice)
    references = [len(CODEC.decode(data).causal_history) for data in sent.values()]
    assert references[19] < 5 and references[-1] == 40
    again = kept.begin()
    assert {each.message_id: fixed(bytes(each.data)) for each in again.outgoing_buffer} == {
        message_id: fixed(data) for message_id, data in sent.items()
    }


@pytest.mark.parametrize(
    "table", [each for each in TABLES if isinstance(each, TypedTable)], ids=lambda each: each.name
)
def test_a_row_with_a_value_of_another_type_is_damage(table: TypedTable[tuple[Any, ...]]) -> None:
    right = {"TEXT": "text", "INTEGER": 1, "BLOB": b"bytes"}
    row: list[Any] = [right[of] for _, of in table.columns]
    assert list(table.read([tuple(row)])) == [tuple(row)]
    for place in range(len(row)):
        wrong = (*row[:place], 1.5, *row[place + 1 :])
        with pytest.raises(DamagedRow, match=f"a row of {table.name!r} must have .*1.5"):
            list(table.read([wrong]))
    with pytest.raises(DamagedRow):
        list(table.read([tuple(row[1:])]))
