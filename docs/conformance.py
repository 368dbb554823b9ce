"""Write docs/conformance.md from tests/conformance/rows.toml and the tests' markers
(`make docs`)."""

from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

from tests.conformance.table import Row, rows, shown_by

PAGE = Path(__file__).with_name("conformance.md")


def page() -> str:
    """The text of the page."""
    return "\n".join([*_head(), *_suites()]) + "\n"


def _head() -> Iterator[str]:
    table = rows()
    declined = sum(bool(row.declined) for row in table)
    yield "# Conformance"
    yield ""
    yield f"Cases of the test suites of logos-delivery and js-waku: {len(table) - declined} are"
    yield f"shown by the tests named here, {declined} are declined and say why. In brackets: where"
    yield "ours differs on purpose. Made from `tests/conformance/rows.toml` and the `conformance`"
    yield "markers of the tests by `make docs`; a row without a test fails `make test`."


def _suites() -> Iterator[str]:
    shown = shown_by()
    for suite, cases in groupby(rows(), key=lambda row: row.suite):
        yield from ("", f"## {suite}", "", "| id | what must hold | shown by |", "|---|---|---|")
        for row in cases:
            yield f"| {row.id} | {_text(row)} | {'<br>'.join(map(_code, shown.get(row.id, [])))} |"


def _text(row: Row) -> str:
    if row.declined:
        return f"Declined: {row.declined}"
    return f"{row.holds} ({row.note})" if row.note else row.holds


def _code(test: str) -> str:
    return f"`{test}`"


if __name__ == "__main__":
    PAGE.write_text(page())
