"""What js-waku may miss, and why: a closed list. A message that js-waku has not got fails its cell,
unless one of these explains it and the scenario allows for it.

Versions: `@waku/sdk` 0.0.36, `@waku/sds` 0.0.8. `js/defects/` has a minimal reproduction of each.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

Request = Literal["none", "lost", "ignored", "answered"]
"""What became of js-waku's one repair request for a message: it made none; it reached none of ours;
it reached one, and no participant broadcast the message after it; or one did."""


@dataclass(frozen=True, slots=True)
class Missed:
    """A message that is in all logs but js-waku's, and what js-waku went through."""

    sender_kind: Literal["ours", "js"]
    accepted_at: float
    """When its sender accepted it."""
    began_at: float
    """When js-waku's present life was ready."""
    lives: int
    has_store: bool
    was_emitted: bool
    """js-waku emitted it on arrival, as it does before it looks at it."""
    waits: bool
    """It is in js-waku's incoming buffer, and what it depends on is not there."""
    is_sought: bool
    """js-waku asks Store for it, by the hash that it was given first."""
    request: Request
    attacked_at: float | None
    """When a hostile member began."""


@dataclass(frozen=True, slots=True)
class Defect:
    name: str
    reason: str
    where: str
    reproduction: str
    """A program under `js/defects/`."""
    explains: Callable[[Missed], bool]


LATE_JOIN: Final = Defect(
    "js-late-join",
    "a late joiner asks Store for 30 days less the last 24 hours, and a channel that is created on "
    "a connected node does not ask at all; it learns of the past by references alone",
    "`QueryOnConnect` of @waku/sdk",
    "late_join.mjs",
    lambda missed: missed.lives == 1 and missed.accepted_at < missed.began_at,
)
FORGETS_ITSELF: Final = Defect(
    "js-forgets-itself",
    "nothing outlives the process, and what a participant said in an earlier life it takes for an "
    "echo: it can never have its own old messages, nor what refers to them, which is all",
    "`_pushIncomingMessage` of @waku/sds: a message with the own sender id is dropped",
    "forgets_itself.mjs",
    lambda missed: missed.lives > 1,
)
ONE_REQUEST: Final = Defect(
    "js-one-repair-request",
    "a missing message is asked for once: a request or an answer that is lost is the end of it",
    "`repair/buffers.ts` of @waku/sds",
    "one_repair_request.mjs",
    lambda missed: not missed.has_store and not missed.was_emitted,
)
WRONG_HINT: Final = Defect(
    "js-wrong-hint",
    "what js-waku sent is looked for in Store by its own hint, which is never right, if that came "
    "before ours: one repair request is all there is then, and an outage takes it or its answer",
    "`MissingMessageRetriever.addMissingMessage` of @waku/sdk keeps the first hint",
    "first_hint.mjs",
    lambda missed: (
        missed.has_store
        and missed.sender_kind == "js"
        and missed.is_sought
        and missed.request in ("lost", "answered")
        and not missed.was_emitted
        and not missed.waits
    ),
)
POISONED: Final = Defect(
    "js-poisoned",
    "any Lamport timestamp is taken over, so that one hostile message moves the clock permanently, "
    "and participants that bound clocks refuse all that comes after",
    "`MessageChannel` of @waku/sds",
    "poisoned_clock.mjs",
    lambda missed: missed.attacked_at is not None and missed.accepted_at > missed.attacked_at,
)
WAITS_FOR_EVER: Final = Defect(
    "js-waits-for-ever",
    "what depends on a missing message is not delivered, by default for ever",
    "`timeoutForLostMessagesMs` of @waku/sds is off by default",
    "waits_for_ever.mjs",
    lambda missed: missed.waits,
)
"""Explains nothing by itself: something else must be missing, and explained."""
ALL: Final = (LATE_JOIN, FORGETS_ITSELF, ONE_REQUEST, WRONG_HINT, POISONED, WAITS_FOR_EVER)


def explanation(missed: Missed, allowed: Sequence[Defect]) -> Defect | None:
    """The defect that explains it, of those that the scenario allows for."""
    return next((defect for defect in allowed if defect.explains(missed)), None)
