"""The page of each official test: one row a result, with the reason where one is known."""

from dataclasses import replace
from pathlib import Path

import pytest

from interop.compat.page import main, page_of
from interop.compat.results import Case, Suite

REASONS = """
[suite]
e2e = "No discv5 runs."

[[reason]]
test = "relay/test_publish/*test_big"
why = "there is no RLN"
"""


@pytest.fixture
def reasons(tmp_path: Path) -> Path:
    file = tmp_path / "reasons.toml"
    file.write_text(REASONS)
    return file


def _suite(*cases: Case, ended: str = "") -> Suite:
    return Suite("relay", "commit 33596417", "2026-11-23", cases, ended)


def _case(name: str, result: str = "passed", why: str = "", file: str = "test_publish") -> Case:
    return Case(file, f"TestIt::{name}", result, why)


def test_a_test_with_parameters_is_one_row_for_each_result(reasons: Path) -> None:
    cases = [_case(f"test_topics[{n}]") for n in range(3)]
    page = page_of([_suite(*cases)], reasons)
    assert "| `TestIt::test_topics` (3 cases) | passed |  |" in page
    failed = [_case("test_topics[a|b]", "failed", "no `topic`"), *cases]
    page = page_of([_suite(*failed)], reasons)
    assert "| `TestIt::test_topics` (1 of 4 cases): `a/b` | failed | no 'topic' |" in page
    assert "| `TestIt::test_topics` (3 of 4 cases) | passed |  |" in page


def test_of_many_parameters_the_first_are_named(reasons: Path) -> None:
    cases = [_case("test_it[x]"), *(_case(f"test_it[{n}]", "failed", "no") for n in range(5))]
    page = page_of([_suite(*cases)], reasons)
    assert "(5 of 6 cases): `0`, `1`, `2`, `3`, … | failed | no |" in page


def test_a_reason_stands_in_place_of_the_first_line_of_a_failure(reasons: Path) -> None:
    assert "| failed | there is no RLN |" in page_of(
        [_suite(_case("test_big[1]", "failed", "assert 1 == 2"))], reasons
    )
    assert "| failed | assert 1 == 2 |" in page_of(
        [_suite(_case("test_big", "failed", "assert 1 == 2", file="test_subscribe"))], reasons
    )
    assert "| passed |  |" in page_of([_suite(_case("test_big"))], reasons)


def test_what_a_suite_ran_on_stands_before_its_tests(reasons: Path) -> None:
    suites = [replace(_suite(_case("test_small")), name=name) for name in ("e2e", "store")]
    page = page_of(suites, reasons)
    assert "## e2e\n\nNo discv5 runs.\n\n| test |" in page
    assert "## store\n\n| test |" in page


def test_what_ran_is_read_from_its_folder(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    assert main([str(tmp_path), str(page)]) == 1
    _suite(_case("test_small"), _case("test_big", "skipped", "RLN")).save(tmp_path)
    assert main([str(tmp_path), str(page)]) == 0
    text = page.read_text()
    assert "| relay | commit 33596417 | 2026-11-23 | 1 | 0 | 1 |" in text
    assert "| `TestIt::test_big` | skipped | RLN |" in text


def test_a_run_that_ended_early_counts_nothing(reasons: Path) -> None:
    page = page_of([_suite(_case("test_small"), ended="pytest ended with 2")], reasons)
    assert "| 2026-11-23 | pytest ended with 2 | | |" in page
