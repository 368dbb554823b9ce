"""Range-based reconciliation: logs that differ become equal in a few exchanges."""

from collections.abc import Callable, Iterable
from itertools import pairwise
from random import Random

import pytest

from reliable_channel.sds.log import MessageLog
from reliable_channel.sds.log_entry import LogEntry
from reliable_channel.sds.log_root import ListedIds, LogRoot, Reconciling
from reliable_channel.sds.observation import Observations
from reliable_channel.sds.reconciliation import BUNDLE_BYTES, MAX_RANGES, Reconciliation

END = 1_000_000
Loses = Callable[[int, int], bool]


class Member:
    def __init__(self, name: str, numbers: Iterable[int], others: int) -> None:
        self.log = MessageLog(1_000_000)
        self.log.sums.max_seconds = 50_000
        observations = Observations()
        observations.heard, observations.delays.scale_ms = others, 100
        random = Random(name).random
        self.it = Reconciliation(name, self.log, observations, random, self.held)
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
                due_ms = member.it.next_deadline_ms()
                if due_ms is None or due_ms > self.now_ms:
                    continue
                for said in member.it.take(self.now_ms):
                    self.sent.append(said)
                    for to in range(len(self.members)):
                        if to != number and not self.loses(number, to):
                            arriving.append((self.now_ms + 50, to, number, said))

    def hear(self, member: Member, number: int, said: Reconciling) -> None:
        member.it.hear(said, f"p{number}", 0, self.now_ms)
        while member.it.inbox:
            number = int(member.it.open()[0].rstrip(b".")[1:])
            member.add(number)
            member.it.came((number * 1_000, f"m{number}"))

    @property
    def is_equal(self) -> bool:
        return len({member.root() for member in self.members}) == 1


def test_a_newcomer_that_has_nothing_gets_all_in_bundles() -> None:
    group = Group([], range(1_000), range(1_000))
    group.compare(0, 1)
    group.run(6_000)
    assert group.is_equal
    assert sum(len(data) for said in group.sent for data in said.bundle) < 2 * 400_000
    assert len(group.sent) < 30


def test_two_halves_of_a_partition_become_equal() -> None:
    common = range(2_000)
    group = Group(*[[*common, *range(2_000 + side, 2_600, 2)] for side in (0, 1, 0, 1)])
    group.compare(0, 1)
    group.run(8_000)
    assert group.is_equal
    assert sum(len(data) for said in group.sent for data in said.bundle) < 3 * 600 * 400


def test_scattered_holes_are_found_in_few_bytes() -> None:
    group = Group(range(10_000), set(range(10_000)) - {7, 4_711, 9_999})
    group.compare(1, 0)
    group.run(3_000)
    assert group.is_equal
    assert sum(len(said.bundle) for said in group.sent) == 3
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
    member.it.agrees()
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
    assert member.it.next_deadline_ms() is None


def test_a_difference_that_nobody_can_repair_is_asked_about_ever_less() -> None:
    group = Group(range(10))
    member, asked = group.members[0], list[int]()
    for hour in range(1, 13):
        while group.now_ms < hour * 3_600_000:
            member.it.differs(LogRoot(0, END, 12, bytes(16)), member.root(), group.now_ms)
            group.now_ms += 30_000
            due_ms = member.it.next_deadline_ms()
            if due_ms is not None and due_ms <= group.now_ms:
                group.sent += member.it.take(group.now_ms)
        asked.append(len(group.sent))
        group.sent.clear()
    assert asked[0] > 12 > sum(asked[6:]) / 3
    assert member.it.has_failed
    member.it.differs(LogRoot(0, END, 50, bytes(16)), member.root(), group.now_ms)
    assert member.it.next_deadline_ms() is not None  # much more is missing: another difference
    member.it.agrees()
    assert not member.it.has_failed


def test_ranges_from_before_what_is_wanted_are_not_looked_at() -> None:
    member = Member("p0", range(100), 1)
    said = Reconciling((LogRoot(0, 50, 1, bytes(16)),), (ListedIds(0, 50, b""),))
    member.it.hear(said, "other", 10, 0)
    assert member.it.next_deadline_ms() is None


@pytest.mark.parametrize("said", [
    Reconciling(roots=tuple(LogRoot(i, i + 1, 5, bytes(16)) for i in range(5_000))),
    Reconciling(lists=tuple(ListedIds(0, END, bytes(8 * 50)) for _ in range(500))),
    Reconciling(bundle=(b"x" * 100_000,) * 50),
    Reconciling((LogRoot(9, 3, 2**63, b""),), (ListedIds(5, 5, b"odd"), ListedIds(0, END, b"odd"))),
])  # fmt: skip
def test_a_hostile_member_makes_others_work_within_a_budget(said: Reconciling) -> None:
    member, sent = Member("p0", range(2_000), 5), 0
    for second in range(20):
        for _ in range(10):
            member.it.hear(said, "other", 0, second * 1_000)
        assert len(member.it._plan.ranges) <= MAX_RANGES
        assert sum(len(data) for data, _ in member.it.inbox) <= 8 * 1024 * 1024
        member.it.inbox.clear()
        member.it._inbox_bytes = 0
        for now_ms in range(second * 1_000, second * 1_000 + 1_000, 100):
            for out in member.it.take(now_ms):
                sent += 1
                assert sum(map(len, out.bundle)) <= BUNDLE_BYTES
    assert sent <= 20 + 80 + 2 * 20 + MAX_RANGES


def test_a_range_is_cut_where_its_messages_are() -> None:
    member = Member("p0", [*range(100), 5_000], 1)
    parts = member.log.sums.split(0, END, 16)
    assert parts[0][0] == 0
    assert parts[-1][1] == END
    assert all(first[1] == second[0] for first, second in pairwise(parts))
    assert max(member.log.sums.root(*part).count for part in parts) <= 8
    assert member.log.sums.split(6_000, END, 16) == [(6_000, END)]
