"""Small journals judged in this process: the same answer as the audit's, without a JVM."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Final

from .findings import SETTLE_MS, Finding
from .journals import Noted, Participant, journal_files, lived, participants
from .lines import LOGGED, SET_ASIDE
from .log_order import Landed
from .promises import (
    Delivery,
    Outcome,
    ids_of_several,
    twice_at_a_time,
    undelivered,
    unequal_logs,
)
from .replay import Life, replayed
from .verdict import SetAside, Verdict, counted

FAILURES: Final = ("send_failed", "delivery_failed")


def check(
    paths: Iterable[str | Path],
    *,
    settle_ms: int = SETTLE_MS,
    progress: Callable[[Participant], None] = lambda participant: None,
) -> Verdict:
    """Judge the journals in files and directories.

    Raises:
        FileNotFoundError: a path that is not there.
        ValueError: there is no journal.
    """
    group, nobodys = participants(journal_files(paths))
    gathered = _Gathered()
    lives: list[Life] = []
    findings: list[Finding] = []
    logs: dict[tuple[str, str, int], list[Landed]] = {}
    for participant in group:
        whose = participant.channel_id, participant.participant_id
        noted = gathered.through(*whose, lived(*whose, participant.paths))
        for replay in replayed(*whose, noted, settle_ms=settle_ms):
            life = replay.life()
            logs[life[:3]] = replay.log
            lives.append(life)
            findings += replay.findings()
        progress(participant)
    absent = undelivered(lives, gathered.deliveries, gathered.outcomes, settle_ms)
    findings += absent.findings
    findings += ids_of_several(gathered.deliveries)
    findings += unequal_logs(lives, logs)
    findings += twice_at_a_time(lives)
    broken, first = counted(findings)
    return Verdict(
        participants=len(group),
        lives=len(lives),
        logs=len({(life.channel_id, life.log_digest) for life in lives}),
        messages=len({(each.channel_id, each.message_id) for each in gathered.deliveries}),
        deliveries=len(gathered.deliveries),
        on_the_way=absent.on_the_way,
        broken=broken,
        findings=first,
        set_aside=sorted([nobody(path) for path in nobodys] + gathered.set_aside()),
    )


def nobody(path: Path) -> SetAside:
    """A file that does not say whose it is."""
    return SetAside(str(path), "no journal_opened: nobody knows whose it is", 0, 0)


class _Gathered:
    """What is to be compared between participants, picked from their lines as they pass."""

    def __init__(self) -> None:
        self.deliveries: list[Delivery] = []
        self.outcomes: list[Outcome] = []
        self._set_aside: defaultdict[tuple[str, str], list[int]] = defaultdict(list)

    def through(
        self, channel_id: str, participant_id: str, lines: Iterable[Noted]
    ) -> Iterator[Noted]:
        """Hand on lines and keep what is wanted of them."""
        seen: set[tuple[int, str]] = set()
        for noted in lines:
            yield noted
            line, life = noted.line, noted.life
            whose = channel_id, participant_id, life
            if line.event == SET_ASIDE:
                self._set_aside[noted.path, line.record or ""].append(noted.number)
            elif line.message_id is None or line.at_ms is None:
                continue
            elif line.event == LOGGED and (life, line.message_id) not in seen:
                seen.add((life, line.message_id))
                self.deliveries.append(
                    Delivery(
                        *whose,
                        line.message_id,
                        line.sender_id or "",
                        line.lamport_timestamp or 0,
                        line.content_sha256 or b"",
                        line.at_ms,
                        line.first_segment_id,
                    )
                )
            elif line.event in FAILURES:
                self.outcomes.append(Outcome(*whose, line.message_id, is_failure=True))
            elif line.event == "message_lost":
                self.outcomes.append(Outcome(*whose, line.message_id, is_failure=False))

    def set_aside(self) -> list[SetAside]:
        """The lines that could not be read."""
        return [
            SetAside(path, reason, len(numbers), min(numbers))
            for (path, reason), numbers in self._set_aside.items()
        ]
