"""What a received message refers to: what of it is unknown, what is too much, and how fast it is
looked for.

A reference costs its sender some bytes and a receiver a hundred times as much work as a known one:
entries in tables, a plan for a repair request, searches in Store. So the messages known by
reference alone enter these tables at a bounded rate, and wait in `queued.py` until then.
"""

from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from ..dialects.codec import MAX_ID_BYTES
from ..log.log import MessageLog
from ..message import HistoryEntry, LazyHistory, Message
from ..options import CoreLimits

CHECKED: Final = 200
"""References of a message that are looked at one by one when it arrives, within the budget: the
newest, as many as a message has by default."""
FOLLOWED_AT_ONCE: Final = 5
"""References of each message that are followed on every budget: the newest, more than LIP
173 has in all."""
FOLLOWED_BURST: Final = 1_000
"""References beyond that may be followed at once: as many as the longest causal history has."""
FOLLOWED_PER_S: Final = 50
"""And in each second from then on."""
FOLLOW_INTERVAL_MS: Final = 250
"""How often those that wait are followed, as the budget allows."""


@dataclass(slots=True)
class UnknownReferences:
    """The references of a message that are not in the log, by their place in its causal history,
    oldest first."""

    checked: Sequence[int] = ()
    """The newest of them; they are not in the archive either."""
    unchecked: Sequence[int] = ()
    """All before these; they may stand in the archive."""

    def __len__(self) -> int:
        return len(self.checked) + len(self.unchecked)


def unknown_references(
    message: Message, log: MessageLog, room: Callable[[], int] = lambda: CHECKED
) -> UnknownReferences:
    """The references to messages that were never in the log: mostly none. The newest ones of
    those that are not in memory, as many as there is `room` for, are looked up in the archive."""
    in_memory, ids, history = log.entries, message.causal_ids, message.causal_history
    known = history.known if isinstance(history, LazyHistory) else 0
    # Nearly always; a loop in Python over 200 ids would be a fifth of what a message costs.
    if all(map(in_memory.__contains__, ids[known:])):
        return UnknownReferences()
    checked = room()
    absent = [i for i in range(known, len(ids)) if ids[i] not in in_memory]
    newest = [i for i in absent[-checked:] if not log.is_known(ids[i])]
    return UnknownReferences(newest, absent[:-checked])


def excess(
    message: Message, unknown: UnknownReferences, log: MessageLog, limits: CoreLimits
) -> str:
    """What a message has too much of; empty where it has not.

    References to what is known cost nothing and are not counted.
    """
    ids, requests, most = message.causal_ids, message.repair_request, limits.unknown_references
    if len(unknown) > most:
        unknown.unchecked = [i for i in unknown.unchecked if not log.is_known(ids[i])]
    if len(unknown) > most:
        return f"{len(unknown)} unknown references; at most {most} are taken"
    if len(requests) > limits.repair_requests:
        return f"it asks for {len(requests)} messages; at most {limits.repair_requests} at once"
    # No known id is that long. Hints of the unchecked ones are looked at when it is their turn.
    checked = (message.causal_history[i] for i in unknown.checked)
    if (unknown and max(map(len, ids)) > MAX_ID_BYTES) or any(
        is_too_long(entry) for entry in (*checked, *requests)
    ):
        return f"it refers to ids or hints of more than {MAX_ID_BYTES} characters"
    return ""


def is_too_long(entry: HistoryEntry) -> bool:
    """Return True if it refers to a message that would be refused for its id."""
    return (
        len(entry.message_id) > MAX_ID_BYTES
        or len(entry.sender_id or "") > MAX_ID_BYTES
        or len(entry.retrieval_hint or b"") > MAX_ID_BYTES
    )


class ReferenceBudget:
    """How many references may be followed: one budget for each sender whose signature is proven,
    and one that all others share."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._spent: OrderedDict[str, tuple[float, int]] = OrderedDict()
        """What is spent, and when that was noted; what is not spent at all is not kept."""

    def room(self, payer: str, now_ms: int) -> int:
        """How many may be followed at the cost of `payer`, a proven sender or "" for all others."""
        return FOLLOWED_BURST - int(self._spent_by(payer, now_ms) + 0.999)

    def spend(self, payer: str, count: int, now_ms: int) -> None:
        """Take note that as many are followed; beyond the limit of payers the one that spent
        longest ago is forgotten."""
        self._spent[payer] = self._spent_by(payer, now_ms) + count, now_ms
        self._spent.move_to_end(payer)
        if len(self._spent) > self._limit:
            self._spent.popitem(last=False)

    def _spent_by(self, payer: str, now_ms: int) -> float:
        spent, noted_ms = self._spent.get(payer, (0.0, now_ms))
        return min(
            max(0.0, spent - max(0, now_ms - noted_ms) * FOLLOWED_PER_S / 1000), FOLLOWED_BURST
        )
