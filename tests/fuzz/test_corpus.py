"""What fuzzing found stays found: every target is given its corpus, and arbitrary bytes."""

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from .corpus import FOLDER, starting_points
from .targets import TARGETS

PLANTED = """
from tests.fuzz import search, targets
from tests.fuzz.target import Target

def check(data):
    targets.TARGETS["bloom"].check(data)
    assert data[:1] != b"~", "planted"

targets.TARGETS["planted"] = Target("planted", check, lambda: [b"a"])
search.search("planted", "-artifact_prefix={folder}/")
"""


@pytest.mark.parametrize("name", TARGETS)
def test_the_corpus_holds(name: str) -> None:
    target = TARGETS[name]
    for data in starting_points(target):
        try:
            target.check(data)
        except Exception as error:
            error.add_note(f"{name}: {data!r}")
            raise


@pytest.mark.parametrize("name", TARGETS)
@settings(max_examples=10)
@given(data=st.binary(max_size=200))
def test_any_bytes_hold(name: str, data: bytes) -> None:
    TARGETS[name].check(data)


def test_every_target_has_seeds_and_a_small_corpus() -> None:
    assert {file.stem for file in FOLDER.iterdir() if file.read_text().strip()} == set(TARGETS)
    assert all(list(target.seeds()) for target in TARGETS.values())
    assert sum(file.stat().st_size for file in FOLDER.iterdir()) < 1_000_000


@pytest.mark.skipif(find_spec("atheris") is None, reason="atheris has no wheel here")
def test_a_planted_defect_is_found(tmp_path: Path) -> None:
    """In a process of its own, as atheris ends it."""
    program = PLANTED.format(folder=tmp_path)
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert run.returncode
    assert "AssertionError: planted" in run.stderr + run.stdout
    (found,) = tmp_path.glob("crash-*")
    assert found.read_bytes()[:1] == b"~"
