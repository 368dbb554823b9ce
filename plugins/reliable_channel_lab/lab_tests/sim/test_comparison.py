"""Sync protocols side by side: the same promise from all, equal figures from equal seeds."""

import json
import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from random import Random
from typing import Any
from xml.etree import ElementTree

import pytest

from reliable_channel.engine.sync_core import CoreContext, SyncCore
from reliable_channel_lab.commands.simulate import simulate
from reliable_channel_lab.sim.comparison import (
    ALL_VARIANTS,
    CONTROL,
    SCENARIOS,
    VARIANTS,
    Cell,
    ComparedCell,
    covering,
    full,
    maker,
    run_cell,
    workload,
)
from reliable_channel_lab.sim.figures import from_csv, over_seeds, row, to_csv, to_json_line
from reliable_channel_lab.sim.measures import Measures, percentile
from reliable_channel_lab.sim.metering import TooMuchWork
from reliable_channel_lab.sim.network import STORE, Packet, packet
from reliable_channel_lab.sim.running import spread
from reliable_channel_lab.sim.scenario import Conditions, Crash, Partition, Scenario
from reliable_channel_lab.sim.timeline import Timeline
from reliable_channel_lab.sim.trial import EqualNetwork, Terms, run_trial
from reliable_channel_mvds.channel import MvdsCore
from reliable_channel_mvds.channel.setting import MAX_PEERS
from reliable_channel_svs.channel import SvsCore
from tests.cli import forked
from tests.slow import slow

KEPT = [name for name in VARIANTS if name != CONTROL]
SHORT = Terms(idle_ms=60_000)


def make(sync: str, context: CoreContext) -> SyncCore:
    return MvdsCore(context) if sync == "mvds" else SvsCore(context)


def measured(cell: Cell) -> Measures:
    figure = run_cell(cell, make, SHORT)
    assert figure.measures is not None, figure.not_run
    return figure.measures


# -- promises --------------------------------------------------------------------------------------


@pytest.mark.parametrize("scenario", slow("1:1", "group", "community"))
@pytest.mark.parametrize("variant", KEPT)
def test_everything_reaches_everybody_once(variant: str, scenario: str) -> None:
    participants = 2 if scenario == "1:1" else 5
    measures = measured(Cell(scenario, participants, 0.3, variant, seed=3))
    assert measures.is_kept, measures
    assert measures.due > measures.messages * (participants - 1) / 3
    assert measures.latency_p50_ms and measures.latency_max_ms
    assert 20 < measures.latency_p50_ms <= measures.latency_max_ms
    assert measures.acknowledged > 0.9 * measures.messages and not measures.failed


def test_without_repair_what_is_lost_stays_lost() -> None:
    """The control: a comparison that never fails is worth nothing."""
    measures = measured(Cell("group", 5, 0.3, CONTROL, seed=3))
    assert measures.delivered < measures.due and measures.lost and measures.different_logs
    assert not measures.is_kept


@pytest.mark.parametrize("variant", KEPT)
def test_crashes_and_a_partition_break_no_promise(variant: str) -> None:
    """But for SDS without SDS-R: Store never had the messages of an island, and their senders know
    that others have them."""
    cell = Cell("group", 5, 0.2, variant, seed=2)
    [scenario] = SCENARIOS["group"](cell, Random(2))
    faults = (
        Crash(100_000, 130_000, 1),
        Crash(200_000, 260_000, 2),
        Partition(150_000, 220_000, (0, 3)),
    )
    broken = replace(scenario, faults=faults, durable=(1, 2), commit_ms=50)
    measures = run_trial([broken], maker(VARIANTS[variant], make), SHORT)
    assert measures.is_kept == (variant != "SDS, Store"), measures


@pytest.mark.parametrize("variant", ["SDS-R, Store", "SDS-R", "SVS, Store", "SVS"])
def test_who_lost_its_state_is_given_everything_again(variant: str) -> None:
    cell = Cell("group", 5, 0.2, variant, seed=2)
    [scenario] = SCENARIOS["group"](cell, Random(2))
    broken = replace(scenario, faults=(Crash(100_000, 130_000, 1), Crash(200_000, 260_000, 2)))
    measures = run_trial([broken], maker(VARIANTS[variant], make), SHORT)
    assert measures.is_kept, measures


# -- the same for all ------------------------------------------------------------------------------


class Ear:
    def __init__(self, number: int) -> None:
        self.number = number
        self.heard: list[Packet] = []

    def hear(self, arrived: Packet) -> None:
        self.heard.append(arrived)


def lost(loss: float, seed: int = 1, others: Sequence[int] = ()) -> set[tuple[int, bytes]]:
    """Copies of 50 messages from 0 that are lost, by receiver; the `others` speak in between."""
    timeline = Timeline(0)
    network = EqualNetwork(timeline, Conditions(loss=loss), seed)
    ears = [Ear(number) for number in (0, 1, 2, 3, STORE)]
    network.stations += ears
    everything = [packet(b"%d" % number, 0) for number in range(50)]
    for sent in everything:
        for other in others:
            network.broadcast(other, packet(b"", 0))
        network.broadcast(0, sent)
    timeline.run_until(10_000)
    assert not ears[0].heard[len(others) * 50 :]
    return {
        (ear.number, sent.data) for ear in ears[1:] for sent in everything if sent not in ear.heard
    }


def test_a_copy_has_its_fate_whatever_else_is_said() -> None:
    assert lost(0.2) == lost(0.2, others=(1, 2)) != lost(0.2, seed=2)
    assert lost(0.0) == set() < lost(0.1) < lost(0.4)  # more loss loses more of the same
    assert 20 <= len(lost(0.2)) <= 40  # of 150
    assert STORE not in {receiver for receiver, _ in lost(0.4)}


class Metered(EqualNetwork):
    """Counts the bytes that each participant broadcasts."""

    def __init__(self, timeline: Timeline, conditions: Conditions, seed: int) -> None:
        super().__init__(timeline, conditions, seed)
        self.sent = Counter[int]()

    def broadcast(self, sender: int, sent: Packet) -> None:
        self.sent[sender] += len(sent.data)
        super().broadcast(sender, sent)


def mixed(tuned: int) -> tuple[Measures, float]:
    """Run 20 participants without a Store, of which the first have `auto`. Return the bytes that
    such a participant broadcasts for each message, too."""
    networks = list[Metered]()

    def network(timeline: Timeline, conditions: Conditions, seed: int) -> Metered:
        networks.append(Metered(timeline, conditions, seed))
        return networks[-1]

    auto, documented = (maker(ALL_VARIANTS[name], make) for name in ("auto", "documented"))

    def make_core(sender_id: str, **values: Any) -> SyncCore:
        return (auto if int(sender_id[1:]) < tuned else documented)(sender_id, **values)

    cell = Cell("group", 20, 0.2, "documented", seed=6301)
    measures = run_trial(workload(cell), make_core, Terms(idle_ms=1_000, make_network=network))
    own = sum(networks[0].sent[number] for number in range(tuned)) / max(1, tuned)
    return measures, own / measures.messages


def test_auto_beside_others_broadcasts_few_bytes_and_is_no_slower() -> None:
    alone = mixed(0)[0]
    for tuned in (1, 10, 19):
        measures, own = mixed(tuned)
        assert measures.delivered == measures.due
        assert own <= 11_000 and measures.bytes_per_message <= 112_000
        assert (measures.latency_p95_ms or 0) <= (alone.latency_p95_ms or 0)


def test_all_variants_have_the_same_messages_to_send() -> None:
    seen = {name: measured(Cell("1:1", 2, 0.0, name, seed=5)) for name in VARIANTS}
    assert len({(m.messages, m.due, m.latency_p95_ms) for m in seen.values()}) == 1
    assert seen["SDS-R"].content_messages == seen["MVDS"].content_messages


@pytest.mark.slow
def test_equal_seeds_have_equal_figures_on_any_number_of_processes() -> None:
    cells = [Cell("group", 4, 0.2, name, seed) for name in KEPT[:2] + KEPT[-2:] for seed in (1, 2)]
    run = partial(run_cell, make=make, terms=SHORT)
    alone = {figure.cell: figure for figure in spread(run, cells)}
    spread_out = {figure.cell: figure for figure in spread(run, cells, jobs=3)}
    assert alone == spread_out
    assert len({figure.measures for figure in alone.values()}) > len(cells) // 2


def test_mvds_makes_no_use_of_store() -> None:
    cell = Cell("group", 4, 0.2, "MVDS", 1)
    [scenario] = SCENARIOS["group"](cell, Random(1))
    with_store = replace(scenario, store=Scenario(1, 1).store)
    core = maker(VARIANTS["MVDS"], make)
    assert run_trial([scenario], core, SHORT) == run_trial([with_store], core, SHORT)


# -- limits ----------------------------------------------------------------------------------------


def test_what_mvds_does_not_take_is_not_run() -> None:
    assert VARIANTS["MVDS"].max_participants == MAX_PEERS + 1
    figure = run_cell(Cell("group", MAX_PEERS + 2, 0.0, "MVDS", 1), make)
    assert (figure.measures, figure.not_run) == (None, "MVDS: it takes at most 65 participants")


def test_what_is_too_much_work_is_stopped_and_says_so() -> None:
    cell = Cell("group", 5, 0.2, "SVS", 1)
    figure = run_cell(cell, make, Terms(max_receives=100))
    assert figure == ComparedCell(
        cell, None, "stopped: the cores received more than 100 messages, the limit of this run"
    )
    assert run_cell(cell, make, Terms(max_receives=100_000)).measures is not None
    assert issubclass(TooMuchWork, Exception)


def test_the_cells_cover_what_is_asked_for() -> None:
    for cells in (list(covering(range(1, 3))), list(full(range(1, 3)))):
        assert len(set(cells)) == len(cells)
        assert {cell.scenario for cell in cells} == set(SCENARIOS)
        assert {cell.variant for cell in cells} == set(VARIANTS)
    assert {0.0, 0.4} <= {cell.loss for cell in cells}
    assert {2, 1_000} <= {cell.participants for cell in cells}


# -- figures ---------------------------------------------------------------------------------------


def test_figures_are_written_and_read_back() -> None:
    figures = [
        run_cell(Cell("1:1", 2, 0.2, "SVS", 1), make, SHORT),
        ComparedCell(Cell("group", 100, 0.2, "MVDS", 1), None, "too large"),
    ]
    assert list(from_csv(to_csv(figures))) == figures
    flat = row(figures[0])
    assert flat == json.loads(json.dumps(flat))
    assert json.loads(to_json_line(figures[1]))["not_run"] == "too large"
    with pytest.raises(ValueError, match="line 2 is not a measurement"):
        list(from_csv("a,b\n1,2\n"))


def test_means_over_seeds() -> None:
    figures = [run_cell(Cell("1:1", 2, 0.2, "SVS", seed), make, SHORT) for seed in (1, 2)]
    first, second = (f.measures.latency_mean_ms for f in figures if f.measures)
    assert first is not None and second is not None and first != second
    known = over_seeds(figures, lambda measures: measures.latency_mean_ms)
    assert known == ((first + second) / 2, min(first, second), max(first, second))
    assert over_seeds([], lambda measures: measures.due) is None


@pytest.mark.parametrize(
    ("percent", "value"), [(0, 1), (50, 5), (90, 9), (95, 10), (99, 10), (100, 10)]
)
def test_percentiles_by_nearest_rank(percent: int, value: int) -> None:
    assert percentile(range(1, 11), percent) == value
    assert percentile([], percent) is None


# -- the command -----------------------------------------------------------------------------------


def compare(*arguments: str, **environment: str) -> tuple[int, str, str]:
    plugins = {"RELIABLE_CHANNEL_PLUGINS": "lab,mvds,svs"}
    done = forked.run(
        "simulate", "--compare", *arguments, env={**os.environ, **plugins, **environment}
    )
    return done.returncode, done.stdout, done.stderr


def test_the_command_writes_tables_figures_and_plots(tmp_path: Path) -> None:
    status, tables, told = compare("--participants", "2", "--jobs", "1", "--out", str(tmp_path))
    assert (status, "seeds 1 to 1" in told) == (0, True)
    for words in ("1:1, 2 participants, 40 % lost", *VARIANTS):
        assert words in tables
    figures = list(from_csv((tmp_path / "results.csv").read_text()))
    assert len(figures) == 3 * len(VARIANTS)
    root = ElementTree.parse(tmp_path / "loss.svg").getroot()
    texts = {element.text for element in root.iter("{http://www.w3.org/2000/svg}text")}
    assert {"1:1", "% lost", "latency, 95 % (s)", "SVS, Store"} <= texts
    assert CONTROL not in texts

    _, lines, _ = compare("--participants", "2", "--jobs", "2", "--json")
    assert list(map(json.loads, lines.splitlines())) == [
        json.loads(to_json_line(figure)) for figure in figures
    ]


def test_a_size_that_is_not_compared_is_refused() -> None:
    status, _, told = compare("--participants", "3")
    assert (status, told) == (
        2,
        "error: `participants` is 3, but the comparison has runs only for [2, 10, 40]\n",
    )


def test_options_of_the_comparison_go_with_it() -> None:
    with pytest.raises(ValueError, match="need --compare"):
        simulate(full=True)


def test_what_is_not_installed_is_left_out() -> None:
    arguments = ("--participants", "2", "--jobs", "1", "--json")
    status, lines, told = compare(*arguments, RELIABLE_CHANNEL_PLUGINS="lab")
    assert status == 0
    assert "mvds is left out: not installed (pip install reliable-channel-mvds)" in told
    rows = list(map(json.loads, lines.splitlines()))
    assert {row["variant"] for row in rows if row["not_run"]} == {
        name for name, variant in VARIANTS.items() if variant.sync != "sds"
    }
