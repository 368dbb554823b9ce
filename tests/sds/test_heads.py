"""References of a participant that tunes itself."""

import pytest

from reliable_channel.sds.heads import HEADS_OF_SYNC, Heads
from reliable_channel.sds.log import MessageLog
from reliable_channel.sds.log_entry import LogEntry


class Group:
    def __init__(self) -> None:
        self.log = MessageLog(1_000)
        self.heads = Heads(self.log, 200, 75_000, lambda entry: entry.message_id.encode())

    def deliver(self, number: int, *refers_to: int) -> None:
        message_id = f"m{number:03}"
        self.heads.heard([f"m{other:03}" for other in refers_to], is_content=True)
        self.log.insert(LogEntry(message_id, "ada", number, b"x"))
        self.heads.logged(message_id)

    def names(self, *, is_sync: bool = False) -> list[int]:
        return [int(e.message_id[1:]) for e in self.heads.entries(is_sync=is_sync)]


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
    group.heads.heard(["m001"], is_content=True)
    for number in (1, 5, 6):
        group.deliver(number)
    assert group.names() == [5, 6]


def test_a_sync_refers_for_nobody() -> None:
    group = Group()
    for number in range(5):
        group.deliver(number)
    group.heads.heard(["m000", "m001"], is_content=False)
    assert group.names() == [0, 1, 2, 3, 4]


def test_what_is_to_be_acknowledged_is_named_once_unless_somebody_else_does() -> None:
    group = Group()
    for number in range(10):
        group.deliver(number, *range(max(0, number - 2), number))
    group.heads.ask_for("m003")
    assert group.names(is_sync=True) == [3, 8, 9]
    assert group.names(is_sync=True) == [8, 9]
    group.heads.ask_for("m003")
    group.heads.heard(["m003"], is_content=False)
    assert group.names(is_sync=True) == [8, 9]


@pytest.mark.conformance("AUTO-HISTORY")
def test_for_other_implementations_history_is_the_end_of_the_log() -> None:
    group = Group()
    for number in range(10):
        group.deliver(number, *range(max(0, number - 2), number))
    group.heads.is_long = True
    assert group.names() == list(range(10))
