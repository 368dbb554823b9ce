"""Decoded messages, so that copies in other participants' journals need not be decoded."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from itertools import islice
from typing import Any, Final

import numpy as np

from ..log_order import HOUR_MS, SUMS, Hour, entry_digest
from .arrays import Array, Whole, digests, ramps, rows_of
from .gathered import Log
from .messages import Decoded, Ids, Messages

_ENTRY: Final = 6
"""Numbers of a log entry: its timestamp, its sender from 1, and the hash of its content."""
MAX_KNOWN: Final = 500_000
"""Maximum number of decoded messages that are kept, which need about 300 MB. When a part begins
beyond the maximum, all kept messages are dropped."""


class Copies:
    """Decoded messages of a channel, by the hashes of their copies. The hash of a copy depends on
    its payload."""

    def __init__(self) -> None:
        self.ids, self.words = Ids(), Ids()
        self._entries = np.zeros((0, _ENTRY), np.int64)
        self._digests = np.zeros((0, 4), np.int64)
        self._names: list[str] = []
        self._drop()

    def _drop(self) -> None:
        self.places: dict[str, int] = {}
        """Places of messages by the hex digits of their hashes."""
        self.contents: list[bytes] = []
        """Hash of each message's content."""
        self._codes: dict[bytes, int] = {}
        self._columns = tuple(array("q") for _ in range(6))
        """Sender, id, timestamp, size, and the first and the number of the references."""
        self.sizes = self._columns[3]
        self._references = array("q")

    def begin(self) -> None:
        """Begin another part, whose messages are all kept until its end."""
        if len(self.contents) >= MAX_KNOWN:
            self._drop()

    def add(self, message_hash: str, message: Decoded) -> int:
        """Keep a message, and return its place. A message with an unproven retrieval hint is not
        found by its hash, because each participant must check the hint."""
        place = len(self.contents)
        references = len(self._references), len(message.references)
        for column, value in zip(
            self._columns, (*message[:3], message.total_bytes, *references), strict=True
        ):
            column.append(value)
        self._references.extend(message.references)
        self.contents.append(message.content_sha256)
        self._codes[bytes.fromhex(message_hash)] = message.message_id
        if all(self._codes.get(hint) == code for code, hint in message.hints):
            self.places.setdefault(message_hash, place)
        return place

    def learn(self, hashes: Array, messages: Messages) -> None:
        """Begin with messages that an earlier run decoded, and the hashes of their copies. The
        numbers in `messages` are those of `ids`."""
        before, counts = len(self.contents), messages.reference_counts
        unproven = np.isin(messages.references, [code for code, _ in messages.hints])
        of = np.repeat(np.arange(len(hashes)), counts)
        firsts = np.cumsum(counts) - counts + len(self._references)
        numbers = messages.sender_id, messages.message_id, messages.lamport_timestamp
        for column, values in zip(
            self._columns, (*numbers, messages.total_bytes, firsts, counts), strict=True
        ):
            column.frombytes(values.tobytes())
        self._references.frombytes(messages.references.tobytes())
        self.contents += rows_of(messages.content_sha256)
        texts = rows_of(hashes)
        self._codes.update(zip(texts, messages.message_id.tolist(), strict=True))
        for place in np.setdiff1d(np.arange(len(hashes)), of[unproven]).tolist():
            self.places.setdefault(texts[place].hex(), before + place)

    def messages(self, places: Sequence[int], hints: list[tuple[int, bytes]]) -> Messages:
        """Return the messages at the given places, with these retrieval hints."""
        at = np.array(places, np.int64)
        sender, message_id, lamport, sizes, firsts, counts = (
            _view(each)[at] for each in self._columns
        )
        contents = digests(map(self.contents.__getitem__, places))
        references = _view(self._references)[ramps(firsts, counts)]
        return Messages(sender, message_id, lamport, contents, sizes, counts, references, hints)

    def hours_in(self, log: Log) -> dict[int, Hour]:
        """Return `hours_of` a log, with the digests added up an hour at a time."""
        limbs = self._entry_digests(log).astype(np.int64)
        hours_ms = log.lamport_timestamp - log.lamport_timestamp % HOUR_MS
        order = np.argsort(hours_ms, kind="stable")
        begins = np.flatnonzero(np.diff(hours_ms[order], prepend=-1))
        if not len(begins):
            return {}
        at_ms, limbs = log.at_ms[order], limbs[order]
        columns = (
            hours_ms[order][begins],
            np.diff(begins, append=len(order)),
            np.add.reduceat(limbs, begins),
            np.minimum.reduceat(at_ms, begins),
            np.maximum.reduceat(at_ms, begins),
        )
        return {
            hour_ms: Hour(entries, sum(n << 32 * (3 - i) for i, n in enumerate(sums)) % SUMS, *span)
            for hour_ms, entries, sums, *span in zip(
                *(each.tolist() for each in columns), strict=True
            )
        }

    def _entry_digests(self, log: Log) -> Array:
        """The first four numbers of 32 bits of each entry's digest."""
        self._names += islice(self.ids, len(self._names), None)
        missing = len(self._names) - len(self._entries)
        self._entries = np.concatenate([self._entries, np.zeros((missing, _ENTRY), np.int64)])
        self._digests = np.concatenate([self._digests, np.zeros((missing, 4), np.int64)])
        numbers = log.message_id
        columns = log.lamport_timestamp, log.sender_id + 1, log.content_sha256.view(np.int64)
        entries = np.column_stack(columns)
        new = np.flatnonzero((self._entries[numbers] != entries).any(axis=1))
        texts = zip(
            log.lamport_timestamp[new].tolist(),
            map(self._names.__getitem__, numbers[new].tolist()),
            map(self._names.__getitem__, log.sender_id[new].tolist()),
            rows_of(log.content_sha256[new]),
            strict=True,
        )
        made = np.frombuffer(b"".join(map(entry_digest, texts)), ">u4").reshape(-1, 8)
        self._entries[numbers[new]], self._digests[numbers[new]] = entries[new], made[:, :4]
        return self._digests[numbers]


def _view(column: array[Any]) -> Whole:
    return np.frombuffer(column, np.int64) if len(column) else np.zeros(0, np.int64)
