"""The judge of what is emitted again, by a participant that does what it should and by ones that do
not."""

from typing import NoReturn

import pytest

from reliable_channel.events import AnyEvent, DeliveryFailed, MessageLost, MessageReceived
from reliable_channel_lab.sim.redelivery import (
    CONFIRMED,
    MARKED,
    ONCE,
    OVERTAKEN,
    REDELIVERED,
    Redelivery,
)

LOST = MessageLost("lost", "alice", None, "nobody has it")


def delivered(message_id: str, *, redelivered: bool = False) -> MessageReceived:
    return MessageReceived(message_id, "alice", b"", 1, 0, redelivered=redelivered)


class Broken(Exception):
    """A promise was broken."""


def fail(promise: str, message_id: str, detail: str) -> NoReturn:
    raise Broken(promise)


@pytest.fixture
def redelivery() -> Redelivery:
    return Redelivery(fail)


def test_all_that_is_not_confirmed_comes_again(redelivery: Redelivery) -> None:
    redelivery.emitted(delivered("a"))
    redelivery.emitted(delivered("b"))
    redelivery.confirmed(delivered("a"))
    redelivery.restarted()
    assert redelivery.emitted(delivered("b", redelivered=True))
    redelivery.repeated()
    assert not redelivery.emitted(delivered("c"))


def test_a_message_lost_twice_is_reported_again_twice(redelivery: Redelivery) -> None:
    """As what counts as lost may come to be wanted again (seed 37000543)."""
    for event in (LOST, delivered("a"), LOST, delivered("b")):
        redelivery.emitted(event)
    redelivery.restarted()
    again = (LOST, delivered("a", redelivered=True), LOST, delivered("b", redelivered=True))
    assert all(redelivery.emitted(event) for event in again)
    redelivery.repeated()


def test_the_second_report_of_a_lost_message_is_missed(redelivery: Redelivery) -> None:
    redelivery.emitted(LOST)
    redelivery.emitted(LOST)
    redelivery.restarted()
    redelivery.emitted(LOST)
    with pytest.raises(Broken, match=REDELIVERED):
        redelivery.repeated()


def test_one_confirmation_covers_both_reports(redelivery: Redelivery) -> None:
    redelivery.emitted(LOST)
    redelivery.emitted(LOST)
    redelivery.confirmed(LOST)
    redelivery.restarted()
    redelivery.repeated()


@pytest.mark.parametrize(
    ("told", "promise"),
    [
        (delivered("new"), OVERTAKEN),
        (delivered("owed"), MARKED),
        (delivered("confirmed", redelivered=True), CONFIRMED),
        (DeliveryFailed("new", 10, "no acknowledgement"), OVERTAKEN),
    ],
)
def test_what_is_told_after_a_restart_breaks_a_promise(
    redelivery: Redelivery, told: AnyEvent, promise: str
) -> None:
    redelivery.emitted(delivered("confirmed"))
    redelivery.confirmed(delivered("confirmed"))
    redelivery.emitted(delivered("owed"))
    redelivery.restarted()
    with pytest.raises(Broken, match=promise):
        redelivery.emitted(told)


def test_nothing_is_told_twice(redelivery: Redelivery) -> None:
    redelivery.emitted(delivered("a"))
    with pytest.raises(Broken, match=ONCE):
        redelivery.emitted(delivered("a"))
