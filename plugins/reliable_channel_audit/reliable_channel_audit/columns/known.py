"""Decoded messages, so that copies in other participants' journals need not be decoded."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Final

import numpy as np

from ..log_order import entry_digest
from .messages import DIGEST_BYTES, Found, Ids, Messages, no_messages, rows_of
from .packing import Unpacked
from .tables import Log
from .wire import Array, Whole, ramps

_ENTRY: Final = 2 + DIGEST_BYTES // 8
"""Numbers of a log entry: its timestamp, its sender from 1, and the hash of its content."""
MAX_KNOWN: Final = 500_000
"""Maximum number of decoded messages that are kept, which need about 300 MB. When the maximum is
reached, all kept messages are dropped."""


class Known:
    """Decoded messages of a channel, by the hashes of their copies. The hash of a copy depends on
    its payload."""

    def __init__(self) -> None:
        self.ids, self.words = Ids(), Ids()
        self._places: dict[bytes, int] = {}
        self._codes: dict[bytes, int] = {}
        self._messages = no_messages()
        self._content_begin = np.zeros(0, np.int64)
        self._names: list[str] = []
        self._entries = np.zeros((0, _ENTRY), np.int64)
        self._digests = np.zeros((0, 4), np.int64)

    def places(self, hashes: Sequence[bytes], sizes: Whole) -> Whole:
        """Return the places of known messages with the given hashes and sizes (-1 for unknown
        messages)."""
        get = self._places.get
        found = np.fromiter((get(each, -1) for each in hashes), np.int64, len(hashes))
        known_bytes = np.append(self._messages.total_bytes, -1)[found]
        return np.where(known_bytes == sizes, found, -1)

    def contents(
        self, texts: Unpacked, wire: Whole, places: Whole, received: Whole
    ) -> tuple[Array, Array]:
        """Return hashes (sha256) of received contents, as far as each is the content of a known
        message on the wire. Also return which ones are.

        `places` are those of the wire messages here.
        """
        found = np.zeros((len(received), DIGEST_BYTES), np.uint8)
        # Of each piece the wire message and the place in it where it stands first.
        counts = texts.counts[wire]
        uses = texts.uses[ramps((np.cumsum(texts.counts) - texts.counts)[wire], counts)]
        message = np.full(len(texts.sizes), -1)
        message[uses[::-1]] = np.repeat(places, counts)[::-1]
        begin = np.full(len(texts.sizes), -1)
        begin[uses[::-1]] = texts.places(wire)[::-1]
        pieces = texts.uses[(np.cumsum(texts.counts) - texts.counts)[received]]
        of = message[pieces]
        is_known = texts.is_value[received] & (of >= 0)
        is_known &= np.append(self._content_begin, -2)[of] == begin[pieces]
        found[is_known] = self._messages.content_sha256[of[is_known]]
        return found, is_known

    def add(self, hashes: Sequence[bytes], found: Found) -> None:
        """Add decoded messages by their hashes. Messages with an unproven retrieval hint are not
        added, because each participant must check them."""
        messages = found.messages
        if not hashes:  # otherwise all known ones would be copied for nothing
            return
        if len(self._places) >= MAX_KNOWN:
            self._places, self._codes, self._messages = {}, {}, no_messages()
            self._content_begin = self._content_begin[:0]
        self._codes.update(zip(hashes, messages.message_id.tolist(), strict=True))
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
        chosen = np.fromiter(new.values(), np.int64, len(new))
        self._messages = both(self._messages, taken(messages, chosen))
        self._content_begin = np.append(self._content_begin, found.content_begin[chosen])

    def entry_digests(self, log: Log) -> Array:
        """Return the first four numbers of 32 bits of each entry's digest."""
        self._names += islice(self.ids, len(self._names), None)
        missing = len(self._names) - len(self._entries)
        self._entries = np.concatenate([self._entries, np.zeros((missing, _ENTRY), np.int64)])
        self._digests = np.concatenate([self._digests, np.zeros((missing, 4), np.int64)])
        numbers = log.message_id
        columns = log.lamport_timestamp, log.sender + 1, log.content_sha256.view(np.int64)
        entries = np.column_stack(columns)
        new = np.flatnonzero((self._entries[numbers] != entries).any(axis=1))
        texts = zip(
            log.lamport_timestamp[new].tolist(),
            *(map(self._names.__getitem__, each[new].tolist()) for each in (numbers, log.sender)),
            rows_of(log.content_sha256[new]),
            strict=True,
        )
        made = np.frombuffer(b"".join(map(entry_digest, texts)), ">u4").reshape(-1, 8)
        self._entries[numbers[new]], self._digests[numbers[new]] = entries[new], made[:, :4]
        return self._digests[numbers]

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
