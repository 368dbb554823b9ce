"""The promises that take more than one participant to judge, over plain values.

`audits.py` says the same in DataFrames, for what does not fit into memory; tests hold the two
together.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from .clocks import Offset
from .facts import Acknowledgement, Delivery, Dispatch, Outcome
from .findings import ESSENTIAL, NOBODY_HAS_IT, Audit, Coverage, Finding, HeardSender, Orphan
from .log_order import first_difference
from .replay import Life
from .verdict import NO_CASE

LOST: Final = "declared lost"
NEVER: Final = "never delivered"
ANOTHER_MESSAGE: Final = "another message than its sender accepted, or most others have"


NO_JOURNAL_KNOWS: Final = " refers to it, and no journal knows it"
NOT_SENT: Final = "its sender, whose journal is here, did not send it"


ACROSS: Final = (
    Audit.DELIVERY,
    Audit.EQUAL_LOGS,
    Audit.IDS,
    Audit.REFERENCES,
    Audit.ACKNOWLEDGEMENTS,
)
"""Audits that take all journals of a channel."""


class Undelivered(NamedTuple):
    """What was owed and did not come."""

    findings: list[Finding]
    on_the_way: int
    """Pairs of message and participant for which it is too early to say."""


def undelivered(
    lives: Sequence[Life],
    deliveries: Sequence[Delivery],
    outcomes: Sequence[Outcome],
    false: Container[tuple[str, str]],
    offsets: Mapping[tuple[str, str], Offset],
    settle_ms: int,
) -> Undelivered:
    """Messages that were accepted, and not delivered to a participant that wanted them and was
    there later.

    A message whose failure was reported to its sender does not count, nor does one that was
    `not_sent`. Times are corrected by what clocks are certainly ahead.
    """
    ahead_ms = _certain(offsets)
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
    agenda = {
        channel_id: sorted(
            (message.at_ms - ahead_ms[message[:2]], message_id)
            for message_id, message in messages.items()
            if (channel_id, message_id) not in failed and (channel_id, message_id) not in false
        )
        for channel_id, messages in accepted.items()
    }
    found, on_the_way = [], 0
    for life in lives:
        whose = life[:3]
        owed_from_ms = life.owed_from_ms - ahead_ms[life[:2]]
        until_ms = life.until_ms - ahead_ms[life[:2]]
        times = agenda.get(life.channel_id, [])
        begin, end = bisect_left(times, (owed_from_ms, "")), bisect_left(times, (until_ms + 1, ""))
        for accepted_ms, message_id in times[begin:end]:
            message = accepted[life.channel_id][message_id]
            if message_id in here[whose] or _sent_ms(message, accepted_ms) < owed_from_ms:
                continue
            if accepted_ms + settle_ms > until_ms:
                on_the_way += 1
                continue
            what = LOST if (*whose, message_id) in lost else NEVER
            detail = f"{what}; sent by {message.sender_id}"
            found.append(Finding(Audit.DELIVERY.value, *whose, message_id, message.at_ms, detail))
    return Undelivered(found, on_the_way)


def acknowledged_and_lost(
    deliveries: Iterable[Delivery],
    acknowledgements: Iterable[Acknowledgement],
    unheard: Iterable[tuple[str, str]],
) -> Iterator[Finding]:
    """Own messages that were acknowledged, and that no other journal has.

    Where a participant left no journal, it may be the one that has them.
    """
    partial = {channel_id for channel_id, _ in unheard}
    holders: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
    for each in deliveries:
        holders[each.channel_id, each.message_id].add(each.participant_id)
    for told in acknowledgements:
        if told.acknowledged_ms is None or told.channel_id in partial:
            continue
        if holders[told.channel_id, told.message_id] <= {told.participant_id}:
            at_ms = told.acknowledged_ms
            name = Audit.ACKNOWLEDGEMENTS.value
            yield Finding(name, *told[:3], told.message_id, at_ms, NOBODY_HAS_IT)


def orphaned(
    deliveries: Iterable[Delivery],
    orphans: Iterable[Orphan],
    unheard: Iterable[tuple[str, str]],
) -> Iterator[Finding]:
    """References to messages that no journal knows, at each participant once."""
    partial = {channel_id for channel_id, _ in unheard}
    known = {(each.channel_id, each.message_id) for each in deliveries}
    for each in sorted(set(orphans)):
        if each.channel_id in partial or (each.channel_id, each.message_id) in known:
            continue
        detail = each.first_segment_id + NO_JOURNAL_KNOWS
        yield Finding(Audit.REFERENCES.value, *each[:3], each.message_id, each.at_ms, detail)


def not_sent(
    lives: Iterable[Life],
    deliveries: Iterable[Delivery],
    offsets: Mapping[tuple[str, str], Offset],
) -> dict[tuple[str, str], list[Delivery]]:
    """Messages in logs that their sender did not send, though its journal is of that time.

    Times are corrected by what clocks are certainly ahead.
    """
    ahead_ms = _certain(offsets)
    spans: defaultdict[tuple[str, str], list[tuple[int, int]]] = defaultdict(list)
    for life in lives:
        ahead = ahead_ms[life[:2]]
        spans[life[:2]].append((life.opened_ms - ahead, life.until_ms - ahead))
    holders: defaultdict[tuple[str, str], list[Delivery]] = defaultdict(list)
    for each in deliveries:
        holders[each.channel_id, each.message_id].append(each)
    found = {}
    for message, held in holders.items():
        senders = {each.sender_id for each in held}
        if len(senders) > 1 or senders & {each.participant_id for each in held}:
            continue  # of several senders: `ids_of_several`
        stamp_ms = min(each.at_ms - ahead_ms[each[:2]] for each in held)
        was_there = spans[held[0].channel_id, held[0].sender_id]
        if any(opened_ms <= stamp_ms <= until_ms for opened_ms, until_ms in was_there):
            found[message] = held
    return found


def invented(
    false: Mapping[tuple[str, str], Sequence[Delivery]], dispatches: Iterable[Dispatch]
) -> Iterator[Finding]:
    """Messages that were `not_sent`, at the participant that sent them out and did not receive
    them; where no journal shows that, at those that have them."""
    hashes = {
        (each.channel_id, each.message_hash): message
        for message, held in false.items()
        for each in held
    }
    inventors: defaultdict[tuple[str, str], set[tuple[str, str, int]]] = defaultdict(set)
    for sent in dispatches if false else ():
        went = hashes.get((sent.channel_id, sent.message_hash))
        if went is not None and not any(
            each.participant_id == sent.participant_id and each.message_hash is not None
            for each in false[went]
        ):
            inventors[went].add(sent[:3])
    for message, held in false.items():
        at_ms = min(each.at_ms for each in held)
        for whose in sorted(inventors.get(message) or {each[:3] for each in held}):
            yield Finding(Audit.IDS.value, *whose, message[1], at_ms, NOT_SENT)


def without_journal(lives: Iterable[Life], heard: Iterable[HeardSender]) -> list[tuple[str, str]]:
    """Channel and name of each participant that was heard and left no journal."""
    here = {life[:2] for life in lives}
    return sorted({(each.channel_id, each.sender_id) for each in heard} - here)


def unknowns(
    judged: Iterable[Coverage], lives: Sequence[Life], unheard: Iterable[tuple[str, str]]
) -> dict[str, str]:
    """By audit why it cannot be known whether its promise was kept."""
    cases: Counter[tuple[str, str]] = Counter()
    why: dict[str, str] = {}
    for each in sorted(judged, key=lambda each: each[:4]):
        cases[each.channel_id, each.audit] += each.cases
        if each.why is not None:
            why.setdefault(each.audit, not_judged(each.participant_id, each.why))
    journals = Counter(channel_id for channel_id, _ in {life[:2] for life in lives})
    return why | reasons(journals, cases, unheard)


def not_judged(participant_id: str, why: str) -> str:
    """How a reason reads that is of one participant."""
    return f"at {participant_id}: {why}"


def reasons(
    journals: Mapping[str, int],
    cases: Mapping[tuple[str, str], int],
    unheard: Iterable[tuple[str, str]],
) -> dict[str, str]:
    """By audit why it is unknown, from what there is of each channel: journals of so many
    participants, so many cases of each audit, and participants without a journal."""
    found: dict[str, str] = {}
    if not journals:
        return {audit.value: "no journal" for audit in ESSENTIAL}
    for audit in Audit:
        every = [cases.get((channel_id, audit.value), 0) for channel_id in sorted(journals)]
        if not any(every) or (audit in ESSENTIAL and not all(every)):
            found[audit.value] = NO_CASE
    for channel_id, name in sorted(unheard):
        for audit in ACROSS:
            found[audit.value] = f"{name} was heard in {channel_id}, and left no journal"
    for channel_id, participants in sorted(journals.items()):
        if participants == 1:
            for audit in ACROSS:
                found[audit.value] = f"only one participant of {channel_id} left a journal"
    return found


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
        places = {message_id: place for place, message_id in enumerate(order)}
        for life in others:
            theirs = [message_id for _, message_id in sorted(logs[life[:3]])]
            here = [message_id for message_id in theirs if message_id in places]
            there = sorted(here, key=places.__getitem__)
            position = first_difference(here, there)
            if position is not None:
                detail = difference(position, model.participant_id, there[position])
                yield Finding(
                    Audit.EQUAL_LOGS.value, *life[:3], here[position], life.until_ms, detail
                )


def difference(position: int, model_id: str, message_id: str) -> str:
    """How a finding describes where two logs differ."""
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
    """Participants with two journals of the same time."""
    by_begin = sorted(lives, key=lambda life: (life[:2], life.opened_ms, life.life))
    for before, life in pairwise(by_begin):
        if before[:2] == life[:2] and life.opened_ms < before.until_ms:
            detail = f"{life.path} and {before.path} overlap"
            yield Finding(Audit.JOURNALS.value, *life[:3], "", life.opened_ms, detail)


def _certain(offsets: Mapping[tuple[str, str], Offset]) -> defaultdict[tuple[str, str], int]:
    return defaultdict(int, {whose: each.certain_ms for whose, each in offsets.items()})


def _sent_ms(message: Delivery, accepted_ms: int) -> int:
    """When a message was sent: as its sender has it, or before anybody had it."""
    is_own = message.first_segment_id is not None
    return accepted_ms if is_own else min(accepted_ms, message.lamport_timestamp)


def _first(delivery: Delivery) -> tuple[bool, int, int, str, str]:
    """Its sender had a message first."""
    is_known = delivery.first_segment_id is None
    stamps = delivery.at_ms, delivery.lamport_timestamp
    return is_known, *stamps, delivery.sender_id, delivery.participant_id


def _meaning(delivery: Delivery) -> tuple[str, int, bytes]:
    return delivery.sender_id, delivery.lamport_timestamp, delivery.content_sha256
