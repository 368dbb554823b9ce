"""All rows of the table, run in turn, with their results."""

import json
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from . import receiving, recovering, sending
from .bench import Broken, Harness, NotApplicable, Setting
from .peer import PeerFailed
from .row import Level, Result, Row

ROWS: Final[tuple[Row, ...]] = (*sending.ROWS, *receiving.ROWS, *recovering.ROWS)


@dataclass(frozen=True, slots=True)
class Outcome:
    """Row with the result of its check."""

    row: Row
    result: Result
    seen: str
    """Action of the peer, if the row did not pass."""
    folder: Path

    @property
    def breaks_a_rule(self) -> bool:
        """True if the peer breaks a required rule, or could not be tested."""
        failed = self.result in (Result.FAILED, Result.NOT_RUN)
        return failed and self.row.level is Level.REQUIRED

    def record(self) -> dict[str, str]:
        """Return the values of the row for `row.json` and the table."""
        return {
            "row": self.row.name,
            "group": self.row.group,
            "level": self.row.level,
            "source": self.row.source,
            "sentence": self.row.sentence,
            "expected": self.row.expected,
            "result": self.result,
            "seen": self.seen,
        }


async def run(setting: Setting, rows: Iterable[Row], folder: Path) -> AsyncIterator[Outcome]:
    """Run the checks of rows, and yield their outcomes. Each row writes `row.json` and
    `trace.jsonl` into a folder with the row's name."""
    for row in rows:
        place = folder / row.name
        result, seen = await _run_one(setting, row, place)
        outcome = Outcome(row, result, seen, place)
        (place / "row.json").write_text(json.dumps(outcome.record(), indent=2) + "\n")
        yield outcome


async def _run_one(setting: Setting, row: Row, folder: Path) -> tuple[Result, str]:
    """Run one row, even if the peer fails."""
    failures = list[tuple[Result, str]]()
    try:
        async with Harness.open(setting, folder) as bench:
            try:
                await row.check(bench)
            except Exception as error:  # a peer may answer anything: the other rows go on
                failures.append(_judged(_first(error)))
    except* (OSError, PeerFailed) as group:
        failures.append((Result.NOT_RUN, str(_first(group))))
    return failures[0] if failures else (Result.PASSED, "")


def _judged(error: Exception) -> tuple[Result, str]:
    match error:
        case Broken():
            return Result.FAILED, str(error)
        case NotApplicable():
            return Result.NOT_APPLICABLE, str(error)
        case PeerFailed():
            return Result.NOT_RUN, str(error)
    return Result.NOT_RUN, f"the check stumbled over {error!r}"


def _first(raised: Exception) -> Exception:
    error: BaseException = raised
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    assert isinstance(error, Exception)
    return error


def markdown(command: str, outcomes: Iterable[Outcome]) -> str:
    """Return the table of results as a Markdown page."""
    lines = [
        f"# Conformance of `{command}`",
        "",
        "| group | row | level | result | what it did |",
        "|---|---|---|---|---|",
    ]
    lines += [
        f"| {each.row.group} | [{each.row.name}]({each.row.name}/row.json) | {each.row.level} | "
        f"{each.result} | {each.seen.replace('|', '/')[:300]} |"
        for each in outcomes
    ]
    return "\n".join(lines) + "\n"
