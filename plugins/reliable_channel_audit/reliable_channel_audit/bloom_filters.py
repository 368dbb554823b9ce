"""The bloom filters that a participant sent, against the ids that it had by then.

A filter has the newest half of its capacity for certain: what is older may have left it when it
rolled over (`RollingBloomFilter`). A message goes out later than it is made, and what came in
between is not in its filter. Its causal history shows what was there when it was made: every id
that entered the filter before one of those did.

Of each participant the first filter of every ten seconds is looked at, and of its ids some that are
drawn, so that a journal costs little with any number of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random
from typing import Final, NamedTuple

from reliable_channel.config import nested
from reliable_channel.options import ChannelOptions
from reliable_channel.sds.bloom import (
    BloomFilterError,
    BloomForm,
    BloomLayout,
    BloomParameters,
    set_bits,
)
from reliable_channel.sds.message import Message

from .findings import Audit, Finding
from .journals import settings
from .lines import Line

EVERY_MS: Final = 10_000
"""The first filter in so long a time is looked at."""
MAX_HAD: Final = 100
"""Ids that were there, tested in a filter."""
MAX_LATER: Final = 100
"""Ids of the channel that came only afterwards, tested in a filter."""
DRAWN: Final = 100
"""Made-up ids that are tested in a filter."""
FRESH: Final = frozenset({"content", "sync"})
"""Why a message goes out for the first time, with the filter of that time."""
_TAKEN: Final = frozenset({"delivered", "parked"})


class Bloom(NamedTuple):
    """A bloom filter that went out, and what was found in it."""

    channel_id: str
    participant_id: str
    life: int
    message_id: str
    """Of the message that carried it."""
    at_ms: int
    error_rate: float
    """That its size was chosen for, at its capacity."""
    bit_count: int
    hash_count: int
    set_bits: int
    had: int
    """Ids tested that it must have."""
    lacking: int
    """Those that it has not."""
    absent: int
    """Ids tested that its sender did not have: some that came later, and some made up."""
    false_positives: int
    """Those that it has all the same."""
    is_new: bool
    """Whether fewer bits are set than in the filter before it: it rolled over."""


class Newest:
    """The newest ids that entered a filter, in the order in which that was noted: no more than a
    filter holds.

    Those of others are noted as they enter it. Own ones may be noted later, once they outlive the
    process: they entered before what refers to them was made, and after what they refer to.
    """

    def __init__(self, capacity: int) -> None:
        self.total = 0
        self._capacity = capacity
        self._ids: list[str] = []
        self._places: dict[str, int] = {}
        self._own: dict[str, int] = {}
        """Of own ids the first place that may be theirs."""

    def __contains__(self, message_id: str) -> bool:
        return message_id in self._places

    def add(self, message_id: str, *, is_own: bool) -> None:
        """Take the next one."""
        slot = self.total % self._capacity
        if slot == len(self._ids):
            self._ids.append(message_id)
        else:
            oldest, self._ids[slot] = self._ids[slot], message_id
            if self._places.get(oldest) == self.total - self._capacity:
                del self._places[oldest]
                self._own.pop(oldest, None)
        self._places[message_id] = self.total
        if is_own:
            self._own[message_id] = 0
        self.total += 1

    def went(self, message: Message) -> None:
        """An own message went out, and names the messages that it was made after."""
        if message.message_id in self._own:
            known = (each for each in message.causal_ids if each in self._places)
            first = 1 + max((self._own.get(each, self._places[each]) for each in known), default=-1)
            self._own[message.message_id] = first

    def there(self, message: Message, least: int, random: Random) -> list[str]:
        """Ids that entered at a place not before `least`, and before a message was made: some that
        it refers to, and some that are drawn."""
        known = [each for each in message.causal_ids if each in self._places]
        places = [self._places[each] for each in known]
        last = max((self._places[each] for each in known if each not in self._own), default=-1)
        window = range(least, max(places, default=-1) + 1)
        named = places[-MAX_HAD // 2 :]
        drawn = random.sample(window, min(len(window), MAX_HAD - len(named)))
        ids = (self._ids[place % self._capacity] for place in (*named, *drawn) if place in window)
        return [
            each
            for each in dict.fromkeys(ids)
            if (self._own[each] >= least if each in self._own else self._places[each] <= last)
        ]


class LookedAt:
    """A filter, and what was found in it so far."""

    def __init__(self, layout: BloomLayout, words: bytes) -> None:
        self.layout = layout
        self.set_bits = set_bits(words)
        self.had = self.lacking = self.absent = self.false_positives = 0
        self._words = words
        self._room = MAX_LATER

    def must_have(self, message_ids: Sequence[str]) -> list[str]:
        """Test ids that were there; return those that it lacks."""
        lacking = [each for each in message_ids if not self._has(each)]
        self.had, self.lacking = len(message_ids), len(lacking)
        return lacking

    def must_not_have(self, message_id: str) -> None:
        """Test an id that its sender had not."""
        self.absent += 1
        self.false_positives += self._has(message_id)

    def came_later(self, message_id: str) -> None:
        """Test an id that came after the filter was made, if not many did."""
        if self._room:
            self._room -= 1
            self.must_not_have(message_id)

    def _has(self, message_id: str) -> bool:
        return self.layout.holds(self._words, self.layout.form.hash_pair(message_id))


class BloomReview:
    """Reads the lines of one life in order, and looks into the filters that went out."""

    def __init__(self, whose: tuple[str, str, int]) -> None:
        self._whose = whose
        self._form: tuple[BloomForm, BloomParameters] | None = None
        self._newest = Newest(1)
        self._unnoted = 0
        """Ids that may have entered the filter, besides those that are known."""
        self._parked: set[str] = set()
        self._next_ms = 0
        self._last_lamport = self._last_set_bits = 0
        self._last: tuple[Message, int, LookedAt] | None = None
        """The filter looked at last, of which message, and when that went out."""
        self._count = self._faults = 0
        self._first_fault: tuple[str, int, str] | None = None

    def begin(self, opened: Line, lamport_timestamp: int) -> None:
        """Begin in the middle of a session, after a message of this Lamport timestamp."""
        self._opened(opened)
        self._last_lamport = lamport_timestamp

    def add(self, line: Line, message: Message | None) -> Iterator[Bloom]:
        """Take a line, and the message that it carries."""
        message_id, at_ms = line.message_id or "", line.at_ms or 0
        match line.event:
            case "journal_opened":
                yield from self._told()
                self._opened(line)
            case "set_aside":
                self._unnoted += 1
            case "message_logged":
                self._parked.discard(message_id)
                if line.outcome == "restored":
                    self._last_lamport = max(self._last_lamport, line.lamport_timestamp or 0)
                    self._newest.add(message_id, is_own=False)
                elif line.first_segment_id is not None:
                    self.entered(message_id, is_own=True)
            case "wire_in" if message is not None and line.outcome in _TAKEN:
                if line.outcome == "parked":
                    self._parked.add(message.message_id)
                self.entered(message.message_id, is_own=False)
            case "wire_out" if message is not None and line.source in FRESH:
                yield from self.went(message, at_ms)

    def entered(self, message_id: str, *, is_own: bool) -> None:
        """An id entered the filter."""
        if self._last is not None and message_id not in self._newest:
            self._last[2].came_later(message_id)
        self._newest.add(message_id, is_own=is_own)

    def went(self, message: Message, at_ms: int) -> Iterator[Bloom]:
        """A message went out for the first time; give what came of the filter before its own."""
        self._newest.went(message)
        field = message.bloom_filter
        if field is not None and self._is_due(message, at_ms):
            yield from self._told()
            self._look(message, field, at_ms)

    def end(self) -> Iterator[Bloom | Finding]:
        """What is known in the end."""
        yield from self._told()
        if self._first_fault is not None:
            message_id, at_ms, what = self._first_fault
            detail = f"{what}; {self._faults} of {self._count} that were looked at are wrong"
            yield Finding(Audit.BLOOM_FILTERS.value, *self._whose, message_id, at_ms, detail)

    def _opened(self, line: Line) -> None:
        """A session begins with a filter that is made of the newest entries of the log and of what
        waits for others."""
        self._form = _form(settings(line).get("options"))
        self._newest = Newest(self._form[1].capacity if self._form else 1)
        self._unnoted, self._last_set_bits = len(self._parked), 0

    def _is_due(self, message: Message, at_ms: int) -> bool:
        """Whether it is time to look. What was made before the filter looked at last, or before the
        session began, waited to go out, and its filter is an older one."""
        lamport = message.lamport_timestamp or 0
        if self._form is None or at_ms < self._next_ms or lamport <= self._last_lamport:
            return False
        self._next_ms, self._last_lamport = at_ms - at_ms % EVERY_MS + EVERY_MS, lamport
        return True

    def _look(self, message: Message, field: bytes, at_ms: int) -> None:
        assert self._form is not None
        form, parameters = self._form
        self._count += 1
        try:
            layout, words = form.read(field, parameters)
        except BloomFilterError as error:
            self._fault(message, at_ms, f"its own bloom filter cannot be read: {error}")
            return
        random = Random("/".join((*self._whose[:2], message.message_id)))
        filter_ = LookedAt(layout, words)
        for _ in range(DRAWN):
            filter_.must_not_have(f"{random.getrandbits(256):064x}")
        least = max(0, self._newest.total + self._unnoted - parameters.capacity // 2)
        if lacking := filter_.must_have(self._newest.there(message, least, random)):
            what = f"its bloom filter lacks {len(lacking)} of {filter_.had} ids of its sender's log"
            self._fault(message, at_ms, f"{what}, {lacking[0]!r:.80} for one")
        self._last = message, at_ms, filter_

    def _fault(self, message: Message, at_ms: int, what: str) -> None:
        self._faults += 1
        self._first_fault = self._first_fault or (message.message_id, at_ms, what)

    def _told(self) -> Iterator[Bloom]:
        """The filter that was looked at last; what came later was held against it until now."""
        if self._last is None or self._form is None:
            return
        message, at_ms, filter_ = self._last
        yield Bloom(
            *self._whose,
            message.message_id,
            at_ms,
            self._form[1].error_rate,
            filter_.layout.bit_count,
            filter_.layout.hash_count,
            filter_.set_bits,
            filter_.had,
            filter_.lacking,
            filter_.absent,
            filter_.false_positives,
            filter_.set_bits < self._last_set_bits,
        )
        self._last, self._last_set_bits = None, filter_.set_bits


def _form(options: object) -> tuple[BloomForm, BloomParameters] | None:
    """Parameters of a participant's filters, from its session; None where they are unknown."""
    told = options if isinstance(options, dict) else {}
    names = ("wire_profile", "bloom_capacity", "bloom_error_rate")
    try:
        taken = ChannelOptions(**nested({name: told[name] for name in names if name in told}))
        return taken.profile.bloom, taken.sds_options().bloom
    except (TypeError, ValueError):  # of a plugin's dialect, or no options at all
        return None
