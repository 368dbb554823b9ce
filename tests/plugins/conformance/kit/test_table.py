"""Every row passes with our peer, and fails with a peer of ours that breaks its rule."""

import json
import sys
from pathlib import Path

import anyio
import pytest

from reliable_channel.sds import NIM, SPEC
from reliable_channel.spi import CodecError, Message, WireProfile
from reliable_channel_conformance.kit.bench import Setting
from reliable_channel_conformance.kit.receiving import malformed
from reliable_channel_conformance.kit.row import Result
from reliable_channel_conformance.kit.table import ROWS, Outcome, markdown, run

from .broken_peer import DEFECTS

OURS = f"{sys.executable} -m reliable_channel peer"
BROKEN = f"{sys.executable} -m tests.plugins.conformance.kit.broken_peer"
BEATS = 60
"""A peer that breaks a rule is not waited for: it fails sooner or later."""
QUICK = ("waits-for-its-dependency", "duplicates-are-delivered-once")
NAMES = [
    pytest.param(row.name, marks=[] if row.name in QUICK else [pytest.mark.slow]) for row in ROWS
]


def _run(name: str, command: str, folder: Path, beats: int) -> Outcome:
    async def one() -> Outcome:
        row = next(each for each in ROWS if each.name == name)
        async for outcome in run(Setting(command, SPEC, beats), [row], folder):
            return outcome
        raise AssertionError("no outcome")

    return anyio.run(one)


@pytest.mark.parametrize("name", NAMES)
def test_ours_keeps_the_rule(name: str, tmp_path: Path) -> None:
    outcome = _run(name, OURS, tmp_path, 3_000)
    assert (outcome.result, outcome.seen) == (Result.PASSED, "")


@pytest.mark.parametrize("name", NAMES)
def test_a_peer_that_breaks_the_rule_fails(name: str, tmp_path: Path) -> None:
    outcome = _run(name, f"{BROKEN} {name} peer", tmp_path, BEATS)
    assert outcome.result in (Result.FAILED, Result.NOT_RUN)
    kept = json.loads((tmp_path / name / "row.json").read_text())
    assert kept["seen"] and kept["sentence"] and kept["expected"]
    assert (tmp_path / name / "trace.jsonl").stat().st_size > 0
    assert outcome.row.name in markdown("broken", [outcome])


@pytest.mark.slow
def test_a_run_knows_nothing_of_the_one_before(tmp_path: Path) -> None:
    """A state that was left in the folder had the second run fail: its messages were known."""
    for _ in range(2):
        assert _run("restart-goes-on", OURS, tmp_path, 3_000).result is Result.PASSED


def test_every_row_has_a_peer_that_breaks_it() -> None:
    assert {row.name for row in ROWS} == set(DEFECTS)
    assert len({row.name for row in ROWS}) == len(ROWS)


def test_a_peer_that_does_not_start_is_not_run(tmp_path: Path) -> None:
    outcome = _run(ROWS[0].name, f"{sys.executable} -c pass", tmp_path, 1)
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
