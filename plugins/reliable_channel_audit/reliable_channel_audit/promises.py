"""The promises that take more than one participant to judge, over plain values.

`audits.py` says the same in DataFrames, for what does not fit into memory; tests hold the two
together.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from .facts import Delivery, Outcome
from .findings import Audit, Finding
from .log_order import first_difference
from .replay import Life

LOST: Final = "declared lost"
NEVER: Final = "never delivered"
ANOTHER_MESSAGE: Final = "another message than its sender accepted, or most others have"


class Undelivered(NamedTuple):
    """What was owed and did not come."""

    findings: list[Finding]
    on_the_way: int
    """Pairs of message and participant for which it is too early to say."""


def undelivered(
    lives: Sequence[Life],
    deliveries: Sequence[Delivery],
    outcomes: Sequence[Outcome],
    settle_ms: int,
) -> Undelivered:
    """What was accepted, and not delivered to somebody who wanted it and was there later.

    A message whose failure its sender was told is owed to nobody.
    """
    failures = {(each.channel_id, each.message_id) for each in outcomes if each.is_failure}
    failed = {
        (each.channel_id, each.message_id)
        for each in deliveries
        if (each.channel_id, each.first_segment_id) in failures
    }
    lost = {each[:4] for each in outcomes if not each.is_failure}
    here: defaultdict[tuple[str, str, int], set[str]] = defaultdict(set)
    accepted: defaultdict[str, dict[str, Delivery]] = defaultdict(dict)
    for each in deliveries:
        here[each[:3]].add(each.message_id)
        known = accepted[each.channel_id].setdefault(each.message_id, each)
        if _first(each) < _first(known):
            accepted[each.channel_id][each.message_id] = each
    found, on_the_way = [], 0
    for life in lives:
        whose = life[:3]
        for message_id in accepted[life.channel_id].keys() - here[whose]:
            message = accepted[life.channel_id][message_id]
            if (life.channel_id, message_id) in failed:
                continue
            if message.lamport_timestamp < life.owed_from_ms or message.at_ms > life.until_ms:
                continue
            if message.at_ms + settle_ms > life.until_ms:
                on_the_way += 1
                continue
            what = LOST if (*whose, message_id) in lost else NEVER
            detail = f"{what}; sent by {message.sender_id}"
            found.append(Finding(Audit.DELIVERY.value, *whose, message_id, message.at_ms, detail))
    return Undelivered(found, on_the_way)


def ids_of_several(deliveries: Iterable[Delivery]) -> Iterator[Finding]:
    """Where a log has another message under an id than its sender accepted, or most others have."""
    holders: defaultdict[tuple[str, str], list[Delivery]] = defaultdict(list)
    for each in deliveries:
        holders[each.channel_id, each.message_id].append(each)
    for held in holders.values():
        counts = Counter(_meaning(each) for each in held)
        if len(counts) == 1:
            continue
        own = {_meaning(each) for each in held if each.first_segment_id is not None}
        true = max(counts, key=lambda meaning: (meaning in own, counts[meaning], meaning))
        for each in held:
            if _meaning(each) != true:
                yield Finding(
                    Audit.IDS.value, *each[:3], each.message_id, each.at_ms, ANOTHER_MESSAGE
                )


def unequal_logs(lives: Sequence[Life], deliveries: Iterable[Delivery]) -> Iterator[Finding]:
    """Where the order of a log differs first from that of most others.

    Digests are compared first. Of logs that differ only what both have counts: what is absent is
    for `undelivered` to judge.
    """
    logs: defaultdict[tuple[str, str, int], list[tuple[int, str]]] = defaultdict(list)
    for each in deliveries:
        logs[each[:3]].append((each.log_position, each.message_id))
    for model, others in models(lives):
        order = [message_id for _, message_id in sorted(logs[model[:3]])]
        for life in others:
            theirs = [message_id for _, message_id in sorted(logs[life[:3]])]
            common = set(order).intersection(theirs)
            here = [message_id for message_id in theirs if message_id in common]
            there = [message_id for message_id in order if message_id in common]
            position = first_difference(here, there)
            if position is not None:
                detail = difference(position, model.participant_id, there[position])
                yield Finding(
                    Audit.EQUAL_LOGS.value, *life[:3], here[position], life.until_ms, detail
                )


def difference(position: int, model_id: str, message_id: str) -> str:
    """How a finding tells where two logs differ."""
    return f"position {position} of what both have is {message_id} in the log of {model_id}"


def models(lives: Iterable[Life]) -> Iterator[tuple[Life, list[Life]]]:
    """Of each channel a life whose log most others share, and those whose digest differs."""
    channels: defaultdict[str, list[Life]] = defaultdict(list)
    for life in sorted(lives):
        channels[life.channel_id].append(life)
    for of_channel in channels.values():
        shared = Counter(life.log_digest for life in of_channel)
        model = max(reversed(of_channel), key=lambda life: (shared[life.log_digest], life.entries))
        yield model, [life for life in of_channel if life.log_digest != model.log_digest]


def twice_at_a_time(lives: Iterable[Life]) -> Iterator[Finding]:
    """Participants of whom two journals tell at one time."""
    by_begin = sorted(lives, key=lambda life: (life[:2], life.opened_ms, life.life))
    for before, life in pairwise(by_begin):
        if before[:2] == life[:2] and life.opened_ms < before.until_ms:
            detail = f"{life.path} and {before.path} overlap"
            yield Finding(Audit.JOURNALS.value, *life[:3], "", life.opened_ms, detail)


def _first(delivery: Delivery) -> tuple[int, int, str]:
    return delivery.at_ms, delivery.lamport_timestamp, delivery.sender_id


def _meaning(delivery: Delivery) -> tuple[str, int, bytes]:
    return delivery.sender_id, delivery.lamport_timestamp, delivery.content_sha256
