"""References of a participant that tunes itself."""

import pytest

from reliable_channel.sds.adaptive.causal_frontier import (
    HEADS,
    HEADS_OF_SYNC,
    MAX_HEADS,
    MAX_UNACKNOWLEDGED,
    CausalFrontier,
)
from reliable_channel.sds.changes import Recorder, Row, Value
from reliable_channel.sds.log.log import MessageLog
from reliable_channel.sds.message import LogEntry


class Group:
    def __init__(self, limit_bytes: int = 75_000, size: int = 200) -> None:
        self._size = size
        self.log = MessageLog(1_000)
        self.recorder = Recorder()
        self.kept: dict[Value, Row] = {}
        self._limit_bytes = limit_bytes
        self._begin()

    def _begin(self) -> None:
        size, limit_bytes = self._size, self._limit_bytes
        self.frontier = CausalFrontier(
            self.log, size, limit_bytes, lambda entry: entry.message_id.encode(), self.recorder
        )

    def restart(self, *waits_for: int) -> None:
        for (table, key), row in self.recorder.take().rows.items():
            assert table is HEADS
            if row is None:
                self.kept.pop(key, None)
            else:
                self.kept[key] = row
        self._begin()
        waiting = [f"m{number:03}" for number in waits_for]
        self.frontier.restore(sorted(self.kept.values(), reverse=True))
        self.frontier.referred(waiting)

    def deliver(self, number: int, *refers_to: int) -> None:
        message_id = f"m{number:03}"
        references = [f"m{other:03}" for other in refers_to]
        self.frontier.heard(references, "ada")
        self.frontier.referred(references)
        self.log.insert(LogEntry(message_id, "ada", number, b"x"))
        self.frontier.logged(message_id)

    def names(self, *, is_sync: bool = False) -> list[int]:
        ids = bytes(self.frontier.encoded(is_sync=is_sync)).decode()
        if not is_sync:
            self.frontier.sent()
        return [int(message_id) for message_id in ids.split("m")[1:]]


def test_messages_in_turns_refer_to_the_newest_two() -> None:
    group = Group()
    for number in range(10):
        group.deliver(number, *range(max(0, number - 2), number))
    assert group.names() == [8, 9]


@pytest.mark.conformance("AUTO-HISTORY")
def test_concurrent_messages_are_all_referred_to_once() -> None:
    group = Group()
    for number in range(10):
        group.deliver(number)
    assert group.names() == list(range(10))
    assert group.names() == [8, 9]


def test_syncs_take_turns_with_many_heads() -> None:
    group = Group()
    for number in range(30):
        group.deliver(number)
    named = [set(group.names(is_sync=True)) for _ in range(10)]
    assert set.union(*named) == set(range(30))
    assert max(map(len, named)) <= HEADS_OF_SYNC + 2


def test_a_reference_that_comes_before_its_message_counts() -> None:
    group = Group()
    group.frontier.referred(["m001"])
    for number in (1, 5, 6):
        group.deliver(number)
    assert group.names() == [5, 6]


def test_what_a_message_that_never_enters_the_log_was_first_to_refer_to_is_a_head_again() -> None:
    group = Group()
    for number in range(4):
        group.deliver(number, *range(min(number, 2)))
    # m003 is a head, m005 is not here yet, and to m000 and m001 others refer.
    first = group.frontier.referred(["m000", "m001", "m003", "m005"])
    assert first == ("m003", "m005")
    assert group.frontier.referred(["m003", "m005"]) == ()
    group.frontier.unreferred(first)
    group.deliver(5)
    assert group.names() == [2, 3, 5]


def test_a_sync_refers_for_nobody() -> None:
    group = Group()
    for number in range(5):
        group.deliver(number)
    group.frontier.heard(["m000", "m001"], "bob")
    assert group.names() == [0, 1, 2, 3, 4]


def test_what_is_to_be_acknowledged_is_named_once_unless_somebody_else_does() -> None:
    group = Group()
    for number in range(10):
        group.deliver(number, *range(max(0, number - 2), number))
    group.frontier.acknowledge("m003", "ada")
    assert group.names(is_sync=True) == [3, 8, 9]
    assert group.names(is_sync=True) == [8, 9]
    group.frontier.acknowledge("m003", "ada")
    group.frontier.heard(["m003"], "bob")
    assert group.names(is_sync=True) == [8, 9]


@pytest.mark.conformance("AUTO-HISTORY")
@pytest.mark.parametrize(("referrer", "is_behind"), [("ada", True), ("bob", False)])
def test_a_reference_by_its_sender_acknowledges_no_message(referrer: str, is_behind: bool) -> None:
    group = Group()
    for number in range(10):
        group.deliver(number, *range(max(0, number - 2), number))
    group.frontier.acknowledge("m003", "ada")
    group.frontier.heard(["m003"], referrer)
    assert group.frontier.is_behind is is_behind
    assert group.names(is_sync=True) == ([3, 8, 9] if is_behind else [8, 9])
    assert not group.frontier.is_behind


@pytest.mark.conformance("AUTO-HISTORY")
def test_for_other_implementations_history_is_the_end_of_the_log() -> None:
    group = Group()
    for number in range(10):
        group.deliver(number, *range(max(0, number - 2), number))
    group.frontier.is_long = True
    assert group.names() == list(range(10))


def test_a_restart_forgets_no_head() -> None:
    group = Group()
    for number in range(10):
        group.deliver(number)
    group.deliver(10, 3, 4)
    group.restart()
    group.deliver(11, 5)
    assert group.names() == [0, 1, 2, 6, 7, 8, 9, 10, 11]
    group.restart()
    assert group.names() == [10, 11]


def test_after_a_restart_what_others_wait_for_is_no_head() -> None:
    group = Group()
    group.frontier.referred(["m001"])
    group.restart(1)
    for number in (1, 5, 6):
        group.deliver(number)
    assert group.names() == [5, 6]


def test_no_more_heads_are_kept_than_are_referred_to() -> None:
    group = Group()
    for number in range(MAX_HEADS + 50):
        group.deliver(number)
    group.restart()
    assert len(group.kept) == MAX_HEADS
    for number in range(300, 310):
        group.deliver(number)
    assert group.names() == [*range(60, MAX_HEADS + 50), *range(300, 310)]


def test_what_is_not_sent_or_has_no_room_is_a_head_still() -> None:
    group = Group(limit_bytes=5 * len("m000"))
    for number in range(8):
        group.deliver(number)
    assert (
        bytes(group.frontier.encoded()) == b"m003m004m005m006m007"
    )  # and then it is too long to send
    assert group.names() == [3, 4, 5, 6, 7]
    assert group.names() == [0, 1, 2, 6, 7]


@pytest.mark.parametrize("size", [1, 2, 3])
def test_a_message_refers_to_no_more_than_allowed(size: int) -> None:
    group = Group(size=size)
    for number in range(5):
        group.deliver(number)
    group.frontier.acknowledge("m000", "ada")
    assert group.names() == list(range(5))[-size:]


def test_in_as_many_syncs_as_it_takes_each_head_has_its_turn_once() -> None:
    group = Group()
    for number in range(3 * HEADS_OF_SYNC):
        group.deliver(number)
    named = [set(group.names(is_sync=True)) for _ in range(3)]
    assert set.union(*named) == set(range(3 * HEADS_OF_SYNC))


def test_as_many_heads_as_a_sync_names_are_named_in_each() -> None:
    group = Group()
    for number in range(HEADS_OF_SYNC):
        group.deliver(number)
    for _ in range(3):
        assert group.names(is_sync=True) == list(range(HEADS_OF_SYNC))


def test_of_many_who_want_an_acknowledgement_the_last_are_given_one() -> None:
    group = Group()
    for number in range(MAX_UNACKNOWLEDGED + 5):
        group.deliver(number, *range(max(0, number - 2), number))
    for number in range(MAX_UNACKNOWLEDGED + 3):
        group.frontier.acknowledge(f"m{number:03}", "ada")
    assert group.names(is_sync=True) == list(range(3, MAX_UNACKNOWLEDGED + 5))
