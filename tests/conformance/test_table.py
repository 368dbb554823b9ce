"""Every row of the suites has a test or a reason, and every id of a marker is a row."""

import pytest

from .table import Row, marked_tests, problems, rows, shown_by


def test_every_row_has_a_test_or_a_reason() -> None:
    assert problems(rows(), shown_by()) == []


def test_no_marker_escapes_the_table(request: pytest.FixtureRequest) -> None:
    """Of the tests that are collected in this run."""
    found = shown_by()
    for item in request.session.items:
        for marker in item.iter_markers("conformance"):
            for row_id in marker.args:
                assert item.nodeid.partition("[")[0] in found[row_id]


def test_markers_are_read_from_source() -> None:
    source = (
        "@pytest.mark.slow\n@pytest.mark.conformance('A', 'B')\nasync def test_one(): ...\n"
        "@mark.conformance('C')\ndef helper(): ...\ndef test_two(): ...\n"
    )
    assert list(marked_tests(source)) == [("test_one", ["A", "B"])]


@pytest.mark.parametrize(
    ("row", "tests", "said"),
    [
        (Row("A", "s", "it holds"), {}, "A has no test"),
        (Row("A", "s", declined="why"), {"A": ["t"]}, "A is declined and has a test"),
        (Row("A", "s"), {}, "A must say"),
        (Row("A", "s", "it holds", declined="why"), {"A": ["t"]}, "A must say"),
        (Row("A", "s", "it holds"), {"A": ["t"], "B": ["t"]}, "B is no row"),
    ],
)
def test_what_is_wrong_is_named(row: Row, tests: dict[str, list[str]], said: str) -> None:
    (problem,) = problems([row], tests)
    assert said in problem


def test_what_is_right_is_not() -> None:
    declined = Row("B", "s", declined="why")
    assert problems([Row("A", "s", "it holds"), declined], {"A": ["t"]}) == []
