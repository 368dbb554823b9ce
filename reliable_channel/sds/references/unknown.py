"""Limits of the unknown references in a received message, and of the rate at which they are
searched.

A reference costs its sender some bytes, and a receiver table entries and searches in Store.
Messages known only by reference therefore enter the tables at a limited rate. References that have
not entered a table yet wait in `queued.py`.
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
"""Number of newest references that are looked up one by one when a message arrives. By default, a
message has 200 references."""
FOLLOWED_AT_ONCE: Final = 5
"""Number of newest references in each message that are followed even without a budget. LIP 173 uses
fewer references."""
FOLLOWED_BURST: Final = 1_000
"""Number of further references that may be followed at once, as many as the longest history has."""
FOLLOWED_PER_S: Final = 50
"""Number of further references that may be followed in each second."""
FOLLOW_INTERVAL_MS: Final = 250
"""Interval (ms) in which queued references are followed, as far as the budget permits."""


@dataclass(slots=True)
class UnknownReferences:
    """References of a message to messages outside the log, as positions in the causal history."""

    checked: Sequence[int] = ()
    """Positions of the newest references, which are not in the archive either."""
    unchecked: Sequence[int] = ()
    """Positions of earlier references, which may be in the archive."""

    def __len__(self) -> int:
        return len(self.checked) + len(self.unchecked)


def unknown_references(
    message: Message, log: MessageLog, room: Callable[[], int] = lambda: CHECKED
) -> UnknownReferences | None:
    """Return the references to messages that were never in the log, or None as usual. The newest
    references, at most `room`, are also looked up in the archive."""
    in_memory, ids, history = log.entries, message.causal_ids, message.causal_history
    known = history.known if isinstance(history, LazyHistory) else 0
    # Nearly always; a loop in Python over 200 ids would be a fifth of what a message costs.
    if all(map(in_memory.__contains__, ids[known:])):
        return None
    checked = room()
    absent = [i for i in range(known, len(ids)) if ids[i] not in in_memory]
    newest = [i for i in absent[-checked:] if not log.is_known(ids[i])]
    return UnknownReferences(newest, absent[:-checked])


def excess(
    message: Message, unknown: UnknownReferences | None, log: MessageLog, limits: CoreLimits
) -> str:
    """Return a text about the limit that a message exceeds, or an empty text.

    References to known messages cost nothing and are not counted.
    """
    ids, requests, most = message.causal_ids, message.repair_request, limits.unknown_references
    unknown = unknown or UnknownReferences()
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
    """Return True if an id or the retrieval hint in a reference is too long."""
    return (
        len(entry.message_id) > MAX_ID_BYTES
        or len(entry.sender_id or "") > MAX_ID_BYTES
        or len(entry.retrieval_hint or b"") > MAX_ID_BYTES
    )


class ReferenceBudget:
    """Budgets for followed references, one for each proven sender and one for all other senders."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._spent: OrderedDict[str, tuple[float, int]] = OrderedDict()
        """What is spent, and when that was noted; what is not spent at all is not kept."""

    def room(self, payer: str, now_ms: int) -> int:
        """Return how many references may be followed now on the budget of `payer`. `payer` is a
        proven sender, or "" for all other senders."""
        return FOLLOWED_BURST - int(self._spent_by(payer, now_ms) + 0.999)

    def spend(self, payer: str, count: int, now_ms: int) -> None:
        """Charge a number of followed references to the budget of `payer`. If there are too many
        payers, the payer whose last charge is oldest is removed."""
        self._spent[payer] = self._spent_by(payer, now_ms) + count, now_ms
        self._spent.move_to_end(payer)
        if len(self._spent) > self._limit:
            self._spent.popitem(last=False)

    def _spent_by(self, payer: str, now_ms: int) -> float:
        spent, noted_ms = self._spent.get(payer, (0.0, now_ms))
        return min(
            max(0.0, spent - max(0, now_ms - noted_ms) * FOLLOWED_PER_S / 1000), FOLLOWED_BURST
        )
