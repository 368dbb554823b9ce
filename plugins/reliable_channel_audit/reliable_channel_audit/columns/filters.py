"""The bloom filters that went out, for `BloomReview`: it is given no more lines than it needs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple, NoReturn

import numpy as np

from reliable_channel.sds.message import LazyHistory, Message

from ..bloom_filters import FRESH, Bloom, BloomReview
from ..journals import Noted, Participant
from ..reception import TAKEN
from .messages import Ids, Messages
from .tables import Log, Wire
from .wire import Odd

_NOTHING: Final[Mapping[int, bytes]] = {}


class _Part(NamedTuple):
    log: Log
    wire: Wire
    messages: Messages
    filters: Mapping[int, bytes]


class Filters:
    """Takes lines in order; looks at none before a filter is among them."""

    def __init__(self, participant: Participant, opened: Noted, ids: Ids, words: Ids) -> None:
        whose = participant.channel_id, participant.participant_id, 0
        self._channel_id = participant.channel_id
        self._ids, self._words, self._names = ids, words, list[str]()
        self._waiting: list[_Part] = []
        self._has_filters = False
        self._review = BloomReview(whose)
        self._found: list[Bloom] = list(self._review.add(opened.line, None))

    def take(self, log: Log, wire: Wire, messages: Messages, filters: Mapping[int, bytes]) -> None:
        """The next lines."""
        is_out = ~wire.is_in
        self._has_filters |= any(is_out[place] for place in filters)
        self._waiting.append(_Part(log, wire, messages, filters if self._has_filters else _NOTHING))
        if self._has_filters:
            self._names += list(self._ids)[len(self._names) :]
            for part in self._waiting:
                self._found += self._looked_at(part)
            self._waiting.clear()

    @property
    def cases(self) -> int:
        """Filters with ids to test; the last one counts only once another came, as with rows."""
        return sum(each.had > 0 for each in self._found)

    def blooms(self) -> list[Bloom]:
        """What was found in all of them.

        Raises:
            Odd: a filter lacks what it must have.
        """
        last = list(self._review.end())
        if any(not isinstance(each, Bloom) for each in last):
            raise Odd("a bloom filter that lacks ids")
        return [*self._found, *(each for each in last if isinstance(each, Bloom))]

    def _looked_at(self, part: _Part) -> Iterator[Bloom]:
        log, wire, messages = part.log, part.wire, part.messages
        own = log.first_segment >= 0
        came = wire.is_in & np.isin(wire.outcome, self._numbers(TAKEN))
        went = ~wire.is_in & np.isin(wire.source, self._numbers(FRESH))
        lines = np.concatenate([log.line[own], wire.line[came], wire.line[went]])
        what = np.repeat([0, 1, 2], [own.sum(), came.sum(), went.sum()])
        values = np.concatenate(
            [log.message_id[own], messages.message_id[came], np.flatnonzero(went)]
        )
        ends = np.cumsum(messages.reference_counts)
        order = np.argsort(lines, kind="stable")
        for kind, value in zip(what[order].tolist(), values[order].tolist(), strict=True):
            if kind < 2:
                self._review.entered(self._names[value], is_own=kind == 0)
                continue
            end = int(ends[value])
            references = messages.references[end - int(messages.reference_counts[value]) : end]
            history = LazyHistory([self._names[each] for each in references.tolist()], _no_entry)
            lamport = int(messages.lamport_timestamp[value])
            message = Message(
                self._names[int(messages.sender[value])],
                self._names[int(messages.message_id[value])],
                self._channel_id,
                None if lamport < 0 else lamport,
                history,
                part.filters.get(value),
            )
            yield from self._review.went(message, int(wire.at_ms[value]))

    def _numbers(self, words: frozenset[str]) -> list[int]:
        return [self._words[word] for word in words if word in self._words]


def _no_entry(place: int) -> NoReturn:
    raise AssertionError("a review of filters looks at ids alone")
