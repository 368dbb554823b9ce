"""Judge of messages, which finds broken rules from the recent messages of all users.

The caller passes all times as arguments. The judge's memory is limited, so the oldest user or text
is forgotten.
"""

from collections import OrderedDict, deque
from collections.abc import Hashable
from dataclasses import dataclass
from enum import Enum
from hashlib import sha256
from typing import Final, Generic, TypeVar

from .appearance import appearance
from .links import why_not_allowed
from .policy import Policy

MAX_USERS: Final = 10_000
MAX_TEXTS: Final = 10_000
ARRIVALS: Final = 3
LATE_MS: Final = 60_000
LATE_WINDOW_MS: Final = 600_000

Key = TypeVar("Key", bound=Hashable)


class Rule(Enum):
    """Rule that a message can break."""

    FLOOD = "flood"
    SPAM = "spam"
    LINK = "link"
    RAID = "raid"
    LATE = "late"
    """Many messages have clocks in the past, which is only reported, because a bot may be catching
    up."""


@dataclass(frozen=True, slots=True)
class Seen:
    """Message that the judge examines."""

    user: str
    text: str
    mentions: int
    at_ms: int
    """Time of the message by its author's clock."""
    now_ms: int
    """Time of the message by the bot's clock."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """Broken rule, with the details of the case."""

    rule: Rule
    why: str
    points: int


class Windows(Generic[Key]):
    """Counter of occurrences for each key in a window of time.

    Args:
        limit: after so many in the window it is too often.
        window_ms: how long the window is.
        most: keys that are remembered.
    """

    def __init__(self, limit: int, window_ms: float, most: int) -> None:
        self._limit = limit
        self._window_ms = window_ms
        self._most = most
        self._times: OrderedDict[Key, deque[int]] = OrderedDict()

    def count(self, key: Key, at_ms: int) -> int:
        """Add an occurrence of a key. `count` returns the number of the key's occurrences in the
        window, up to the limit."""
        times = self._times.pop(key, None) or deque(maxlen=self._limit)
        times.append(at_ms)
        self._times[key] = times
        if len(self._times) > self._most:
            self._times.popitem(last=False)
        return sum(abs(at_ms - one) < self._window_ms for one in times)


class Judge:
    """Judge that examines messages in turn."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        repeat_ms = policy.repeat_s * 1000
        self._messages = Windows[str](policy.flood_messages + 1, policy.flood_s * 1000, MAX_USERS)
        # Clocks are the authors', so arrivals count as well, if more loosely: a node that was
        # away for a moment brings several messages at once.
        self._arrivals = Windows[str](
            ARRIVALS * policy.flood_messages + 1, policy.flood_s * 1000, MAX_USERS
        )
        self._late = Windows[str](policy.late_messages + 1, LATE_WINDOW_MS, MAX_USERS)
        self._reported = Windows[str](2, LATE_WINDOW_MS, MAX_USERS)
        self._repeats = Windows[tuple[str, bytes]](policy.repeats, repeat_ms, MAX_TEXTS)
        self._copies: OrderedDict[bytes, OrderedDict[str, int]] = OrderedDict()
        self._known: OrderedDict[str, None] = OrderedDict()
        self._newcomers: OrderedDict[str, int] = OrderedDict()
        self._started_ms: int | None = None
        self._raid_until_ms = 0

    def judge(self, seen: Seen) -> Verdict | None:
        """Return the most serious rule that a message breaks, or None."""
        is_newcomer = self.newcomer(seen.user, seen.now_ms)
        policy, user = self._policy, seen.user
        often = self._messages.count(user, seen.at_ms)
        is_late = seen.now_ms - seen.at_ms > LATE_MS
        late = self._late.count(user, seen.now_ms) if is_late else 0
        arrived = 0 if is_late else self._arrivals.count(user, seen.now_ms)
        spam = self._spam(seen)
        if often > policy.flood_messages or arrived > ARRIVALS * policy.flood_messages:
            why = f"more than {policy.flood_messages} messages in {policy.flood_s:g} s"
            return Verdict(Rule.FLOOD, why, policy.flood_points)
        if seen.mentions > policy.max_mentions:
            return Verdict(Rule.FLOOD, f"{seen.mentions} mentions", policy.flood_points)
        if spam:
            return Verdict(Rule.SPAM, spam, policy.spam_points)
        if found := self.link(seen.text):
            return found
        if is_newcomer and self.is_raid(seen.now_ms):
            return Verdict(Rule.RAID, "a newcomer during a raid", 0)
        if late > policy.late_messages and self._reported.count(user, seen.now_ms) == 1:
            return Verdict(Rule.LATE, f"more than {policy.late_messages} old messages", 0)
        return None

    def link(self, text: str) -> Verdict | None:
        """Return the rule that the links in a text break, or None (also for edits)."""
        why = why_not_allowed(text, self._policy.allowed_hosts)
        return Verdict(Rule.LINK, why, self._policy.link_points) if why else None

    def newcomer(self, user: str, now_ms: int) -> bool:
        """Note a user that wrote or requested to join. If the user is so new that it may belong to
        a raid, `newcomer` returns True."""
        policy = self._policy
        if self._started_ms is None:
            self._started_ms = now_ms
        is_learning = now_ms - self._started_ms < policy.learn_s * 1000
        if user not in self._known and not is_learning:
            self._newcomers[user] = now_ms
            if len(self._newcomers) > MAX_USERS:
                self._newcomers.popitem(last=False)
            lately = list(self._newcomers.values())[-policy.raid_newcomers :]
            is_many = len(lately) == policy.raid_newcomers
            if is_many and now_ms - lately[0] < policy.raid_s * 1000:
                self._raid_until_ms = now_ms + round(policy.raid_quiet_s * 1000)
            elif self.is_raid(now_ms):
                self._raid_until_ms = now_ms + round(policy.raid_quiet_s * 1000)
        self._known[user] = None
        self._known.move_to_end(user)
        if len(self._known) > MAX_USERS:
            self._known.popitem(last=False)
        since_ms = now_ms - (policy.raid_s + policy.raid_quiet_s) * 1000
        return self._newcomers.get(user, 0) > since_ms

    def is_raid(self, now_ms: int) -> bool:
        """Return True if many newcomers came recently."""
        return now_ms < self._raid_until_ms

    def set_raid(self, now_ms: int, *, is_on: bool) -> None:
        """Begin or end a raid on a moderator's order."""
        self._raid_until_ms = now_ms + round(self._policy.raid_quiet_s * 1000) if is_on else 0
        if not is_on:
            self._newcomers.clear()

    def _spam(self, seen: Seen) -> str | None:
        text = appearance(seen.text)
        if len(text) < self._policy.min_repeat_characters:
            return None
        digest = sha256(text.encode("utf-8", "surrogatepass")).digest()
        if self._repeats.count((seen.user, digest), seen.at_ms) >= self._policy.repeats:
            return f"the same text {self._policy.repeats} times"
        users = self._copies.pop(digest, None) or OrderedDict()
        users[seen.user] = seen.at_ms
        users.move_to_end(seen.user)
        if len(users) > self._policy.copies:
            users.popitem(last=False)
        self._copies[digest] = users
        if len(self._copies) > MAX_TEXTS:
            self._copies.popitem(last=False)
        window_ms = self._policy.repeat_s * 1000
        lately = sum(abs(seen.at_ms - one) < window_ms for one in users.values())
        return f"the same text by {lately} users" if lately >= self._policy.copies else None
