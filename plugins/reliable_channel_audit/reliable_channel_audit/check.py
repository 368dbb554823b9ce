"""Verdict on small journals in this process, without a JVM, equal to the verdict of Spark."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from itertools import chain
from pathlib import Path
from typing import Any

from .clocks import clock_offsets, clocks_apart, own_lags
from .facts import Acknowledgement, Delivery, Dispatch, Lag, Outcome, facts_of, uncollected
from .findings import Audit, Coverage, Finding, Gap, HeardSender, Orphan
from .journals import group_of, journal_files
from .misbehaviour import Deed
from .promises import (
    Compared,
    Context,
    compare_messages,
    invented,
    twice_at_a_time,
    unequal_logs,
    unknowns,
)
from .rates import rates
from .replay import Life
from .verdict import Behind, Lost, SetAside, Verdict, counted

FactsByKind = defaultdict[type, list[Any]]
"""Facts of participants by kind of fact."""


def by_kind(facts: Iterable[object]) -> FactsByKind:
    """Return facts in their order, by kind."""
    found: FactsByKind = defaultdict(list)
    for fact in facts:
        found[type(fact)].append(fact)
    return found


def check(paths: Iterable[str | Path], *, settle_ms: int | None = None) -> Verdict:
    """Judge the journals in files and directories.

    A message may be on its way as long as the participants' options say, or for `settle_ms`. If a
    participant has no journal, the verdict is unknown.

    Raises:
        FileNotFoundError: a path that is not there.
    """
    group = group_of(journal_files(paths, may_be_none=True))
    every = (facts_of(each, settle_ms=settle_ms) for each in group.participants)
    with uncollected():
        facts = by_kind(chain.from_iterable(every))
    verdict = judge(facts, participants=len(group.participants), settle_ms=settle_ms)
    verdict.rates = rates(facts[Delivery], verdict.lost, verdict.ahead_ms)
    verdict.set_aside = sorted(group.set_aside + facts[SetAside])
    return verdict


def judge(
    facts: FactsByKind,
    *,
    participants: int,
    settle_ms: int | None = None,
    earlier_lags: Iterable[Lag] = (),
) -> Verdict:
    """Judge the facts of several participants. `own_lags` of earlier journals improve the estimates
    of clocks."""
    lives, deliveries = facts[Life], facts[Delivery]
    lags = [*own_lags(facts[Lag], facts[Dispatch]), *earlier_lags]
    context = Context(lives, clock_offsets(lags, lives), facts[Gap], facts[HeardSender], settle_ms)
    compared, false = compare_messages(
        context, deliveries, facts[Outcome], facts[Acknowledgement], facts[Orphan]
    )
    compared.findings += [*invented(false, facts[Dispatch]), *unequal_logs(lives, deliveries)]
    verdict = concluded(facts, context, compared, participants=participants)
    verdict.messages = len({(each.channel_id, each.message_id) for each in deliveries})
    verdict.deliveries = len(deliveries)
    return verdict


def concluded(
    facts: FactsByKind, context: Context, compared: Compared, *, participants: int
) -> Verdict:
    """Return the verdict from facts about each participant and from comparisons of participants."""
    lives = context.lives
    broken, first = counted(
        [
            *facts[Finding],
            *compared.findings,
            *twice_at_a_time(lives),
            *clocks_apart(lives, context.offsets),
        ]
    )
    misbehaviour, judged = Counter[str](), Counter[str]()
    for each in facts[Deed]:
        misbehaviour[each.what] += each.times
    for covered in facts[Coverage]:
        judged[covered.audit] += covered.cases
    judged[Audit.DELIVERY.value] += broken.get(Audit.DELIVERY.value, 0)
    return Verdict(
        participants=participants,
        lives=len(lives),
        logs=len({(life.channel_id, life.log_digest) for life in lives}),
        on_the_way=compared.on_the_way,
        behind=[Behind(*whose, *values) for whose, values in sorted(compared.behind.items())],
        lost=[Lost(*route, messages) for route, messages in sorted(compared.lost.items())],
        clocks=context.clocks,
        judged=dict(judged),
        unknown=unknowns(facts[Coverage], context, compared.unjudged),
        without_journal=context.unheard,
        broken=broken,
        findings=first,
        misbehaviour=dict(misbehaviour),
    )
