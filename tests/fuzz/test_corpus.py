"""What fuzzing found stays found: the corpus is replayed, and the search itself finds what is
planted."""

import random
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from . import __main__ as command
from . import search
from .corpus import FOLDER, keep, kept, starting_points
from .target import MAX_INPUT_BYTES, Target, joined, records
from .targets import TARGETS


@pytest.mark.parametrize("name", TARGETS)
def test_the_corpus_holds(name: str) -> None:
    target = TARGETS[name]
    for data in starting_points(target):
        try:
            target.check(data)
        except Exception as error:
            error.add_note(f"{name}: {data!r}")
            raise


GUARD_S = 600
"""A search ends at its first finding."""


def test_every_target_has_a_corpus_and_seeds() -> None:
    assert {file.stem for file in FOLDER.glob("*.txt")} == set(TARGETS)
    for target in TARGETS.values():
        assert kept(target)
        assert list(target.seeds())


def test_the_corpus_is_small() -> None:
    assert sum(file.stat().st_size for file in FOLDER.iterdir()) < 1_000_000


def _planted(data: bytes) -> None:
    assert b"\xff\xff" not in data, "planted"


def test_a_planted_defect_is_found_blindly(tmp_path: Path) -> None:
    target = Target("planted", _planted, lambda: [b"abc\xfedef"])
    tried = search.blindly(target, GUARD_S, tmp_path, seed=1)
    (found,) = tmp_path.glob("crash-*")
    assert tried > 1
    assert b"\xff\xff" in found.read_bytes()


PLANTED = """
from pathlib import Path
from tests.fuzz import search, targets
from tests.fuzz.target import Target

def check(data):
    targets.TARGETS["bloom"].check(data)
    assert data[:1] != b"~", "planted"

targets.TARGETS["planted"] = Target("planted", check, lambda: [b"a"], (b"~",))
search.with_coverage("planted", 600, Path({folder!r}))
"""


def test_an_earlier_finding_is_tried_first_and_goes_when_it_is_mended(tmp_path: Path) -> None:
    finding = tmp_path / "crash-1"
    finding.write_bytes(b"\xff\xff")
    target = Target("planted", _planted, lambda: [b"abc"])
    assert search.blindly(target, 0, tmp_path, seed=1) == 1
    assert len(list(tmp_path.glob("crash-*"))) == 1
    mended = Target("planted", lambda _: None, lambda: [b"abc"])
    assert search.blindly(mended, 0, tmp_path, seed=1) == 1
    assert not list(tmp_path.glob("crash-*"))


@pytest.mark.skipif(find_spec("atheris") is None, reason="atheris has no wheel here")
def test_a_planted_defect_is_found_with_coverage(tmp_path: Path) -> None:
    """In a process of its own, as atheris ends it."""
    run = subprocess.run(
        [sys.executable, "-c", PLANTED.format(folder=str(tmp_path))],
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode
    assert "AssertionError: planted" in run.stderr + run.stdout
    (found,) = tmp_path.glob("crash-*")
    assert found.read_bytes()[:1] == b"~"


def test_mutations_stay_within_the_limit_and_depend_on_the_seed_alone() -> None:
    inputs = [b"", b"abc", bytes(range(256)) * 16]

    def some(seed: int) -> list[bytes]:
        rng = random.Random(seed)
        return [search.mutated(rng, rng.choice(inputs), rng.choice(inputs)) for _ in range(300)]

    assert some(1) == some(1) != some(2)
    assert max(map(len, some(1))) <= MAX_INPUT_BYTES
    assert len(set(some(1))) > 200


def test_records_are_what_was_joined() -> None:
    messages = [b"", b"a", bytes(300)]
    assert list(records(joined(messages))) == messages
    assert list(records(joined(messages)[:-1])) == [*messages[:2], bytes(299)]
    assert list(records(b"\0")) == []


def test_what_is_kept_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.fuzz.corpus.FOLDER", tmp_path)
    target = Target("t", _planted, lambda: [b"seed", b"bb"])
    assert kept(target) == []
    keep(target, [b"ccc", b"bb", b"", b"bb"])
    assert kept(target) == [b"bb", b"ccc"]
    assert starting_points(target) == [b"bb", b"ccc", b"seed"]


def test_the_command_replays_one_input(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "crash-1"
    file.write_bytes(b"\xff" * 8)
    monkeypatch.setattr(sys, "argv", ["fuzz", "bloom", "--replay", str(file)])
    assert command.main() == 0
    assert capsys.readouterr().out == "nothing happens\n"
