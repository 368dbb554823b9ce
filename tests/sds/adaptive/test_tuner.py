"""A core that tunes itself: two and more of them over a network that loses what a test says."""

from collections import Counter
from collections.abc import Callable, Iterable
from itertools import pairwise
from random import Random
from typing import Any

import pytest

from reliable_channel.sds import (
    NIM,
    SPEC,
    CoreLimits,
    Message,
    SdsOptions,
    SdsProtocol,
    WireProfile,
)
from reliable_channel.sds.adaptive.reconciling import ReconcilingState
from reliable_channel.sds.adaptive.sync_timer import LISTENS
from reliable_channel.sds.adaptive.tuner import FOREIGN_MESSAGES, REQUESTS, REQUESTS_EVERY_MS, Tuner
from reliable_channel.sds.events import DeliveryFailed, MessageReceived, Outgoing, OutgoingKind
from reliable_channel.sds.ids import reliable_channel_id
from reliable_channel.sds.message import HistoryEntry
from reliable_channel.sds.options import RepairOptions
from reliable_channel.sds.sync import SyncTrigger
from tests import inside

from ..world import NOW_MS, forge, participant, taken

TUNED = SdsOptions(self_tuning=True, repair=RepairOptions(max_requests_per_message=20))
ONE_WAY_MS = 100


class Net:
    """Cores in virtual time; `loses` decides about each copy."""

    def __init__(self, names: Iterable[str], options: SdsOptions = TUNED) -> None:
        self.now_ms = 1_700_000_000_000
        self.cores = {name: self.core(name, options) for name in names}
        self.fast_ms = Counter[str]()
        """How far the clock of each is ahead."""
        self.loses: Callable[[str, str, Outgoing], bool] = lambda *_: False
        self.sent: list[tuple[int, str, Outgoing]] = []
        self._on_way: list[tuple[int, int, str, bytes, int]] = []
        self.events: list[tuple[str, object]] = []

    def core(
        self, name: str, options: SdsOptions = TUNED, profile: WireProfile = SPEC
    ) -> SdsProtocol:
        random = Random(name).random
        return SdsProtocol(
            "c", name, now_ms=self.now_ms, random=random, options=options, profile=profile
        )

    def send(self, name: str, text: str) -> str:
        message_id = self.cores[name].send(text.encode(), self.now_ms)
        self._let_out()
        return message_id

    def run(self, duration_ms: int) -> None:
        end_ms = self.now_ms + duration_ms
        while self.now_ms < end_ms:
            self.now_ms += 10
            arrived = [each for each in self._on_way if each[0] <= self.now_ms]
            self._on_way = [each for each in self._on_way if each[0] > self.now_ms]
            for _, _, name, data, stamp_ns in sorted(arrived):
                now_ms = self.now_ms + self.fast_ms[name]
                self.cores[name].receive(data, now_ms, sent_at_ns=stamp_ns)
            for name, core in self.cores.items():
                now_ms = self.now_ms + self.fast_ms[name]
                if (due_ms := core.agenda.next_ms) is not None and due_ms <= now_ms:
                    core.on_deadline(now_ms)
            self._let_out()

    def _let_out(self) -> None:
        for name, core in self.cores.items():
            self.events += [(name, event) for event in taken(core.events)]
            for outgoing in taken(core.outgoing):
                self.sent.append((self.now_ms, name, outgoing))
                stamp_ns = outgoing.timestamp_ns or self.now_ms * 1_000_000
                for other in self.cores:
                    if other != name and not self.loses(name, other, outgoing):
                        at_ms = self.now_ms + ONE_WAY_MS
                        place = at_ms, len(self.sent), other, outgoing.data, stamp_ns
                        self._on_way.append(place)
                if outgoing.kind in (OutgoingKind.CONTENT, OutgoingKind.RETRY):
                    core.dispatched(outgoing.message_id, self.now_ms)

    def messages(self, kind: OutgoingKind) -> list[Message]:
        return [SPEC.codec.decode(o.data) for _, _, o in self.sent if o.kind is kind]

    def received(self, name: str) -> list[bytes]:
        return [e.content for n, e in self.events if n == name and isinstance(e, MessageReceived)]


def names(count: int) -> list[str]:
    return [f"p{number}" for number in range(count)]


def test_between_two_a_message_is_acknowledged_within_some_latencies() -> None:
    net = Net(("ada", "bob"))
    for number in range(10):
        net.send("ada", f"message {number}")
        net.run(1_000)
        assert not net.cores["ada"].unacknowledged
    assert not net.messages(OutgoingKind.RETRY)


def test_a_lost_message_between_two_comes_again_soon() -> None:
    net = Net(("ada", "bob"))
    net.send("ada", "first")
    net.run(2_000)
    net.loses = lambda _, __, outgoing: outgoing.kind is OutgoingKind.CONTENT
    net.send("ada", "second")
    net.run(2_000)
    assert net.received("bob") == [b"first", b"second"]


def test_a_group_is_sent_copies_whoever_acknowledges() -> None:
    net = Net(names(12))
    net.run(120_000)
    net.sent.clear()
    message_id = net.send("p0", "hello")
    net.run(3_000)
    copies = [at for at, name, o in net.sent if o.message_id == message_id and name == "p0"]
    assert len(copies) == 2  # of a network that loses nothing as far as is known, by the prior
    assert not net.cores["p0"].unacknowledged


@pytest.mark.conformance("AUTO-HISTORY")
def test_a_stream_is_acknowledged_as_it_goes_and_not_repeated() -> None:
    """Each of its messages refers to the one before, so that heads alone would acknowledge the last
    one; and each is news, which must not put the sync off."""
    net = Net(names(12))
    for number in range(150):
        net.send("p0", f"message {number}")
        net.run(40)
        assert len(net.cores["p0"].unacknowledged) <= 40
    net.run(2_000)
    assert not net.cores["p0"].unacknowledged
    assert not net.messages(OutgoingKind.RETRY)
    assert max(len(sync.causal_history) for sync in net.messages(OutgoingKind.SYNC)) <= 40


@pytest.mark.conformance("AUTO-T-REQ")
def test_who_hears_no_copy_asks_and_is_answered() -> None:
    net = Net(names(5))
    net.run(60_000)
    lost: set[str] = set()
    net.loses = lambda _, other, outgoing: outgoing.message_id in lost and other == "p4"
    message_id = net.send("p0", "hello")
    lost.add(message_id)
    net.run(600)
    lost.clear()
    net.run(4_000)
    assert net.received("p4") == [b"hello"]


def test_a_message_that_nobody_hears_is_seldom_repeated_and_soon_known_to_the_first() -> None:
    net = Net(("ada",))
    net.send("ada", "hello")
    net.run(50_000)
    retries = [at_ms for at_ms, _, sent in net.sent if sent.kind is OutgoingKind.RETRY]
    assert len(retries) == 4 and retries[2] - net.sent[0][0] < 5_000
    net.cores["bob"] = net.core("bob")
    net.run(8_000)
    assert net.received("bob") == [b"hello"]


@pytest.mark.conformance("AUTO-FILTER")
def test_messages_have_no_filter_and_few_references() -> None:
    net = Net(("ada", "bob"))
    for number in range(10):
        net.send(("ada", "bob")[number % 2], f"message {number}")
        net.run(1_000)
    for message in net.messages(OutgoingKind.CONTENT) + net.messages(OutgoingKind.SYNC):
        assert message.bloom_filter is None
        assert len(message.causal_history) <= 2
    assert not any(len(core.bloom_filter) for core in net.cores.values())


@pytest.mark.conformance("AUTO-FILTER")
def test_with_another_implementation_messages_have_long_histories_for_an_hour() -> None:
    net = Net(("ada", "bob"))
    net.cores["js"] = net.core("js", SdsOptions())
    for number in range(5):
        net.send("ada", f"before {number}")
        net.run(1_000)
    net.send("js", "hello")
    net.run(1_000)
    net.sent.clear()
    net.send("ada", "after")
    net.run(1_000)
    (message,) = net.messages(OutgoingKind.CONTENT)
    assert message.bloom_filter is None
    assert len(message.causal_history) == 6
    del net.cores["js"]
    net.now_ms += 3_700_000
    net.sent.clear()
    for number in range(FOREIGN_MESSAGES):
        net.send("ada", f"alone {number}")
    first, *_, last = net.messages(OutgoingKind.CONTENT)
    assert len(first.causal_history) == 7, "a clock that is set is no hour"
    assert len(last.causal_history) == 2


@pytest.mark.conformance("AUTO-FILTER")
def test_beside_others_one_sync_an_interval_has_a_long_history() -> None:
    net = Net(("ada",))
    net.cores["js"] = net.core("js", SdsOptions())
    for number in range(60):
        net.send("js", f"message {number}")
        net.run(2_000)
    syncs = [
        (at_ms, len(SPEC.codec.decode(outgoing.data).causal_history))
        for at_ms, name, outgoing in net.sent
        if name == "ada" and outgoing.kind is OutgoingKind.SYNC
    ]
    long_ms = [at_ms for at_ms, references in syncs if references > 2]
    assert len(syncs) > 40 and len(long_ms) >= 3
    between_ms = [later - earlier for earlier, later in pairwise(long_ms)]
    assert min(between_ms) >= TUNED.sync_min_interval_ms


@pytest.mark.conformance("AUTO-NIM")
def test_in_the_nim_dialect_filters_stay_and_no_syncs_are_sent() -> None:
    options = SdsOptions(self_tuning=True, sync_min_interval_ms=0)
    net = Net(())
    core = net.core("ada", options, NIM)
    core.send(b"hello", net.now_ms)
    (outgoing,) = taken(core.outgoing)
    assert NIM.codec.decode(outgoing.data).bloom_filter
    assert not isinstance(inside.state(core), ReconcilingState)
    core.on_deadline(net.now_ms + 60_000)
    assert all(o.kind is not OutgoingKind.SYNC for o in taken(core.outgoing))


@pytest.mark.conformance("AUTO-RETRY")
def test_a_message_that_nobody_acknowledges_fails_after_the_documented_time() -> None:
    net = Net(("ada",))
    net.send("ada", "hello")
    net.run(250_000)
    assert net.cores["ada"].unacknowledged
    net.run(100_000)
    assert not net.cores["ada"].unacknowledged
    assert any(isinstance(event, DeliveryFailed) for _, event in net.events)
    assert len(net.messages(OutgoingKind.RETRY)) < 40


def test_false_references_make_no_flood() -> None:
    net = Net(("ada", "bob"))
    net.run(5_000)
    net.sent.clear()
    mallory = HistoryEntry("x", None, "mallory")
    for number in range(60):
        unknown = [HistoryEntry(f"nothing {number} {i}", None, "mallory") for i in range(30)]
        message = Message("mallory", f"m{number}", "c", net.now_ms, [*unknown, mallory], None, ())
        for core in net.cores.values():
            core.receive(SPEC.codec.encode(message), net.now_ms)
        net.run(1_000)
    asking = [m for m in net.messages(OutgoingKind.SYNC) if m.repair_request]
    assert len(asking) <= 2 * (8 + 30 + 1)


def test_a_participant_that_asks_for_all_is_not_answered_without_end() -> None:
    options = SdsOptions(self_tuning=True, repair=RepairOptions(requester_answers_per_minute=60))
    net = Net(("ada", "bob"), options)
    ids = [net.send("ada", f"message {number}") for number in range(100)]
    net.run(5_000)
    net.sent.clear()
    for number in range(60):
        wanted = [HistoryEntry(message_id, None, "ada") for message_id in ids]
        message = Message("deaf", f"s{number}", "c", net.now_ms, (), None, wanted)
        net.cores["ada"].receive(SPEC.codec.encode(message), net.now_ms)
        net.run(1_000)
    answers = [o for _, _, o in net.sent if o.kind is OutgoingKind.REPAIR]
    assert len(answers) <= 2 * 60


@pytest.mark.parametrize("clock_ms", [600_000, -600_000])
def test_a_wrong_clock_changes_little(clock_ms: int) -> None:
    net = Net(("ada", "bob"))
    net.run(1_000)
    net.fast_ms["bob"] = clock_ms
    for number in range(20):
        net.send("ada", f"message {number}")
        net.run(2_000)
        assert not net.cores["ada"].unacknowledged, number


# -- one tuner by itself -


def tuner(**changes: Any) -> Tuner:
    options = SdsOptions(self_tuning=True, **changes)
    return Tuner(options, SPEC.repair_timers, Random(1).random, has_filters=False)


def test_the_way_of_an_own_message_and_its_acknowledgement_is_a_round_trip() -> None:
    made = tuner()
    made.acknowledged("of before a restart", 400)
    made.dispatched("m", 0)
    made.acknowledged("m", 400)
    for _ in range(64):
        made.observations.delays.add(-600_000)  # of a clock that is wrong
    assert made.observations.delays.scale_ms == 200


def test_what_was_dispatched_before_a_restart_is_tried_for_the_documented_time_from_then_on() -> (
    None
):
    made = tuner(max_retry_attempts=2, retry_interval_ms=1_000)
    assert [made.gives_up("m", at_ms) for at_ms in (500, 2_500, 2_501)] == [False, False, True]


def test_who_has_no_measure_yet_asks_between_the_bounds_of_its_options() -> None:
    for t_max_ms in (1, 2):
        made = tuner()
        options = RepairOptions(t_min_ms=1, t_max_ms=t_max_ms)
        assert made.timers.t_req("me", "m", 1_000, options) <= 1_000 + t_max_ms


def test_a_request_that_brings_its_message_is_not_rationed() -> None:
    made, now_ms = tuner(), 1_000_000
    pauses_ms = []
    for number in range(3 * REQUESTS):
        message = Message("ada", f"m{number}", "c", 1, content=b"x")
        made.asked([message.message_id], now_ms)
        pauses_ms.append(made.request_pause_ms(now_ms))
        made.arrived(message, None, 100, now_ms)
    assert len(set(pauses_ms)) == 1
    for number in range(REQUESTS + 1):
        made.asked([f"nothing {number}"], now_ms)
        made.arrived(Message("ada", f"unasked {number}", "c", 1, content=b"x"), None, 100, now_ms)
        pauses_ms.append(made.request_pause_ms(now_ms))
    assert pauses_ms[-1] == REQUESTS_EVERY_MS


def test_a_group_is_estimated_by_its_syncs_alone() -> None:
    made = tuner()
    for number in range(100):
        content = Message(f"one {number}", f"m{number}", "c", 1, content=b"x")
        made.heard(content, None, 1_000_000, participants=2)
    assert made.observations.crowd.factor == 1
    for number in range(100):
        made.heard(Message(f"one {number}", f"s{number}", "c", 1), None, 1_000_000, participants=2)
    assert made.observations.crowd.factor > 1


def test_all_hearers_of_some_syncs_leave_a_turn_to_those_who_were_not_heard_yet() -> None:
    """The same syncs, although each has heard another number since the last new message."""
    hearers, left_turns, counted = [tuner() for _ in range(8)], 0, 10 * LISTENS
    for number, made in enumerate(hearers, LISTENS):
        for _ in range(number):
            made.sync_timer.restart(SyncTrigger.SYNC, 0)
    for number in range(counted):
        now_ms, polite = 100_000 * number, set[bool]()
        for made in hearers:
            made.heard(Message("ada", f"sync-{number}", "c", 1), None, now_ms, participants=1)
            made.sync_timer.restart(SyncTrigger.SYNC, now_ms)
            polite.add((made.sync_timer.due_ms or 0) - now_ms >= 36_000)
        assert len(polite) == 1
        left_turns += polite.pop()
    assert counted / LISTENS / 2 < left_turns < 2 * counted / LISTENS


def test_what_arrives_is_counted_as_lost_where_it_was_missed_for_long() -> None:
    shares = []
    for missing_for_ms in (None, 60_000):
        made, now_ms = tuner(), 1_700_000_000_000
        for number in range(100):
            at_ns = (now_ms + number) * 1_000_000
            message_id = reliable_channel_id("ada", at_ns, b"x")
            message = Message("ada", message_id, "c", 1, content=b"x")
            made.arrived(message, at_ns, missing_for_ms, now_ms + number)
        shares.append(made.observations.losses.share)
    assert shares[0] < 0.05 and shares[1] > 0.9


def test_a_message_that_only_an_evicted_one_referred_to_is_referred_to_again() -> None:
    core = participant("bob", self_tuning=True, limits=CoreLimits(incoming_messages=1))
    for number, message_id in enumerate(("old", "a", "b", "c")):
        core.receive(forge(message_id, lamport=NOW_MS + number), NOW_MS)
    core.send_sync(NOW_MS)  # acknowledges all, so that what follows refers to heads alone
    for message_id in ("evicted", "parked"):
        after = ["old", "missing"] if message_id == "evicted" else ["missing"]
        core.receive(forge(message_id, lamport=NOW_MS + 9, after=after), NOW_MS)
    assert core.incoming_buffer.parked.keys() == {"parked"}
    core.send(b"next", NOW_MS)
    *_, sent = taken(core.outgoing)
    assert "old" in SPEC.codec.decode(sent.data).causal_ids
