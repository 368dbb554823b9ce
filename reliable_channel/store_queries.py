"""What to ask Store, and when: the rules, without I/O.

`runtime/retrieval.py` obeys them over a transport and `sim/` in virtual time. Missing messages are
asked for by retrieval hint, and by topic and time where that fails: js-waku's hints never match (it
stamps a message twice, once for the hint and once for the wire), so a hint is a first try and no
more.
"""

from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from .sds.incoming import MissingEntry
from .sds.shares import in_turn
from .sync_core import SyncCore

SKEW_MS: Final = 30_000
"""What other participants' clocks may differ: Store orders by the sender's time."""
LOOKBACKS_MS: Final = (60_000, 600_000, 3_600_000, 86_400_000, 30 * 86_400_000)
"""How far before it was noticed a missing message is looked for, one step further each time."""
FIRST_LOOK_MS: Final = 1_000
"""A message that is missing for less may still be on its way."""
HINT_BYTES: Final = 32
MOST_AT_ONCE: Final = 500
"""Missing messages that are looked for in one round: those who referred to them have their turns,
so that references to nothing do not hold up all others."""
REST: Final = 4
"""How many times as long as a search by time took no other one begins: a reference to nothing has
a month of Store read, and must not have it read all the time."""
MAX_REST_MS: Final = 60_000


@dataclass(frozen=True, slots=True)
class ByHash:
    """The messages with these Waku message hashes."""

    hashes: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class ByTime:
    """Everything that was stamped from `start_ms` to `end_ms`: a message is stamped anew when it is
    sent again, so that there is no telling when a missing one was."""

    start_ms: int
    end_ms: int


Query = ByHash | ByTime
Queries = Generator[Query, None, None]
"""Asked one after the other."""


@dataclass(slots=True)
class _Search:
    """What was tried for one missing message."""

    due_ms: int
    attempts: int = 0

    @property
    def searches_by_time(self) -> bool:
        """Whether to search by time as well: after 0, 1, 3, 7, 15, … attempts, as each costs
        more."""
        return (self.attempts + 1) & self.attempts == 0

    @property
    def lookback_ms(self) -> int:
        """How far before it was noticed to search."""
        return LOOKBACKS_MS[min(self.attempts.bit_length(), len(LOOKBACKS_MS) - 1)]


class StoreQueries:
    """What one participant has to ask Store; reads its core and never changes it."""

    def __init__(
        self, core: SyncCore, now_ms: Callable[[], int], *, retrieve_frequency_ms: int
    ) -> None:
        self.tick_ms = min(FIRST_LOOK_MS, retrieve_frequency_ms)
        """While something is missing, a round is due this often."""
        self._core = core
        self._now_ms = now_ms
        self._frequency_ms = retrieve_frequency_ms
        self._catch_up_from_ms: int | None = None
        self._searches: dict[str, _Search] = {}
        self._rests_until_ms = 0

    @property
    def must_catch_up(self) -> bool:
        """Whether a round is due at once."""
        return self._catch_up_from_ms is not None

    @property
    def is_idle(self) -> bool:
        """Whether there is nothing to ask for."""
        return not (self.must_catch_up or self._core.is_missing_something)

    def catch_up(self, since_ms: int) -> None:
        """Fetch all that was stored since `since_ms` in the next round."""
        if self._catch_up_from_ms is None or since_ms < self._catch_up_from_ms:
            self._catch_up_from_ms = since_ms

    def looks(self) -> Iterator[Queries]:
        """One round: two looks into Store, one after the other, as a Store that fails at the one
        may do for the other.

        The owner hands what Store gives to the core before it takes the next query of a look, since
        that depends on what is still missing, and closes the look where Store does not answer: then
        the rest is asked in the next round.
        """
        yield self._catch_up()
        yield self._fetch_missing()

    def _catch_up(self) -> Queries:
        start_ms, self._catch_up_from_ms = self._catch_up_from_ms, None
        if start_ms is None:
            return
        try:
            yield from self._search(start_ms)
        except GeneratorExit:
            self.catch_up(start_ms)
            raise

    def _fetch_missing(self) -> Queries:
        due, searches = self._due(), self._searches
        hints = [m.entry.retrieval_hint for m in due if m.entry.retrieval_hint is not None]
        if usable := tuple(hint for hint in hints if len(hint) == HINT_BYTES):
            yield ByHash(usable)
        missing_now = self._missing
        still = [m for m in due if m.entry.message_id in missing_now]
        by_time = [
            m
            for m in still
            if self._core.is_awaited(m.entry.message_id)
            and searches[m.entry.message_id].searches_by_time
        ]
        rests = self._now_ms() < self._rests_until_ms
        if by_time and not rests:
            lookback_ms = max(searches[m.entry.message_id].lookback_ms for m in by_time)
            yield from self._search(min(m.since_ms for m in by_time) - lookback_ms)
        put_off = {m.entry.message_id for m in by_time} if rests else set()
        for missing in still:
            search = searches[missing.entry.message_id]
            search.attempts += missing.entry.message_id not in put_off
            search.due_ms = self._now_ms() + self._frequency_ms

    @property
    def _missing(self) -> Mapping[str, MissingEntry]:
        return {missing.entry.message_id: missing for missing in self._core.missing()}

    def _due(self) -> list[MissingEntry]:
        """What to look for now: a first time soon after it was noticed, then at the retrieve
        frequency."""
        now_ms, missing = self._now_ms(), self._missing
        self._searches = {
            message_id: self._searches.get(message_id) or _Search(entry.since_ms + self.tick_ms)
            for message_id, entry in missing.items()
        }
        due = [m for i, m in missing.items() if self._searches[i].due_ms <= now_ms]
        if len(due) > MOST_AT_ONCE:
            due = in_turn(due, lambda missing: missing.referrer_id)[:MOST_AT_ONCE]
        return due

    def _search(self, start_ms: int) -> Queries:
        began_ms = self._now_ms()
        yield ByTime(start_ms - SKEW_MS, began_ms + SKEW_MS)
        took_ms = self._now_ms() - began_ms
        self._rests_until_ms = self._now_ms() + min(REST * took_ms, MAX_REST_MS)
