"""`make interop SUITES=DIR`: nothing is counted that did not run."""

import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from interop.compat.official import main, run, version_of
from interop.compat.page import suites_in

PASSES = "def test_one(): pass\n"
MIXED = """
import pytest

class TestIt:
    def test_passes(self): pass
    def test_fails(self): assert 1 == 2, "one | is not two"
    @pytest.mark.skip("needs RLN")
    def test_waits(self): pass
"""


@pytest.fixture(autouse=True)
def no_plugins_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    """The suites run in an environment that has none of the plugins that we test with, which take
    0.8 CPU seconds to load."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")


def _checkout(tmp_path: Path) -> Path:
    for folder, source in (("relay", MIXED), ("filter", PASSES)):
        (tmp_path / "suites" / "tests" / folder).mkdir(parents=True)
        (tmp_path / "suites" / "tests" / folder / f"test_{folder}.py").write_text(source)
    return tmp_path / "suites"


def test_each_test_is_counted_and_named(tmp_path: Path) -> None:
    checkout, out = _checkout(tmp_path), tmp_path / "out"
    done = main([str(checkout), "--python", sys.executable, "relay", "filter", "--out", str(out)])
    assert done == 0
    page = (out / "table.md").read_text()
    head = f"{version_of(checkout)} | {datetime.now(UTC).date()} |"
    assert f"| relay | {head} 1 | 1 | 1 |" in page
    assert f"| filter | {head} 1 | 0 | 0 |" in page
    assert "| **test_relay** | | |" in page
    assert "| `TestIt::test_fails` | failed | AssertionError: one / is not two |" in page
    assert "| `TestIt::test_waits` | skipped | needs RLN |" in page


def test_a_later_run_replaces_that_of_the_same_suite(tmp_path: Path) -> None:
    checkout, out = _checkout(tmp_path), tmp_path / "out"
    run = [str(checkout), "--python", sys.executable, "--out", str(out)]
    main([*run, "relay", "filter"])
    main([*run, "filter"])
    assert [suite.name for suite in suites_in(out)] == ["filter", "relay"]


def test_a_run_that_did_not_happen_counts_nothing(tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert main([str(_checkout(tmp_path)), "nonsense", "--out", str(out)]) == 1
    assert "| pytest ended with 4 | | |" in (out / "table.md").read_text()


def test_a_python_is_found_from_here_whatever_the_checkout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkout = _checkout(tmp_path)
    (tmp_path / "python").symlink_to(sys.executable)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONHOME", sys.base_prefix)
    suite = run(checkout, "nonsense", tmp_path, "./python")
    assert suite.ended  # it was found: what is not there raises


def test_the_half_of_the_bindings_drives_ours_and_leaves_the_checkout_as_it_is(
    tmp_path: Path,
) -> None:
    """`wrapper` is the module of the bindings, which the suite puts first on its path."""
    folder = tmp_path / "tests-e2e" / "tests" / "wrappers_tests"
    folder.mkdir(parents=True)
    vendor = tmp_path / "tests-e2e" / "vendor"
    vendor.mkdir()
    (vendor / "wrapper.py").write_text("raise ImportError('needs liblogosdelivery.so')\n")
    (folder / "test_wrapper.py").write_text(
        f"""
import subprocess
import sys
sys.path.insert(0, {str(vendor)!r})
from wrapper import NodeWrapper

def test_it():
    assert NodeWrapper.__module__ == "interop.compat.wrapper"

def test_a_process():
    program = "import sys; sys.path.insert(0, {str(vendor)!r}); import wrapper"
    subprocess.run([sys.executable, "-c", program], check=True)
"""
    )
    out = tmp_path / "out"
    assert main([str(tmp_path), "--python", sys.executable, "--out", str(out)]) == 0
    assert [suite.count("passed") for suite in suites_in(out)] == [2]


def test_a_checkout_without_known_suites_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main([str(tmp_path)])
    assert "must have one of wrappers_tests" in capsys.readouterr().err


def test_a_checkout_without_git_has_the_hash_of_its_tests(tmp_path: Path) -> None:
    checkout = _checkout(tmp_path)
    before = version_of(checkout)
    assert before.startswith("files ")
    (checkout / "tests" / "relay" / "test_relay.py").write_text(PASSES)
    assert version_of(checkout) != before
