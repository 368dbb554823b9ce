"""A participant's log, put together again from the places at which its messages landed."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from hashlib import sha256
from typing import NamedTuple


class Landed(NamedTuple):
    """A message in a log. Equal logs have equal ones in equal order."""

    lamport_timestamp: int
    message_id: str
    sender_id: str
    content_sha256: bytes

    @property
    def key(self) -> tuple[int, str]:
        """Where it belongs (LIP 109: Lamport timestamp, then id)."""
        return self.lamport_timestamp, self.message_id


class LogOrder:
    """Puts each message where the participant said it landed.

    Positions count from the oldest entry that is kept, so that what left the log is counted along.
    What was in the log when the journal began is unknown, and stays so.
    """

    def __init__(self) -> None:
        self.entries: list[Landed] = []
        self._unknown = 0
        self._evicted = 0
        self.beyond: Landed | None = None
        """The first message whose position is beyond the end of the log."""
        self._step = (0, 0)
        """When a step was that let something go, and how much had left the log before it."""

    def __iter__(self) -> Iterator[Landed]:
        return iter(self.entries)

    def __len__(self) -> int:
        return len(self.entries)

    @property
    def is_partial(self) -> bool:
        """Whether there are entries of before the journal began."""
        return self._unknown > 0

    def go_on(self, log_length: int) -> None:
        """Another session begins, with so many entries."""
        self._evicted = 0
        self._unknown = max(0, log_length - len(self.entries))
        del self.entries[: max(0, len(self.entries) - log_length)]

    def lose(self) -> None:
        """Some entries stood in lines that cannot be read: positions mean little from here on."""
        self._unknown = max(1, self._unknown)

    def restore(self, entry: Landed) -> None:
        """Learn of a message that was in the log when the session began."""
        self._unknown = max(0, self._unknown - 1)
        self.entries.insert(bisect_left(self.entries, entry), entry)

    def land(self, entry: Landed, position: int, evicted: int, at_ms: int) -> None:
        """Insert a message.

        In one step several may land, and each line names how much had left the log at the end of
            the step: then it is right where it belongs, if that is a place between those that the
        position means before the step and after it.
        """
        if evicted != self._evicted:
            self._step = at_ms, self._evicted
            self._evicted = evicted
        place = position + evicted - self._unknown
        if self._unknown:  # what is unknown may stand between, so that its position means little
            place = bisect_left(self.entries, entry)
        elif self._step[0] == at_ms:
            least = place - evicted + self._step[1]
            place = min(max(bisect_left(self.entries, entry), least), place)
        if place > len(self.entries):
            self.beyond = self.beyond or entry
        self.entries.insert(max(0, place), entry)

    def forget(self, message_id: str) -> None:
        """Take out a message that was forged."""
        self.entries = [entry for entry in self.entries if entry.message_id != message_id]

    def digest(self) -> str:
        """Hex sha256 of all entries in order."""
        total = sha256()
        for lamport_timestamp, message_id, sender_id, content_sha256 in self.entries:
            text = f"{lamport_timestamp} {len(message_id)} {message_id} {sender_id}\0".encode()
            total.update(text)
            total.update(content_sha256)
        return total.hexdigest()


def first_difference(one: Sequence[str], other: Sequence[str]) -> int | None:
    """The first place at which two orders of the same ids differ, or None."""
    return next(
        (i for i, pair in enumerate(zip(one, other, strict=True)) if pair[0] != pair[1]), None
    )
