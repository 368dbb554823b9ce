"""Small journals judged in this process: the same answer as the audit's, without a JVM."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from .clocks import clock_offsets, clocks_apart, own_lags
from .dag import Said
from .facts import Acknowledgement, Delivery, Dispatch, Lag, Outcome, facts_of, uncollected
from .findings import SETTLE_MS, Coverage, Finding, HeardSender, Orphan
from .journals import Participant, journal_files, participants
from .promises import (
    acknowledged_and_lost,
    ids_of_several,
    invented,
    not_sent,
    orphaned,
    twice_at_a_time,
    undelivered,
    unequal_logs,
    unknowns,
    without_journal,
)
from .replay import Life
from .verdict import SetAside, Verdict, counted


def check(
    paths: Iterable[str | Path],
    *,
    settle_ms: int = SETTLE_MS,
    progress: Callable[[Participant], None] = lambda participant: None,
) -> Verdict:
    """Judge the journals in files and directories.

    Where there is no journal, nothing is known.

    Raises:
        FileNotFoundError: a path that is not there.
    """
    group, nobodys = participants(journal_files(paths, may_be_none=True))
    facts: defaultdict[type, list[Any]] = defaultdict(list)
    with uncollected():
        for participant in group:
            for fact in facts_of(participant, settle_ms=settle_ms):
                if not isinstance(fact, Said):  # for the DAG of a report alone
                    facts[type(fact)].append(fact)
            progress(participant)
    verdict = judge(facts, participants=len(group), settle_ms=settle_ms)
    verdict.set_aside = sorted([nobody(path) for path in nobodys] + facts[SetAside])
    return verdict


def judge(
    facts: defaultdict[type, list[Any]],
    *,
    participants: int,
    settle_ms: int = SETTLE_MS,
    earlier_lags: Iterable[Lag] = (),
) -> Verdict:
    """Judge facts, by kind, of so many participants; `own_lags` of before show more of clocks."""
    lives, deliveries = facts[Life], facts[Delivery]
    offsets = clock_offsets([*own_lags(facts[Lag], facts[Dispatch]), *earlier_lags])
    false = not_sent(lives, deliveries, offsets)
    absent = undelivered(lives, deliveries, facts[Outcome], false, offsets, settle_ms)
    unheard = without_journal(lives, facts[HeardSender])
    judged = Counter[str]()
    for each in facts[Coverage]:
        judged[each.audit] += each.cases
    broken, first = counted(
        [
            *facts[Finding],
            *absent.findings,
            *acknowledged_and_lost(deliveries, facts[Acknowledgement], unheard),
            *orphaned(deliveries, facts[Orphan], unheard),
            *invented(false, facts[Dispatch]),
            *ids_of_several(deliveries),
            *unequal_logs(lives, deliveries),
            *twice_at_a_time(lives),
            *clocks_apart(lives, offsets),
        ]
    )
    return Verdict(
        participants=participants,
        lives=len(lives),
        logs=len({(life.channel_id, life.log_digest) for life in lives}),
        messages=len({(each.channel_id, each.message_id) for each in deliveries}),
        deliveries=len(deliveries),
        on_the_way=absent.on_the_way,
        judged=dict(judged),
        unknown=unknowns(facts[Coverage], lives, unheard),
        without_journal=unheard,
        broken=broken,
        findings=first,
    )


def nobody(path: Path) -> SetAside:
    """A file that does not say whose it is."""
    return SetAside(str(path), "no journal_opened: its participant is unknown", 0, 0)
