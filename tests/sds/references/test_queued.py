"""References that were not looked for yet, in batches of one message each."""

from reliable_channel.sds.changes import Recorder
from reliable_channel.sds.references.queued import UNSEEN, Batch, QueuedReferences


def batch(carrier_id: str, *ids: str, is_parked: bool = True) -> Batch:
    places = {message_id: place for place, message_id in enumerate(ids)}
    return Batch(carrier_id, is_parked, "alice", "alice", 0, places, lambda: (), 100)


def test_an_id_that_is_removed_is_in_its_batch_no_more() -> None:
    noted = QueuedReferences()
    noted.add(made := batch("m", "a", "b", "c"))
    assert noted.remove("b") is made
    assert list(made.ids) == ["a", "c"]
    assert made.newest(1) == ["c"]
    assert "b" not in noted and len(noted) == 2
    assert noted.remove("b") is None


def test_a_message_is_recorded_while_a_batch_of_its_references_waits() -> None:
    recorder = Recorder()
    noted = QueuedReferences(recorder)
    noted.add(batch("m", "a"))
    noted.add(batch("sync", "b", is_parked=False))
    assert recorder.take().rows == {(UNSEEN, "m"): ("m", 0)}
    for message_id in "ab":
        noted.remove(message_id)
    assert recorder.take().rows == {(UNSEEN, "m"): None}


def test_a_batch_without_ids_is_dropped() -> None:
    noted = QueuedReferences()
    noted.add(batch("m", "a"))
    assert noted.carriers() == ["m"]
    noted.remove("a")
    assert (len(noted), noted.size, noted.carriers()) == (0, 0, [])


def test_bytes_are_charged_where_nothing_else_keeps_the_message() -> None:
    noted = QueuedReferences()
    noted.add(batch("m", "a", "b"))
    assert noted.size == 2
    noted.add(batch("sync", "c", is_parked=False))
    assert noted.size == 2 + 1 + 100
