"""Judge of one participant's bloom filter, which must contain the newest message ids."""

from collections import deque
from collections.abc import Iterable, Sequence
from itertools import chain, islice
from typing import Final

from reliable_channel.sds import Message
from reliable_channel.sds.bloom import BloomParameters, contains, set_bits

from .ledger import Fail

INSERTED: Final = 5_000
"""Maximum number of ids that are remembered for a filter."""
RECENT: Final = 8
"""Number of the newest ids that each filter must contain."""


class FilterJudge:
    """Ids that were added to a filter, and further ids that may be in the filter."""

    def __init__(self, parameters: BloomParameters, fail: Fail) -> None:
        self._parameters, self._fail = parameters, fail
        self.inserted: deque[str] = deque(maxlen=INSERTED)
        """Oldest first."""
        self._before: list[list[str]] = []
        """Those of filters that ended with their process. What they acknowledged by chance may be
        told later, with the other segments of a payload."""
        self._bundled: set[str] = set()
        """Those of bundles. They are noted with their events, which wait for the disk: the core may
        have inserted others since, so that they are not judged as the newest."""

    def forget(self) -> None:
        """Note that the filter is gone, because its process ended without the present state."""
        self._before.append(list(self.inserted))
        self.inserted.clear()

    def restarted(self, log: Sequence[str], parked: Iterable[str]) -> None:
        """Note that the filter is made again from the data on disk."""
        self.inserted.extend(log)
        self.inserted.extend(parked)

    def came_in_bundle(self, message_id: str) -> None:
        """Note that the core received a message in a bundle, now or some steps ago."""
        self.inserted.append(message_id)
        self._bundled.add(message_id)

    def holds_by_chance(self, message_id: str) -> bool:
        """Return True if a filter of all added ids also contains an id that was not added. False
        positives are allowed in a bloom filter."""
        layout, size = self._parameters.layout, self._parameters.capacity
        wanted = set(layout.probes(message_id))
        for inserted in (*self._before, self.inserted):
            probes = [layout.probes(inserted_id) for inserted_id in inserted]
            for start in range(max(1, len(probes) - size + 1)):
                if wanted.issubset(chain.from_iterable(probes[start : start + size])):
                    return True
        return False

    def check(self, message: Message) -> None:
        """Check the bloom filter in a message of the participant."""
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
