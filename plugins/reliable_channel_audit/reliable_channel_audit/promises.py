"""Promises that are judged by comparing several participants, from plain values.

Most promises are about one message. Each message can be judged separately, so any share of the
messages gives a share of the result.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from itertools import groupby, pairwise
from operator import attrgetter
from typing import Final

from .clocks import Offset
from .facts import Acknowledgement, Delivery, Dispatch, Outcome
from .findings import (
    ALWAYS_MS,
    ESSENTIAL,
    NOBODY_HAS_IT,
    SETTLE_MS,
    Audit,
    Coverage,
    Finding,
    Gap,
    HeardSender,
    Orphan,
)
from .log_order import HOUR_MS
from .replay import Life
from .verdict import NO_CASE

ANOTHER_MESSAGE: Final = "another message than its sender accepted, or most others have"
NOT_SENT: Final = "its sender, whose journal is here, did not send it"
ENDS_EARLY: Final = "its journal ends before it does"
NOBODY: Final = ""
"""Participant of a finding that no journal assigns to a participant."""
ACROSS: Final = (
    Audit.DELIVERY,
    Audit.EQUAL_LOGS,
    Audit.IDS,
    Audit.REFERENCES,
    Audit.ACKNOWLEDGEMENTS,
)
"""Audits that need the journals of all participants."""
Whose = tuple[str, str]
"""Channel and participant that a journal belongs to."""
MessageKey = tuple[str, str]
"""Channel and message that a case is about."""
_Accepted = tuple[int, str, Delivery]
"""Time when a message was accepted, with its id and its first delivery."""


class Context:
    """Knowledge about all participants, their logs, their clocks, and gaps in their journals."""

    def __init__(
        self,
        lives: Sequence[Life],
        offsets: Mapping[Whose, Offset],
        gaps: Iterable[Gap],
        heard: Sequence[HeardSender],
        settle_ms: int | None = None,
    ) -> None:
        self.lives = lives
        self.offsets = offsets
        self.ahead_ms = defaultdict(int, {each: of.certain_ms for each, of in offsets.items()})
        self.clocks = {
            each: None if of.why else of.certain_ms
            for each, of in offsets.items()
            if of.why or of.certain_ms
        }
        """How far wrong clocks are ahead (ms); None if that is unknown."""
        senders = {(each.channel_id, each.sender_id) for each in heard}
        self.unheard = sorted(senders - {life[:2] for life in lives})
        """Channel and name of each participant that was heard and left no journal."""
        self.partial = {channel_id for channel_id, _ in self.unheard}
        self._settle_ms = settle_ms
        self._settles: Counter[str] = Counter()
        self.spans: defaultdict[Whose, list[tuple[int, int]]] = defaultdict(list)
        """When each participant was there, by a clock that is not ahead."""
        for life in lives:
            ahead_ms = self.ahead_ms[life[:2]]
            self.spans[life[:2]].append((life.opened_ms - ahead_ms, life.until_ms - ahead_ms))
            self._settles[life.channel_id] = max(self._settles[life.channel_id], life.settle_ms)
        self.ends_ms = {whose: max(span[1] for span in each) for whose, each in self.spans.items()}
        """When the last journal of each participant ends, by a clock that is not ahead."""
        self.early_ends = self._early_ends(heard)
        """When journals end whose participants went on."""
        self._gaps: defaultdict[Whose, list[Gap]] = defaultdict(list)
        for gap in gaps:
            ahead_ms = self.ahead_ms[gap[:2]]
            from_ms, to_ms = gap.from_ms - ahead_ms, gap.to_ms - ahead_ms
            self._gaps[gap[:2]].append(gap._replace(from_ms=from_ms, to_ms=to_ms))
        for whose, end_ms in self.early_ends.items():
            self._gaps[whose].append(Gap(*whose, 0, end_ms + 1, ALWAYS_MS[1], ENDS_EARLY))

    def of_channel(self, channel_id: str) -> Context:
        """Return a context with only the participants of one channel."""
        own = copy(self)
        own.lives = [life for life in self.lives if life.channel_id == channel_id]
        return own

    def _early_ends(self, heard: Iterable[HeardSender]) -> dict[Whose, int]:
        """Those of which the newest message that was heard is newer than any in their
        journals, and came after these end."""
        newest = attrgetter("last_lamport", "last_ms", "participant_id", "life")
        last = {(each.channel_id, each.sender_id): each for each in sorted(heard, key=newest)}
        own: dict[Whose, int] = {}
        for life in self.lives:
            own[life[:2]] = max(life.last_lamport, own.get(life[:2], 0))
        return {
            whose: self.ends_ms[whose]
            for whose, each in last.items()
            if whose in self.ends_ms
            and each.last_lamport > own[whose]
            and each.last_ms - self.ahead_ms[each[:2]] > self.ends_ms[whose]
        }

    def settle_ms(self, channel_id: str) -> int:
        """Return the maximum time that a message may be on its way in a channel (ms)."""
        return self._settles[channel_id] if self._settle_ms is None else self._settle_ms

    def unknown_clock(self, whose: Whose) -> str:
        """Return the reason why a participant's times cannot be compared, or an empty text."""
        offset = self.offsets.get(whose)
        return "" if offset is None else offset.why

    def gap(self, whose: Whose, from_ms: int, to_ms: int) -> Gap | None:
        """Return a gap of a participant's journal in a time range, or None."""
        gaps = self._gaps.get(whose, ())
        return next((gap for gap in gaps if gap.from_ms <= to_ms and from_ms <= gap.to_ms), None)

    def may_have(self, whose: Whose, at_ms: int) -> bool:
        """Return True if another journal ends so shortly before a time that it may lack lines."""
        return any(
            other[0] == whose[0] and other != whose and 0 < at_ms - end_ms <= SETTLE_MS
            for other, end_ms in self.ends_ms.items()
        )

    def gap_of_others(self, whose: Whose, from_ms: int, to_ms: int) -> Gap | None:
        """Return a gap of another participant's journal in a time range, or None."""
        others = (each for each in self._gaps if each[0] == whose[0] and each != whose)
        return next(filter(None, (self.gap(each, from_ms, to_ms) for each in others)), None)


@dataclass(slots=True)
class Compared:
    """Results of comparing the participants of a channel."""

    findings: list[Finding] = field(default_factory=list)
    on_the_way: int = 0
    """Number of pairs of message and participant for which a judgement is too early."""
    unjudged: dict[Audit, str] = field(default_factory=dict)
    """Reasons why cases could not be judged, by audit."""
    behind: dict[Whose, tuple[int, int]] = field(default_factory=dict)
    """Number of messages that each participant lacks at the end, and the time of the first."""
    lost: Counter[tuple[str, str, str, int]] = field(default_factory=Counter)
    """Number of undelivered messages, by channel, sender, receiver and hour."""

    def lacks(self, whose: Whose, since_ms: int) -> None:
        """Count a message that a participant lacks at the end."""
        count, first_ms = self.behind.get(whose, (0, since_ms))
        self.behind[whose] = count + 1, min(first_ms, since_ms)

    def cannot_judge(self, audit: Audit, participant_id: str, why: str) -> None:
        """Note a reason why an audit cannot judge a case. Of several reasons, the one that is kept
        does not depend on their order."""
        self.add_reason(audit, not_judged(participant_id, why))

    def add_reason(self, audit: Audit, reason: str) -> None:
        """Note a reason that `cannot_judge` has made into a text."""
        self.unjudged[audit] = min(reason, self.unjudged.get(audit, reason))


def compare_messages(
    context: Context,
    deliveries: Sequence[Delivery],
    outcomes: Iterable[Outcome],
    acknowledgements: Iterable[Acknowledgement],
    orphans: Iterable[Orphan],
) -> tuple[Compared, dict[MessageKey, list[Delivery]]]:
    """Judge all promises about single messages. A share of the messages must contain all facts
    about them, and all failures. The messages that were not sent are also returned, for `invented`.
    """
    messages = Messages(context, deliveries)
    false = messages.not_sent()
    messages.undelivered(outcomes, false)
    messages.acknowledged_and_lost(acknowledgements)
    messages.orphaned(orphans)
    messages.ids_of_several()
    return messages.result, false


class Messages:
    """Messages with the logs that contain them. Methods add to `result` what they find."""

    def __init__(self, context: Context, deliveries: Iterable[Delivery]) -> None:
        self._context, self.result = context, Compared()
        self.holders: defaultdict[MessageKey, list[Delivery]] = defaultdict(list)
        for each in deliveries:
            self.holders[each.channel_id, each.message_id].append(each)

    def undelivered(
        self, outcomes: Iterable[Outcome], false: Container[MessageKey] = frozenset()
    ) -> None:
        """Find accepted messages that were not delivered to a participant that wanted them.

        A message that failed for its sender, or that was `not_sent`, does not count. Times are
        corrected by the certain leads of clocks.
        """
        context, result = self._context, self.result
        failures, lost = set(), set()
        for one in outcomes:
            if one.is_failure:
                failures.add((one.channel_id, one.message_id))
            else:
                lost.add(one[:4])
        here: defaultdict[tuple[str, str, int], set[str]] = defaultdict(set)
        dated: defaultdict[str, list[_Accepted]] = defaultdict(list)
        undated: defaultdict[str, dict[str, tuple[str, str]]] = defaultdict(dict)
        for key, held in self.holders.items():
            for each in held:
                here[each[:3]].add(each.message_id)
            message = min(held, key=_first)
            is_failed = any((key[0], each.first_segment_id) in failures for each in held)
            if is_failed or key in false:
                continue
            if why := context.unknown_clock(message[:2]):
                undated[key[0]][key[1]] = message.participant_id, why
            else:
                at_ms = message.at_ms - context.ahead_ms[message[:2]]
                dated[key[0]].append((at_ms, key[1], message))
        for times in dated.values():
            times.sort()
        for life in context.lives:
            has, times = here[life[:3]], dated[life.channel_id]
            for message_id, (participant_id, why) in undated[life.channel_id].items():
                if message_id not in has:
                    result.cannot_judge(Audit.DELIVERY, participant_id, why)
            if why := context.unknown_clock(life[:2]):
                if any(message_id not in has for _, message_id, _ in times):
                    result.cannot_judge(Audit.DELIVERY, life.participant_id, why)
                continue
            self._owed(life, times, has, lost)
            if life[:2] in context.early_ends:
                result.cannot_judge(Audit.DELIVERY, life.participant_id, ENDS_EARLY)

    def _owed(
        self,
        life: Life,
        times: Sequence[_Accepted],
        has: set[str],
        lost: set[tuple[str, str, int, str]],
    ) -> None:
        """Look at what was accepted while a participant was there."""
        context, result, whose = self._context, self.result, life[:3]
        owed_from_ms = life.owed_from_ms - context.ahead_ms[life[:2]]
        until_ms = life.until_ms - context.ahead_ms[life[:2]]
        begin, end = bisect_left(times, (owed_from_ms,)), bisect_left(times, (until_ms + 1,))
        for accepted_ms, message_id, message in times[begin:end]:
            if message_id in has or _sent_ms(message, accepted_ms) < owed_from_ms:
                continue
            if message.sender_id == life.participant_id and not _is_own(message):
                continue  # not owed to its sender: `not_sent`
            result.lacks(life[:2], accepted_ms)
            is_lost = (*whose, message_id) in lost
            due_ms = accepted_ms + context.settle_ms(life.channel_id)
            if (gap := context.gap(life[:2], accepted_ms, due_ms)) is not None:
                result.cannot_judge(Audit.DELIVERY, life.participant_id, gap.why)
            elif due_ms > until_ms and not is_lost:
                result.on_the_way += 1
            else:
                what = "declared lost" if is_lost else "never delivered"
                detail = f"{what}; sent by {message.sender_id}"
                self._find(Audit.DELIVERY, whose, message_id, message.at_ms, detail)
                route = life.channel_id, message.sender_id, life.participant_id
                result.lost[*route, hour_of(accepted_ms)] += 1

    def acknowledged_and_lost(self, acknowledgements: Iterable[Acknowledgement]) -> None:
        """Find own messages that were acknowledged although no other journal has them.

        A participant without a journal may have a message that no journal has.
        """
        context = self._context
        for each in acknowledgements:
            if each.acknowledged_ms is None or each.channel_id in context.partial:
                continue
            held = self.holders.get((each.channel_id, each.message_id), ())
            if any(one.participant_id != each.participant_id for one in held):
                continue
            gap = context.gap_of_others(each[:2], each.accepted_ms, ALWAYS_MS[1])
            at_ms = each.acknowledged_ms - context.ahead_ms[each[:2]]
            if gap is not None:
                self.result.cannot_judge(Audit.ACKNOWLEDGEMENTS, gap.participant_id, gap.why)
            elif context.may_have(each[:2], at_ms):
                self.result.on_the_way += 1
            else:
                whose, at_ms = each[:3], each.acknowledged_ms
                self._find(Audit.ACKNOWLEDGEMENTS, whose, each.message_id, at_ms, NOBODY_HAS_IT)

    def orphaned(self, orphans: Iterable[Orphan]) -> None:
        """Find references to messages that no journal contains, once at each participant."""
        context = self._context
        for each in sorted(set(orphans)):
            key = each.channel_id, each.message_id
            if each.channel_id in context.partial or key in self.holders:
                continue
            gap = context.gap_of_others((each.channel_id, NOBODY), ALWAYS_MS[0], each.at_ms)
            if gap is not None:
                self.result.cannot_judge(Audit.REFERENCES, gap.participant_id, gap.why)
            else:
                detail = f"{each.first_segment_id} refers to it, and no journal knows it"
                self._find(Audit.REFERENCES, each[:3], each.message_id, each.at_ms, detail)

    def not_sent(self) -> dict[MessageKey, list[Delivery]]:
        """Return messages in logs that their sender did not send, according to its journal.

        A sender that received the message from others did not send it either. Times are corrected
        by the certain leads of clocks.
        """
        context, found = self._context, {}
        for key, held in self.holders.items():
            senders = {each.sender_id for each in held}
            whose = key[0], held[0].sender_id
            if len(senders) > 1 or any(map(_is_own, held)) or whose not in context.spans:
                continue  # of several senders: `ids_of_several`
            stamp_ms = min(each.at_ms - context.ahead_ms[each[:2]] for each in held)
            clocks = [whose, *(each[:2] for each in held)]
            unknown = [each for each in clocks if context.unknown_clock(each)]
            if unknown:
                why = context.unknown_clock(unknown[0])
                self.result.cannot_judge(Audit.IDS, unknown[0][1], why)
                continue
            if not any(begin_ms <= stamp_ms <= end_ms for begin_ms, end_ms in context.spans[whose]):
                continue
            earliest_ms = min(stamp_ms - context.settle_ms(key[0]), held[0].lamport_timestamp)
            if (gap := context.gap(whose, earliest_ms, stamp_ms + SETTLE_MS)) is not None:
                self.result.cannot_judge(Audit.IDS, whose[1], gap.why)
            else:
                found[key] = held
        return found

    def ids_of_several(self) -> None:
        """Find logs with another message under an id than its sender or most logs have."""
        for held in self.holders.values():
            counts = Counter(map(_meaning, held))
            if len(counts) == 1:
                continue
            own = {_meaning(each) for each in held if each.first_segment_id is not None}
            true = max(counts, key=lambda meaning: (meaning in own, counts[meaning], meaning))
            for each in held:
                if _meaning(each) != true:
                    self._find(Audit.IDS, each[:3], each.message_id, each.at_ms, ANOTHER_MESSAGE)

    def _find(
        self, audit: Audit, whose: tuple[str, str, int], message_id: str, at_ms: int, detail: str
    ) -> None:
        self.result.findings.append(Finding(audit.value, *whose, message_id, at_ms, detail))


def invented(
    false: Mapping[MessageKey, Sequence[Delivery]], dispatches: Iterable[Dispatch]
) -> Iterator[Finding]:
    """Yield a finding for each message that was `not_sent`, with the participant that invented it.
    If no journal shows the inventor, the finding names no participant."""
    hashes = {
        (each.channel_id, each.message_hash): message
        for message, held in false.items()
        for each in held
    }
    inventors: defaultdict[MessageKey, set[tuple[str, str, int]]] = defaultdict(set)
    for sent in dispatches if false else ():
        went = hashes.get((sent.channel_id, sent.message_hash))
        if went is not None and not any(
            each.participant_id == sent.participant_id and each.message_hash is not None
            for each in false[went]
        ):
            inventors[went].add(sent[:3])
    for message, held in false.items():
        at_ms = min(each.at_ms for each in held)
        inventors[message] |= {each[:3] for each in held if each.source is None}
        for whose in sorted(inventors[message] or {(message[0], NOBODY, 0)}):
            yield Finding(Audit.IDS.value, *whose, message[1], at_ms, NOT_SENT)


def unknowns(
    judged: Iterable[Coverage], context: Context, unjudged: Mapping[Audit, str]
) -> dict[str, str]:
    """Return the reasons why promises are unknown, by audit."""
    journals = Counter(channel_id for channel_id, _ in {life[:2] for life in context.lives})
    if not journals:
        return {audit.value: "no journal" for audit in ESSENTIAL}
    cases: Counter[tuple[str, str]] = Counter()
    why = {audit.value: unjudged[audit] for audit in Audit if audit in unjudged}
    for whose, offset in sorted(context.offsets.items()):
        if offset.why:
            why.setdefault(Audit.CLOCK.value, not_judged(whose[1], offset.why))
    for each in sorted(judged, key=lambda each: each[:4]):
        cases[each.channel_id, each.audit] += each.cases
        if each.why is not None:
            why.setdefault(each.audit, not_judged(each.participant_id, each.why))
    for audit in Audit:
        every = [cases[channel_id, audit.value] for channel_id in journals]
        if not any(every) or (audit in ESSENTIAL and not all(every)):
            why[audit.value] = NO_CASE
    absent = [f"{name} was heard in {at}, and left no journal" for at, name in context.unheard]
    for channel_id, participants in sorted(journals.items()):
        if participants == 1:
            absent.append(f"only one participant of {channel_id} left a journal")
    return why | {audit.value: reason for reason in absent[-1:] for audit in ACROSS}


def not_judged(participant_id: str, why: str) -> str:
    """Return the reason for one participant as a text."""
    return f"at {participant_id}: {why}"


def unequal_logs(lives: Sequence[Life], deliveries: Iterable[Delivery]) -> Iterator[Finding]:
    """Yield findings about the places at which the order of a log first differs from most others.

    Logs in Lamport order have the same order, so only logs that are `disordered` are needed. Only
    messages in both logs count, because `undelivered` judges missing messages.
    """
    compared = disordered(lives)
    logs: defaultdict[tuple[str, str, int], list[tuple[int, str]]] = defaultdict(list)
    for each in deliveries if compared else ():
        logs[each[:3]].append((each.log_position, each.message_id))
    for model, others in compared:
        places = {entry[1]: place for place, entry in enumerate(sorted(logs[model[:3]]))}
        for life in others:
            here = [entry[1] for entry in sorted(logs[life[:3]]) if entry[1] in places]
            there = sorted(here, key=places.__getitem__)
            for position, (mine, other) in enumerate(zip(here, there, strict=True)):
                if mine != other:
                    place = f"position {position} of what both have is {other}"
                    detail = f"{place} in the log of {model.participant_id}"
                    yield Finding(Audit.EQUAL_LOGS.value, *life[:3], mine, life.until_ms, detail)
                    break


def disordered(lives: Iterable[Life]) -> list[tuple[Life, list[Life]]]:
    """Return a participant with the most common log of each channel, and logs that may differ."""
    found = []
    for _, here in groupby(sorted(lives), key=attrgetter("channel_id")):
        of_channel = list(here)
        shared = Counter(life.log_digest for life in of_channel)
        model = max(reversed(of_channel), key=lambda life: (shared[life.log_digest], life.entries))
        others = [
            life
            for life in of_channel
            if life.log_digest != model.log_digest and not (life.is_in_order and model.is_in_order)
        ]
        found += [(model, others)] if others else []
    return found


def twice_at_a_time(lives: Iterable[Life]) -> Iterator[Finding]:
    """Yield findings about participants that have two journals for the same time."""
    by_begin = sorted(lives, key=lambda life: (life[:2], life.opened_ms, life.life))
    for before, life in pairwise(by_begin):
        if before[:2] == life[:2] and life.opened_ms < before.until_ms:
            detail = f"{life.path} and {before.path} overlap"
            yield Finding(Audit.JOURNALS.value, *life[:3], "", life.opened_ms, detail)


def hour_of(at_ms: int) -> int:
    """Return the beginning of the hour that contains a time (ms)."""
    return at_ms - at_ms % HOUR_MS


def _is_own(delivery: Delivery) -> bool:
    """True if the sender's own journal says that it accepted the message."""
    return delivery.participant_id == delivery.sender_id and delivery.message_hash is None


def _sent_ms(message: Delivery, accepted_ms: int) -> int:
    """When a message was sent: as its sender has it, or before any participant had it."""
    is_own = message.first_segment_id is not None
    return accepted_ms if is_own else min(accepted_ms, message.lamport_timestamp)


def _first(delivery: Delivery) -> tuple[bool, int, int, str, str]:
    """Its sender had a message first."""
    is_known = delivery.first_segment_id is None
    stamps = delivery.at_ms, delivery.lamport_timestamp
    return is_known, *stamps, delivery.sender_id, delivery.participant_id


def _meaning(delivery: Delivery) -> tuple[str, int, bytes]:
    return delivery.sender_id, delivery.lamport_timestamp, delivery.content_sha256
