"""Facts from a participant's journal without unusual events, computed from columns.

Each check on columns is stricter than the judges of rows (`Replay`, `Reception`). If all checks
pass, the judges of rows would find no broken promise. If a check fails, it raises `NeedsRowReader`,
and the judges of rows decide.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from operator import lt
from typing import Final

import numpy as np

from ..facts import LAGS_OF_A_SENDER, MAX_LAGS, Fact, Lag, Repair
from ..findings import SETTLE_MS, Coverage, HeardSender
from ..journals import Noted, Participant
from ..log_order import Landed, LogOrder, digest_of
from ..misbehaviour import MAX_SENDERS
from ..reception import TAKEN
from ..replay import BACK_MS, HEARD, SPECIFIED, Replay, case_counts
from .arrays import Array, NeedsRowReader, Whole, ramps, rows_of
from .gathered import REPAIRED, REQUESTED, Gathered

NEVER: Final = np.iinfo(np.int64).max
Whose = tuple[str, str, int]
"""Channel, participant and number of the log that facts belong to."""


def facts_of_parts(
    participant: Participant, opened: Noted, life: Gathered, *, settle_ms: int | None = None
) -> list[Fact]:
    """Return the few facts that judges of rows would return for a journal without broken promises.

    Raises:
        NeedsRowReader: they might find something, or the journals are not fully understood here.
    """
    whose = participant.channel_id, participant.participant_id, 0
    replay = Replay(*whose, settle_ms=settle_ms)
    replay.add(opened, None)
    if replay.oddity:
        raise NeedsRowReader(replay.oddity)
    return _FastReader(life, replay, whose).few()


class _FastReader:
    def __init__(self, life: Gathered, replay: Replay, whose: Whose) -> None:
        self._life, self._replay, self._whose = life, replay, whose
        self._names = list(life.ids)
        self._until_ms = life.times.until_ms
        log, wire = life.log, life.wire
        self._log_at = _places(log.message_id, len(self._names))
        self._is_other = ~log.is_own
        self._is_taken = life.came_as(TAKEN)
        self._is_heard = life.came_as(HEARD)
        self._is_others = wire.is_in & ~life.came_as(["own"])
        self._first_reference = np.cumsum(life.messages.reference_counts) - (
            life.messages.reference_counts
        )
        self._copies = self._arrived()

    def few(self) -> list[Fact]:
        """The facts of which there are few for each participant, once nothing is found."""
        life = self._life
        if life.times.step_back_ms > BACK_MS:
            raise NeedsRowReader("the clock of the participant went back")
        self._check_hints()
        references = self._check_arrivals() + self._check_own()
        self._check_receptions()
        self._check_acknowledgements()
        requests = self._repaired(REQUESTED)
        self._check_repair(requests)
        self._check_order()
        responses = self._repaired(REPAIRED)
        entries = len(life.log.line)
        cases = case_counts(
            entries=entries,
            arrivals=int(self._is_other.sum()),
            in_order=entries,
            references=references,
            asked=len(requests),
            heard=int(self._is_heard.sum()),
        )
        ended = self._replay.life()._replace(
            until_ms=self._until_ms,
            entries=entries,
            log_digest=digest_of(life.hours),
            last_lamport=int(life.log.lamport_timestamp[~self._is_other].max(initial=0)),
        )
        few: list[Fact] = [ended]
        few += (Coverage(*self._whose, audit.value, n, None) for audit, n in cases.items())
        few += self._heard()
        few += self._lags()
        few += (
            Repair(*self._whose, each, requests[each], responses[each])
            for each in requests.keys() | responses.keys()
        )
        return few

    def _references(self, places: Whole) -> tuple[Whole, Whole]:
        """What these messages of the wire refer to, and which one of `places` each is of."""
        counts = self._life.messages.reference_counts[places]
        rows = ramps(self._first_reference[places], counts)
        return self._life.messages.references[rows], np.repeat(np.arange(len(places)), counts)

    def _arrived(self) -> Whole:
        """Of each message of others in the log the copy that was taken, as a place of the wire."""
        log, wire = self._life.log, self._life.wire
        taken, hashes = np.flatnonzero(self._is_taken), log.message_hash[self._is_other]
        firsts = _first_bytes(wire.message_hash[taken])
        order = np.argsort(firsts)
        taken, firsts = taken[order], firsts[order]
        if (firsts[1:] == firsts[:-1]).any():
            raise NeedsRowReader("the journal records one copy of a message as taken twice")
        places = np.searchsorted(firsts[1:], _first_bytes(hashes), side="right")
        found: Whole = taken[places] if len(taken) else np.zeros(len(hashes), np.int64)
        if (
            (len(hashes) > 0 and not len(taken))
            or (wire.message_hash[found] != hashes).any()
            or (wire.line[found] >= log.line[self._is_other]).any()
        ):
            raise NeedsRowReader(
                "a message is in the log, but no copy of the message arrived before"
            )
        return found

    def _check_hints(self) -> None:
        life = self._life
        if not life.messages.hints:
            return
        is_known = self._is_others | ~life.wire.is_in
        hashes = rows_of(life.wire.message_hash[is_known])
        codes = life.messages.message_id[is_known].tolist()
        by_hash = dict(zip(hashes, codes, strict=True))
        if list(map(by_hash.get, hashes)) != codes:
            raise NeedsRowReader("two messages have the same hash")
        if any(by_hash.get(hint, code) != code for code, hint in life.messages.hints):
            raise NeedsRowReader("a retrieval hint belongs to another message")

    def _check_arrivals(self) -> int:
        """What entered the log is what arrived, after what it refers to; returns references."""
        log, messages, copies = self._life.log, self._life.messages, self._copies
        places = np.flatnonzero(self._is_other)
        me = self._life.ids.get(self._whose[1], -1)
        if (log.sender_id[places] == me).any() or (log.sender_id[~self._is_other] != me).any():
            raise NeedsRowReader(
                "an own message is logged as another participant's, or another participant's "
                "message as an own message"
            )
        _same(messages.message_id[copies], log.message_id[places])
        _same(messages.sender_id[copies], log.sender_id[places])
        _same(np.maximum(messages.lamport_timestamp[copies], 0), log.lamport_timestamp[places])
        _same(messages.content_sha256[copies], log.content_sha256[places])
        before, own = self._referred(copies, places)
        if (log.lamport_timestamp[before] >= log.lamport_timestamp[own]).any():
            raise NeedsRowReader("a message refers to a message with a later Lamport timestamp")
        return len(before)

    def _check_own(self) -> int:
        """Own messages refer to what was in the log before them; returns references."""
        log, wire = self._life.log, self._life.wire
        content = self._life.words.get("content", -1)
        went = np.flatnonzero(~wire.is_in & (wire.source == content))
        entry = self._log_at[self._life.messages.message_id[went]]
        went, entry = went[entry >= 0], entry[entry >= 0]
        is_sent = log.line[entry] < wire.line[went]
        before, _ = self._referred(went[is_sent], entry[is_sent])
        return len(before)

    def _referred(self, places: Whole, entries: Whole) -> tuple[Whole, Whole]:
        """What messages of the wire refer to, each with the message, as places of the log."""
        references, of = self._references(places)
        before, own = self._log_at[references], entries[of]
        if (before < 0).any() or (before >= own).any():
            raise NeedsRowReader("a message refers to a message that was not in the log before")
        return before, own

    def _check_receptions(self) -> None:
        """The application received all that others sent, once and after what it refers to."""
        log, messages, received = self._life.log, self._life.messages, self._life.received
        received_at = _places(received.message_id, len(self._names))
        entry = self._log_at[received.message_id]
        if len(entry) != self._is_other.sum() or (entry < 0).any():
            raise NeedsRowReader(
                "the messages that the application received differ from the other participants' "
                "messages in the log"
            )
        if not self._is_other[entry].all() or (log.line[entry] >= received.line).any():
            raise NeedsRowReader(
                "the application received a message before the message entered the log"
            )
        nth = np.cumsum(self._is_other) - 1
        copies = self._copies[nth[entry]]
        _same(messages.sender_id[copies], received.sender_id)
        _same(np.maximum(messages.lamport_timestamp[copies], 0), received.lamport_timestamp)
        _same(messages.content_sha256[copies], received.content_sha256)
        references, of = self._references(copies)
        of_others = self._is_other[self._log_at[references]]
        if (received_at[references[of_others]] >= of[of_others]).any():
            raise NeedsRowReader(
                "the application received a message before a message that it refers to"
            )

    def _check_acknowledgements(self) -> None:
        """Each was emitted after a reference to its message, and each that was due was emitted."""
        log, emitted, words = self._life.log, self._life.emitted, self._life.words
        emitted_at = _places(emitted.message_id, len(self._names))
        entry = self._log_at[emitted.message_id]
        if (entry < 0).any() or (log.line[entry] >= emitted.line).any():
            raise NeedsRowReader("a message was acknowledged before the message entered the log")
        others = np.flatnonzero(self._is_others)
        references, of = self._references(others)
        wire, own = self._life.wire, log.is_own
        first = np.full(len(self._names), -1)
        first[references[::-1]] = others[of][::-1]
        referred_at = np.append(wire.line, NEVER)[first]
        referred_ms = np.append(wire.at_ms, NEVER)[first]
        prover = np.append(self._life.messages.sender_id, -1)[first]
        since = referred_at[log.message_id[own]]
        if (since < log.line[own]).any():
            raise NeedsRowReader(
                "another participant referred to an own message before the message entered the log"
            )
        if not own[entry].all():
            raise NeedsRowReader("an acknowledged message is not an own message")
        is_known = prover[emitted.message_id] >= 0
        if (prover[emitted.message_id] != emitted.acknowledged_by)[is_known].any():
            raise NeedsRowReader(
                "the acknowledging participant is not the sender of the first reference to the "
                "message"
            )
        by_reference = emitted.source == words.get("causal_history", -1)
        if (referred_at[emitted.message_id] >= emitted.line)[by_reference].any():
            raise NeedsRowReader(
                "a message was acknowledged by a causal history that did not arrive"
            )
        not_emitted = (since < NEVER) & (emitted_at[log.message_id[own]] < 0)
        since_ms = referred_ms[log.message_id[own]][not_emitted]
        # Rows take the time of the first reference in what was heard, which may come later than
        # here, by a clock that went back a little.
        if (since_ms - self._life.times.back_ms + SETTLE_MS <= self._until_ms).any():
            raise NeedsRowReader("other participants have it, but no acknowledgement was emitted")

    def _check_repair(self, requests: Counter[str]) -> None:
        if (np.diff(self._life.repairs.at_ms[self._life.is_repair(REQUESTED)]) < 0).any():
            raise NeedsRowReader("the clock went back between two repair requests")
        most = max(requests.values(), default=0)
        option = self._replay.option
        if option("retrieval_strategy") in SPECIFIED and most > 2 * option(
            "repair_max_request_attempts"
        ):
            raise NeedsRowReader(
                "the participant requested a missing message more often than its options allow"
            )

    def _repaired(self, event: str) -> Counter[str]:
        """How often each message has repair events of a kind."""
        life = self._life
        return Counter(self._texts(life.repairs.message_id[life.is_repair(event)]))

    def _check_order(self) -> None:
        """Each entry landed behind all before it that belong before it, or `LogOrder` says that it
        did."""
        if self._is_ordered():
            return
        log, order = self._life.log, LogOrder()
        entries = map(
            Landed,
            log.lamport_timestamp.tolist(),
            self._texts(log.message_id),
            self._texts(log.sender_id),
            rows_of(log.content_sha256),
        )
        steps = (log.position.tolist(), log.evicted.tolist(), log.at_ms.tolist())
        for each in map(order.land, entries, *steps):
            assert each is None
        if order.beyond is not None or order != sorted(order):
            raise NeedsRowReader("the entries of the log are out of order")

    def _is_ordered(self) -> bool:
        """True if the reported positions make an ordered log."""
        log = self._life.log
        places, entries = log.position + log.evicted, list[int]()
        for entry, place in enumerate(places.tolist()):
            entries.insert(place, entry)
        order = np.array(entries, np.int64)
        stamps, ids = log.lamport_timestamp[order], log.message_id[order]
        if (places > np.arange(len(order))).any() or (np.diff(stamps) < 0).any():
            return False
        tied = np.flatnonzero(np.diff(stamps) == 0)
        return all(map(lt, self._texts(ids[tied]), self._texts(ids[tied + 1])))

    def _texts(self, codes: Whole) -> Iterator[str]:
        return map(self._names.__getitem__, codes.tolist())

    def _heard(self) -> Iterator[HeardSender]:
        senders = self._life.messages.sender_id[self._is_heard]
        if len(counts := _counted(senders)) > MAX_SENDERS:
            raise NeedsRowReader("the journal has too many senders for the column reader")
        taken = np.flatnonzero(self._is_taken)
        wire, messages = self._life.wire, self._life.messages
        # Of equal timestamps the one that came first counts, as with rows.
        order = np.lexsort((-taken, messages.lamport_timestamp[taken], messages.sender_id[taken]))
        taken = taken[order]
        last = taken[np.flatnonzero(np.diff(messages.sender_id[taken], append=-1))]
        newest = dict(zip(messages.sender_id[last].tolist(), last.tolist(), strict=True))
        for sender, count in counts.items():
            lamport = at_ms = 0
            if (place := newest.get(sender)) is not None:
                lamport = max(int(messages.lamport_timestamp[place]), 0)
                at_ms = int(wire.at_ms[place]) if lamport else 0
            yield HeardSender(*self._whose, self._names[sender], count, lamport, at_ms)

    def _lags(self) -> Iterator[Lag]:
        wire, messages = self._life.wire, self._life.messages
        live = self._life.words.get("live", -1)
        timed = self._is_heard & (wire.source == live) & (wire.timestamp_ns >= 0)
        at = np.flatnonzero(timed)
        senders = messages.sender_id[at]
        ranks = {sender: rank for rank, sender in enumerate(_counted(senders))}
        if len(ranks) > MAX_LAGS:
            raise NeedsRowReader("the journal has too many senders for the column reader")
        places = _first_bytes(wire.message_hash[at])
        order = np.lexsort((places, senders))
        at, senders, places = at[order], senders[order], places[order]
        nth = np.arange(len(at)) - np.searchsorted(senders, senders)
        is_tied = (senders[1:] == senders[:-1]) & (places[1:] == places[:-1])
        if (is_tied & (nth[1:] == LAGS_OF_A_SENDER)).any():
            raise NeedsRowReader(
                "two copies arrived together, and the result depends on which copy came first"
            )
        chosen = nth < LAGS_OF_A_SENDER
        at, senders = at[chosen], senders[chosen].tolist()
        lags = (wire.at_ms[at] - wire.timestamp_ns[at] // 1_000_000).tolist()
        hashes = rows_of(wire.message_hash[at])
        behind = [-place for place in places[chosen].tolist()]
        ordered = zip(map(ranks.__getitem__, senders), behind, hashes, lags, senders, strict=True)
        for _, _, message_hash, lag, sender in sorted(ordered):
            yield Lag(*self._whose, self._names[sender], message_hash, lag)


def _first_bytes(hashes: Array) -> Array:
    """The first 8 bytes of each hash as a number."""
    return hashes[:, :8].copy().view(">u8")[:, 0].astype(np.uint64)


def _places(codes: Whole, count: int) -> Whole:
    """Where each of so many ids stands; -1 where it does not.

    Raises:
        NeedsRowReader: it stands in two places.
    """
    found = np.full(count, -1)
    found[codes] = np.arange(len(codes))
    if (found[codes] != np.arange(len(codes))).any():
        raise NeedsRowReader("the journal lists one message twice")
    return found


def _same(one: Array, other: Array) -> None:
    if not np.array_equal(one, other):
        raise NeedsRowReader("a logged or received message differs from the message that arrived")


def _counted(codes: Whole) -> dict[int, int]:
    """How often each comes, in the order in which they first come."""
    values, firsts, counts = np.unique(codes, return_index=True, return_counts=True)
    order = np.argsort(firsts)
    return dict(zip(values[order].tolist(), counts[order].tolist(), strict=True))
