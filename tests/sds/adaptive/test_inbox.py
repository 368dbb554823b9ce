"""Bundles that came, until their messages are taken."""

from collections import deque

from reliable_channel.sds.adaptive.inbox import (
    ENTRY_BYTES,
    INBOX_BYTES,
    OPENED_BYTES,
    OPENED_BYTES_PER_S,
    PAUSE_MS,
    Bundle,
    Inbox,
)

HALF = INBOX_BYTES // 2 - ENTRY_BYTES


def bundle(sender: str, *messages: bytes) -> Bundle:
    return Bundle(sender, deque(messages))


def take(inbox: Inbox, now_ms: int = 0) -> tuple[bytes, str] | None:
    taken = inbox.take(now_ms)
    return None if taken is None else (taken[0], taken[1].sender_id)


def test_messages_are_due_when_they_came_and_taken_in_order() -> None:
    inbox = Inbox()
    assert inbox.put(bundle("a"), 400) == set()
    inbox.put(bundle("a", b"1", b"2"), 500)
    inbox.put(bundle("a", b"3"), 600)
    assert inbox.due_ms == 500
    assert [take(inbox, 500) for _ in range(4)] == [(b"1", "a"), (b"2", "a"), (b"3", "a"), None]
    assert inbox.size_bytes == 0


def test_senders_have_their_turns_a_bundle_each() -> None:
    inbox = Inbox()
    for each in (bundle("a", b"1", b"2"), bundle("a", b"3"), bundle("b", b"4"), bundle("b", b"5")):
        inbox.put(each, 0)
    order = [b"1", b"2", b"4", b"3", b"5"]
    assert [taken[0] for _ in order if (taken := take(inbox))] == order


def test_the_sender_with_most_makes_room_with_its_newest() -> None:
    inbox = Inbox()
    assert inbox.put(bundle("a", b"x" * HALF), 0) == set()
    assert inbox.put(bundle("b", b"small", b"x" * (HALF - ENTRY_BYTES - 5)), 0) == set()
    assert inbox.size_bytes == INBOX_BYTES
    assert inbox.put(bundle("c", b"small"), 0) == {"a"}
    assert [taken[1] for _ in range(3) if (taken := take(inbox))] == ["b", "b", "c"]
    assert inbox.put(bundle("a", *[b"x" * HALF] * 3), 0) == {"a"}
    assert inbox.size_bytes == INBOX_BYTES


def test_the_rest_of_a_bundle_is_skipped_and_no_other_one() -> None:
    inbox = Inbox()
    for each in (bundle("a", b"1", b"2", b"3"), bundle("a", b"4"), bundle("b", b"5")):
        inbox.put(each, 0)
    taken = inbox.take(0)
    assert taken is not None
    inbox.skip(taken[1])
    assert [take(inbox), take(inbox)] == [(b"5", "b"), (b"4", "a")]
    taken = (inbox.put(bundle("a", b"last"), 0), inbox.take(0))[1]
    assert taken is not None
    inbox.skip(taken[1])
    assert (inbox.due_ms, inbox.size_bytes) == (None, 0)


def test_so_much_is_taken_at_once_and_in_a_second_and_the_rest_waits() -> None:
    inbox, size = Inbox(), 64 * 1024
    for _ in range(2 * OPENED_BYTES // size):
        inbox.put(bundle("a", b"x" * (size - ENTRY_BYTES)), 0)
    taken = now_ms = 0
    while inbox.due_ms is not None and inbox.due_ms <= 0:
        taken += take(inbox) is not None
    assert taken == OPENED_BYTES // size
    inbox.put(bundle("a", *[b"x" * (size - ENTRY_BYTES)] * 10), 0)
    assert take(inbox) is None
    while (due_ms := inbox.due_ms) is not None:
        assert due_ms - now_ms in (0, PAUSE_MS)
        now_ms = due_ms
        take(inbox, now_ms)
    assert abs(now_ms - 10 * size * 1_000 / OPENED_BYTES_PER_S) <= PAUSE_MS
