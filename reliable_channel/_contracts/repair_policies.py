"""Repair policies: pure functions that decide when and where a missing message is searched.

A policy receives a missing message. It returns the time and kind of the next Store query, and the
time from which participants are asked. `engine/recovery.py` obeys it, in channels and in the
simulation. Recent results, such as those of Store queries, are part of its argument. So a policy
needs no memory, and equal cases have equal answers.

All times are milliseconds. Points in time are on the clock of `Missing.now_ms`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from ..sds.message import HistoryEntry

FIRST_LOOK_MS: Final = 1_000
"""Wait before the first query, because the message may still be on its way (ms)."""
EWMA_WEIGHT: Final = 0.125
"""Weight of the newest outcome in `RecentOutcomes`. The first outcomes weigh the same."""
BACKOFF_FACTOR: Final = 2
"""Factor of the interval of `adaptive` after queries that find little."""
MAX_STRETCH: Final = 6
"""Maximum factor for a Store that does not answer."""
USEFUL_SHARE: Final = 0.05
"""Minimum share of found messages of a useful kind of query."""
MIN_TRIES: Final = 3
"""Number of outcomes before `adaptive` treats a kind of query as useless."""
PROMPT_ASK_MS: Final = 2_500
"""Time that `prompt` gives a useful Store before it asks participants."""
PROMPT_MAX_MS: Final = 10_000
"""Maximum wait of `prompt` between two queries (ms)."""

Look = Literal["hint", "time", "hint-then-time"]
"""Kind of Store query: by retrieval hint, by topic and time, or by time if the hint fails. One
request carries the hints of many messages. A query by time reads up to a month of Store, and only
for awaited messages."""


@dataclass(frozen=True, slots=True)
class RecentOutcomes:
    """Results of the newest queries or requests of one kind."""

    tries: int = 0
    """Number of tries since the channel was opened."""
    found: float = 1.0
    """Share of the messages that were found (1 before the first try)."""
    took_ms: float = 0.0
    """Mean duration of an answer."""
    cost_bytes: float = 0.0
    """Mean number of bytes received a try."""

    def after(self, found: float, took_ms: float, cost_bytes: float) -> "RecentOutcomes":
        """Return the outcomes after one more try."""
        weight = max(EWMA_WEIGHT, 1 / (self.tries + 1))
        return RecentOutcomes(
            self.tries + 1,
            self.found + weight * (found - self.found),
            self.took_ms + weight * (took_ms - self.took_ms),
            self.cost_bytes + weight * (cost_bytes - self.cost_bytes),
        )

    @property
    def helps(self) -> bool:
        """True if this kind of query finds messages, or is not known to fail."""
        return self.tries < MIN_TRIES or self.found >= USEFUL_SHARE


@dataclass(frozen=True, slots=True)
class StoreState:
    """Recent state of the Store node."""

    exists: bool = True
    """True if the network has a Store."""
    failures: int = 0
    """Number of failures in a row."""
    failed_ms: int = 0
    """Time of the last failure."""
    by_hint: RecentOutcomes = field(default_factory=RecentOutcomes)
    """Results of first queries by hint."""
    by_time: RecentOutcomes = field(default_factory=RecentOutcomes)
    """Results of first queries by topic and time."""
    again: RecentOutcomes = field(default_factory=RecentOutcomes)
    """Results of all further queries."""


@dataclass(frozen=True, slots=True)
class Peers:
    """Recent state of the other participants."""

    count: int = 0
    """Number of participants heard, without this one."""
    asked: RecentOutcomes = field(default_factory=RecentOutcomes)
    """Results of requests, from the first request for a message to its arrival."""


@dataclass(frozen=True, slots=True)
class Missing:
    """Missing message, as the argument of a policy."""

    entry: HistoryEntry
    """Message id, with sender and retrieval hint if known."""
    now_ms: int
    since_ms: int
    """Time at which the gap was noticed."""
    interval_ms: int
    """Value of the option `retrieve_frequency_ms`."""
    began_ms: int = 0
    """Start of this participant, from which times of joint queries may be counted."""
    is_awaited: bool = True
    """True if other messages wait for it. Otherwise it is lost, or older than this participant."""
    store_tries: int = 0
    """Number of Store queries for it. A query that skipped its slow search by time does not
    count."""
    last_try_ms: int | None = None
    """End of the last query (None before the first)."""
    asked: int = 0
    """Number of requests to other participants."""
    store: StoreState = field(default_factory=StoreState)
    others: Peers = field(default_factory=Peers)
    is_past: bool = False
    """True if the referring message came from Store, so this one is not on its way any more."""

    @property
    def age_ms(self) -> int:
        """Time for which it has been missing."""
        return self.now_ms - self.since_ms


@dataclass(frozen=True, slots=True)
class RepairStep:
    """Next step for a missing message. Store and participants are used independently."""

    look_at_ms: int | None = None
    """Time of the next Store query, to the second (None: not before the next call)."""
    look: Look = "hint"
    ask_at_ms: int | None = None
    """Time from which participants are asked, by the rules of the sync protocol. In SDS-R, T_req
    counts from then. None: not before the next call. Requests cannot be withdrawn."""


RepairPolicy = Callable[[Missing], RepairStep]
"""Function that returns the next step for a missing message.

It is called when a message becomes missing, after each query for it, and when Store fails or
recovers. It must be pure: equal arguments, equal answer. A past time means at once. Without any
time, only the retries of the sender help.
"""


def both(missing: Missing) -> RepairStep:
    """Query Store by hint at each interval, and by topic and time less and less often. Ask
    participants from the start."""
    look_at_ms, look = _steady_look(missing)
    return RepairStep(look_at_ms, look, missing.since_ms)


def store_only(missing: Missing) -> RepairStep:
    """Query Store as in `both`, and ask no participant."""
    return RepairStep(*_steady_look(missing))


def sds_r_only(missing: Missing) -> RepairStep:
    """Ask only other participants, from the start."""
    return RepairStep(ask_at_ms=missing.since_ms)


def nothing(missing: Missing) -> RepairStep:
    """Wait for the sender to send it again."""
    return RepairStep()


def adaptive(missing: Missing) -> RepairStep:
    """Do as `both` with fewer queries: one for several messages, and few of the kinds that recently
    failed.

    All later queries of this participant fall on common times, so that one query serves all missing
    messages. If they find little, or Store does not answer, the interval grows. If hints find
    nothing and queries by time do, a message is queried by time from the start. If queries by time
    find nothing, half of them are left out.
    """
    store, store_tries = missing.store, missing.store_tries
    look_at_ms, look = _steady_look(missing)
    if store_tries == 0 and store.by_time.helps and not store.by_hint.helps:
        look = "time"
    elif store_tries.bit_length() % 2 and not store.by_time.helps:
        look = "hint"
    every_ms = missing.interval_ms * (1 if store.again.helps else BACKOFF_FACTOR)
    if store.failures:
        every_ms = missing.interval_ms * min(1 + store.failures, MAX_STRETCH)
    if missing.last_try_ms is not None:
        look_at_ms = missing.last_try_ms + every_ms // 2
    if store.failures:
        look_at_ms = max(look_at_ms, store.failed_ms + every_ms // 2)
    if missing.last_try_ms is not None or store.failures:
        look_at_ms += (missing.began_ms - look_at_ms) % every_ms
    return RepairStep(look_at_ms, look, missing.since_ms)


def prompt(missing: Missing) -> RepairStep:
    """Query Store at once, ask participants if Store fails, and query Store again less and less
    often.

    For `preset="auto"`: the interval of the options is the first wait, and doubles after each
    failure. References of a message from Store are queried at once, so a gap costs one round trip a
    link. If Store failed recently, participants are asked from the start.
    """
    store, store_tries, interval_ms = missing.store, missing.store_tries, missing.interval_ms
    _, look = _steady_look(missing)
    wait_ms = min(interval_ms << min(store_tries, 32), max(interval_ms, PROMPT_MAX_MS))
    look_at_ms = (
        missing.since_ms if missing.last_try_ms is None else missing.last_try_ms
    ) + wait_ms
    if missing.is_past and store_tries == 0:
        look_at_ms = missing.since_ms
    if store.failures:
        pause_ms = min(interval_ms << min(store.failures, 32), PROMPT_MAX_MS)
        look_at_ms = max(look_at_ms, store.failed_ms + pause_ms)
    helps = store.by_hint.helps or store.by_time.helps
    if store.exists and helps and not store.failures:
        return RepairStep(look_at_ms, look, missing.since_ms + PROMPT_ASK_MS)
    return RepairStep(look_at_ms, look, missing.since_ms)


def _steady_look(missing: Missing) -> tuple[int, Look]:
    """A first look soon after the message was noticed, then one an interval; by time as well after
    0, 1, 3, 7, 15, … of them, as each search costs more."""
    store_tries = missing.store_tries
    look: Look = "hint-then-time" if (store_tries + 1) & store_tries == 0 else "hint"
    if missing.last_try_ms is None:
        return missing.since_ms + min(FIRST_LOOK_MS, missing.interval_ms), look
    return missing.last_try_ms + missing.interval_ms, look


REPAIR_POLICIES: Final[Mapping[str, RepairPolicy]] = {
    "both": both,
    "store-only": store_only,
    "sds-r-only": sds_r_only,
    "none": nothing,
    "adaptive": adaptive,
    "prompt": prompt,
}
WITHOUT_STORE: Final = frozenset({"sds-r-only", "none"})
"""Policies that never query Store."""
WITHOUT_OTHERS: Final = frozenset({"store-only", "none"})
"""Policies that neither ask nor answer participants."""
