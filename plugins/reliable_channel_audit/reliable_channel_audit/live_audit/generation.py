"""Generation of a channel's messages, a stretch of time that is judged as a whole. Generations of a
channel follow each other.

Messages must be judged together, but a channel never ends. After a number of messages, a new
generation begins with the present state of all participants. The previous generation continues
beside the new generation until all of its messages are due. Each message is judged by the
generation that saw it first and has its whole history. At most two generations exist, and of
earlier generations only ids are kept.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from itertools import chain
from typing import Final

from reliable_channel.spi import Message

from ..check import by_kind, judge
from ..clocks import own_lags
from ..facts import Dispatch, Gathering, Lag
from ..findings import SETTLE_MS
from ..journals import Noted, settings
from ..lines import LOGGED, OPENED, Line
from ..verdict import Verdict

CARRIED: Final = 2_000
"""Number of the newest log entries that a new generation gets, because messages refer to the newest
200."""
LINES_A_MESSAGE: Final = 20
"""Number of lines that count as one message, so that quiet channels also get new generations."""
Whose = tuple[str, str, int]
"""Channel, participant and number of the log that a journal line belongs to."""


class Generation:
    """Collector of lines, with which a verdict is possible at any time."""

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
