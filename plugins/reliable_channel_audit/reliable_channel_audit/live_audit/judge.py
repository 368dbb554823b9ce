"""Judge that follows growing journals."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from heapq import merge
from pathlib import Path
from time import perf_counter
from typing import Any, Final
from zlib import crc32

from ..facts import message_in
from ..findings import SETTLE_MS
from ..journals import (
    PACKED,
    Lives,
    Noted,
    Reading,
    family_of,
    group_of,
    journal_files,
    numbered_texts,
    settings,
)
from ..lines import CLOSED, CONTINUED, OPENED, SET_ASIDE, Line
from ..verdict import Verdict
from .alarms import PATIENCE_MS, Followed, alarms
from .generation import LINES_A_MESSAGE, Generation, Whose
from .reports import Reports, identity
from .tail import Tail

WINDOW: Final = 10_000
"""Number of messages in a generation, after which the next generation begins. At most two
generations exist at a time."""
LIVES_OF_A_JOURNAL: Final = 10_000
"""Number of the first log in a journal, derived from a hash of the journal's path. Two journals of
one participant count as two logs, which keep their numbers after a restart."""


class GrowingJournal:
    """Journal that grows, together with its earlier parts."""

    def __init__(self, whose: tuple[str, str], family: str, paths: Iterable[Path]) -> None:
        self.whose = whose
        place = str(Path(family).resolve()).encode()
        self._first_life = crc32(place) * LIVES_OF_A_JOURNAL
        self.is_closed = False
        self._old = list(paths)
        self._tail: Tail | None = None
        if self._old and self._old[-1].suffix not in PACKED:
            self._tail = Tail(self._old.pop())
        self._reading = Reading(*whose)
        self._lives = Lives()
        self._last_ms = 0

    def new(self) -> Iterator[tuple[int, Whose, Noted]]:
        """Yield the new lines of the journal, each with a time that never decreases."""
        for path, number, text in self._texts():
            line = self._reading.line(text)
            if line.event == OPENED and self._last_ms and "follows" in settings(line):
                line = line._replace(event=CONTINUED)  # the next part of this journal
            noted = self._lives.noted(str(path), number, line)
            if line.event != SET_ASIDE:
                self._last_ms = max(self._last_ms, line.at_ms or 0)
                self.is_closed = line.event == CLOSED
            yield self._last_ms, (*self.whose, self._first_life + noted.life), noted

    def close(self) -> None:
        """Close the file of the journal."""
        if self._tail is not None:
            self._tail.close()

    def _texts(self) -> Iterator[tuple[Path, int, bytes | Line]]:
        while self._old:
            path = self._old.pop(0)
            for number, text in numbered_texts(path):
                yield path, number, text
        if self._tail is not None:
            for text in self._tail.lines():
                yield self._tail.path, self._tail.number, text


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
        self._journals: dict[str, GrowingJournal] = {}
        self._copies: set[str] = set()
        """Journals whose lines stand in others, too."""
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
        self._look_for_journals()
        news = [journal.new() for journal in self._journals.values()]
        reported = []
        for at_ms, whose, noted in merge(*news, key=lambda new: new[0]):
            self._take(at_ms, whose, noted)
            if self.lines % (self._window * LINES_A_MESSAGE) == 0:
                reported += self._turn(now_ms)  # there is much to catch up with
        reported += self._turn(now_ms)
        ahead_ms = self._generations[-1].ahead_ms
        late = alarms(self.watched, now_ms, patience_ms=self._patience_ms, ahead_ms=ahead_ms)
        return reported + self.reports.alarms(list(late), now_ms)

    def close(self) -> None:
        """Close the files of all journals."""
        for journal in self._journals.values():
            journal.close()

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

    def _look_for_journals(self) -> None:
        """Journals that were not there before; old parts of known ones were read as they grew."""
        files: dict[str, list[Path]] = {}
        found = journal_files(self._paths, may_be_none=True)
        for path in found:
            files.setdefault(family_of(path), []).append(path)
        new = files.keys() - self._journals.keys() - self._copies
        copies = {each.path for each in group_of(found).copies} if new else set()
        for family in sorted(new):
            paths = [path for path in files[family] if str(path) not in copies]
            if not paths:
                self._copies.add(family)
            elif len(group := group_of(paths).participants) == 1:
                (own,) = group
                whose = own.channel_id, own.participant_id
                self._journals[family] = GrowingJournal(whose, family, map(Path, own.paths))
