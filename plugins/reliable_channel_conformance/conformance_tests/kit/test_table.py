"""Every row passes with our peer, and fails with a peer of ours that breaks its rule."""

import json
import sys
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any

import anyio
import pytest

from reliable_channel.sds import NIM, SPEC
from reliable_channel.spi import CodecError, Message, WireProfile
from reliable_channel_conformance.kit.bench import Setting
from reliable_channel_conformance.kit.receiving import malformed
from reliable_channel_conformance.kit.row import Result
from reliable_channel_conformance.kit.table import ROWS, Outcome, markdown, run

from . import broken_peer
from .broken_peer import DEFECTS

OURS = f"{sys.executable} -m reliable_channel peer"
BROKEN = f"{sys.executable} {broken_peer.__file__}"
BEATS = 60
"""A peer that breaks a rule is not waited for: it fails sooner or later."""
PATIENT_BEATS = 3_000
PATIENT_IN_VAIN = {"budget-of-an-epoch-is-kept": Setting(OURS, SPEC).beats}
"""Rows that wait for something that must not come: for as long as the kit waits by itself."""
QUICK = ("waits-for-its-dependency", "duplicates-are-delivered-once")
SLOW = [row.name for row in ROWS if row.name not in QUICK]
GROUPS_OF_ROWS = 4
"""The rows of a group are run side by side: they wait for most of their time."""
GROUPS = [SLOW[first::GROUPS_OF_ROWS] for first in range(GROUPS_OF_ROWS)]


async def _run(name: str, command: str, folder: Path, beats: int) -> Outcome:
    row = next(each for each in ROWS if each.name == name)
    async for outcome in run(Setting(command, SPEC, beats), [row], folder):
        return outcome
    raise AssertionError("no outcome")


async def _ours(name: str, folder: Path) -> None:
    outcome = await _run(name, OURS, folder, PATIENT_IN_VAIN.get(name, PATIENT_BEATS))
    assert (outcome.result, outcome.seen) == (Result.PASSED, ""), name


async def _broken(name: str, folder: Path) -> None:
    outcome = await _run(name, f"{BROKEN} {name} peer", folder, BEATS)
    assert outcome.result in (Result.FAILED, Result.NOT_RUN), name
    kept = json.loads((folder / name / "row.json").read_text())
    assert kept["seen"] and kept["sentence"] and kept["expected"], name
    assert (folder / name / "trace.jsonl").stat().st_size > 0, name
    assert outcome.row.name in markdown("broken", [outcome])


def _all(
    rule: Callable[[str, Path], Coroutine[Any, Any, None]], names: Sequence[str], folder: Path
) -> None:
    """Check several rows side by side."""

    async def together() -> None:
        async with anyio.create_task_group() as tasks:
            for name in names:
                tasks.start_soon(rule, name, folder)

    anyio.run(together)


@pytest.mark.parametrize("name", QUICK)
def test_ours_keeps_the_rule(name: str, tmp_path: Path) -> None:
    anyio.run(_ours, name, tmp_path)


@pytest.mark.parametrize("name", QUICK)
def test_a_peer_that_breaks_the_rule_fails(name: str, tmp_path: Path) -> None:
    anyio.run(_broken, name, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("names", GROUPS, ids=" ".join)
def test_ours_keeps_the_rules(names: list[str], tmp_path: Path) -> None:
    _all(_ours, names, tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("names", GROUPS, ids=" ".join)
def test_peers_that_break_a_rule_fail(names: list[str], tmp_path: Path) -> None:
    _all(_broken, names, tmp_path)


@pytest.mark.slow
def test_a_run_knows_nothing_of_the_one_before(tmp_path: Path) -> None:
    """A state that was left in the folder had the second run fail: its messages were known."""
    for _ in range(2):
        anyio.run(_ours, "restart-goes-on", tmp_path)


def test_every_row_has_a_peer_that_breaks_it() -> None:
    assert {row.name for row in ROWS} == set(DEFECTS)
    assert len({row.name for row in ROWS}) == len(ROWS)


def test_a_peer_that_does_not_start_is_not_run(tmp_path: Path) -> None:
    command = f"{sys.executable} -c pass"
    outcome = anyio.run(_run, ROWS[0].name, command, tmp_path, 1)
    assert outcome.result is Result.NOT_RUN
    assert "exit status 0" in outcome.seen
    assert outcome.breaks_a_rule


@pytest.mark.parametrize("profile", [SPEC, NIM], ids=["spec", "nim"])
def test_what_is_no_message_cannot_be_read(profile: WireProfile) -> None:
    """In the dialect `nim` the last field is the sender: without it, a message was whole."""
    message = Message("a", "000161", "conformance", 1_000, content=b"cut")
    whole = profile.codec.encode(message)
    assert profile.codec.decode(whole).content == b"cut"
    for data in malformed(whole):
        with pytest.raises(CodecError):
            profile.codec.decode(data)
