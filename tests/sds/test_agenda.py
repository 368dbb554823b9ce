from collections import Counter
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from reliable_channel.sds.agenda import Agenda, OwnedTimetable, Slot


def test_the_next_deadline_is_the_first_of_all_slots() -> None:
    agenda, planned, random = Agenda(), dict[Slot, int](), Random(1)
    assert agenda.next_ms is None
    for _ in range(1_000):
        slot = random.choice(list(Slot))
        at_ms = random.choice((None, random.randrange(100)))
        agenda.plan(slot, at_ms)
        planned.pop(slot, None)
        if at_ms is not None:
            planned[slot] = at_ms
        assert agenda.next_ms == min(planned.values(), default=None)
        now_ms = random.randrange(100)
        for each in Slot:
            assert agenda.is_planned(each) is (each in planned)
            assert agenda.is_due(each, now_ms) is (planned.get(each, now_ms + 1) <= now_ms)


def made(*entries: tuple[str, int, str]) -> OwnedTimetable:
    timetable = OwnedTimetable()
    for message_id, due_ms, owner in entries:
        timetable.add(message_id, due_ms, owner)
    return timetable


def test_the_entry_due_last_of_the_heaviest_owner_goes_first() -> None:
    timetable = made(("m1", 1, "mallory"), ("m2", 2, "mallory"), ("a", 9, "alice"))
    assert timetable.first_to_evict() == "m2"
    timetable.remove("m2")
    assert timetable.first_to_evict() == "a"


def test_of_equally_heavy_owners_the_entry_due_last_goes_whichever_owner_came_first() -> None:
    assert made(("a", 5, "alice"), ("b", 9, "bob"), ("c", 7, "carol")).first_to_evict() == "b"


def test_of_equal_times_the_newest_goes() -> None:
    assert made(("a", 5, "alice"), ("b", 5, "bob")).first_to_evict() == "b"


def test_an_entry_goes_over_to_an_owner_with_fewer() -> None:
    timetable = made(("h", 1, "mallory"), ("m", 2, "mallory"))
    assert not timetable.claim("h", "mallory")
    assert timetable.claim("h", "alice")
    assert (timetable.owner_of("h"), timetable.weight_of("mallory")) == ("alice", 1)
    assert not timetable.claim("h", "mallory")


def test_what_is_not_there_is_removed_without_a_trace() -> None:
    timetable = made(("a", 5, "alice"))
    timetable.remove("b")
    assert (len(timetable), timetable.weight_of("bob")) == (1, 0)


@settings(derandomize=True, max_examples=80)
@given(
    st.lists(
        st.tuples(st.sampled_from("abcd"), st.integers(0, 15), st.integers(0, 9), st.booleans()),
        max_size=120,
    )
)
def test_it_agrees_with_counting_anew(steps: list[tuple[str, int, int, bool]]) -> None:
    timetable, model, added = OwnedTimetable(), dict[str, tuple[int, int, str]](), 0
    for owner, number, due_ms, claims in steps:
        message_id = f"k{number}"
        if message_id not in model:
            added += 1
            has_no_place = bool(model) and timetable.has_no_place(due_ms, owner)
            timetable.add(message_id, due_ms, owner)
            model[message_id] = due_ms, added, owner
            assert has_no_place is (len(model) > 1 and timetable.first_to_evict() == message_id)
        elif claims:
            weights = Counter(entry[2] for entry in model.values())
            is_lighter = weights[owner] < weights[model[message_id][2]]
            assert timetable.claim(message_id, owner) is is_lighter
            if is_lighter:
                model[message_id] = (*model[message_id][:2], owner)
        else:
            timetable.remove(message_id)
            del model[message_id]
        if model:
            weights = Counter(entry[2] for entry in model.values())
            heaviest = max(weights.values())
            right = max((i for i in model if weights[model[i][2]] == heaviest), key=model.get)  # type: ignore[arg-type]
            assert timetable.first_to_evict() == right
