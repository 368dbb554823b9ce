"""Every rule of §4, the examples of §5, and what the specification does not say."""

import math
from collections.abc import Callable
from dataclasses import replace

import pytest

from reliable_channel_svs import (
    NDND,
    Behaviour,
    EventsDropped,
    IgnoredReason,
    InvalidName,
    Limit,
    LimitReached,
    Limits,
    Name,
    OwnNameClaimed,
    Publication,
    PublicationsKnown,
    Rebootstrapped,
    SequenceExhausted,
    State,
    StateVector,
    SvsOptions,
    SvsProtocol,
    VectorIgnored,
)
from reliable_channel_svs.protocol import suppression_timeout_ms

A, B, C = map(Name.parse, ("/a", "/b", "/c"))
BOOT = 1_636_266_330
NOW = 1_736_266_473_000
"""All in the examples is earlier, so nothing is ahead of this."""
IN_SYNC = {A: 10, B: 15, C: 25}


def vector(seqs: dict[Name, int] | None = None, boot: int = BOOT) -> StateVector:
    return StateVector({name: {boot: seq} for name, seq in (seqs or {}).items()})


def node(
    name: Name = A,
    seqs: dict[Name, int] | None = None,
    *,
    random: Callable[[], float] = lambda: 0.5,
    options: SvsOptions | None = None,
) -> SvsProtocol:
    known = vector(IN_SYNC if seqs is None else seqs)
    return SvsProtocol(
        name, now_ms=NOW, random=random, bootstrap_time=BOOT, vector=known, options=options
    )


def behave(**changes: object) -> SvsOptions:
    return SvsOptions(behaviour=replace(Behaviour(), **changes))  # type: ignore[arg-type]


def sent(core: SvsProtocol) -> list[StateVector]:
    return [StateVector.decode(data) for data in core.outgoing()]


def hear(core: SvsProtocol, seqs: dict[Name, int], now_ms: int = NOW, boot: int = BOOT) -> None:
    core.receive(vector(seqs, boot).encode(), now_ms)


# -- §4.1 and §4.2 ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("draw", "timeout_ms"), [(0.0, 27_000), (0.5, 30_000), (0.999, 32_994)])
def test_the_periodic_timeout_is_drawn_within_ten_per_cent(draw: float, timeout_ms: int) -> None:
    assert node(random=lambda: draw).next_deadline_ms() == NOW + timeout_ms


@pytest.mark.parametrize("draw", [0.0, 0.25, 0.5, 0.9, 0.999])
def test_the_suppression_timeout_decays_exponentially(draw: float) -> None:
    c, f = 200, 10.0
    v = draw * c
    assert suppression_timeout_ms(c, draw) == pytest.approx(c * (1 - math.exp((v - c) / (c / f))))
    assert 0 < suppression_timeout_ms(c, draw) < c


def test_a_publication_is_told_at_once_and_resets_the_timer() -> None:
    core = node()
    assert core.publish(NOW + 20_000) == Publication(BOOT, 11)
    assert sent(core) == [vector({**IN_SYNC, A: 11})]
    assert core.next_deadline_ms() == NOW + 50_000
    assert sent(core) == []


def test_publications_of_one_moment_are_told_once() -> None:
    core = node()
    for _ in range(100):
        core.publish(NOW)
    assert sent(core) == [vector({**IN_SYNC, A: 110})]


def test_a_node_starts_empty_with_its_bootstrap_time() -> None:
    core = SvsProtocol(A, now_ms=NOW, random=lambda: 0.5)
    assert len(core.vector) == 0 and sent(core) == []
    assert core.publish(NOW) == Publication(NOW // 1000, 1)


# -- §4.5, Steady State ----------------------------------------------------------------------------


def test_an_up_to_date_vector_resets_the_timer_and_is_not_answered() -> None:
    core = node()
    hear(core, IN_SYNC, NOW + 10_000)
    assert core.state is State.STEADY and core.next_deadline_ms() == NOW + 40_000
    assert sent(core) == [] and list(core.events()) == []


def test_a_newer_vector_is_taken_over_and_told() -> None:
    core = node()
    hear(core, {**IN_SYNC, B: 18}, NOW + 10_000)
    assert list(core.events()) == [PublicationsKnown(B, BOOT, 16, 18)]
    assert core.vector == vector({**IN_SYNC, B: 18})
    assert core.state is State.STEADY and core.next_deadline_ms() == NOW + 40_000


def test_an_outdated_vector_leads_to_suppression() -> None:
    core = node()
    hear(core, {**IN_SYNC, B: 14})
    assert core.state is State.SUPPRESSION
    assert core.next_deadline_ms() == NOW + round(suppression_timeout_ms(200, 0.5))
    assert sent(core) == []


@pytest.mark.parametrize(("later_ms", "state"), [(200, State.STEADY), (201, State.SUPPRESSION)])
def test_what_is_outdated_since_a_moment_is_dropped(later_ms: int, state: State) -> None:
    core = node()
    hear(core, {**IN_SYNC, B: 16})
    due_ms = core.next_deadline_ms()
    hear(core, IN_SYNC, NOW + later_ms)
    assert core.state is state
    assert (core.next_deadline_ms() == due_ms) is (state is State.STEADY)


def test_every_outdated_node_must_have_been_updated_just_now() -> None:
    core = node()
    hear(core, {**IN_SYNC, B: 16})
    hear(core, {**IN_SYNC, C: 24}, NOW + 10)
    assert core.state is State.SUPPRESSION


def test_own_publications_are_no_updates() -> None:
    core = node()
    core.publish(NOW)
    hear(core, IN_SYNC, NOW + 10)
    assert core.state is State.SUPPRESSION


def test_expiry_sends_and_starts_over() -> None:
    core = node()
    core.on_deadline(NOW + 29_999)
    assert sent(core) == []
    core.on_deadline(NOW + 30_000)
    assert sent(core) == [vector(IN_SYNC)]
    assert core.next_deadline_ms() == NOW + 60_000


# -- §4.5, Suppression State -----------------------------------------------------------------------


def suppressed(options: SvsOptions | None = None) -> SvsProtocol:
    core = node(options=options)
    hear(core, {**IN_SYNC, C: 20})
    assert core.state is State.SUPPRESSION
    return core


def test_nobody_else_answered() -> None:
    core = suppressed()
    core.on_deadline(core.next_deadline_ms())
    assert sent(core) == [vector(IN_SYNC)]
    assert core.state is State.STEADY


def test_somebody_else_answered() -> None:
    core = suppressed()
    due_ms = core.next_deadline_ms()
    hear(core, IN_SYNC, NOW + 50)
    assert (core.state.name, core.next_deadline_ms()) == ("SUPPRESSION", due_ms)
    core.on_deadline(due_ms)
    assert (core.state.name, sent(core)) == ("STEADY", [])


def test_several_answers_add_up() -> None:
    core = suppressed()
    hear(core, {A: 10, C: 25}, NOW + 50)
    hear(core, {B: 15}, NOW + 60)
    core.on_deadline(core.next_deadline_ms())
    assert sent(core) == []


def test_news_in_suppression_are_taken_over() -> None:
    core = suppressed()
    hear(core, {A: 10, B: 17, C: 25}, NOW + 50)
    assert list(core.events()) == [PublicationsKnown(B, BOOT, 16, 17)]
    core.on_deadline(core.next_deadline_ms())
    assert sent(core) == []


def test_an_own_publication_ends_suppression() -> None:
    core = suppressed()
    core.publish(NOW + 10)
    assert sent(core) == [vector({**IN_SYNC, A: 11})] and core.state is State.STEADY


# -- §5, the examples ------------------------------------------------------------------------------


def group() -> dict[Name, SvsProtocol]:
    draws = {A: 0.95, B: 0.5, C: 0.5}  # A's suppression timer ends first
    return {name: node(name, random=lambda name=name: draws[name]) for name in draws}  # type: ignore[misc]


def test_example_without_packet_loss() -> None:
    members = group()
    members[A].publish(NOW)
    [data] = members[A].outgoing()
    members[B].receive(data, NOW)
    members[C].receive(data, NOW)
    assert {str(m.vector) for m in members.values()} == {str(vector({A: 11, B: 15, C: 25}))}
    assert all(m.state is State.STEADY for m in members.values())


def test_example_with_packet_loss() -> None:
    members = group()
    members[A].publish(NOW)
    [data] = members[A].outgoing()
    members[B].receive(data, NOW)
    later_ms = members[C].next_deadline_ms()
    members[C].on_deadline(later_ms)
    [heartbeat] = members[C].outgoing()
    assert StateVector.decode(heartbeat) == vector(IN_SYNC)
    for name in (A, B):
        members[name].receive(heartbeat, later_ms)
        assert members[name].state is State.SUPPRESSION
    first_ms = members[A].next_deadline_ms()
    assert first_ms < members[B].next_deadline_ms()
    members[A].on_deadline(first_ms)
    [answer] = members[A].outgoing()
    members[B].receive(answer, first_ms)
    members[C].receive(answer, first_ms)
    members[B].on_deadline(members[B].next_deadline_ms())
    assert sent(members[B]) == []
    assert members[B].next_deadline_ms() > later_ms + 20_000
    assert members[C].vector == members[A].vector
    assert list(members[C].events()) == [PublicationsKnown(A, BOOT, 11, 11)]


def test_example_of_a_rebootstrap() -> None:
    members = group()
    members[B].publish(NOW)
    [data] = members[B].outgoing()
    members[C].receive(data, NOW)
    again = SvsProtocol(A, now_ms=NOW, random=lambda: 0.5)
    again.publish(NOW + 5_000)
    [alone] = again.outgoing()
    assert StateVector.decode(alone) == vector({A: 1}, NOW // 1000)
    for name in (B, C):
        members[name].receive(alone, NOW + 5_000)
        assert members[name].state is State.SUPPRESSION
    members[B].on_deadline(members[B].next_deadline_ms())
    [answer] = members[B].outgoing()
    again.receive(answer, NOW + 5_200)
    members[C].receive(answer, NOW + 5_200)
    members[C].on_deadline(members[C].next_deadline_ms())
    assert sent(members[C]) == []
    expected = StateVector({A: {BOOT: 10, NOW // 1000: 1}, B: {BOOT: 16}, C: {BOOT: 25}})
    assert again.vector == members[B].vector == members[C].vector == expected
    assert all(not isinstance(event, OwnNameClaimed) for event in again.events())


# -- §3, bootstrap times ---------------------------------------------------------------------------


@pytest.mark.parametrize(("ahead_s", "is_taken"), [(86_400, True), (86_401, False)])
def test_a_bootstrap_time_too_far_ahead_spoils_the_whole_vector(
    ahead_s: int, is_taken: bool
) -> None:
    core = node()
    incoming = vector({**IN_SYNC, B: 99})
    incoming.raise_to(C, NOW // 1000 + ahead_s, 1)
    core.receive(incoming.encode(), NOW)
    events = list(core.events())
    assert (PublicationsKnown(B, BOOT, 16, 99) in events) is is_taken
    if not is_taken:
        [event] = events
        assert isinstance(event, VectorIgnored)
        assert event.reason is IgnoredReason.BOOTSTRAP_TIME_AHEAD
        assert core.vector == vector(IN_SYNC)


def test_the_newest_bootstrap_time_is_told_first() -> None:
    core = node(seqs={})
    core.receive(StateVector({B: {BOOT: 5, BOOT + 9: 2}}).encode(), NOW)
    assert list(core.events()) == [
        PublicationsKnown(B, BOOT + 9, 1, 2),
        PublicationsKnown(B, BOOT, 1, 5),
    ]


# -- where implementations differ ------------------------------------------------------------------


def test_the_trigger_counts_in_the_merge_unless_as_in_ndnd() -> None:
    for merge_the_trigger, answers in ((True, 0), (False, 1)):
        core = node(options=behave(merge_the_trigger=merge_the_trigger))
        hear(core, {A: 10, B: 15})
        hear(core, {C: 25}, NOW + 10)
        core.on_deadline(core.next_deadline_ms())
        assert len(sent(core)) == answers


def test_as_in_ndnd_an_up_to_date_vector_ends_suppression() -> None:
    core = suppressed(SvsOptions(behaviour=NDND))
    hear(core, IN_SYNC, NOW + 50)
    assert core.state is State.STEADY


def test_as_in_ndnd_a_missing_name_is_never_recent() -> None:
    for options, state in ((None, State.STEADY), (SvsOptions(behaviour=NDND), State.SUPPRESSION)):
        core = node(seqs={A: 10}, options=options)
        hear(core, {A: 10, B: 1})
        hear(core, {A: 10}, NOW + 10)
        assert core.state is state


# -- who claims what is ours -----------------------------------------------------------------------


def test_a_claim_to_our_future_moves_us_to_a_new_bootstrap_time() -> None:
    core = node()
    hear(core, {**IN_SYNC, A: 2**64 - 1})
    hear(core, {**IN_SYNC, A: 2**64 - 1})
    events = list(core.events())
    assert OwnNameClaimed(BOOT, 2**64 - 1, 10) in events
    assert core.bootstrap_time == BOOT
    assert core.publish(NOW) == Publication(NOW // 1000, 1)
    assert list(core.events()) == [Rebootstrapped(NOW // 1000)]


def test_claims_alone_use_up_no_bootstrap_time() -> None:
    core = node()
    for seq in range(11, 500):
        hear(core, {**IN_SYNC, A: seq})
    assert core.bootstrap_time == BOOT
    core.publish(NOW)
    assert core.bootstrap_time == NOW // 1000


def test_claims_after_each_publication_are_bounded() -> None:
    core = node(options=SvsOptions(limits=Limits(bootstrap_times=8)))
    for second in range(40):
        publication = core.publish(NOW + 1000 * second)
        hear(core, {A: publication.seq + 5}, NOW + 1000 * second, publication.bootstrap_time)
    assert len(core.vector.numbers(A)) <= 5


def test_as_in_ndnd_a_claim_is_adopted_until_numbers_end() -> None:
    core = node(options=SvsOptions(behaviour=NDND))
    hear(core, {**IN_SYNC, A: 98})
    assert core.publish(NOW) == Publication(BOOT, 99)
    hear(core, {**IN_SYNC, A: 2**64 - 2})
    assert core.publish(NOW).seq == 2**64 - 1
    with pytest.raises(SequenceExhausted, match="rebootstrap"):
        core.publish(NOW)
    core.rebootstrap(NOW)
    assert core.publish(NOW) == Publication(NOW // 1000, 1)


def test_a_claim_to_a_later_bootstrap_time_of_ours_is_told() -> None:
    core = node()
    hear(core, {A: 3}, boot=NOW // 1000)
    assert OwnNameClaimed(NOW // 1000, 3, 10) in list(core.events())
    assert core.publish(NOW) == Publication(BOOT, 11)


def test_a_new_bootstrap_time_was_never_ours() -> None:
    core = node()
    hear(core, {A: 3}, boot=NOW // 1000)
    core.rebootstrap(NOW)
    assert core.bootstrap_time == NOW // 1000 + 1


def test_an_earlier_self_is_no_claim() -> None:
    core = node()
    hear(core, {A: 7}, boot=BOOT - 100)
    assert list(core.events()) == [PublicationsKnown(A, BOOT - 100, 1, 7)]


# -- bounds, bad input, restarts -------------------------------------------------------------------


@pytest.mark.parametrize(
    "data", [b"", b"\xc9", b"\xc9\x05\xca", b"\xc8\x00", b"hello", b"\x00" * 9]
)
def test_what_is_no_vector_is_told_and_changes_nothing(data: bytes) -> None:
    core = node()
    due_ms = core.next_deadline_ms()
    core.receive(data, NOW + 5)
    [event] = core.events()
    assert isinstance(event, VectorIgnored) and event.reason is IgnoredReason.MALFORMED
    assert core.next_deadline_ms() == due_ms and core.vector == vector(IN_SYNC)


def test_names_and_bootstrap_times_are_bounded() -> None:
    limits = Limits(names=4, bootstrap_times=2, name_bytes=64)
    core = node(options=SvsOptions(limits=limits))
    long = Name.parse("/" + "x" * 80)
    hear(core, {long: 1})
    hear(core, {Name.parse("/d"): 1, Name.parse("/e"): 1})
    for boot in (BOOT + 1, BOOT + 2):
        hear(core, {B: 1}, boot=boot)
    limits_told = [e for e in core.events() if isinstance(e, LimitReached)]
    assert limits_told == [
        LimitReached(Limit.NAME_BYTES, long),
        LimitReached(Limit.NAMES, Name.parse("/e")),
        LimitReached(Limit.BOOTSTRAP_TIMES, B),
    ]
    assert len(core.vector) == 4 and len(core.vector.numbers(B)) == 2


def test_events_that_nobody_takes_are_bounded() -> None:
    core = node(options=SvsOptions(limits=Limits(events=3)))
    for seq in range(16, 21):
        hear(core, {**IN_SYNC, B: seq})
    assert list(core.events()) == [
        EventsDropped(2),
        *(PublicationsKnown(B, BOOT, seq, seq) for seq in (18, 19, 20)),
    ]
    assert list(core.events()) == []


@pytest.mark.parametrize("name", [Name(), Name.parse("/" + "x" * 2_000)])
def test_a_name_that_cannot_be_a_nodes_is_refused(name: Name) -> None:
    with pytest.raises(InvalidName, match="bytes"):
        SvsProtocol(name, now_ms=NOW, random=lambda: 0.5)


def test_who_starts_again_with_what_was_recorded_goes_on_as_before() -> None:
    core = SvsProtocol(A, now_ms=NOW, random=lambda: 0.5)
    known = StateVector()
    for step in range(5):
        core.publish(NOW + step)
        hear(core, {B: step + 1})
        changes = core.changes()
        for (name, boot), seq in changes.numbers.items():
            known.raise_to(name, boot, seq)
    assert core.changes().numbers == {}
    again = SvsProtocol(
        A,
        now_ms=NOW + 90_000,
        random=lambda: 0.5,
        bootstrap_time=changes.bootstrap_time,
        vector=known,
    )
    assert again.vector == core.vector
    assert again.publish(NOW + 90_000) == Publication(NOW // 1000, 6)


@pytest.mark.parametrize(
    "wrong",
    [
        {"periodic_timeout_ms": 0},
        {"suppression_period_ms": 0},
        {"periodic_jitter": 1.0},
        {"vector_bytes": 1_000},
        {"decay_factor": 0},
        {"max_bootstrap_ahead_s": -1},
    ],
)
def test_options_that_make_no_sense_are_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(ValueError, match=f"`{next(iter(wrong))}` must be"):
        SvsOptions(**wrong)  # type: ignore[arg-type]


def test_limits_and_behaviour_that_make_no_sense_are_refused() -> None:
    with pytest.raises(ValueError, match="`events` must be at least 1"):
        Limits(events=0)
    with pytest.raises(ValueError, match="`own_future` must be 'rebootstrap' or 'adopt'"):
        Behaviour(own_future="ignore")  # type: ignore[arg-type]
