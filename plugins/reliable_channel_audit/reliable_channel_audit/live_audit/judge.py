"""Judge that follows growing journals."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from heapq import merge
from itertools import chain, groupby
from operator import attrgetter, itemgetter
from pathlib import Path
from time import perf_counter
from typing import Any, Final
from zlib import crc32

from reliable_channel.spi import Message

from ..check import by_kind, judge
from ..clocks import own_lags
from ..facts import Dispatch, Gathering, Lag, message_in
from ..findings import SETTLE_MS
from ..following import Offset, Owners, Stretch, journals_in, lines_of, read_to, stretches
from ..journals import Lives, Noted, Reading, group_of, journal_files, settings
from ..lines import CONTINUED, LOGGED, OPENED, SET_ASIDE, Line
from ..verdict import Verdict
from .alarms import PATIENCE_MS, Followed, alarms
from .reports import Reports, identity

CARRIED: Final = 2_000
"""Number of the newest log entries that a new generation gets, because messages refer to the newest
200."""
LINES_A_MESSAGE: Final = 20
"""Number of lines that count as one message, so that quiet channels also get new generations."""
Whose = tuple[str, str, int]
"""Channel, participant and number of the log that a journal line belongs to."""
WINDOW: Final = 10_000
"""Number of messages in a generation, after which the next generation begins. At most two
generations exist at a time."""
LIVES_OF_A_JOURNAL: Final = 10_000
"""Number of the first log in a journal, derived from a hash of the journal's path. Two journals of
one participant count as two logs, which keep their numbers after a restart."""


class Generation:
    """Collector of lines, with which a verdict is possible at any time.

    A generation is a stretch of time that is judged as a whole. Messages must be judged together,
    but a channel never ends. After a number of messages, a new generation begins with the present
    state of all participants. The previous generation continues beside the new generation until all
    of its messages are due. Each message is judged by the generation that saw it first and has its
    whole history. At most two generations exist, and of earlier generations only ids are kept.
    """

    def __init__(self, settle_ms: int | None) -> None:
        self._settle_ms = settle_ms
        self._lives: dict[Whose, _Life] = {}
        self._facts: list[object] = []
        self._ids: set[str] = set()
        self._older: set[str] = set()
        """Messages that an earlier generation saw first."""
        self._lines = 0
        self._lags: list[Lag] = []
        self._earlier_lags: list[Lag] = []
        """Of the generation before: how far clocks are apart is known from the beginning."""
        self._verdict: Verdict | None = None
        """The last one, while no line has come since."""
        self.ahead_ms: dict[tuple[str, str], int] = {}
        """By how much clocks are certainly ahead, as the last verdict has it."""

    @property
    def settle_ms(self) -> int:
        """Maximum time that a message may be on its way, from the options of the participants."""
        lives = self._lives.values()
        return max((each.gathering.replay.settle_ms for each in lives), default=SETTLE_MS)

    @property
    def size(self) -> int:
        """Size of the generation in messages."""
        own = len(self._ids) - CARRIED if self._older else len(self._ids)
        return max(own, 0) + self._lines // LINES_A_MESSAGE

    def add(self, whose: Whose, noted: Noted, message: Message | None) -> None:
        """Process a line of a participant, with the message in the line."""
        self._lines += 1
        self._verdict = None
        ids = {noted.line.message_id, *(noted.line.message_ids or ())}
        self._ids.update(filter(None, ids | ({message.message_id} if message else set())))
        life = self._lives.get(whose)
        if life is None:
            life = self._lives[whose] = _Life(whose, self._settle_ms)
        line = life.adapted(noted.line, self._older)
        if line is not None:
            self._facts.extend(life.gathering.add(noted._replace(line=line), message))

    def verdict(self) -> Verdict:
        """Return the present verdict about this generation's messages."""
        if self._verdict is not None:
            return self._verdict
        ends = (life.gathering.end() for life in self._lives.values())
        facts = by_kind(chain(self._facts, *ends))
        participants = len({whose[:2] for whose in self._lives})
        verdict = judge(
            facts,
            participants=participants,
            settle_ms=self._settle_ms,
            earlier_lags=self._earlier_lags,
        )
        verdict.findings = [each for each in verdict.findings if each.message_id not in self._older]
        verdict.broken = dict(Counter(each.audit for each in verdict.findings))
        self._lags = own_lags(facts[Lag], facts[Dispatch])
        self.ahead_ms = verdict.ahead_ms
        self._verdict = verdict
        return verdict

    def next(self) -> Generation:
        """Return the next generation, which begins with the present state."""
        after = Generation(self._settle_ms)
        after._older = set(self._ids)
        self.verdict()
        after._earlier_lags, after.ahead_ms = self._lags, self.ahead_ms
        cuts = self._cuts()
        newest = {whose[:2]: whose for whose in sorted(self._lives)}
        for whose in newest.values():
            if (life := self._lives[whose]).gathering.replay.has_begun:
                own = after._lives[whose] = _Life(whose, self._settle_ms)
                after._facts.extend(own.begin(life, cuts[whose[0]]))
        return after

    def _cuts(self) -> dict[str, tuple[int, str]]:
        """By channel the key after which messages go along: of the shortest end of any log."""
        cuts: dict[str, tuple[int, str]] = {}
        for whose, life in self._lives.items():
            log = life.gathering.replay.log
            key = log[-CARRIED].key if len(log) > CARRIED else (-1, "")
            cuts[whose[0]] = max(key, cuts.get(whose[0], key))
        return cuts


class _Life:
    """One log of a participant, in the generation's own count of positions."""

    def __init__(self, whose: Whose, settle_ms: int | None) -> None:
        self.gathering = Gathering(whose, settle_ms=settle_ms)
        self.opened: Line | None = None
        self._at_ms = 0
        self._dropped = 0
        """Entries of the participant's log below those that went along."""
        self._cut: tuple[int, str] = (-1, "")

    def begin(self, before: _Life, cut: tuple[int, str]) -> Iterator[object]:
        """Start with the end of the log of the generation before."""
        log = before.gathering.replay.log
        along = [each for each in log if each.key > cut]
        self._cut, self._dropped = cut, before._dropped + len(log) - len(along)
        self.opened, self._at_ms = before.opened, before._at_ms
        header = settings(before.opened) if before.opened is not None else {}
        header |= {"wanted_from_ms": None, "log_length": len(along), "at_ms": self._at_ms}
        sender_id = str(header.get("sender_id"))
        opened = Line(OPENED, self._at_ms, sender_id=sender_id, record=json.dumps(header))
        restored = Line(LOGGED, self._at_ms, outcome="restored")
        for line in (opened, *(restored._replace(**each._asdict()) for each in along)):
            yield from self.gathering.add(Noted("", 0, 0, line), None)

    def adapted(self, line: Line, older: set[str]) -> Line | None:
        """The line with positions as they count here; None where it is about what did not go
        along."""
        self._at_ms = max(self._at_ms, line.at_ms or 0)
        if line.event == OPENED:
            self.opened = line
            header, known = settings(line), len(self.gathering.replay.log)
            length = header.get("log_length")
            if self._dropped and isinstance(length, int):  # most of which did not go along
                self._dropped = max(0, length - known)
                header["log_length"] = min(length, known)
                return line._replace(record=json.dumps(header))
        if line.event != LOGGED:
            return line
        if (line.lamport_timestamp or 0, line.message_id or "") > self._cut:
            return line._replace(position=(line.position or 0) - self._dropped)
        older.add(line.message_id or "")
        self._dropped += line.outcome != "restored"
        return None


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
