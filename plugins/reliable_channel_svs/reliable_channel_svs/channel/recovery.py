"""Requests for missing messages and answers to requests, without bursts of either.

All members hear all requests and answers. A member therefore repeats neither the request nor the
answer of another member.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from ..naming import PublicationName
from ..protocol import suppression_timeout_ms
from .timers import Timers

ASK_WITHIN_MS: Final = 1_000
"""Maximum time until a missing message is requested. Most members draw a late moment, so that
usually only one member sends the request."""
ASK_AGAIN_MS: Final = 2_000
"""Pause after the first request for a message. The pause doubles after each request, up to
`ASK_AGAIN_MAX_MS`."""
ASK_AGAIN_MAX_MS: Final = 60_000
ANSWER_WITHIN_MS: Final = 1_000
"""Time within which members other than the sender answer a request."""
REST_MS: Final = 1_000
"""Time after an answer in which no member sends the same message again."""
ANSWERS: Final = 1_000
"""Maximum number of answers that may be planned at a time. Further requests are dropped, and their
senders ask again."""
MISSING_MESSAGES: Final = 20_000
"""Maximum number of missing messages that are looked for at a time."""


@dataclass(slots=True)
class _Missing:
    since_ms: int
    pause_ms: int = ASK_AGAIN_MS
    may_be_asked_for: bool = False


class Recovery:
    """Knows the messages that this participant lacks, and messages that other members request."""

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
        """Note that a message is missing. If the message was already known as missing, `miss`
        returns False."""
        if place in self.missing or len(self.missing) >= MISSING_MESSAGES:
            return False
        self.missing[place] = _Missing(now_ms)
        if self.undecided is None:
            self.may_ask(place, now_ms)
        else:
            self.undecided.append(place)
        return True

    def may_ask(self, place: PublicationName, now_ms: int) -> None:
        """Request a missing message from the other members from now on."""
        missing = self.missing.get(place)
        if missing is not None and not missing.may_be_asked_for:
            missing.may_be_asked_for = True
            self._questions.set(place, now_ms + self._within(ASK_WITHIN_MS))

    def heard(self, place: PublicationName, now_ms: int) -> int | None:
        """Note that a message arrived. `heard` returns the time since which the message was
        missing."""
        self._answers.cancel(place)
        self._heard_ms[place] = now_ms
        self._heard_ms.move_to_end(place)
        if len(self._heard_ms) > ANSWERS:
            self._heard_ms.popitem(last=False)
        missing = self.forget(place)
        return None if missing is None else missing.since_ms

    def forget(self, place: PublicationName) -> _Missing | None:
        """Stop looking for a missing message."""
        self._questions.cancel(place)
        return self.missing.pop(place, None)

    def asked(self, place: PublicationName, now_ms: int, *, held: bool, own: bool) -> None:
        """Note that a member requests a message."""
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
        """Yield the messages that must be requested now."""
        for place in self._questions.take_due(now_ms):
            self._ask_later(place, self.missing[place], now_ms)
            yield place

    def answers(self, now_ms: int) -> Iterator[PublicationName]:
        for place in self._answers.take_due(now_ms):
            self.heard(place, now_ms)
            yield place

    def overdue(self, now_ms: int, timeout_ms: int) -> Iterator[PublicationName]:
        """Yield the messages that have been missing for too long, and stop looking for them."""
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
