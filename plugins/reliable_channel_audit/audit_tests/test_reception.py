"""What arrived, what was logged and what was received, line by line."""

from __future__ import annotations

from hashlib import sha256

from reliable_channel.sds.message import Message
from reliable_channel_audit.findings import Audit
from reliable_channel_audit.lines import Line, set_aside
from reliable_channel_audit.reception import Reception

HELLO = Message("alice", "m", "general", 5, (), None, (), b"hello")
CAME = Line("wire_in", 1, outcome="delivered", message_hash=b"h", payload=b"hello as bytes")
LOGGED = Line(
    "message_logged",
    2,
    "m",
    "alice",
    message_hash=b"h",
    lamport_timestamp=5,
    content_sha256=sha256(b"hello").digest(),
)
RECEIVED = Line("message_received", 3, "m", "alice", lamport_timestamp=5, payload=b"hello")
OPENED, CLOSED = Line("journal_opened", 0), Line("journal_closed", 4)


def found(*lines: Line, is_plain: bool = True) -> list[tuple[Audit, str]]:
    reception = Reception("bob")
    reception.is_plain = is_plain
    for line in lines:
        reception.add(line, HELLO if line.event == "wire_in" else None)
    return [(audit, detail) for audit, _, _, detail in reception.remarks()]


def test_what_arrived_is_logged_and_received() -> None:
    assert not found(OPENED, CAME, LOGGED, RECEIVED, CLOSED)


def test_a_killed_process_had_no_time_for_its_last_step() -> None:
    deaf = [(Audit.RECEIVED, "in the log, and the application did not receive it")]
    assert found(OPENED, CAME, LOGGED, CLOSED) == deaf
    assert not found(OPENED, CAME, LOGGED)
    assert found(OPENED, CAME, LOGGED, Line("sync_sent", 9)) == deaf
    assert not found(OPENED, CAME, LOGGED, OPENED, CLOSED)


def test_a_redelivery_is_no_double() -> None:
    again = RECEIVED._replace(outcome="redelivered")
    assert not found(OPENED, CAME, LOGGED, RECEIVED, OPENED, again, CLOSED)
    assert not found(OPENED, CAME, LOGGED, OPENED, again, CLOSED)
    stranger = again._replace(message_id="x")
    unlogged = [(Audit.RECEIVED, "received, and not in the log")]
    assert found(OPENED, CAME, LOGGED, RECEIVED, OPENED, again, stranger, CLOSED) == unlogged
    twice = [(Audit.RECEIVED, "the application received it twice")]
    assert found(OPENED, CAME, LOGGED, RECEIVED, RECEIVED, CLOSED) == twice


def test_every_field_counts() -> None:
    other = "the application received another {} than arrived"
    for received, what in (
        (RECEIVED._replace(sender_id="bob"), "sender"),
        (RECEIVED._replace(lamport_timestamp=6), "Lamport timestamp"),
        (RECEIVED._replace(payload=b"bye"), "content"),
    ):
        told = found(OPENED, CAME, LOGGED, received, CLOSED)
        assert told == [(Audit.RECEIVED, other.format(what))]
    logged = LOGGED._replace(lamport_timestamp=6)
    assert found(OPENED, CAME, logged, RECEIVED, CLOSED) == [
        (Audit.ARRIVED, "the log has another Lamport timestamp than arrived")
    ]


def test_it_was_logged_and_received_under_another_id_than_it_arrived() -> None:
    logged, received = LOGGED._replace(message_id="n"), RECEIVED._replace(message_id="n")
    assert found(OPENED, CAME, logged, received, CLOSED) == [
        (Audit.ARRIVED, "the log has another id than arrived"),
        (Audit.RECEIVED, "the application received another id than arrived"),
    ]


def test_received_and_in_no_log() -> None:
    assert found(OPENED, RECEIVED, CLOSED) == [(Audit.RECEIVED, "received, and not in the log")]


def test_what_is_absent_may_stand_in_a_line_that_cannot_be_read() -> None:
    torn = set_aside("not JSON")
    assert not found(OPENED, torn, LOGGED, CLOSED)
    reception = Reception("bob")
    for line in (OPENED, torn, LOGGED, CLOSED):
        reception.add(line, None)
    assert {audit for audit, _ in reception.unjudged()} == {Audit.ARRIVED, Audit.RECEIVED}


def test_of_segments_the_contents_are_not_judged() -> None:
    whole = RECEIVED._replace(payload=b"hello, and what came before")
    assert not found(OPENED, CAME, LOGGED, whole, CLOSED, is_plain=False)
    assert not found(OPENED, CAME, LOGGED, CLOSED, is_plain=False)


def test_what_is_emitted_again_after_a_restart_is_what_arrived() -> None:
    again = RECEIVED._replace(outcome="redelivered", payload=b"bye")
    other = (Audit.RECEIVED, "the application received another content than arrived")
    assert found(OPENED, CAME, LOGGED, RECEIVED, OPENED, again, CLOSED) == [other]


def test_the_log_is_after_a_restart_what_it_was() -> None:
    restored = LOGGED._replace(outcome="restored", message_hash=None)
    assert not found(OPENED, CAME, LOGGED, RECEIVED, OPENED, restored, CLOSED)
    damaged = restored._replace(content_sha256=b"x", sender_id="bob")
    detail = "the log has another sender and content than before the restart"
    lines = OPENED, CAME, LOGGED, RECEIVED, OPENED, damaged, CLOSED
    assert found(*lines) == [(Audit.ARRIVED, detail)]
