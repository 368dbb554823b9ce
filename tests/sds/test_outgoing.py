import pytest

from reliable_channel.sds.bloom import BloomFilter, BloomLayout, BloomParameters
from reliable_channel.sds.changes import Recorder, Row, Table, Value
from reliable_channel.sds.dialects.nim import NIM_BLOOM
from reliable_channel.sds.outgoing import OUTGOING, OUTGOING_PROGRESS, OutgoingBuffer

from .world import next_ms

PARAMETERS = BloomParameters(capacity=100)
LAYOUT = PARAMETERS.layout
RETRY_MS, POSSIBLY_MS = 100, 300


def buffer(*dispatched: str) -> OutgoingBuffer:
    made = OutgoingBuffer(
        PARAMETERS, retry_interval_ms=RETRY_MS, possibly_acknowledged_interval_ms=POSSIBLY_MS
    )
    for message_id in dispatched:
        made.add(message_id, message_id.encode())
        made.dispatched(message_id, 0)
    return made


def bloom(*message_ids: str) -> bytes:
    made = BloomFilter(LAYOUT)
    for message_id in message_ids:
        made.insert(message_id)
    return bytes(made)


def due(made: OutgoingBuffer, now_ms: int) -> list[str]:
    return [entry.message_id for entry in made.due(now_ms)]


def test_waiting_for_the_transport_is_no_attempt() -> None:
    made = buffer()
    made.add("a", b"a")
    assert next_ms(made.agenda) is None
    assert due(made, 10**9) == []
    assert made.entries["a"].attempts == 0
    made.dispatched("a", 50)
    assert made.agenda.next_ms == 150
    assert made.entries["a"].attempts == 1


def test_what_is_due_waits_for_its_dispatch_again() -> None:
    made = buffer("a")
    assert due(made, 99) == []
    assert due(made, 100) == ["a"]
    assert due(made, 10_000) == []
    made.dispatched("a", 10_000)
    assert made.agenda.next_ms == 10_100


def test_possibly_acknowledged_messages_wait_longer() -> None:
    made = buffer("a", "b")
    assert [e.message_id for e in made.review(LAYOUT, bloom("a"), "bob")] == ["a"]
    assert due(made, 299) == ["b"]
    assert due(made, 300) == ["a"]
    made.dispatched("a", 300)
    assert made.agenda.next_ms == 600


@pytest.mark.conformance("SDS-OUT-1")
def test_unacknowledged_messages_come_first() -> None:
    made = buffer("a", "b")
    made.review(LAYOUT, bloom("a"), "bob")
    made.dispatched("b", 290)
    assert made.agenda.next_ms == 300  # `a` was due first
    assert due(made, 10_000) == ["b", "a"]
    assert made.partition() == (["b"], ["a"])


def test_a_sender_counts_once() -> None:
    made = buffer("a")
    assert len(made.review(LAYOUT, bloom("a"), "bob")) == 1
    assert made.review(LAYOUT, bloom("a"), "bob") == []
    assert len(made.review(LAYOUT, bloom("a"), "carol")) == 1
    assert made.entries["a"].possible_acks == {"bob", "carol"}
    assert made.review(LAYOUT, bloom("b"), "dave") == []


def test_a_filter_that_comes_before_the_dispatch_counts() -> None:
    made = buffer()
    made.add("a", b"a")
    assert len(made.review(LAYOUT, bloom("a"), "bob")) == 1
    assert next_ms(made.agenda) is None
    made.dispatched("a", 0)
    assert made.agenda.next_ms == POSSIBLY_MS


def test_removed_messages_are_not_due() -> None:
    made = buffer("a", "b")
    assert [entry.message_id for entry in made.remove(["a", "unknown"])] == ["a"]
    assert (len(made), [e.message_id for e in made]) == (1, ["b"])
    made.dispatched("a", 5)
    assert due(made, 10_000) == ["b"]
    assert next_ms(made.agenda) is None


def test_a_second_dispatch_replaces_the_first_timer() -> None:
    made = buffer("a")
    made.dispatched("a", 60)
    assert due(made, 150) == []
    assert due(made, 160) == ["a"]


@pytest.mark.parametrize("layout", [LAYOUT, BloomLayout(99, 2), BloomLayout(333, 5, NIM_BLOOM)])
def test_filters_of_each_size_and_form_are_looked_through(layout: BloomLayout) -> None:
    made = buffer("a", "b", "c")
    held = BloomFilter(layout)
    held.insert("a")
    assert made.any_in(layout, bytes(held))
    made.add("d", b"d")
    made.remove(["a", "b"])
    assert not made.any_in(layout, bytes(held))
    held.insert("d")
    assert [e.message_id for e in made.review(layout, bytes(held), "bob")] == ["d"]


def test_an_acknowledgement_while_it_waits_for_its_dispatch_plans_nothing() -> None:
    made = buffer("a")
    assert due(made, 100) == ["a"]
    assert len(made.review(LAYOUT, bloom("a"), "bob")) == 1
    assert next_ms(made.agenda) is None
    made.dispatched("a", 150)
    assert made.agenda.next_ms == 150 + POSSIBLY_MS


def rows(recorder: Recorder, table: Table) -> dict[Value, Row | None]:
    return {key: row for (each, key), row in recorder.take().rows.items() if each is table}


def test_each_step_is_recorded_and_bytes_that_are_cached_are_not() -> None:
    recorder = Recorder()
    made = OutgoingBuffer(
        PARAMETERS,
        retry_interval_ms=RETRY_MS,
        possibly_acknowledged_interval_ms=POSSIBLY_MS,
        recorder=recorder,
    )
    made.add("a", b"bytes of a")
    made.add("b", b"bytes of b", is_cached=True)
    assert rows(recorder, OUTGOING) == {"a": ("a", b"bytes of a"), "b": ("b", b"")}
    for message_id in ("b", "unknown"):
        made.no_longer_cached(message_id)
    assert rows(recorder, OUTGOING) == {"b": ("b", b"bytes of b")}
    made.dispatched("a", 0)
    assert rows(recorder, OUTGOING_PROGRESS) == {"a": ("a", 1, RETRY_MS, "[]")}
    made.review(LAYOUT, bloom("a"), "bob")
    assert rows(recorder, OUTGOING_PROGRESS) == {"a": ("a", 1, POSSIBLY_MS, '["bob"]')}
    made.remove(["a"])
    assert recorder.take().rows == {(OUTGOING, "a"): None, (OUTGOING_PROGRESS, "a"): None}


def test_it_goes_on_after_a_restart() -> None:
    made = buffer()
    messages = [("a", b"bytes of a"), ("b", b""), ("c", b"c"), ("d", b"d")]
    progress = [("a", 2, 500, '["bob"]'), ("b", 1, None, "[]"), ("d", 0, None, '["bob"]')]
    made.restore(messages, progress, 70, {"b": b"bytes of b"})
    assert [(e.message_id, bytes(e.data), e.attempts, set(e.possible_acks)) for e in made] == [
        ("a", b"bytes of a", 2, {"bob"}),
        ("b", b"bytes of b", 1, set()),
        ("c", b"c", 0, set()),
        ("d", b"d", 0, {"bob"}),
    ]
    assert due(made, 69) == []
    assert due(made, 70) == ["b"]  # it was on its way
    assert due(made, 499) == []
    assert due(made, 500) == ["a"]
    assert next_ms(made.agenda) is None
