"""Where a missing message comes from, and when: policies, which are pure functions.

A policy is shown a missing message as it stands and says when Store is asked for it, how, and from
when other participants are asked. `engine/recovery.py` obeys it, in channels and in the simulation.
What there is to learn from, such as what Store found lately and how long it took, is in what the
policy is shown: so it needs no memory, and equal cases have equal answers.

All times are milliseconds; those called `…_ms` without a length of time are on the clock of
`Missing.now_ms`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from ..sds.message import HistoryEntry

FIRST_LOOK_MS: Final = 1_000
"""A message that is missing for less may still be on its way."""
EWMA_WEIGHT: Final = 0.125
"""Weight of the newest outcome in `RecentOutcomes`; the first ones weigh the same."""
BACKOFF_FACTOR: Final = 2
"""How many times as long `adaptive` waits between looks that find little."""
MAX_STRETCH: Final = 6
"""The same for a Store that does not answer, at most."""
USEFUL_SHARE: Final = 0.05
"""The share found from which on a way is said to help."""
MIN_TRIES: Final = 3
"""Outcomes after which `adaptive` believes that a way does not help."""
PROMPT_ASK_MS: Final = 2_500
"""How long `prompt` gives a Store that helps before it asks others."""
PROMPT_MAX_MS: Final = 10_000
"""The longest wait of `prompt` between two looks."""

Look = Literal["hint", "time", "hint-then-time"]
"""How Store is asked: by retrieval hint, by topic and time, or by the latter where the former does
not help. A hint is one request for many messages; a search by time reads up to a month of Store,
and is made for messages alone that others wait for."""


@dataclass(frozen=True, slots=True)
class RecentOutcomes:
    """What came of the newest tries of one way to missing messages."""

    tries: int = 0
    """All since the channel was opened."""
    found: float = 1.0
    """The share of what was looked for that was found; 1 before the first try."""
    took_ms: float = 0.0
    """How long an answer took."""
    cost_bytes: float = 0.0
    """What was received a try, whether or not it helped."""

    def after(self, found: float, took_ms: float, cost_bytes: float) -> "RecentOutcomes":
        """The same after one more try."""
        weight = max(EWMA_WEIGHT, 1 / (self.tries + 1))
        return RecentOutcomes(
            self.tries + 1,
            self.found + weight * (found - self.found),
            self.took_ms + weight * (took_ms - self.took_ms),
            self.cost_bytes + weight * (cost_bytes - self.cost_bytes),
        )

    @property
    def helps(self) -> bool:
        """Whether it finds something, as far as is known."""
        return self.tries < MIN_TRIES or self.found >= USEFUL_SHARE


@dataclass(frozen=True, slots=True)
class StoreState:
    """Store, as it did lately."""

    exists: bool = True
    """Whether there is one to ask."""
    failures: int = 0
    """How many times in a row it did not answer."""
    failed_ms: int = 0
    """When it last did not."""
    by_hint: RecentOutcomes = field(default_factory=RecentOutcomes)
    """What the first look for a message found by hint."""
    by_time: RecentOutcomes = field(default_factory=RecentOutcomes)
    """And by topic and time."""
    again: RecentOutcomes = field(default_factory=RecentOutcomes)
    """What all further looks found, in all ways."""


@dataclass(frozen=True, slots=True)
class Peers:
    """The other participants, as they did lately."""

    count: int = 0
    """How many were heard: the group's size without oneself."""
    asked: RecentOutcomes = field(default_factory=RecentOutcomes)
    """What came of requests: from the first one for a message to its arrival."""


@dataclass(frozen=True, slots=True)
class Missing:
    """A missing message, as a policy is shown it."""

    entry: HistoryEntry
    """Its message id, and its sender and retrieval hint where they are known."""
    now_ms: int
    since_ms: int
    """When it was noticed."""
    interval_ms: int
    """What the options say: `retrieve_frequency_ms`."""
    began_ms: int = 0
    """When this participant began, from which it may count the times at which it
    looks for several messages at once."""
    is_awaited: bool = True
    """Whether other messages wait for it; else it counts as lost, or as from before this
    participant joined."""
    store_tries: int = 0
    """How often Store was asked for it; a look that had to leave out its search by time, as such
    searches lately took long, does not count."""
    last_try_ms: int | None = None
    """When the last look ended; None before the first."""
    asked: int = 0
    """How often this participant asked others for it."""
    store: StoreState = field(default_factory=StoreState)
    others: Peers = field(default_factory=Peers)
    is_past: bool = False
    """Whether Store gave the message that refers to it, so that it is not on its way any more."""

    @property
    def age_ms(self) -> int:
        """For how long it has been missing."""
        return self.now_ms - self.since_ms


@dataclass(frozen=True, slots=True)
class RepairStep:
    """What is next for a missing message. The two ways go on beside each other."""

    look_at_ms: int | None = None
    """When Store is asked, to the second; None for not until the policy is asked again."""
    look: Look = "hint"
    ask_at_ms: int | None = None
    """From when other participants are asked, by the rules and in the time of the sync protocol:
    in SDS-R, T_req is counted from then. None for not until the policy is asked again. Once it has
    come there is no way back."""


RepairPolicy = Callable[[Missing], RepairStep]
"""Says what is next for a missing message.

Asked when a message is noticed, after each look into Store for it, when Store did not answer, and
when Store answers again. Must be pure: equal arguments, equal answer. Times that are over mean at
once; a policy that never says when leaves the message to its sender, which sends it again until it
is acknowledged, and in the end it counts as lost.
"""


def both(missing: Missing) -> RepairStep:
    """Store by hint first and time and again, by topic and time less and less often, as each such
    search goes further back; and other participants from the first, whose time comes later."""
    look_at_ms, look = _steady_look(missing)
    return RepairStep(look_at_ms, look, missing.since_ms)


def store_only(missing: Missing) -> RepairStep:
    """Store as in `both`, and no participant."""
    return RepairStep(*_steady_look(missing))


def sds_r_only(missing: Missing) -> RepairStep:
    """Other participants alone."""
    return RepairStep(ask_at_ms=missing.since_ms)


def nothing(missing: Missing) -> RepairStep:
    """Wait for the sender to send it again."""
    return RepairStep()


def adaptive(missing: Missing) -> RepairStep:
    """As `both`, for fewer queries: it looks for several messages at once, and leaves out what did
    not help lately.

    All looks but a message's first fall on times an interval apart, of this participant's own, so
    that one query serves all that is missing. Where such later looks found little, or Store does
    not answer, these times lie further apart. Where hints find nothing and searches by time do, as
    with peers whose hints never match, a message is searched for by time from the first; where
    such searches find nothing, half of them are left out.
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
    """Store soon, other participants where it does not help, and Store again less and less often.

    For `preset="auto"`: the interval of the options is the first wait, and doubles with each look
    without success. What a message from Store refers to is looked for at once, so that a gap of
    many messages costs a round trip for each link, and no wait. Where Store did not help lately, or
    does not answer, others are asked from the first.
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
"""Of these it is known that Store is not even asked for what was missed."""
WITHOUT_OTHERS: Final = frozenset({"store-only", "none"})
"""Of these it is known that others are not asked; nor are they answered."""
