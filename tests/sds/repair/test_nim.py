"""Golden values of nim-sds are in `tests/vectors`."""

from hypothesis import given, settings
from hypothesis import strategies as st

from reliable_channel.sds import NIM, HistoryEntry, RepairOptions
from reliable_channel.sds.events import RepairSent
from reliable_channel.sds.repair.buffers import t_req
from reliable_channel.sds.repair.nim import nim_in_response_group, nim_t_req, nim_t_resp

from ..world import NOW_MS, events, forge, participant

NAMES = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
OPTIONS = NIM.options.repair


@settings(derandomize=True)
@given(NAMES, NAMES, NAMES)
def test_times_lie_within_their_spans(participant_id: str, sender: str, message_id: str) -> None:
    request_ms = nim_t_req(participant_id, message_id, NOW_MS, OPTIONS)
    assert NOW_MS + 30_000 <= request_ms < NOW_MS + 300_000
    response_ms = nim_t_resp(participant_id, sender, message_id, NOW_MS, OPTIONS)
    assert NOW_MS <= response_ms < NOW_MS + 300_000


@settings(derandomize=True)
@given(NAMES, NAMES)
def test_the_sender_answers_at_once_and_is_in_its_own_group(sender: str, message_id: str) -> None:
    assert nim_t_resp(sender, sender, message_id, NOW_MS, OPTIONS) == NOW_MS
    assert nim_in_response_group(sender, sender, message_id, 5) is bool(sender)


def test_equal_bounds_ask_at_the_bound() -> None:
    assert nim_t_req("a", "m", 0, RepairOptions(t_min_ms=9, t_max_ms=9)) == 9


def test_groups_share_the_answering() -> None:
    answering = sum(nim_in_response_group(f"p{i}", "sender", "m", 4) for i in range(400))
    assert 60 <= answering <= 140
    assert nim_in_response_group("anybody", "sender", "m", 1)
    assert not nim_in_response_group("anybody", "", "m", 1)


def test_a_participant_keeps_the_times_of_its_dialect() -> None:
    nim, spec = participant("me", profile=NIM), participant("me")
    for core in (nim, spec):
        core.receive(forge("m", after=["missing"]), NOW_MS)
    repair = nim.options.repair
    assert nim.repair_requests.planned() == {"missing": nim_t_req("me", "missing", NOW_MS, repair)}
    assert spec.repair_requests.planned() == {"missing": t_req("me", "missing", NOW_MS, repair)}


def test_a_nim_participant_answers_in_nims_time() -> None:
    alice = participant("alice", profile=NIM)
    alice.receive(forge("m", sender="bob", profile=NIM), NOW_MS)
    request = HistoryEntry("m", None, "bob")
    alice.receive(forge("n", sender="carol", requests=[request], profile=NIM), NOW_MS)
    due_ms = nim_t_resp("alice", "bob", "m", NOW_MS, alice.options.repair)
    assert alice.repair_responses.planned() == {"m": due_ms}
    alice.on_deadline(due_ms)
    assert [event.message_id for event in events(alice, RepairSent)] == ["m"]
