"""The table of message states: what it says, that the core keeps to it, and that a core that does
not is found."""

from reliable_channel.sds import CoreLimits, SdsOptions, SdsProtocol
from reliable_channel.sds.events import MessageLost, MessageReceived
from reliable_channel.sds.message import HistoryEntry, Message
from reliable_channel.sds.profile import SPEC
from reliable_channel.sds.references.causal_history import CHECKED
from reliable_channel.sds.states import (
    TRANSITIONS,
    State,
    Trigger,
)
from tests import inside
from tests.sds.world import taken

NOW_MS = 1_700_000_000_000
HOUR_MS = 3_600_000


def participant(**limits: int) -> SdsProtocol:
    return SdsProtocol(
        "general",
        "bob",
        now_ms=NOW_MS,
        random=lambda: 0.5,
        options=SdsOptions(limits=CoreLimits(**limits)),
    )


def message(message_id: str, *refers_to: str, at_ms: int = 0, sender: str = "alice") -> bytes:
    history = tuple(HistoryEntry(i, None, sender) for i in refers_to)
    return SPEC.codec.encode(
        Message(sender, message_id, "general", NOW_MS + at_ms, history, content=b"hello")
    )


def state(core: SdsProtocol, message_id: str) -> State:
    return inside.state(core).states.of(message_id)


# -- the table -------------------------------------------------------------------------------------


def test_every_state_can_be_reached_and_left() -> None:
    reached, todo = {State.UNKNOWN}, [State.UNKNOWN]
    while todo:
        here = todo.pop()
        for (before, _), after in TRANSITIONS.items():
            if before is here and after not in reached:
                reached.add(after)
                todo.append(after)
    assert reached == set(State)
    for one in State:
        assert any(before is one is not after for (before, _), after in TRANSITIONS.items()), one


def test_every_event_is_in_the_table_and_changes_something() -> None:
    changes = {e for (before, e), after in TRANSITIONS.items() if after is not before}
    assert changes | {Trigger.CYCLE} == set(Trigger)


def test_what_waits_and_what_is_searched_follows_from_the_state() -> None:
    assert {s for s in State if s.is_awaited} == {State.QUEUED, State.MISSING, State.PARKED}
    assert {s for s in State if s.is_searched} == {State.MISSING, State.PRESUMED}
    assert {s for s in State if s.is_here} == {State.PARKED, State.DELIVERED}
    for (before, event), after in TRANSITIONS.items():
        if before is State.DELIVERED and after is not before:
            assert event in (Trigger.FORGED, Trigger.LOG_LIMIT)


# -- the core keeps to it --------------------------------------------------------------------------


def test_a_missing_message_is_found_or_lost() -> None:
    core = participant()
    core.receive(message("m2", "m1", at_ms=2), NOW_MS)
    assert (state(core, "m1"), state(core, "m2")) == (State.MISSING, State.PARKED)
    core.receive(message("m1", at_ms=1), NOW_MS)
    assert (state(core, "m1"), state(core, "m2")) == (State.DELIVERED, State.DELIVERED)
    core.receive(message("m4", "m3", at_ms=4), NOW_MS)
    core.on_deadline(NOW_MS + HOUR_MS)
    assert (state(core, "m3"), state(core, "m4")) == (State.LOST, State.DELIVERED)
    core.receive(message("m3", at_ms=3), NOW_MS + HOUR_MS)
    assert state(core, "m3") is State.DELIVERED


def test_a_newcomer_presumes_and_then_leaves_alone() -> None:
    core = participant()
    core.join(NOW_MS, presume_ms=60_000)
    core.receive(message("m2", "m1", at_ms=2), NOW_MS)
    assert (state(core, "m1"), state(core, "m2")) == (State.PRESUMED, State.DELIVERED)
    core.on_deadline(NOW_MS + HOUR_MS)
    assert state(core, "m1") is State.HISTORIC
    core.receive(message("m3", "m1", at_ms=3), NOW_MS + HOUR_MS)
    assert (state(core, "m1"), state(core, "m3")) == (State.HISTORIC, State.DELIVERED)


def test_the_log_evicts_and_remembers() -> None:
    core = participant(log_entries=1)
    for number in range(3):
        core.receive(message(f"m{number}", at_ms=number), NOW_MS)
    assert [state(core, f"m{n}") for n in range(3)] == [
        State.EVICTED,
        State.EVICTED,
        State.DELIVERED,
    ]
    core.receive(message("m3", "m1", at_ms=3), NOW_MS)
    assert state(core, "m3") is State.DELIVERED


def test_a_message_of_a_cycle_that_is_delivered_is_not_lost() -> None:
    core = participant()
    core.receive(message("a", "b", at_ms=1), NOW_MS)
    core.receive(message("b", "a", at_ms=2), NOW_MS)
    core.on_deadline(NOW_MS + HOUR_MS)
    assert (state(core, "a"), state(core, "b")) == (State.DELIVERED, State.DELIVERED)
    assert core.progress().lost == 0
    events = taken(core.events)
    assert [e.message_id for e in events if isinstance(e, MessageLost)] == ["b"]


def queued_by_an_evicted_message() -> tuple[SdsProtocol, str]:
    """`bob` parks a message whose queued reference another parked message waits for as well, and
    then evicts the first one; returns the id of the second."""
    core = participant(incoming_messages=3)
    of_first = ["shared", *(f"x{n}" for n in range(CHECKED))]
    of_second = ["shared", *(f"y{n}" for n in range(CHECKED))]
    core.receive(message("first", *of_first, at_ms=1, sender="mallory"), NOW_MS)
    assert state(core, "shared") is State.QUEUED
    core.receive(message("second", *of_second, at_ms=2), NOW_MS)
    for number in range(3, 5):
        core.receive(message(f"z{number}", "x0", at_ms=number, sender="mallory"), NOW_MS)
    assert "first" not in core.incoming_buffer.parked and "second" in core.incoming_buffer.parked
    return core, "second"


def test_what_another_message_waits_for_outlives_the_message_that_named_it_first() -> None:
    core, waiting = queued_by_an_evicted_message()
    while (due_ms := core.agenda.next_ms) is not None and due_ms < NOW_MS + 4 * HOUR_MS:
        core.on_deadline(due_ms)
    delivered = [e.message_id for e in taken(core.events) if isinstance(e, MessageReceived)]
    assert waiting in delivered, "it would wait for ever"
