"""What a request says of itself, and what outlives a restart of it."""

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reliable_channel.diagnostics import MessagePossiblyAcknowledged
from reliable_channel.engine import requests
from reliable_channel.engine.requests import (
    REQUEST_PROGRESS,
    REQUESTS,
    SENDS,
    Accepted,
    Idempotency,
    Requests,
    random_uuid,
)
from reliable_channel.events import (
    AcknowledgementSource,
    AnyEvent,
    DeliveryFailed,
    MessageAcknowledged,
    MessageSent,
    SendFailed,
    SendProgress,
)
from reliable_channel.sds.changes import Recorder, Row, Table

HASH = bytes(32)


@given(st.integers(0, 2**128 - 1))
def test_an_id_is_the_uuid_of_its_random_bits(bits: int) -> None:
    assert random_uuid(bits) == str(UUID(int=bits, version=4))


def of(*message_ids: str, recorder: Recorder | None = None) -> Requests:
    made = Requests(recorder or Recorder())
    made.accepted("r", message_ids)
    return made


def acknowledged(message_id: str) -> MessageAcknowledged:
    return MessageAcknowledged(message_id, AcknowledgementSource.CAUSAL_HISTORY, "bob")


def failed(message_id: str) -> DeliveryFailed:
    return DeliveryFailed(message_id, 3, "no answer")


def progress(state: str, chunks: int, total: int = 2) -> SendProgress:
    return SendProgress("a", "r", state, chunks, total)


class Disk:
    """The rows of what is recorded."""

    def __init__(self) -> None:
        self.recorder = Recorder()
        self._rows: dict[Table, dict[object, Row]] = {}

    def rows(self, table: Table) -> list[Row]:
        for (each, key), row in self.recorder.take().rows.items():
            if row is None:
                self._rows.setdefault(each, {}).pop(key, None)
            else:
                self._rows.setdefault(each, {})[key] = row
        return list(self._rows.get(table, {}).values())

    def requests(self, *pending: str) -> Requests:
        made = Requests(self.recorder)
        made.restore(self.rows(REQUESTS), self.rows(REQUEST_PROGRESS), pending)
        return made


def test_a_short_message_is_sent_acknowledged_and_forgotten_in_one_event_each() -> None:
    made = of("a")
    assert list(made.sent("a", HASH)) == [MessageSent("a", "r", HASH, ("a",))]
    assert list(made.sent("a", HASH)) == []  # again
    assert "a" in made
    possibly = MessagePossiblyAcknowledged("a", 1)
    assert list(made.resolved(possibly)) == [possibly]
    assert list(made.resolved(acknowledged("a"))) == [acknowledged("a")]
    assert "a" not in made and len(made) == 0


def test_a_long_message_shows_its_progress_and_has_one_result() -> None:
    made = of("a", "b")
    assert list(made.sent("b", HASH)) == [progress("sent", 1)]
    assert list(made.sent("a", HASH)) == [
        progress("sent", 2),
        MessageSent("a", "r", HASH, ("a", "b")),
    ]
    assert list(made.resolved(MessagePossiblyAcknowledged("a", 1))) == []
    assert list(made.resolved(acknowledged("b"))) == [progress("acknowledged", 1)]
    assert list(made.resolved(acknowledged("a"))) == [
        progress("acknowledged", 2),
        acknowledged("a"),
    ]


def test_a_failure_is_said_once_and_of_the_whole() -> None:
    made = of("a", "b", "c")
    assert list(made.resolved(failed("b"))) == [failed("a")]
    assert list(made.resolved(failed("c"))) == []
    assert made.refused("a", "too large") is None
    assert len(made) == 0
    made = of("a", "b", "c")
    assert made.refused("c", "too large") == SendFailed("a", "r", "too large")
    assert made.refused("b", "too large") is None
    assert list(made.resolved(failed("a"))) == []


def test_after_a_failure_what_is_acknowledged_is_no_success() -> None:
    made = of("a", "b")
    assert list(made.resolved(failed("a"))) == [failed("a")]
    assert list(made.resolved(acknowledged("b"))) == [progress("acknowledged", 1)]


def test_of_unknown_messages_events_pass_as_they_are() -> None:
    made = of("a")
    for event in (acknowledged("x"), failed("x")):
        assert list(made.resolved(event)) == [event]
    assert list(made.sent("x", HASH)) == [] and made.refused("x", "") is None
    made.withdrawn(["x", "a"])
    assert len(made) == 0


def test_a_request_goes_on_after_a_restart_where_it_was() -> None:
    disk = Disk()
    before = of("a", "b", "c", recorder=disk.recorder)
    list(before.sent("a", HASH))
    list(before.sent("b", HASH))
    list(before.resolved(acknowledged("b")))
    again = disk.requests("a", "c")
    assert "b" not in again and len(again) == 2
    assert list(again.sent("c", HASH)) == [
        progress("sent", 3, 3),
        MessageSent("a", "r", HASH, ("a", "b", "c")),
    ]
    assert list(again.resolved(acknowledged("a"))) == [progress("acknowledged", 2, 3)]
    assert disk.rows(REQUESTS) and disk.rows(REQUEST_PROGRESS)
    last: list[AnyEvent] = list(again.resolved(acknowledged("c")))
    assert last == [progress("acknowledged", 3, 3), acknowledged("a")]
    assert not disk.rows(REQUESTS) and not disk.rows(REQUEST_PROGRESS)


def test_what_was_sent_before_a_restart_is_not_sent_twice() -> None:
    disk = Disk()
    list(of("a", "b", recorder=disk.recorder).sent("a", HASH))
    assert list(disk.requests("a", "b").sent("b", HASH)) == [
        progress("sent", 2),
        MessageSent("a", "r", HASH, ("a", "b")),
    ]


def test_a_failure_before_a_restart_is_not_said_again() -> None:
    disk = Disk()
    list(of("a", "b", recorder=disk.recorder).resolved(failed("b")))
    assert list(disk.requests("a").resolved(failed("a"))) == []


def test_a_request_of_which_nothing_happened_yet_goes_on_too() -> None:
    disk = Disk()
    of("a", "b", recorder=disk.recorder)
    assert list(disk.requests("a", "b").sent("a", HASH)) == [progress("sent", 1)]
    disk = Disk()
    of("a", "b", recorder=disk.recorder)
    again = disk.requests("a", "b")
    assert list(again.resolved(acknowledged("a"))) == [progress("acknowledged", 1)]
    assert list(again.resolved(failed("b"))) == [failed("a")]


def test_without_state_requests_are_followed_all_the_same() -> None:
    made = Requests()
    made.accepted("r", ["a"])
    assert list(made.resolved(acknowledged("a"))) == [acknowledged("a")]


# -- keys -


def test_a_key_stands_for_what_was_accepted_until_it_is_withdrawn() -> None:
    disk = Disk()
    keys, accepted = Idempotency(disk.recorder), Accepted("r", ("a", "b"), "key")
    keys.add("key", accepted)
    assert keys.get("key") is accepted
    assert keys.get("other") is None
    keys.discard(None)
    keys.discard("other")
    assert len(disk.rows(SENDS)) == 1
    keys.discard("key")
    assert keys.get("key") is None and disk.rows(SENDS) == []


def test_the_oldest_keys_are_forgotten_in_the_order_of_before_a_restart(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(requests, "KEYS_REMEMBERED", 3)
    disk = Disk()
    keys = Idempotency(disk.recorder)
    for key in "dcba":
        keys.add(key, Accepted(f"request {key}", (key,), key))
    for _ in range(2):
        rows = disk.rows(SENDS)
        assert sorted(str(row[0]) for row in rows) == ["a", "b", "c"]
        keys = Idempotency(disk.recorder)
        keys.restore(reversed(rows))
        assert keys.get("c") == Accepted("request c", ("c",), "c")
    for key, gone in (("e", "c"), ("f", "b"), ("g", "a")):
        keys.add(key, Accepted(f"request {key}", (key,), key))
        keys = Idempotency(disk.recorder)
        keys.restore(reversed(disk.rows(SENDS)))
        assert keys.get(gone) is None and keys.get(key) is not None
