"""Small journals judged in this process: the same answer as the audit's, without a JVM."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from .clocks import clocks_apart
from .facts import Delivery, Lag, Outcome, facts_of
from .findings import SETTLE_MS, Finding
from .journals import Participant, journal_files, participants
from .promises import ids_of_several, twice_at_a_time, undelivered, unequal_logs
from .replay import Life
from .verdict import SetAside, Verdict, counted


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
    facts: defaultdict[type, list[Any]] = defaultdict(list)
    for participant in group:
        for fact in facts_of(participant, settle_ms=settle_ms):
            facts[type(fact)].append(fact)
        progress(participant)
    lives, deliveries = facts[Life], facts[Delivery]
    absent = undelivered(lives, deliveries, facts[Outcome], settle_ms)
    broken, first = counted(
        [
            *facts[Finding],
            *absent.findings,
            *ids_of_several(deliveries),
            *unequal_logs(lives, deliveries),
            *twice_at_a_time(lives),
            *clocks_apart(lives, facts[Lag]),
        ]
    )
    return Verdict(
        participants=len(group),
        lives=len(lives),
        logs=len({(life.channel_id, life.log_digest) for life in lives}),
        messages=len({(each.channel_id, each.message_id) for each in deliveries}),
        deliveries=len(deliveries),
        on_the_way=absent.on_the_way,
        broken=broken,
        findings=first,
        set_aside=sorted([nobody(path) for path in nobodys] + facts[SetAside]),
    )


def nobody(path: Path) -> SetAside:
    """A file that does not say whose it is."""
    return SetAside(str(path), "no journal_opened: nobody knows whose it is", 0, 0)
