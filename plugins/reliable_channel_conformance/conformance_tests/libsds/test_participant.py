"""A participant around the C library, in the kit: it keeps what the library keeps, and no more."""

import sys
from pathlib import Path

import anyio
import pytest

from reliable_channel.sds import NIM
from reliable_channel_conformance.kit.bench import Setting
from reliable_channel_conformance.kit.row import Result
from reliable_channel_conformance.kit.table import ROWS, Outcome, run


def _run(names: set[str], library: Path, folder: Path) -> dict[str, Outcome]:
    peer = f"{sys.executable} -m reliable_channel_conformance.libsds --library {library}"

    async def some() -> dict[str, Outcome]:
        rows = [row for row in ROWS if row.name in names]
        return {each.row.name: each async for each in run(Setting(peer, NIM, 60), rows, folder)}

    return anyio.run(some)


def test_the_kit_sees_what_the_library_does(stand_in: Path, tmp_path: Path) -> None:
    """The stand-in emits dependants before what they waited for, as nim-sds does."""
    outcomes = _run(
        {"waits-for-its-dependency", "duplicates-are-delivered-once"}, stand_in, tmp_path
    )
    assert outcomes["duplicates-are-delivered-once"].result is Result.PASSED
    waits = outcomes["waits-for-its-dependency"]
    assert waits.result is Result.FAILED
    assert "(got [b'two', b'one'])" in waits.seen


@pytest.mark.slow
def test_what_the_library_lacks_fails(stand_in: Path, tmp_path: Path) -> None:
    """The stand-in knows no bloom filters, and nothing is kept over a restart."""
    outcomes = _run({"restart-goes-on"}, stand_in, tmp_path)
    assert {each.result for each in outcomes.values()} == {Result.FAILED}


def test_without_a_library_the_row_is_not_run(tmp_path: Path) -> None:
    outcomes = _run({"waits-for-its-dependency"}, Path("/nowhere/libsds.so"), tmp_path)
    (outcome,) = outcomes.values()
    assert outcome.result is Result.NOT_RUN
    assert "/nowhere/libsds.so" in outcome.seen
