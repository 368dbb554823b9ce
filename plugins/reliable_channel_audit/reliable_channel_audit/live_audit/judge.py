"""Judge that follows growing journals."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from heapq import merge
from itertools import chain, groupby
from operator import attrgetter, itemgetter
from pathlib import Path
from time import perf_counter
from typing import Any, Final
from zlib import crc32

from ..facts import message_in
from ..findings import SETTLE_MS
from ..following import Offset, Owners, Stretch, journals_in, lines_of, read_to, stretches
from ..journals import Lives, Noted, Reading, group_of, journal_files, settings
from ..lines import CONTINUED, OPENED, SET_ASIDE
from ..verdict import Verdict
from .alarms import PATIENCE_MS, Followed, alarms
from .generation import LINES_A_MESSAGE, Generation, Whose
from .reports import Reports, identity

WINDOW: Final = 10_000
"""Number of messages in a generation, after which the next generation begins. At most two
generations exist at a time."""
LIVES_OF_A_JOURNAL: Final = 10_000
"""Number of the first log in a journal, derived from a hash of the journal's path. Two journals of
one participant count as two logs, which keep their numbers after a restart."""


class GrowingJournal:
    """Journal that grows, with the numbers of its logs."""

    def __init__(self, family: str, whose: tuple[str, str]) -> None:
        self._family, self._whose = family, whose
        place = str(Path(family).resolve()).encode()
        self._first_life = crc32(place) * LIVES_OF_A_JOURNAL
        self._reading = Reading(*whose)
        self._lives = Lives()

    def new(self, stretches: Iterable[Stretch]) -> Iterator[tuple[int, Whose, Noted]]:
        """Yield the lines of new stretches, each with a time that never decreases."""
        for line in chain.from_iterable(lines_of(each, self._reading.line) for each in stretches):
            if line.event == OPENED and self._lives.last_ms and "follows" in settings(line):
                line = line._replace(event=CONTINUED)  # the next part of this journal
            noted = self._lives.noted(self._family, 0, line)
            yield self._lives.last_ms, (*self._whose, self._first_life + noted.life), noted


class LiveJudge:
    """Judge that reads new lines, and reports each finding once.

    A finding is reported after `SETTLE_MS`, because journals are read one after the other. If a
    late message resolves a reported finding, the finding is withdrawn.
    """

    def __init__(
        self,
        paths: Sequence[Path],
        reports: Reports,
        *,
        settle_ms: int | None = None,
        patience_ms: int = PATIENCE_MS,
        window: int = WINDOW,
    ) -> None:
        self._paths = paths
        self.reports = reports
        self._settle_ms, self._patience_ms, self._window = settle_ms, patience_ms, window
        self._journals: dict[str, GrowingJournal | None] = {}
        """By path; None for journals whose lines stand in others, too."""
        self._read_to: Offset = {}
        self._owners: Owners = {}
        self._generations = [Generation(settle_ms)]
        self._retires_ms = 0
        self._since_ms: dict[str, int] = {}
        """When a finding was found that is not reported yet."""
        self._standing: set[str] = set()
        """Findings that were reported, and may be taken back."""
        self.watched: dict[tuple[str, str], Followed] = {}
        self.verdict = Verdict()
        self.lines = self.set_aside = 0
        self.newest_ms = 0
        self.judged_s = 0.0
        """How long the last judgement took."""

    def step(self, now_ms: int) -> list[dict[str, Any]]:
        """Read and judge new lines, and return the new reports."""
        reported = []
        for at_ms, whose, noted in merge(*self._new_lines(), key=itemgetter(0)):
            self._take(at_ms, whose, noted)
            if self.lines % (self._window * LINES_A_MESSAGE) == 0:
                reported += self._turn(now_ms)  # there is much to catch up with
        reported += self._turn(now_ms)
        ahead_ms = self._generations[-1].ahead_ms
        late = alarms(self.watched, now_ms, patience_ms=self._patience_ms, ahead_ms=ahead_ms)
        return reported + self.reports.alarms(list(late), now_ms)

    def _take(self, at_ms: int, whose: Whose, noted: Noted) -> None:
        self.lines += 1
        self.set_aside += noted.line.event == SET_ASIDE
        ahead_ms = self._generations[0].ahead_ms.get(whose[:2], 0)
        self.newest_ms = max(self.newest_ms, at_ms - ahead_ms)
        message = message_in(noted.line)
        for generation in self._generations:
            generation.add(whose, noted, message)
        if noted.line.event != SET_ASIDE:
            self.watched.setdefault(whose[:2], Followed()).add(noted.line)

    def _turn(self, now_ms: int) -> list[dict[str, Any]]:
        """Judge; begin another generation where this one is long enough, end one that has had its
        time."""
        reported = self._judge(now_ms)
        oldest = self._generations[0]
        grace_ms = max(self._patience_ms, 2 * oldest.settle_ms)
        if len(self._generations) == 1 and oldest.size >= self._window:
            self._generations.append(oldest.next())
            self._retires_ms = self.newest_ms + grace_ms
        elif len(self._generations) > 1 and self.newest_ms > self._retires_ms:
            reported += self._judge(now_ms, is_last=True)
            del self._generations[0]
            self._standing &= {identity(each) for each in self._generations[0].verdict().findings}
        return reported

    def _judge(self, now_ms: int, *, is_last: bool = False) -> list[dict[str, Any]]:
        """Report what was found long enough ago, and all where a generation ends."""
        began_s = perf_counter()
        reported = []
        since_ms: dict[str, int] = {}
        for number, generation in enumerate(self._generations):
            self.verdict = generation.verdict()
            for each in self.verdict.findings:
                known = identity(each)
                since_ms[known] = self._since_ms.get(known, now_ms)
                if now_ms - since_ms[known] >= SETTLE_MS or (is_last and not number):
                    shown = each._replace(life=each.life % LIVES_OF_A_JOURNAL)
                    report = self.reports.finding(known, shown, now_ms)
                    reported += [report] if report is not None else []
                    self._standing.add(known)
        for known in sorted(self._standing - since_ms.keys()):
            reported.append(self.reports.withdrawn(known, now_ms))
        self._standing &= since_ms.keys()
        self._since_ms = since_ms
        self.judged_s = perf_counter() - began_s
        return reported

    def _new_lines(self) -> Iterator[Iterator[tuple[int, Whose, Noted]]]:
        """New lines of each journal."""
        journals = journals_in(self._paths, self._owners)
        new = journals.keys() - self._journals.keys()
        files = journal_files(self._paths, may_be_none=True) if new else []
        copies = {each.path for each in group_of(files).copies}
        for family in new:
            first, *_ = journals[family]
            whose = first.channel_id, first.participant_id
            is_copy = copies.issuperset(each.path for each in journals[family])
            self._journals[family] = None if is_copy else GrowingJournal(family, whose)
        before, self._read_to = self._read_to, read_to(journals, self._read_to)
        found = stretches(journals, before, self._read_to)
        for family, some in groupby(found, key=attrgetter("part.family")):
            if (journal := self._journals[family]) is not None:
                yield journal.new(list(some))
