"""Judge of one participant's bloom filter: it rolls, and contains the newest ids."""

from collections import deque
from collections.abc import Iterable, Sequence
from itertools import chain, islice
from typing import Final

from reliable_channel.sds import Message
from reliable_channel.sds.bloom import BloomParameters, contains, set_bits

from .ledger import Fail

INSERTED: Final = 5_000
"""Number of ids that are remembered for a filter, as many as it may contain while its messages are
on their way."""
RECENT: Final = 8
"""Number of newest ids that each filter is checked for."""


class FilterJudge:
    """Ids that were added to a filter, and ids that may be in it."""

    def __init__(self, parameters: BloomParameters, fail: Fail) -> None:
        self._parameters, self._fail = parameters, fail
        self.inserted: deque[str] = deque(maxlen=INSERTED)
        """Oldest first."""
        self._bundled: set[str] = set()
        """Those of bundles. They are noted with their events, which wait for the disk: the core may
        have inserted others since, so that they are not judged as the newest."""

    def restarted(self, log: Sequence[str], parked: Iterable[str]) -> None:
        """Note that the filter is made anew from the disk."""
        self.inserted.extend(log)
        self.inserted.extend(parked)

    def came_in_bundle(self, message_id: str) -> None:
        """Note that the core received a message of a bundle, now or some steps ago."""
        self.inserted.append(message_id)
        self._bundled.add(message_id)

    def holds_by_chance(self, message_id: str) -> bool:
        """Return True if a full filter, filled with ids one after another, would contain an id that
        was not added. A bloom filter may do that."""
        layout, size = self._parameters.layout, self._parameters.capacity
        wanted, inserted = set(layout.probes(message_id)), list(self.inserted)
        probes = [layout.probes(inserted_id) for inserted_id in inserted]
        starts = range(max(1, len(inserted) - size + 1))
        return any(
            wanted.issubset(chain.from_iterable(probes[start : start + size])) for start in starts
        )

    def check(self, message: Message) -> None:
        """Check the filter of an own message."""
        layout, words = self._parameters.layout, message.bloom_filter or b""
        most = self._parameters.capacity * self._parameters.hash_count
        bits = set_bits(words)
        if bits > most:
            detail = f"{bits} bits are set, by its capacity {most} can be"
            self._fail("the bloom filter rolls", message.message_id, detail)
        recent = min(RECENT, self._parameters.capacity // 2)
        for message_id in islice(reversed(self.inserted), recent + 1):
            # Not yet its own, nor what came while it waited to be published.
            if message_id in self._bundled or message_id not in message.causal_ids:
                continue
            if not contains(words, layout.probes(message_id)):
                detail = f"the filter of {message.message_id} lacks it"
                self._fail("the bloom filter holds the newest", message_id, detail)
