"""Decoded messages, so that copies in other participants' journals need not be decoded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from .messages import Found, Ids, Messages, no_messages
from .wire import Whole, ramps

MAX_KNOWN: Final = 500_000
"""Maximum number of decoded messages that are kept, which need about 300 MB. When the maximum is
reached, all kept messages are dropped."""


class Known:
    """Decoded messages of a channel, by the hashes of their copies. The hash of a copy depends on
    its payload."""

    def __init__(self) -> None:
        self.ids, self.words = Ids(), Ids()
        self._places: dict[str, int] = {}
        self._codes: dict[bytes, int] = {}
        self._messages = no_messages()

    def places(self, hashes: Sequence[str], sizes: Whole) -> Whole:
        """Return the places of known messages with the given hashes and sizes (-1 for unknown
        messages)."""
        get = self._places.get
        found = np.fromiter((get(each, -1) for each in hashes), np.int64, len(hashes))
        known_bytes = np.append(self._messages.total_bytes, -1)[found]
        return np.where(known_bytes == sizes, found, -1)

    def add(self, hashes: Sequence[str], found: Found) -> None:
        """Add decoded messages by their hashes. Messages with an unproven retrieval hint are not
        added, because each participant must check them."""
        messages = found.messages
        if len(self._places) >= MAX_KNOWN:
            self._places, self._codes, self._messages = {}, {}, no_messages()
        self._codes.update(
            zip(map(bytes.fromhex, hashes), messages.message_id.tolist(), strict=True)
        )
        is_wrong = np.array([self._codes.get(hint) != code for code, hint in messages.hints], bool)
        unsure = np.zeros(len(hashes), bool)
        unsure[found.hinted[is_wrong[found.hints]]] = True
        new = {
            each: place
            for place, each in enumerate(hashes)
            if not unsure[place] and each not in self._places
        }
        count = len(self._places)
        self._places.update({each: count + nth for nth, each in enumerate(new)})
        chosen = taken(messages, np.fromiter(new.values(), np.int64, len(new)))
        self._messages = both(self._messages, chosen)

    def with_known(self, found: Messages, places: Whole) -> Messages:
        """Return the messages of all lines, from known messages at the given places and from new
        ones."""
        is_known = places >= 0
        every = both(found, taken(self._messages, places[is_known]))
        order = np.empty(len(places), np.int64)
        order[~is_known] = np.arange(len(places) - int(is_known.sum()))
        order[is_known] = len(places) - int(is_known.sum()) + np.arange(int(is_known.sum()))
        return taken(every, order)._replace(hints=found.hints)


def taken(messages: Messages, places: Whole) -> Messages:
    """Return the messages at the given places, without retrieval hints."""
    counts = messages.reference_counts
    firsts = np.cumsum(counts) - counts
    references = messages.references[ramps(firsts[places], counts[places])]
    columns = {name: getattr(messages, name)[places] for name in _COLUMNS}
    return messages._replace(**columns, references=references, hints=[])


def both(one: Messages, other: Messages) -> Messages:
    """Return the messages of both arguments, one after the other."""
    names = (*_COLUMNS, "references")
    columns = {name: np.concatenate([getattr(one, name), getattr(other, name)]) for name in names}
    return one._replace(**columns, hints=one.hints + other.hints)


_COLUMNS: Final = Messages._fields[:-2]
"""Those with a value for each message."""
