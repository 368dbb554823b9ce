"""Repair policies: those that come along, those of plugins, and those that break their word."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any
from unittest.mock import patch

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reliable_channel import ChannelOptions, MessageLost, MessageReceived
from reliable_channel._contracts.repair_policies import (
    EWMA_WEIGHT,
    REPAIR_POLICIES,
    Look,
    Missing,
    RecentOutcomes,
    RepairPolicy,
    RepairStep,
    StoreState,
)
from reliable_channel._plugins.hooks import Register, hookimpl
from reliable_channel.diagnostics import MessageMissing, RepairRequested
from reliable_channel.errors import PluginError
from reliable_channel.options import RepairOptions
from reliable_channel.sds.message import HistoryEntry
from reliable_channel.sds.repair.cache import REPAIR_CACHE
from reliable_channel.state import Identity, MemoryStateStore
from reliable_channel.transport import MemoryNetwork
from reliable_channel_lab.sim import Simulation, draw_scenario
from reliable_channel_lab.sim.measures import RepairMeasures
from reliable_channel_lab.sim.scenario import (
    Conditions,
    Parameters,
    Scenario,
    StoreConditions,
    Write,
)
from reliable_channel_lab.sim.sharing import sds_maker
from reliable_channel_lab.sim.simulation import core_options
from reliable_channel_lab.sim.store import Store
from reliable_channel_lab.sim.trial import metered
from tests.channel.world import listening, now_ns
from tests.runtime.test_store_client import NO_HINT, Author, Library, ids, reader
from tests.slow import long, slow

ENTRY = HistoryEntry("m1", NO_HINT, "alice")
NEW = Missing(ENTRY, now_ms=60_000, since_ms=60_000, interval_ms=10_000, began_ms=4_321)
HOPELESS = RecentOutcomes(9, 0.0, 50.0, 100.0)


def after_looks(store_tries: int, **changes: Any) -> Missing:
    last_try_ms = 60_000 + 10_000 * store_tries
    return replace(
        NEW, store_tries=store_tries, last_try_ms=last_try_ms, now_ms=last_try_ms, **changes
    )


# -- those that come along -------------------------------------------------------------------------


def test_prompt_asks_store_soon_and_ever_less_often_and_others_later() -> None:
    prompt, new = REPAIR_POLICIES["prompt"], replace(NEW, interval_ms=300)
    assert prompt(new) == RepairStep(60_300, "hint-then-time", 62_500)
    waits = []
    for store_tries in range(1, 10):
        step = prompt(replace(new, store_tries=store_tries, last_try_ms=70_000))
        assert step.look_at_ms is not None
        waits.append(step.look_at_ms - 70_000)
    assert waits == [600, 1_200, 2_400, 4_800, 9_600, 10_000, 10_000, 10_000, 10_000]


def test_prompt_looks_at_once_for_what_a_message_from_store_refers_to_and_then_waits() -> None:
    prompt, new = REPAIR_POLICIES["prompt"], replace(NEW, interval_ms=300, is_past=True)
    assert prompt(new).look_at_ms == new.since_ms
    assert prompt(replace(new, store_tries=1, last_try_ms=70_000)).look_at_ms == 70_600
    away = replace(new, store=StoreState(failures=1, failed_ms=60_000))
    assert prompt(away).look_at_ms == 60_600


def test_prompt_asks_others_at_once_where_store_does_not_help_or_answer() -> None:
    prompt, new = REPAIR_POLICIES["prompt"], replace(NEW, interval_ms=300)
    for store in (
        StoreState(exists=False),
        StoreState(failures=2, failed_ms=60_000),
        StoreState(by_hint=HOPELESS, by_time=HOPELESS),
    ):
        assert prompt(replace(new, store=store)).ask_at_ms == new.since_ms
    away = prompt(replace(new, store=StoreState(failures=3, failed_ms=60_000)))
    assert away.look_at_ms == 62_400


@pytest.mark.parametrize(
    ("name", "asks_store", "asks_others"),
    [
        ("both", True, True),
        ("store-only", True, False),
        ("sds-r-only", False, True),
        ("none", False, False),
        ("adaptive", True, True),
    ],
)
def test_each_name_says_who_is_asked(name: str, asks_store: bool, asks_others: bool) -> None:
    step = REPAIR_POLICIES[name](NEW)
    assert step.look_at_ms == (61_000 if asks_store else None)
    assert step.ask_at_ms == (60_000 if asks_others else None)
    options = ChannelOptions(retrieval_strategy=name)
    assert (options.asks_store, options.asks_others) == (asks_store, asks_others)


@pytest.mark.parametrize("name", ["both", "store-only"])
def test_store_is_asked_at_the_frequency_and_by_time_less_and_less_often(name: str) -> None:
    steps = [REPAIR_POLICIES[name](after_looks(store_tries)) for store_tries in range(1, 20)]
    assert [step.look_at_ms for step in steps] == [70_000 + 10_000 * n for n in range(1, 20)]
    by_time = [n for n, step in enumerate(steps, 1) if step.look == "hint-then-time"]
    assert by_time == [1, 3, 7, 15]


def test_lately_forgets_slowly() -> None:
    lately = RecentOutcomes().after(0.0, 100, 1_000)
    assert lately == RecentOutcomes(1, 0.0, 100, 1_000)
    for _ in range(9):
        lately = lately.after(0.0, 100, 1_000)
    assert lately.after(1.0, 900, 9_000) == RecentOutcomes(11, EWMA_WEIGHT, 200, 2_000)


def test_adaptive_looks_for_several_messages_at_once() -> None:
    adaptive = REPAIR_POLICIES["adaptive"]
    store_tries = {
        adaptive(replace(NEW, since_ms=since, store_tries=1, last_try_ms=looked)).look_at_ms
        for since, looked in ((50_000, 69_400), (61_000, 72_000), (63_000, 79_300))
    }
    assert store_tries == {NEW.began_ms + 80_000}


def test_adaptive_leaves_out_what_did_not_help() -> None:
    adaptive = REPAIR_POLICIES["adaptive"]
    assert adaptive(NEW).look == "hint-then-time"
    assert adaptive(replace(NEW, store=StoreState(by_hint=HOPELESS))).look == "time"
    both_bad = StoreState(by_hint=HOPELESS, by_time=HOPELESS)
    assert adaptive(replace(NEW, store=both_bad)).look == "hint-then-time"
    store_tries = [adaptive(after_looks(n, store=both_bad)).look for n in (1, 3, 7, 15)]
    assert store_tries == ["hint", "hint-then-time", "hint", "hint-then-time"]
    usual, seldom = after_looks(1), after_looks(1, store=StoreState(again=HOPELESS))
    first_ms, second_ms = adaptive(usual).look_at_ms, adaptive(seldom).look_at_ms
    assert first_ms is not None and second_ms is not None
    assert 0 <= first_ms - 70_000 - 5_000 < 10_000
    assert 0 <= second_ms - 70_000 - 10_000 < 20_000


@pytest.mark.parametrize(("failures", "apart_ms"), [(1, 20_000), (3, 40_000), (50, 60_000)])
def test_adaptive_leaves_a_store_in_peace_that_does_not_answer(
    failures: int, apart_ms: int
) -> None:
    away = StoreState(failures=failures, failed_ms=61_000)
    looked_before = replace(NEW, since_ms=20_000, store_tries=2, last_try_ms=40_000)
    for missing in (NEW, looked_before):
        step = REPAIR_POLICIES["adaptive"](replace(missing, now_ms=61_000, store=away))
        assert step.ask_at_ms == missing.since_ms
        assert step.look_at_ms is not None
        assert apart_ms // 2 <= step.look_at_ms - 61_000 < apart_ms // 2 + apart_ms
        assert (step.look_at_ms - NEW.began_ms) % apart_ms == 0


@pytest.mark.parametrize(
    ("store", "requests", "time"),
    [
        (StoreConditions(loss=0.15), 0.9, 1.3),
        pytest.param(StoreConditions(loss=0.7), 0.65, 1.1, marks=pytest.mark.long),
    ],
)
def test_adaptive_needs_fewer_requests_and_not_much_more_time(
    store: StoreConditions, requests: float, time: float
) -> None:
    """`make bench ARGS=--repair` has the whole table."""

    def run(policy: str) -> RepairMeasures:
        parameters = Parameters(retrieval_strategy=policy)
        scenarios = [
            Scenario(
                seed,
                4,
                tuple(Write(5_000 + n * 10_000, n % 4) for n in range(60)),
                conditions=Conditions(loss=0.15),
                store=store,
                parameters=parameters,
            )
            for seed in range(1, 11)
        ]
        meter = metered(scenarios, sds_maker(core_options(parameters)))
        assert meter.measures().is_kept
        return meter.repair()

    both, adaptive = run("both"), run("adaptive")
    assert both.missing_mean_ms and adaptive.missing_mean_ms
    assert adaptive.store_requests < requests * both.store_requests
    assert adaptive.missing_mean_ms < time * both.missing_mean_ms


@pytest.mark.parametrize("seed", [1, 2, *slow(*range(3, 6)), *long(*range(6, 13))])
def test_groups_that_adapt_keep_every_promise(seed: int) -> None:
    scenario = draw_scenario(seed)
    parameters = replace(scenario.parameters, retrieval_strategy="adaptive")
    assert Simulation(replace(scenario, parameters=parameters)).run().violation is None


# -- any policy ------------------------------------------------------------------------------------

TIMES = st.one_of(st.none(), st.integers(-100_000, 100_000))
LOOKS = st.sampled_from(Look.__args__)  # type: ignore[attr-defined]


def drawn(table: list[tuple[int | None, Look, int | None]], missing: Missing) -> RepairStep:
    """A pure function of what it is shown."""
    look_in_ms, look, ask_in_ms = table[(missing.store_tries + missing.asked) % len(table)]
    return RepairStep(
        None if look_in_ms is None else missing.now_ms + look_in_ms,
        look,
        None if ask_in_ms is None else missing.since_ms + ask_in_ms,
    )


@settings(max_examples=8, deadline=None, derandomize=True)
@given(st.lists(st.tuples(TIMES, LOOKS, TIMES), min_size=1, max_size=4), st.sampled_from([2, 6, 9]))
def test_whatever_a_policy_says_no_promise_is_broken(
    table: list[tuple[int | None, Look, int | None]], seed: int
) -> None:
    """T_req is that of the guide, order is causal, and nobody waits for ever; that all logs end
    equal is more than who never asks can have."""
    scenario = draw_scenario(seed)
    parameters = replace(scenario.parameters, retrieval_strategy="drawn")
    scenario = replace(scenario, parameters=parameters, settle_within_ms=1_200_000)
    with (
        patch.dict(REPAIR_POLICIES, drawn=partial(drawn, table)),
        patch.object(Store, "answer", autospec=True, side_effect=Store.answer) as asked,
    ):
        simulation = Simulation(scenario)
        violation = simulation.run().violation
    assert violation is None or violation.invariant == "in the end all logs are equal"
    for participant in simulation.participants:
        assert participant.core is None or not participant.core.missing()
    rounds = simulation.ledger.now_ms() / 1_000
    assert asked.call_count <= 2 * rounds * scenario.participants


def test_a_policy_is_asked_once_a_message_and_once_a_look() -> None:
    asked = list[str]()

    def counting(missing: Missing) -> RepairStep:
        asked.append(missing.entry.message_id)
        return REPAIR_POLICIES["both"](missing)

    scenario = Scenario(
        3,
        3,
        tuple(Write(n * 2_000, 0) for n in range(100)),
        conditions=Conditions(loss=0.5),
        store=None,
        parameters=Parameters(retrieval_strategy="counting"),
    )
    with patch.dict(REPAIR_POLICIES, counting=counting):
        meter = metered([scenario], sds_maker(core_options(scenario.parameters)))
    assert meter.measures().is_kept
    assert meter.repair().missing > 30
    assert len(asked) <= 2 * meter.repair().missing


# -- of plugins and of the application -------------------------------------------------------------


class Named:
    def __init__(self, policy: Callable[..., Any]) -> None:
        self.policy = policy

    @hookimpl
    def register_repair_policies(self, register: Register) -> None:
        register("mine", self.policy)


def never(missing: Missing) -> RepairStep:
    return RepairStep()


def late(missing: Missing) -> RepairStep:
    return RepairStep(missing.since_ms + 50_000, "time")


def fail(missing: Missing) -> RepairStep:
    raise LookupError("lost my way")


def chosen(policy: RepairPolicy, *, by_name: bool) -> dict[str, Any]:
    if by_name:
        return {"retrieval_strategy": "mine", "plugins": [Named(policy)]}
    return {"retrieval_strategy": policy}


@pytest.mark.anyio
@pytest.mark.parametrize("by_name", [True, False])
async def test_a_policy_by_name_or_as_it_is_says_when_store_is_asked(
    virtual_time: None, by_name: bool
) -> None:
    network = MemoryNetwork()
    alice, library = Author(network), Library(network)
    channel = reader(
        library, options=ChannelOptions(confirm_interval_ms=0), **chosen(late, by_name=by_name)
    )
    async with listening(channel) as told:
        lost = alice.write("m1")
        alice.store(lost)
        alice.publish(alice.write("m2", HistoryEntry("m1", lost.message_hash, "alice")))
        began_ns = now_ns()
        await told.until(lambda: len(ids(told.events)) == 2, within_s=60)
        assert 50 <= (now_ns() - began_ns) / 1e9 <= 51.5
        assert library.hashes_asked == [] and len(library.times_asked) == 1


class Alone(Library):
    @property
    def has_store(self) -> bool:
        return False


@pytest.mark.anyio
@pytest.mark.parametrize(("library", "kept"), [(Alone, {"m1"}), (Library, set[str]())])
async def test_where_there_is_no_store_what_others_said_is_kept_to_answer_with(
    virtual_time: None, library: type[Library], kept: set[str]
) -> None:
    """Else nobody could be given it who asks after a restart."""
    network, state = MemoryNetwork(), MemoryStateStore()
    alice = Author(network)
    channel = reader(library(network), retrieval_strategy=late, state=state)
    async with listening(channel) as told:
        alice.publish(alice.write("m1"))
        await told.first(MessageReceived)
    saved = state.open(Identity(channel.channel_id, channel.sender_id, "spec"))
    assert {row[0] for row in saved.tables.get(REPAIR_CACHE.name, ())} == kept


@pytest.mark.anyio
async def test_where_there_is_no_store_a_policy_is_shown_that(virtual_time: None) -> None:
    seen = list[Missing]()

    def watching(missing: Missing) -> RepairStep:
        seen.append(missing)
        return RepairStep(missing.since_ms, "time", missing.since_ms + 20_000)

    network = MemoryNetwork()
    alice, library = Author(network), Alone(network)
    options = ChannelOptions(repair=RepairOptions(t_min_ms=5_000, t_max_ms=5_000))
    channel = reader(library, options=options, retrieval_strategy=watching)
    async with listening(channel) as told:
        began_ns = now_ns()
        alice.publish(alice.write("m2", ENTRY))
        await told.first(RepairRequested, within_s=60)
        assert 25 <= (now_ns() - began_ns) / 1e9 <= 26
    assert [(m.entry, m.store.exists, m.others.count) for m in seen] == [(ENTRY, False, 1)]
    assert library.times_asked == []


@pytest.mark.anyio
async def test_who_never_asks_loses_the_message_and_nothing_else(virtual_time: None) -> None:
    network = MemoryNetwork()
    alice, library = Author(network), Library(network)
    options = ChannelOptions(confirm_interval_ms=0)
    async with listening(reader(library, options=options, retrieval_strategy=never)) as told:
        alice.publish(alice.write("m2", ENTRY))
        lost = await told.first(MessageLost, within_s=400)
        assert lost.message_id == "m1"
        assert [(m.message_id, m.missing) for m in told.of(MessageReceived)] == [("m2", (ENTRY,))]
        assert (library.hashes_asked, library.times_asked) == ([], [])


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("by_name", "whose"),
    [
        (True, "plugin 'Named': repair policy 'mine'"),
        (False, "the application: retrieval_strategy"),
    ],
)
async def test_a_failing_policy_ends_the_channel_with_its_name(by_name: bool, whose: str) -> None:
    network, state = MemoryNetwork(), MemoryStateStore()
    alice, library = Author(network), Library(network)
    failing = reader(library, state=state, **chosen(fail, by_name=by_name))
    with pytest.raises(BaseExceptionGroup) as raised:
        async with listening(failing):
            alice.publish(alice.write("m2", ENTRY))
            await anyio.sleep(5)
    assert raised.group_contains(LookupError, match=f"lost my way\n{whose}")
    async with listening(reader(library, state=state, retrieval_strategy=never)) as told:
        alice.publish(alice.write("m2", ENTRY))
        await told.first(MessageMissing)
    # After a restart, the error is not taken for damage of the state.
    with pytest.raises(LookupError, match=f"lost my way\n{whose}"):
        await failing.open()


def test_a_name_that_nobody_knows_or_two_do_is_refused() -> None:
    library = Library(MemoryNetwork())
    with pytest.raises(ValueError, match=r"^`retrieval_strategy` .* both, .*got 'mine'"):
        reader(library, retrieval_strategy="mine")

    class Adaptive:
        @hookimpl
        def register_repair_policies(self, register: Register) -> None:
            register("both", never)

    with pytest.raises(PluginError, match=r"'both' is registered .* 'built in' and by 'Adaptive'"):
        reader(library, plugins=[Adaptive()])
