from hashlib import sha256

from hypothesis import given, settings
from hypothesis import strategies as st

from reliable_channel.sds.changes import CHANNEL, Recorder, Row, Value
from reliable_channel.sds.log.root import LOG_SUMS, MAX_SECONDS, SUMMED_FROM, LogSums
from reliable_channel.sds.message import LogRoot

KEYS = st.tuples(st.integers(0, 20_000), st.text("abc", max_size=3))


def made(*keys: tuple[int, str]) -> LogSums:
    sums = LogSums()
    for key in keys:
        sums.change(key, 1)
    return sums


def test_a_root_is_a_sum_of_hashes() -> None:
    hashes = [sha256(text.encode()).digest() for text in ("1000 a", "2999 b")]
    total = sum(map(int.from_bytes, hashes)) % 2**256
    fingerprint = sha256(total.to_bytes(32) + (2).to_bytes(8)).digest()[:16]
    assert made((2_999, "b"), (1_000, "a"), (3_000, "c"), (999, "d")).root(1, 3) == LogRoot(
        1, 3, 2, fingerprint
    )


def test_place_and_id_of_each_message_count() -> None:
    root = made((1_000, "a")).root(0, 9)
    assert root != made((1_001, "a")).root(0, 9)
    assert root != made((1_000, "b")).root(0, 9)
    assert root != made().root(0, 9)
    assert root != made((1_000, "a"), (1_000, "b")).root(0, 9)


@settings(derandomize=True, max_examples=80)
@given(st.lists(st.tuples(KEYS, st.integers(0, 22), st.integers(0, 22)), max_size=40))
def test_it_agrees_with_adding_anew(steps: list[tuple[tuple[int, str], int, int]]) -> None:
    sums, keys = LogSums(), set[tuple[int, str]]()
    for key, start, end in steps:
        if key in keys:
            sums.change(key, -1)
        else:
            sums.change(key, 1)
        keys ^= {key}
        assert sums.root(start, end) == made(*sorted(keys)).root(start, end)
        inside = [key for key in keys if start <= key[0] // 1_000 < end]
        assert sums.root(start, end).count == len(inside)


def test_what_left_the_log_is_not_compared() -> None:
    sums = made((999, "a"), (1_000, "b"), (2_000, "c"))
    sums.root(0, 9)
    sums.forget_until(1_500)
    assert sums.start == 2
    assert sums.root(2, 9) == made((2_000, "c")).root(2, 9)
    sums.change((1_700, "late"), 1)
    sums.forget_until(0)
    assert sums.root(2, 9) == made((2_000, "c")).root(2, 9)


def test_of_too_many_seconds_the_oldest_are_compared_no_more() -> None:
    sums = made(*((second * 1_000, "m") for second in range(MAX_SECONDS + 1)))
    assert sums.start == MAX_SECONDS // 10 + 1
    assert sums.root(sums.start, 10**9).count == MAX_SECONDS - MAX_SECONDS // 10


class Disk:
    """The rows that a recorder was given."""

    def __init__(self) -> None:
        self.recorder = Recorder()
        self.rows: dict[Value, Row] = {}
        self.start = 0
        self.written = 0

    def write(self) -> None:
        for (table, key), row in self.recorder.take().rows.items():
            self.written += 1
            if table is CHANNEL and row is not None:
                assert row[0] == SUMMED_FROM and isinstance(row[1], int)
                self.start = row[1]
            elif row is not None:
                assert table is LOG_SUMS
                self.rows[key] = row
            else:
                self.rows.pop(key, None)

    def restored(self) -> LogSums:
        self.write()
        sums = LogSums(self.recorder)
        sums.restore(list(self.rows.values()), self.start)
        return sums


@settings(derandomize=True, max_examples=80)
@given(st.lists(st.tuples(KEYS, st.sampled_from(["", "forget", "restart"])), max_size=40))
def test_a_restart_begins_with_the_same_sums(steps: list[tuple[tuple[int, str], str]]) -> None:
    disk = Disk()
    sums, never_ends = LogSums(disk.recorder), LogSums()
    sums.max_seconds = never_ends.max_seconds = 10
    keys = set[tuple[int, str]]()
    for key, then in steps:
        for each in (sums, never_ends):
            each.change(key, -1 if key in keys else 1)
            if then == "forget":
                each.forget_until(key[0] // 2)
        keys ^= {key}
        if then == "restart":
            sums = disk.restored()
            sums.max_seconds = 10
        assert sums.start == never_ends.start
        assert sums.root(sums.start, 22) == never_ends.root(sums.start, 22)


def test_a_message_costs_one_row_however_long_the_log_is() -> None:
    disk = Disk()
    sums = LogSums(disk.recorder)
    for second in range(MAX_SECONDS - 1):
        sums.change((second * 1_000, "m"), 1)
    disk.write()
    disk.written = 0
    sums.change((500, "late"), 1)
    disk.write()
    assert disk.written == 1
    # Where the oldest are given up, they leave the state as well.
    for second in range(MAX_SECONDS, 2 * MAX_SECONDS):
        sums.change((second * 1_000, "m"), 1)
    disk.write()
    assert len(disk.rows) <= MAX_SECONDS
