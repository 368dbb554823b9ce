from random import Random

from reliable_channel.sds.agenda import Agenda, Slot


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
