"""Range-based reconciliation: logs that differ become equal in a few exchanges."""

from collections.abc import Callable, Iterable
from itertools import pairwise
from random import Random

import pytest

from reliable_channel.sds.adaptive.bundles import (
    AGAIN_MS,
    BUNDLE_BYTES,
    HOUR_MS,
    packed,
    unpacked,
)
from reliable_channel.sds.adaptive.estimates import Observations
from reliable_channel.sds.adaptive.inbox import INBOX_BYTES, Inbox
from reliable_channel.sds.adaptive.reconciliation import ATTEMPTS, MAX_RANGES, Reconciliation
from reliable_channel.sds.changes import LogKey
from reliable_channel.sds.log.log import MessageLog
from reliable_channel.sds.message import ListedIds, LogEntry, LogRoot, Reconciling

END = 1_000_000
Loses = Callable[[int, int], bool]


class Member:
    def __init__(self, name: str, numbers: Iterable[int], others: int) -> None:
        self.parked: list[tuple[LogKey, bool]] = []
        self.log = MessageLog(1_000_000)
        self.log.sums.max_seconds = 50_000
        self.observations = Observations()
        self.observations.heard, self.observations.delays.scale_ms = others, 100
        random = Random(name).random
        self.it = Reconciliation(
            name, self.log, self.observations, random, self.held, lambda: self.parked
        )
        for number in numbers:
            self.add(number)

    def held(self, message_id: str, after: str | None) -> bytes:
        return message_id.encode().ljust(400, b".")

    def add(self, number: int) -> None:
        if f"m{number}" not in self.log:
            self.log.insert(LogEntry(f"m{number}", "ada", number * 1_000, b"x"))

    def root(self, end: int = END) -> LogRoot:
        return self.log.sums.root(0, end)


class Group:
    """Members that all hear each other after 50 ms."""

    def __init__(self, *logs: Iterable[int]) -> None:
        self.members = [Member(f"p{i}", log, len(logs) - 1) for i, log in enumerate(logs)]
        self.now_ms = 0
        self.sent: list[Reconciling] = []
        self.loses: Loses = lambda *_: False

    def compare(self, first: int, second: int) -> None:
        """One hears the root of another, twice."""
        member, root = self.members[first], self.members[second].root()
        for _ in range(2):
            member.it.differs(root, member.root(), self.now_ms)

    def run(self, duration_ms: int) -> None:
        arriving: list[tuple[int, int, int, Reconciling]] = []
        end_ms = self.now_ms + duration_ms
        while self.now_ms < end_ms:
            self.now_ms += 10
            for _, to, number, said in [each for each in arriving if each[0] <= self.now_ms]:
                self.hear(self.members[to], number, said)
            arriving = [each for each in arriving if each[0] > self.now_ms]
            for number, member in enumerate(self.members):
                due_ms = member.it.agenda.next_ms
                if due_ms is None or due_ms > self.now_ms:
                    continue
                for said in member.it.take(self.now_ms):
                    self.sent.append(said)
                    for to in range(len(self.members)):
                        if to != number and not self.loses(number, to):
                            arriving.append((self.now_ms + 50, to, number, said))

    def hear(self, member: Member, number: int, said: Reconciling) -> None:
        member.it.hear(said, f"p{number}", 0, self.now_ms)
        while taken := member.it.inbox.take(self.now_ms):
            data, bundle = taken
            number = int(data.rstrip(b".")[1:])
            if f"m{number}" not in member.log:
                member.add(number)
                member.it.brought((number * 1_000, f"m{number}"), self.now_ms)
            member.it.came((number * 1_000, f"m{number}"), bundle.sender_id, self.now_ms)

    @property
    def is_equal(self) -> bool:
        return len({member.root() for member in self.members}) == 1


def test_a_newcomer_that_has_nothing_gets_all_in_bundles() -> None:
    group = Group([], range(1_000), range(1_000))
    group.compare(0, 1)
    group.run(6_000)
    assert group.is_equal
    assert sum(len(data) for said in group.sent for data in unpacked(said.packed)) < 2 * 400_000
    assert len(group.sent) < 30


def test_two_halves_of_a_partition_become_equal() -> None:
    common = range(2_000)
    group = Group(*[[*common, *range(2_000 + side, 2_600, 2)] for side in (0, 1, 0, 1)])
    group.compare(0, 1)
    group.run(8_000)
    assert group.is_equal
    assert sum(len(data) for said in group.sent for data in unpacked(said.packed)) < 3 * 600 * 400


def test_scattered_holes_are_found_in_few_bytes() -> None:
    group = Group(range(10_000), set(range(10_000)) - {7, 4_711, 9_999})
    group.compare(1, 0)
    group.run(3_000)
    assert group.is_equal
    assert sum(len(unpacked(said.packed)) for said in group.sent) == 3
    assert sum(len(said.roots) for said in group.sent) < 200


def test_a_network_that_loses_takes_longer() -> None:
    random = Random(1)
    group = Group([], *[range(500)] * 4)
    group.loses = lambda *_: random.random() < 0.4
    for _ in range(4):
        group.compare(0, 1)
        group.run(5_000)
    assert group.is_equal


def test_equal_logs_say_nothing() -> None:
    group = Group(range(100), range(100))
    group.compare(0, 1)
    group.run(5_000)
    assert not group.sent


def test_one_difference_that_is_small_is_waited_for() -> None:
    group = Group(range(99), range(100))
    member = group.members[0]
    member.it.differs(group.members[1].root(), member.root(), 0)
    group.run(5_000)
    assert not group.sent
    member.it.agrees(0, all_agree=True)
    member.it.differs(group.members[1].root(), member.root(), 0)
    group.run(5_000)
    assert not group.sent


def test_a_question_that_nobody_answers_ends() -> None:
    group = Group(range(10))
    member = group.members[0]
    for _ in range(3):
        member.it.differs(LogRoot(0, END, 99, bytes(16)), member.root(), 0)
    group.run(600_000)
    assert 0 < len(group.sent) <= 12
    assert member.it.agenda.next_ms is None


def test_a_difference_that_nobody_can_repair_is_asked_about_twice_an_hour_at_last() -> None:
    group = Group(range(10))
    member, asked = group.members[0], list[int]()
    for hour in range(1, 13):
        while group.now_ms < hour * 3_600_000:
            member.it.differs(LogRoot(0, END, 12, bytes(16)), member.root(), group.now_ms)
            group.now_ms += 30_000
            due_ms = member.it.agenda.next_ms
            if due_ms is not None and due_ms <= group.now_ms:
                group.sent += member.it.take(group.now_ms)
        asked.append(len(group.sent))
        group.sent.clear()
    assert asked[0] > 2 * ATTEMPTS >= max(asked[3:])
    assert member.it.has_failed
    member.it.differs(LogRoot(0, END, 50, bytes(16)), member.root(), group.now_ms)
    assert member.it.agenda.next_ms is not None  # much more is missing: another difference
    member.it.agrees(0, all_agree=True)
    assert not member.it.has_failed


def test_ranges_from_before_what_is_wanted_are_not_looked_at() -> None:
    member = Member("p0", range(100), 1)
    said = Reconciling((LogRoot(0, 50, 1, bytes(16)),), (ListedIds(0, 50, b""),))
    member.it.hear(said, "other", 10, 0)
    assert member.it.agenda.next_ms is None


@pytest.mark.parametrize("said", [
    Reconciling(roots=tuple(LogRoot(i, i + 1, 5, bytes(16)) for i in range(5_000))),
    Reconciling(lists=tuple(ListedIds(0, END, bytes(8 * 50)) for _ in range(500))),
    Reconciling(bundle=(b"x" * 100_000,) * 50),
    Reconciling(packed=packed([b"x" * 100_000] * 50)),
    Reconciling(packed=packed([bytes([n]) for n in range(200)])),
    Reconciling((LogRoot(9, 3, 2**63, b""),), (ListedIds(5, 5, b"odd"), ListedIds(0, END, b"odd"))),
])  # fmt: skip
def test_a_hostile_member_makes_others_work_within_a_budget(said: Reconciling) -> None:
    member, sent = Member("p0", range(2_000), 5), 0
    for second in range(20):
        for _ in range(10):
            member.it.hear(said, "other", 0, second * 1_000)
        assert len(member.it._plan.ranges) <= MAX_RANGES  # noqa: SLF001
        assert member.it.inbox.size_bytes <= INBOX_BYTES
        member.it.inbox = Inbox()
        for now_ms in range(second * 1_000, second * 1_000 + 1_000, 100):
            for out in member.it.take(now_ms):
                sent += 1
                assert len(out.packed) <= BUNDLE_BYTES
    assert sent <= 20 + 80 + 2 * 20 + MAX_RANGES


def test_a_range_is_cut_where_its_messages_are() -> None:
    member = Member("p0", [*range(100), 5_000], 1)
    parts = member.log.sums.split(0, END, 16)
    assert parts[0][0] == 0
    assert parts[-1][1] == END
    assert all(first[1] == second[0] for first, second in pairwise(parts))
    assert max(member.log.sums.root(*part).count for part in parts) <= 8
    assert member.log.sums.split(6_000, END, 16) == [(6_000, END)]


def test_halves_become_equal_although_each_hears_roots_of_its_half_too() -> None:
    group = Group(range(40), range(40), range(20), range(20))
    member = group.members[2]
    for _ in range(2):
        member.it.differs(group.members[0].root(), member.root(), 0)
        member.it.agrees(0, all_agree=False)  # with member 3
    group.run(5_000)
    assert group.is_equal
    member.it.differs(LogRoot(0, END, 99, bytes(16)), member.root(), group.now_ms)
    member.it.agrees(group.now_ms + 3_000, all_agree=False)
    assert member.it.agenda.next_ms is None


def test_a_range_is_described_once_by_those_that_have_the_same_in_it() -> None:
    others, member = Member("p0", range(90), 5), Member("p1", range(100), 5)
    alike = Member("p2", range(100), 5)
    for hears in (member, alike):
        hears.it.hear(Reconciling((others.root(),)), "p0", 0, 0)
    first, second = (each.it.agenda.next_ms for each in (member, alike))
    assert first is not None and second is not None
    (said,) = member.it.take(first)
    assert len(said.roots) == 16
    alike.it.hear(said, "p1", 0, first)
    assert list(alike.it.take(second)) == []
    alike.it.hear(Reconciling((others.root(),)), "p0", 0, first + 50)
    assert list(alike.it.take(first + 150)) == []  # a moment later it was said, too
    alike.it.hear(Reconciling((others.root(),)), "p0", 0, first + 5_000)
    assert list(alike.it.take(first + 6_000))


def test_a_lost_bundle_is_asked_for_by_what_was_listed() -> None:
    group = Group(range(0, 1_000, 2), range(1_000))
    group.loses = lambda number, _: number == 1 and len(_bundles(group)) == 2
    group.compare(0, 1)
    group.run(6_000)
    came = [len(unpacked(each)) for each in _bundles(group)]
    assert sum(came) == 500 and not group.is_equal
    group.run(
        2 * AGAIN_MS
    )  # else whoever lists nothing would have the log broadcast again and again
    group.compare(0, 1)
    group.run(60_000)
    assert group.is_equal


@pytest.mark.parametrize("names", [1, 1_000])
def test_whoever_lacks_everything_has_the_log_broadcast_once_an_hour(names: int) -> None:
    group = Group(*[range(200)] * 4)
    refused = dict[str, bool]()
    nothing = Reconciling(lists=(ListedIds(0, END, b""),))
    for number in range(HOUR_MS // 5_000 - 1):
        for member in group.members:
            refused |= member.it.hear(nothing, f"eve {number % names}", 0, group.now_ms)
        group.run(5_000)
    assert all(refused.values()) and refused
    size = sum(len(data) for said in group.sent for data in unpacked(said.packed))
    assert size <= len(group.members) * 200 * 400
    group.run(HOUR_MS)
    before = len(group.sent)
    group.members[0].it.hear(nothing, "honest", 0, group.now_ms)
    group.run(60_000)
    assert len(group.sent) > before


def test_a_newcomer_asks_for_a_lost_bundle_alone() -> None:
    group = Group([], range(1_000))
    newcomer = group.members[0]
    newcomer.it.differs(group.members[1].root(), newcomer.root(), 0)
    due_ms = newcomer.it.agenda.next_ms
    assert due_ms is not None
    (asked,) = newcomer.it.take(due_ms)
    assert [(each.start, each.end, each.hashes) for each in asked.lists] == [(0, END, b"")]
    for number in range(100):
        newcomer.add(number)
        newcomer.it.brought((number * 1_000, f"m{number}"), 1_000)
    for number in range(300, 400):
        key = number * 1_000, f"m{number}"
        newcomer.parked.append((key, number == 300))
        newcomer.it.brought(key, 1_000)
    due_ms = newcomer.it.agenda.next_ms
    assert due_ms is not None
    (asked,) = newcomer.it.take(due_ms)
    assert [(each.start, each.end, len(each.hashes) // 8) for each in asked.lists] == [(99, 301, 2)]


def _bundles(group: Group) -> list[bytes]:
    return [said.packed for said in group.sent if said.packed]
