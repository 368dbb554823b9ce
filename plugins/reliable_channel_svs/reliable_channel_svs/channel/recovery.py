"""Requests for missing messages and answers to requests, without a crowd of either.

All members hear everything. So no member repeats a request that another participant has made, or an
answer that another participant has given.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from ..naming import PublicationName
from ..protocol import suppression_timeout_ms
from .timers import Timers

ASK_WITHIN_MS: Final = 1_000
"""A missing message is requested within this time. Most members draw a late moment, so that one of
them asks first."""
ASK_AGAIN_MS: Final = 2_000
"""The pause after the first request. It doubles up to `ASK_AGAIN_MAX_MS`."""
ASK_AGAIN_MAX_MS: Final = 60_000
ANSWER_WITHIN_MS: Final = 1_000
"""Members other than the sender answer within this time."""
REST_MS: Final = 1_000
"""A message is not sent again for this long after an answer, by this member or another one."""
ANSWERS: Final = 1_000
"""The answers that may be planned at a time. Further requests are dropped, and their senders ask
again."""
MISSING_MESSAGES: Final = 20_000
"""The missing messages that are looked for at a time."""


@dataclass(slots=True)
class _Missing:
    since_ms: int
    pause_ms: int = ASK_AGAIN_MS
    may_be_asked_for: bool = False


class Recovery:
    """Knows the messages that are missing here, and the ones that other members miss."""

    def __init__(self, random: Callable[[], float], *, repair_on_demand: bool = False) -> None:
        self._random = random
        self.undecided: list[PublicationName] | None = [] if repair_on_demand else None
        """What is missing and waits for `may_ask`; None where others are asked at once."""
        self.missing: OrderedDict[PublicationName, _Missing] = OrderedDict()
        """Longest missing first."""
        self._questions: Timers[PublicationName] = Timers()
        self._answers: Timers[PublicationName] = Timers()
        self._heard_ms: OrderedDict[PublicationName, int] = OrderedDict()

    def miss(self, place: PublicationName, now_ms: int) -> bool:
        """Note that a message is missing. Return False if that was known."""
        if place in self.missing or len(self.missing) >= MISSING_MESSAGES:
            return False
        self.missing[place] = _Missing(now_ms)
        if self.undecided is None:
            self.may_ask(place, now_ms)
        else:
            self.undecided.append(place)
        return True

    def may_ask(self, place: PublicationName, now_ms: int) -> None:
        """Ask the other members for a missing message from now on."""
        missing = self.missing.get(place)
        if missing is not None and not missing.may_be_asked_for:
            missing.may_be_asked_for = True
            self._questions.set(place, now_ms + self._within(ASK_WITHIN_MS))

    def heard(self, place: PublicationName, now_ms: int) -> int | None:
        """Note that a message arrived. Return the time since which it was missing."""
        self._answers.cancel(place)
        self._heard_ms[place] = now_ms
        self._heard_ms.move_to_end(place)
        if len(self._heard_ms) > ANSWERS:
            self._heard_ms.popitem(last=False)
        missing = self.forget(place)
        return None if missing is None else missing.since_ms

    def forget(self, place: PublicationName) -> _Missing | None:
        """Stop looking for a message."""
        self._questions.cancel(place)
        return self.missing.pop(place, None)

    def asked(self, place: PublicationName, now_ms: int, *, held: bool, own: bool) -> None:
        """Note that a member asks for a message."""
        missing = self.missing.get(place)
        if missing is not None:
            if missing.may_be_asked_for:
                self._ask_later(place, missing, now_ms)
        elif (
            held
            and place not in self._answers
            and len(self._answers) < ANSWERS
            and now_ms - self._heard_ms.get(place, now_ms - REST_MS) >= REST_MS
        ):
            self._answers.set(place, now_ms if own else now_ms + self._within(ANSWER_WITHIN_MS))

    def questions(self, now_ms: int) -> Iterator[PublicationName]:
        """Return the messages to ask for now."""
        for place in self._questions.take_due(now_ms):
            self._ask_later(place, self.missing[place], now_ms)
            yield place

    def answers(self, now_ms: int) -> Iterator[PublicationName]:
        for place in self._answers.take_due(now_ms):
            self.heard(place, now_ms)
            yield place

    def overdue(self, now_ms: int, timeout_ms: int) -> Iterator[PublicationName]:
        """Return the messages that have been missing for too long, one after the other, and forget
        them."""
        while self.missing:
            place, missing = next(iter(self.missing.items()))
            if now_ms - missing.since_ms < timeout_ms:
                return
            del self.missing[place]
            self._questions.cancel(place)
            yield place

    def next_deadline_ms(self, timeout_ms: int) -> int | None:
        """Return the time at which the next request or answer is due."""
        oldest = next(iter(self.missing.values()), None)
        deadlines = (
            None if oldest is None else oldest.since_ms + timeout_ms,
            self._questions.next_ms(),
            self._answers.next_ms(),
        )
        return min((due for due in deadlines if due is not None), default=None)

    def _ask_later(self, place: PublicationName, missing: _Missing, now_ms: int) -> None:
        self._questions.set(place, now_ms + missing.pause_ms + self._within(ASK_WITHIN_MS))
        missing.pause_ms = min(2 * missing.pause_ms, ASK_AGAIN_MAX_MS)

    def _within(self, period_ms: int) -> int:
        return round(suppression_timeout_ms(period_ms, self._random()))
