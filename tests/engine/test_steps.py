"""The order in which steps are written, emitted and refused."""

from typing import Any

import pytest

from reliable_channel.diagnostics import SyncSent
from reliable_channel.engine.archive_overlay import ArchiveOverlay
from reliable_channel.engine.backoff import Backoff
from reliable_channel.engine.logged import Logged
from reliable_channel.engine.requests import Accepted
from reliable_channel.engine.steps import STEPS_WAITING, Step, UnwrittenSteps, Wake
from reliable_channel.events import (
    AnyEvent,
    MessageSent,
    SendingMessage,
    StateDegraded,
    StateRecovered,
)
from reliable_channel.sds.changes import CHANNEL, Changes
from reliable_channel.sds.events import Outgoing, OutgoingKind
from reliable_channel.state import StateCorrupt, StateUnavailable

from .world import FULL


class NoLog:
    def get(self, message_id: str) -> None:
        return None

    def entries(self, start: object, end: object) -> Any:
        return iter(())

    def count(self, start: object, end: object) -> int:
        return 0

    def close(self) -> None: ...


def steps() -> UnwrittenSteps:
    return UnwrittenSteps(ArchiveOverlay(NoLog()), Backoff(lambda: 1.0, first_ms=1_000))


def changes(name: str) -> Changes:
    made = Changes()
    made.rows[CHANNEL, name] = (name, 1)
    return made


def step(name: str, *, accepted: Accepted | None = None, sync: bool = False) -> Step:
    events: list[Any] = [SendingMessage(name, name)]
    outgoing = [Outgoing(OutgoingKind.CONTENT, name, b"data")]
    if sync:
        events.append(SyncSent(name))
        outgoing.append(Outgoing(OutgoingKind.SYNC, name, b"data"))
    return Step(changes(name), events, outgoing, accepted)


def test_what_changes_nothing_goes_on_at_once_unless_others_wait() -> None:
    it = steps()
    first, last = (Step(Changes(), [SendingMessage("a", "a")], []) for _ in range(2))
    for each in (first, step("b"), last):
        it.add(each)
    assert [first.is_due, last.is_due] == [True, False]
    assert (len(it), it.submitted, it.ended) == (2, 3, 1)


def test_a_write_ends_the_steps_that_waited_when_it_began() -> None:
    it = steps()
    it.add(step("a"))
    it.add(step("b"))
    written = it.begin(0, at_once=False)
    assert written is not None
    assert {key for _, key in written.rows} == {"a", "b"}
    it.add(step("c"))
    assert it.written(0) is None
    due, refused = it.finish()
    assert not refused
    assert [each.events[0] for each in due] == [
        SendingMessage("a", "a"),
        SendingMessage("b", "b"),
    ]
    assert (len(it), it.ended) == (1, 2)


@pytest.mark.parametrize(
    "events", [[], [MessageSent("a", "a", bytes(32), ("a",))]], ids=["a confirmation", "sent"]
)
def test_what_nothing_follows_from_has_time(events: list[AnyEvent | Logged]) -> None:
    it = steps()
    it.add(Step(changes("a"), events, []))
    awaited = [it.is_urgent]
    it.add(step("b"))
    awaited.append(it.is_urgent)
    it.begin(0, at_once=False)
    assert [*awaited, it.is_urgent] == [False, True, False]


def test_a_write_that_was_awaited_leaves_the_writer_to_be_woken_by_the_next_step() -> None:
    it, later = steps(), step("b")
    it.add(step("a"))
    it.begin(0, at_once=False)
    it.is_urgent = True
    it.written(0)
    it.finish()
    it.add(later)
    assert later.wakes == [Wake.WRITE]


def test_a_step_that_cannot_be_written_is_refused_where_it_accepted_a_message() -> None:
    it, accepted = steps(), Accepted("request", ("a",))
    it.add(step("a", accepted=accepted))
    it.begin(0, at_once=False)
    it.add(step("b", accepted=accepted))
    it.add(step("c", sync=True))
    assert isinstance(it.failed(FULL, 0), StateDegraded)
    (cleared,), refused = it.finish()
    assert refused == [accepted, accepted], "they may refer to a refused message"
    assert [each.kind for each in cleared.outgoing] == [OutgoingKind.CONTENT]
    assert cleared.events == [SendingMessage("c", "c")]


def test_a_step_that_waited_when_a_write_failed_is_refused_and_a_later_one_is_not() -> None:
    it, accepted = steps(), Accepted("request", ("a",))
    it.add(step("a", accepted=accepted))
    it.begin(0, at_once=False)
    it.add(step("b", accepted=accepted))
    it.failed(FULL, 0)
    assert it.finish() == ([], [accepted, accepted])
    it.add(step("c", accepted=accepted))
    it.begin(10_000, at_once=True)
    it.written(10_000)
    (_,), refused = it.finish()
    assert not refused


@pytest.mark.parametrize(("error", "retry_at_ms"), [(FULL, 1_000), (StateCorrupt("torn"), None)])
def test_a_damaged_file_is_not_tried_again(
    error: StateUnavailable | StateCorrupt, retry_at_ms: int | None
) -> None:
    it = steps()
    it.add(step("a"))
    it.begin(0, at_once=False)
    it.failed(error, 0)
    it.finish()
    assert (it.retry_at_ms, it.at_risk) == (retry_at_ms, 1)
    assert it.begin(999, at_once=False) is None
    later = it.begin(1_000, at_once=False)
    assert (later is None) == (retry_at_ms is None)
    if later is not None:
        assert it.written(3_000) == StateRecovered(3_000, 0)
        assert it.at_risk == 0


@pytest.mark.parametrize(
    "made",
    [
        Step(changes("a"), [], [Outgoing(OutgoingKind.SYNC, "a", b"data")]),
        Step(changes("a"), [], [], Accepted("r", ("a",))),
    ],
    ids=["broadcast", "accepted"],
)
def test_what_goes_out_or_was_accepted_is_awaited(made: Step) -> None:
    it = steps()
    it.add(made)
    assert it.is_urgent


def test_look_ups_that_fail_are_reported_once() -> None:
    class Broken(NoLog):
        def get(self, message_id: str) -> None:
            raise FULL

    archive = ArchiveOverlay(Broken())
    it = UnwrittenSteps(archive, Backoff(lambda: 1.0, first_ms=1_000))
    assert it.reading_failed() is None
    for _ in range(2):
        assert archive.get("a") is None
    assert it.reading_failed() == StateDegraded(str(FULL), 0, retryable=FULL.retryable)
    assert it.reading_failed() is None


def test_a_writer_that_failed_rests_until_it_is_time() -> None:
    it = steps()
    it.add(step("a"))
    assert it.begin(0, at_once=False) is not None
    it.failed(FULL, 0)
    it.finish()
    assert it.retry_at_ms is not None
    assert it.begin(it.retry_at_ms - 1, at_once=False) is None
    again = it.begin(it.retry_at_ms, at_once=False)
    assert again is not None and {key for _, key in again.rows} == {"a"}


def logged(*names: str) -> Step:
    made = Changes()
    for name in names:
        made.entries[name] = (name, "alice", 1, name.encode(), None)
    return Step(made, [], [])


def test_what_waits_to_be_written_is_found_until_the_store_has_it() -> None:
    archive = ArchiveOverlay(NoLog())
    it = UnwrittenSteps(archive, Backoff(lambda: 1.0, first_ms=1_000))
    it.add(logged("a"))
    assert (found := archive.get("a")) is not None and found.content == b"a"
    it.begin(0, at_once=False)
    it.failed(FULL, 0)
    assert archive.get("a") is not None, "it is only here"
    it.finish()
    it.begin(1_000, at_once=False)
    it.written(1_000)
    assert archive.get("a") is None, "from now on the store finds it"


def test_of_too_many_entries_at_risk_the_oldest_are_given_up_and_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("reliable_channel.engine.steps.ENTRIES_AT_RISK", 2)
    archive = ArchiveOverlay(NoLog())
    it = UnwrittenSteps(archive, Backoff(lambda: 1.0, first_ms=1_000))
    it.add(logged("a", "b", "c"))
    it.add(logged("d"))
    it.begin(0, at_once=False)
    degraded = it.failed(FULL, 0)
    assert degraded == StateDegraded(str(FULL), 2, retryable=True)
    it.finish()
    assert [archive.get(name) is None for name in "abcd"] == [True, True, False, False]
    again = it.begin(1_000, at_once=False)
    assert again is not None and list(again.entries) == ["c", "d"]
    assert it.written(1_500) == StateRecovered(1_500, 2)


def test_a_write_that_succeeds_makes_the_next_failure_a_first_one() -> None:
    it, waits_ms = steps(), []
    for outcome in ("fails", "fails", "succeeds", "fails"):
        it.add(step("a"))
        now_ms = it.retry_at_ms or 0
        it.begin(now_ms, at_once=False)
        if outcome == "succeeds":
            it.written(now_ms)
        else:
            it.failed(FULL, now_ms)
            assert it.retry_at_ms is not None
            waits_ms.append(it.retry_at_ms - now_ms)
        it.finish()
    first, second, third = waits_ms
    assert second > first == third


def test_so_many_steps_may_wait_for_the_disk_before_receiving_waits() -> None:
    it = steps()
    for number in range(STEPS_WAITING):
        it.add(step(str(number)))
    full = [it.is_full]
    it.add(step("one more"))
    full.append(it.is_full)
    it.begin(0, at_once=False)
    it.written(0)
    due, _ = it.finish()
    assert len(due) == STEPS_WAITING + 1
    assert [*full, it.is_full] == [False, True, False]
