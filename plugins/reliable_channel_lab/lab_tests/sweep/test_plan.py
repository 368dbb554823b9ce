"""Sweep files: what they mean, and that what is wrong is named."""

import re
from dataclasses import fields
from pathlib import Path
from typing import Final

import pytest

from reliable_channel_lab.sweep import read_plan
from reliable_channel_lab.sweep.kinds import KINDS
from reliable_channel_lab.sweep.quiet import QuietRun

DOCS: Final = Path(__file__).parents[4] / "docs"

GOOD = """
[experiments.one]
run = "group"
seeds = 2
participants = [2, 3]
loss = 0.1
causal_history_size = [2, 200]

[experiments.two]
run = "group"
seeds = 3
participants = 3
loss = 0.1
causal_history_size = 200

[questions.why]
experiments = ["one", "two"]
"""


def plan_of(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "sweep.toml"
    path.write_text(text)
    return path


def test_an_experiment_has_a_run_for_each_combination_and_seed(tmp_path: Path) -> None:
    plan = read_plan(plan_of(tmp_path, GOOD))
    runs = plan.experiments["one"].runs
    assert [
        (r.settings["participants"], r.settings["causal_history_size"], r.seed) for r in runs
    ] == [
        (participants, size, seed)
        for participants in (2, 3)
        for size in (2, 200)
        for seed in (1, 2)
    ]
    assert all(run.settings["loss"] == 0.1 for run in runs)


def test_the_file_in_the_documentation_is_one(tmp_path: Path) -> None:
    [example] = re.findall(r"```toml\n(.*?)```", (DOCS / "simulation.md").read_text(), re.DOTALL)
    plan = read_plan(plan_of(tmp_path, example))
    assert len(plan.runs) == 54
    assert [question.title for question in plan.questions] == ["How long a causal history?"]


def test_the_documentation_has_every_setting() -> None:
    page = (DOCS / "simulation.md").read_text()
    for kind in KINDS.values():
        names = {field.name for field in fields(kind)} - {"seed", "options"}
        assert not {name for name in names if f"`{name}`" not in page}


def test_a_run_that_two_experiments_share_is_run_once(tmp_path: Path) -> None:
    plan = read_plan(plan_of(tmp_path, GOOD))
    assert len(plan.runs) == 8 + 3 - 2
    assert len({run.id for run in plan.runs}) == len(plan.runs)


def test_ids_depend_on_what_is_set_alone() -> None:
    run = QuietRun(seed=1, participants=20, loss=0.0)
    assert run.id == QuietRun.of({"loss": 0, "participants": 20, "seed": 1}).id
    assert run.id == "66a8eeb6059ad930"  # on any machine, in any version that runs it alike
    assert run.id != QuietRun(seed=1, participants=20, loss=0.0, rounds=6).id


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ("[experiments.a]\nparticipant = 3", r"experiments\.a\.participant is not a setting"),
        ("[experiments.a]\nloss = 1.5", r"experiments\.a\.`loss` must be a share .* \(got 1\.5\)"),
        (
            "[experiments.a]\nloss = '0.1'",
            r"experiments\.a\.`loss` must be a share .* \(got '0\.1'\)",
        ),
        (
            "[experiments.a]\nparticipants = [2, 0]",
            r"experiments\.a\.`participants` must be .* \(got 0\)",
        ),
        (
            "[experiments.a]\nparticipants = 2.5",
            r"experiments\.a\.`participants` must be .* \(got 2\.5\)",
        ),
        (
            "[experiments.a]\nparticipants = true",
            r"experiments\.a\.`participants` must be .* \(got True\)",
        ),
        ("[experiments.a]\nparticipants = []", r"experiments\.a\.participants is an empty list"),
        ("[experiments.a]\nparticipants = [2, 2]", r"experiments\.a\.participants lists a value"),
        (
            "[experiments.a]\nparticipants = [[2]]",
            r"experiments\.a\.participants` must be .* \(got \[2\]\)",
        ),
        (
            "[experiments.a]\ntopology = 'star'",
            r"`topology` must be 'broadcast', .* \(got 'star'\)",
        ),
        (
            "[experiments.a]\nrun = 'walk'",
            r"experiments\.a\.run` must be 'group' or .* \(got 'walk'\)",
        ),
        ("[experiments.a]\nseeds = 0", r"experiments\.a\.seeds` must be .* \(got 0\)"),
        ("[experiments.a]\nseed = 1", r"experiments\.a\.seed must not be given"),
        ("[experiments.a]\nseeds = 2000000", r"experiments\.a has 2000000 runs; at most"),
        (
            "[experiments.a]\ncausal_history_size = [2, 5000]",
            r"experiments\.a\.`causal_history_size` must be between 0 and 1000 \(got 5000\)",
        ),
        (
            "[experiments.a]\nretrieval_strategy = 'prayer'",
            r"experiments\.a\.`retrieval_strategy` must be one of .*\(got 'prayer'\)",
        ),
        (
            "[experiments.a]\nrun = 'quiet'\ncausal_history_size = 2",
            r"experiments\.a\.causal_history_size is not a setting of a quiet run",
        ),
        (
            "[experiments.a]\nretrieve_frequency_ms = [1, 2]",
            r"experiments\.a\.retrieve_frequency_ms is not a setting of a group run",
        ),
        (
            "[experiments.a]\nnetwork = 'status.prod'",
            r"experiments\.a\.network is not a setting of a group run",
        ),
        ("[experiments]\na = 3", r"experiments\.a is 3; it must be a table"),
        ("", "`experiments` is missing"),
        ("[experiment.a]", "experiment is unknown; known keys are introduction"),
        ("experiments = [", "the file is not TOML"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, wrong: str, named: str) -> None:
    with pytest.raises(ValueError, match=rf"sweep\.toml: .*{named}"):
        read_plan(plan_of(tmp_path, wrong))


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ("experiments = ['b']", r"questions\.q\.experiments names 'b'; known experiments are a"),
        ("", r"questions\.q\.experiments is missing"),
        ("experiments = 'a'", r"questions\.q\.experiments is 'a'; it must be a list"),
        ("experiments = ['a']\nwhy = 1", r"questions\.q\.why is unknown"),
        (
            "experiments = ['a']\nplots = [{y = 'missed'}]",
            r"questions\.q\.plots\.x` must be .* \(got None\)",
        ),
        (
            "experiments = ['a']\nplots = [{x = 'sync_schedule', y = 'missed'}]",
            r"plots\.x is 'sync_schedule', whose values are not numbers",
        ),
        (
            "experiments = ['a']\nplots = [{x = 'loss', y = 'luck'}]",
            r"plots\.y` must be one of missed.* \(got 'luck'\)",
        ),
        (
            "experiments = ['a']\nplots = [{x = 'loss', y = 'missed', x_scale = 'wide'}]",
            r"plots\.x_scale` must be .* \(got 'wide'\)",
        ),
        (
            "experiments = ['a']\nplots = [{x = 'loss', y = 'missed', where = {luck = 1}}]",
            r"plots\.where` must be .* \(got 'luck'\)",
        ),
        (
            "experiments = ['a']\nbest = [{of = ['loss'], target = 'missed < 3'}]",
            r"best\.target: 'missed < 3' is not a target",
        ),
        (
            "experiments = ['a']\nbest = [{of = ['luck'], target = 'missed <= 3'}]",
            r"best\.of` must be .* \(got 'luck'\)",
        ),
    ],
)
def test_what_is_wrong_in_a_question_is_named(tmp_path: Path, wrong: str, named: str) -> None:
    text = (
        "[experiments.a]\nrun = 'quiet'\nsync_schedule = ['suppressed', 'js-waku']\n"
        f"[questions.q]\n{wrong}"
    )
    with pytest.raises(ValueError, match=named):
        read_plan(plan_of(tmp_path, text))
