"""What the application has not confirmed: numbered, emitted again, dropped where it is much."""

from dataclasses import replace

import pytest

from reliable_channel.engine import pending_events
from reliable_channel.engine.pending_events import PENDING_EVENTS, PendingEvents
from reliable_channel.events import (
    AcknowledgementSource,
    AnyEvent,
    DeliveryFailed,
    HistoryEntry,
    MessageAcknowledged,
    MessageLost,
    MessageReceived,
    SendFailed,
)
from reliable_channel.runtime.runtime import DAMAGE
from reliable_channel.sds.changes import Changes, Recorder, Row
from reliable_channel.sds.log.log import MessageLog
from reliable_channel.sds.message import LogEntry

HINT = bytes(range(32))
REPORTS = (
    MessageAcknowledged("b", AcknowledgementSource.BLOOM_FILTER, "carol", 2),
    DeliveryFailed("c", 10, "no acknowledgement"),
    SendFailed("d", "request", "cancelled"),
    MessageLost("e", "carol", HINT, "lost"),
)


class Disk:
    """The table of unconfirmed events, as a state has it."""

    def __init__(self) -> None:
        self.rows: dict[object, Row] = {}

    def write(self, changes: Changes) -> None:
        for (table, key), row in changes.rows.items():
            assert table is PENDING_EVENTS
            if row is None:
                self.rows.pop(key, None)
            else:
                self.rows[key] = row


def received(message_id: str, *missing: HistoryEntry) -> MessageReceived:
    return MessageReceived(message_id, "bob", message_id.encode(), 7, 3, missing, HINT)


def log_of(*events: MessageReceived) -> MessageLog:
    log = MessageLog(100)
    for event in events:
        log.insert(
            LogEntry(
                event.message_id,
                event.sender_id,
                event.lamport_timestamp,
                event.content,
                event.retrieval_hint,
            )
        )
    return log


def restored(
    disk: Disk, log: MessageLog
) -> tuple[PendingEvents, Recorder, list[tuple[AnyEvent, int]]]:
    recorder = Recorder()
    it = PendingEvents(recorder)
    it.restore(list(disk.rows.values()))
    return it, recorder, list(it.again(log))


def deliver(it: PendingEvents, *events: MessageReceived) -> None:
    for event in events:
        it.account(event, (it.delivered(event),))


def test_events_come_again_in_their_order_whatever_order_the_table_has() -> None:
    recorder, disk = Recorder(), Disk()
    it = PendingEvents(recorder)
    missing = (HistoryEntry("x", HINT, "carol"), HistoryEntry("y"))
    first, last = received("a", *missing), received("f")
    deliver(it, first)
    for report in REPORTS:
        it.reported([report])
    deliver(it, last)
    disk.write(recorder.take())
    disk.rows = dict(reversed(disk.rows.items()))
    _, _, again = restored(disk, log_of(first, last))
    assert again == [
        (replace(first, redelivered=True), 1),
        *((report, number) for number, report in enumerate(REPORTS, 2)),
        (replace(last, redelivered=True), 6),
    ]


def test_new_events_after_a_restart_take_no_number_of_an_old_one() -> None:
    recorder, disk = Recorder(), Disk()
    before = PendingEvents(recorder)
    deliver(before, received("a"), received("b"))
    disk.write(recorder.take())
    it, recorder, again = restored(disk, log_of(received("a"), received("b")))
    assert len(again) == 2
    deliver(it, received("c"))
    disk.write(recorder.take())
    assert [row[:2] for row in disk.rows.values()] == [(1, "a"), (2, "b"), (3, "c")]


def test_a_message_that_left_the_log_is_not_emitted_and_leaves_the_table() -> None:
    recorder, disk = Recorder(), Disk()
    deliver(PendingEvents(recorder), received("a"), received("b"))
    disk.write(recorder.take())
    _, recorder, again = restored(disk, log_of(received("b")))
    disk.write(recorder.take())
    assert [event.message_id for event, _ in again if isinstance(event, MessageReceived)] == ["b"]
    assert list(disk.rows) == [2]


def test_an_event_is_confirmed_once_and_with_it_all_deliveries_it_stands_for() -> None:
    recorder, disk = Recorder(), Disk()
    it = PendingEvents(recorder)
    whole = received("whole")
    it.account(whole, (it.delivered(received("part 1")), it.delivered(received("part 2"))))
    deliver(it, received("other"))
    copy = replace(whole, redelivered=True)
    assert [len(it), it.confirm(copy), it.confirm(whole), len(it)] == [2, True, False, 1]
    disk.write(recorder.take())
    assert list(disk.rows) == [3]


def test_an_event_that_accounts_for_nothing_is_not_remembered() -> None:
    it = PendingEvents(Recorder())
    it.account(received("a"), ())
    assert len(it) == 0
    assert not it.confirm(received("a"))


def test_beyond_the_limit_the_oldest_tenth_is_dropped_and_counted_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pending_events, "PENDING_EVENTS_LIMIT", 20)
    recorder, disk = Recorder(), Disk()
    it = PendingEvents(recorder)
    deliver(it, *(received(str(number)) for number in range(20)))
    assert (len(it), it.newly_dropped()) == (20, 0)
    deliver(it, received("20"))
    assert len(it) == 18, "one too many, and a tenth of the limit"
    assert [it.newly_dropped(), it.newly_dropped()] == [3, 0]
    disk.write(recorder.take())
    assert list(disk.rows) == list(range(4, 22))
    assert not it.confirm(received("2")) and it.confirm(received("3"))


@pytest.mark.parametrize(
    "event", ["", "[]", "{}", '{"event": "message_received"}', '{"event": "message_lost"}']
)
def test_damage_shows_before_anything_is_emitted(event: str) -> None:
    """Emitting goes on in the background, after the channel is open."""
    recorder, disk = Recorder(), Disk()
    deliver(PendingEvents(recorder), received("a"), received("b"))
    disk.write(recorder.take())
    disk.rows[2] = (2, "b", event)
    with pytest.raises(DAMAGE):
        PendingEvents(Recorder()).restore(list(disk.rows.values()))
