"""Journals that grow: the lines of whole ones are written again, a stretch of time at once."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from reliable_channel_audit.findings import SETTLE_MS
from reliable_channel_audit.live_audit.judge import LiveJudge
from reliable_channel_audit.live_audit.reports import Reports


class Growing:
    """Writes what whole journals have, up to a time, into a directory of the same names."""

    def __init__(self, whole: Path, there: Path) -> None:
        self.there = there
        there.mkdir(exist_ok=True)
        self._lines = {
            path.name: [(_at_ms(line), line) for line in path.read_bytes().splitlines(True)]
            for path in sorted(whole.iterdir())
        }
        self._spans = {
            name: (lines[0][0], max(at_ms for at_ms, _ in lines))
            for name, lines in self._lines.items()
        }
        self.begin_ms, self.end_ms = self._spans[next(iter(self._lines))]

    def steps(self, number: int) -> Iterator[int]:
        """Grow in so many steps; each gives what the clock on the wall shows."""
        for step in range(1, number + 1):
            self.grow(step / number)
            yield self.begin_ms + (self.end_ms - self.begin_ms) * step // number

    def grow(self, share: float) -> None:
        """Write all lines up to this share of the time, by each one's clock; what stands after a
        line that is too late is not written either."""
        for name, lines in self._lines.items():
            begin_ms, end_ms = self._spans[name]
            until_ms = begin_ms + (end_ms - begin_ms) * share
            with (self.there / name).open("ab") as file:
                while lines and lines[0][0] <= until_ms:
                    file.write(lines.pop(0)[1])


def judged(judge: LiveJudge, growing: Growing, steps: int = 40) -> set[tuple[str, str, str]]:
    """What a judge reports while journals grow, and until it is sure afterwards."""
    reports = []
    now_ms = 0
    for now_ms in growing.steps(steps):
        reports += judge.step(now_ms)
    for later in range(1, 4):
        reports += judge.step(now_ms + later * SETTLE_MS)
    found = [each for each in reports if each["kind"] == "finding"]
    keys = [(each["audit"], each["participant_id"], each["message_id"]) for each in found]
    assert len(keys) == len(set(keys)), "each finding once"
    return set(keys)


@contextmanager
def live(
    directory: Path, there: Path, *, window: int = 10_000, settle_ms: int | None = None
) -> Iterator[LiveJudge]:
    reports = Reports(directory / "reports")
    judge = LiveJudge([there], reports, window=window, settle_ms=settle_ms)
    try:
        yield judge
    finally:
        reports.close()


def _at_ms(line: bytes) -> int:
    try:
        return int(json.loads(line)["at_ms"])
    except ValueError:
        return 0
