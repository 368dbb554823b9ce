"""Bundles: which participant broadcasts what another one lacks, and how much of it in one."""

import zlib
from itertools import pairwise
from random import Random
from typing import Final

import pytest

from reliable_channel.sds.adaptive.bundles import (
    AGAIN_MS,
    BUNDLE_BYTES,
    FIRST_BUNDLE_BYTES,
    HOUR_MS,
    LEAVES,
    MAX_COPIES,
    MAX_UNPACKED_BYTES,
    MESSAGE_BYTES,
    PAUSE_MS,
    REPEATS,
    YIELDS,
    Bundles,
    packed,
    readable,
    unpacked,
)
from reliable_channel.sds.adaptive.estimates import Observations
from reliable_channel.sds.changes import LogKey
from reliable_channel.sds.dialects.codec import MAX_BUNDLED_MESSAGES
from reliable_channel.sds.message import Reconciling

Content = dict[str, bytes]
LOG: Final = 10_000
"""Messages in the log of who answers."""


def answerer(messages: Content, name: str = "b", *, others: int = 1, loss: float = 0.2) -> Bundles:
    observations = Observations()
    observations.heard, observations.delays.scale_ms = others, 100
    observations.losses.share = loss
    return Bundles(
        name, observations, Random(name).random, lambda one, _: messages.get(one), lambda: LOG
    )


def keys(messages: Content) -> list[LogKey]:
    return [(number, name) for number, name in enumerate(messages)]


def content(count: int, size: int = 300) -> Content:
    random = Random(size)
    return {f"m{n}": random.randbytes(size) for n in range(count)}


def broadcast(it: Bundles, until_ms: int = 1_000_000) -> list[tuple[int, tuple[bytes, ...]]]:
    out = []
    while it.due_ms is not None and it.due_ms < until_ms:
        at_ms = it.due_ms
        if data := it.take(at_ms):
            assert len(data) <= BUNDLE_BYTES
            out.append((at_ms, unpacked(data)))
    return out


def test_a_bundle_is_unpacked_as_it_was() -> None:
    messages = tuple(content(100).values())
    assert unpacked(packed(messages)) == messages
    assert packed([]) == b""
    alike = [b"%0800x" % n for n in range(500)]
    assert len(packed(alike)) < 800 * 500 / 4


def test_a_bundle_is_filled_up_so_that_others_read_all_of_it() -> None:
    alike = [b"%08x" % n for n in range(MAX_BUNDLED_MESSAGES)]
    for bundle in ([b"x"], alike, [bytes(1024 * 1024)]):
        data = packed(bundle)
        assert unpacked(data) == tuple(bundle)
        read, has_more = readable(Reconciling(packed=data), "p")
        assert (list(read.messages), read.sender_id, has_more) == (bundle, "p", False)
    shorter = Reconciling(packed=zlib.compress(zlib.decompress(packed(alike))))
    read, has_more = readable(shorter, "p")
    assert len(read.messages) == len(shorter.packed) // MESSAGE_BYTES
    assert has_more


def test_no_bundle_has_more_messages_than_are_read() -> None:
    messages = {f"m{n}": b"%08x" % n for n in range(2 * MAX_BUNDLED_MESSAGES)}
    it = answerer(messages)
    for key in keys(messages):
        it.lacks([key], 0)
    out = [bundle for _, bundle in broadcast(it)]
    assert max(map(len, out)) == MAX_BUNDLED_MESSAGES
    assert [data for bundle in out for data in bundle] == list(messages.values())
    read, has_more = readable(Reconciling(bundle=(b"%0100x" % 0,) * 1_000), "p")
    assert (len(read.messages), has_more) == (MAX_BUNDLED_MESSAGES, True)


def test_no_message_is_made_that_the_bundle_has_no_place_for() -> None:
    names, made = [f"m{n}" for n in range(MAX_BUNDLED_MESSAGES + 1)], list[str]()

    def make(name: str, _: str | None) -> bytes:
        made.append(name)
        return b"x"

    it = Bundles("b", Observations(), Random(1).random, make, lambda: LOG)
    for number, name in enumerate(names):
        it.lacks([(number, name)], 0)
    assert it.due_ms is not None and it.take(it.due_ms)
    assert made == names[:MAX_BUNDLED_MESSAGES]


@pytest.mark.parametrize("data", [
    b"", b"no", zlib.compress(b"\x1a"), zlib.compress(b"\x1a\x05ab"), zlib.compress(b"\x0a\x00"),
    zlib.compress(b"\x1a\x01x")[:-3], packed([b"x" * MAX_UNPACKED_BYTES]),
])  # fmt: skip
def test_what_is_invalid_or_too_long_is_not_read(data: bytes) -> None:
    assert unpacked(data) == ()


def test_all_that_is_lacking_goes_out_in_order_with_pauses() -> None:
    messages = content(1_000)
    it = answerer(messages)
    for key in keys(messages):
        it.lacks([key], 0)
    out = broadcast(it)
    assert [data for _, bundle in out for data in bundle] == list(messages.values())
    assert 300_000 / BUNDLE_BYTES < len(out) < 10
    assert all(after[0] - before[0] >= PAUSE_MS for before, after in pairwise(out))


def test_a_bundle_stays_within_its_size_where_messages_compress_worse_than_those_before() -> None:
    messages = {f"a{n}": b"a" * 500 for n in range(200)} | content(3_000)
    it = answerer(messages)
    for key in keys(messages):
        it.lacks([key], 0)
    assert sum(len(bundle) for _, bundle in broadcast(it)) == 3_200


def test_what_is_not_held_any_more_is_left_out() -> None:
    messages = content(3)
    it = answerer({name: messages[name] for name in ("m0", "m2")})
    for key in keys(messages):
        it.lacks([key], 0)
    assert [bundle for _, bundle in broadcast(it)] == [(messages["m0"], messages["m2"])]
    it.lacks([(1, "m1")], 10_000)
    assert broadcast(it) == []


def test_the_rest_is_left_to_another_one_that_answers() -> None:
    messages = content(500)
    it = answerer(messages, others=9)
    for key in keys(messages):
        it.lacks([key], 0)
    it.came((3, "m3"), "a", 1)
    assert it.due_ms is None


@pytest.mark.parametrize(("name", "goes_on"), [("a", True), ("c", False)])
def test_of_two_that_began_the_first_by_name_goes_on(name: str, goes_on: bool) -> None:
    messages = content(500)
    it = answerer(messages, name)
    for key in keys(messages):
        it.lacks([key], 0)
    assert it.due_ms is not None
    assert it.take(it.due_ms)
    it.came((3, "m3"), "b", 10)
    assert (it.due_ms is not None) is goes_on


def test_one_that_begins_answers_and_does_not_end_them_is_left_only_so_much() -> None:
    messages = content(50)
    it = answerer(messages, others=9)
    for again in range(LEAVES + 1):
        now_ms = again * 5_000
        for key in keys(messages):
            it.lacks([key], now_ms)
        for name in ("hostile", "another"):
            it.came((0, "m0"), name, now_ms)
        assert (it.due_ms is None) is (again < LEAVES)
    assert len({data for _, bundle in broadcast(it) for data in bundle}) == 49


def test_what_was_on_air_a_moment_ago_is_not_sent_again() -> None:
    messages = content(5)
    it = answerer(messages)
    it.came((0, "m0"), "a", 1_000)
    for key in keys(messages):
        it.lacks([key], 1_100)
    assert len(broadcast(it)[0][1]) == 4
    it.lacks([(0, "m0")], 2_000)
    assert len(broadcast(it)[0][1]) == 1


def test_a_message_goes_out_once_in_ten_minutes_however_many_lack_it() -> None:
    messages = content(5)
    it = answerer(messages)
    it.lacked_by(10)
    for now_ms, count in ((0, 1), (5_000, 0), (AGAIN_MS, 0), (AGAIN_MS + 5_000, 1)):
        for key in keys(messages):
            it.lacks([key], now_ms)
        assert [len(bundle) for _, bundle in broadcast(it)] == [5] * count


def test_a_bundle_is_repeated_so_often_while_one_of_its_messages_is_requested() -> None:
    messages = content(1_000)
    it, now_ms = answerer(messages), 0
    it.lacks(keys(messages), now_ms)
    first, lost, *rest = [bundle for _, bundle in broadcast(it)]
    requested = keys(messages)[len(first) + len(lost) - 1]
    repeated = list[tuple[bytes, ...]]()
    for now_ms in range(10_000, AGAIN_MS, 10_000):
        it.answered(requested, now_ms)
        repeated += [bundle for _, bundle in broadcast(it)]
        it.answered(requested, now_ms + 100)  # it is on its way
        assert it.due_ms is None
    assert repeated == [lost] * REPEATS and rest
    it.answered(requested, 2 * AGAIN_MS)
    assert it.due_ms is None


@pytest.mark.parametrize("ids", [1, 1_000])
def test_requests_make_a_log_go_out_so_often_in_an_hour(ids: int) -> None:
    """Whoever lists nothing, and then requests messages by their ids again and again."""
    messages, sent = content(1_000), 0
    it = Bundles("b", Observations(), Random(1).random, lambda one, _: messages[one], lambda: 1_000)
    for now_ms in range(0, HOUR_MS, 20_000):
        it.lacks(keys(messages), now_ms)
        for key in keys(messages)[:ids]:
            it.answered(key, now_ms)
        sent += sum(len(bundle) for _, bundle in broadcast(it, now_ms + 20_000))
    assert sent <= (1 + REPEATS) * 1_000 and (sent == 4_000) == (ids == 1_000)


@pytest.mark.parametrize(("lacked_by", "copies"), [(1, 1), (2, 2), (10, MAX_COPIES)])
def test_as_many_answer_as_there_are_to_be_copies(lacked_by: int, copies: int) -> None:
    messages = content(500)
    waits, speaks = (answerer(messages, name, others=9) for name in ("f", "f"))
    for it in (waits, speaks):
        it.lacked_by(lacked_by)
        it.lacks(keys(messages), 0)
    assert speaks.due_ms is not None and speaks.take(speaks.due_ms)
    for number, name in enumerate("abcd"[:copies]):
        assert None not in (waits.due_ms, speaks.due_ms)
        waits.came((number, f"m{number}"), name, 1)
        for heard in ("x", name):  # of those that began, the first by name go on
            speaks.came((number, f"m{number}"), heard, 1)
    assert [it.due_ms for it in (waits, speaks)] == [None, None]


def test_a_budget_ends_what_others_cause() -> None:
    messages = content(100, 90_000)
    it = answerer(messages)
    for key in keys(messages):
        it.lacks([key], 0)
    assert len(broadcast(it, 200_000)) <= 100


def test_each_answer_begins_with_a_small_bundle_and_grows() -> None:
    """One that answers beside others is heard before it has sent much."""
    messages = content(600)
    for_two = keys(messages)
    it = answerer(messages)
    for lacking, now_ms in ((for_two[:300], 0), (for_two[300:], 60_000)):
        for key in lacking:
            it.lacks([key], now_ms)
        sizes = [sum(map(len, bundle)) for _, bundle in broadcast(it)]
        assert sizes[0] <= FIRST_BUNDLE_BYTES < sizes[1] <= 4 * FIRST_BUNDLE_BYTES


def test_a_message_is_made_after_the_one_before_and_the_first_after_none() -> None:
    messages, asked = content(100), dict[str, str | None]()

    def held(one: str, after: str | None) -> bytes | None:
        asked[one] = after
        return messages.get(one)

    observations = Observations()
    observations.heard, observations.delays.scale_ms, observations.losses.share = 1, 100, 0.2
    it = Bundles("b", observations, Random(1).random, held, lambda: LOG)
    for key in keys(messages):
        it.lacks([key], 0)
    assert len(broadcast(it)) > 1
    assert asked == dict(zip(messages, [None, *messages], strict=False))


def test_one_that_answers_beside_others_lets_them_speak_so_often_and_no_more() -> None:
    """A participant that begins answers on and on keeps nobody silent."""
    messages = content(500)
    it = answerer(messages, others=9)
    for again in range(LEAVES):
        for key in keys(messages):
            it.lacks([key], again * 5_000)
        for name in ("hostile", "another"):
            it.came((0, "m0"), name, again * 5_000)
    now_ms, put_off = LEAVES * 5_000, 0
    for key in keys(messages):
        it.lacks([key], now_ms)
    it.came((1, "m1"), "another", now_ms)
    for number in range(2, 2 * YIELDS):
        before_ms = it.due_ms
        assert before_ms is not None
        it.came((number, f"m{number}"), "hostile", before_ms)
        assert it.due_ms is not None
        put_off += it.due_ms > before_ms
    assert put_off == YIELDS


@pytest.mark.parametrize("first", [4, 10])
def test_no_more_than_the_log_goes_out_in_an_hour(first: int) -> None:
    """Ten lack them and ask every five seconds."""
    messages = content(30)
    observations = Observations()
    it = Bundles("b", observations, Random(1).random, lambda one, _: messages.get(one), lambda: 10)
    it.lacked_by(10)
    assert it.lacks(keys(messages)[:first], 0)
    out = broadcast(it)
    for now_ms in range(out[-1][0] + 5_000, HOUR_MS, 5_000):
        it.lacks(keys(messages), now_ms)
        out += broadcast(it, now_ms + 5_000)
    assert len([data for _, bundle in out for data in bundle]) == 10
    assert not it.lacks(keys(messages)[10:], HOUR_MS)
    assert it.lacks(keys(messages)[10:20], 2 * HOUR_MS)
