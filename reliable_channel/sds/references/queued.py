"""References that wait to be searched, in one batch for each message.

A reference in a batch costs only entries in a few dicts. Queueing nine hundred references costs
about as much as reading them. If too many references wait, whole batches of the participant with
the most are dropped.
"""

from collections import OrderedDict, deque
from collections.abc import Callable, Iterator, KeysView, Sequence
from dataclasses import dataclass, replace
from typing import Final

from ..changes import NO_RECORDER, Recorder, Table
from ..message import HistoryEntry
from ..shares import Shares

UNSEEN: Final = Table("unseen_references", (("message_id", "TEXT"), ("since_ms", "INTEGER")))
"""Table of parked messages with queued references. The causal history of a parked message shows its
queued references."""


@dataclass(slots=True, eq=False)
class Batch:
    carrier_id: str
    """Id of the message that contains the references."""
    is_parked: bool
    """True if the message waits for the references, which a sync message does not."""
    referrer_id: str
    payer: str
    """Sender whose budget pays for the search, or "" for all senders without a signature."""
    since_ms: int
    ids: dict[str, int]
    """Ids of the references, oldest first, with their positions in the causal history."""
    history: Callable[[], Sequence[HistoryEntry]]
    """Function that decodes the causal history again."""
    data_size: int
    """Memory (bytes) of the message, if it is kept only for the references."""
    is_handed_on: bool = False
    """True if the references stay only because other messages wait for them."""

    @property
    def size(self) -> int:
        """Number of references, plus the bytes of the message if only the references keep it in
        memory."""
        return len(self.ids) + (0 if self.is_parked else self.data_size)

    @property
    def key(self) -> str:
        return f"{id(self):x}"

    def newest(self, count: int) -> list[str]:
        """Return the newest ids of the batch, at most `count`, oldest first."""
        ids = list(self.ids)
        return ids[-count:] if count else []


class QueuedReferences:
    """Batches of queued references, by id, by message and by budget."""

    def __init__(self, recorder: Recorder = NO_RECORDER) -> None:
        self.size = 0
        """What is charged for all."""
        self._recorder = recorder
        self._batches: OrderedDict[str, Batch] = OrderedDict()
        """By key, oldest first."""
        self._of_id: dict[str, Batch] = {}
        self._of_carrier: dict[str, Batch] = {}
        self._queues: dict[str, OrderedDict[str, Batch]] = {}
        """By payer; the next to be followed first."""
        self._sizes: dict[str, int] = {}
        """What is charged for each, by key."""
        self._shares = Shares()

    def __len__(self) -> int:
        return len(self._of_id)

    def __contains__(self, message_id: str) -> bool:
        return message_id in self._of_id

    def __iter__(self) -> Iterator[str]:
        return iter(self._of_id)

    def known(self, message_ids: KeysView[str]) -> set[str]:
        """Return those of the given ids that are in a batch."""
        return message_ids & self._of_id.keys()

    def add(self, batch: Batch) -> None:
        """Add a batch of references, none of which is in another batch."""
        key, size = batch.key, batch.size
        self._batches[key] = batch
        self._sizes[key] = size
        self._queues.setdefault(batch.payer, OrderedDict())[key] = batch
        self._of_id.update(dict.fromkeys(batch.ids, batch))
        self._shares.add(key, batch.referrer_id, size)
        self.size += size
        if batch.is_parked:
            self._of_carrier[batch.carrier_id] = batch
            self._recorder.put(UNSEEN, batch.carrier_id, batch.since_ms)

    def hand_on(self, batch: Batch, referrer_id: str, ids: dict[str, int]) -> None:
        """Move some references of a dropped batch to another participant, which then pays for
        them."""
        self.add(
            replace(batch, referrer_id=referrer_id, ids=ids, is_parked=False, is_handed_on=True)
        )

    def get(self, message_id: str) -> Batch | None:
        """Return the batch that contains a message id."""
        return self._of_id.get(message_id)

    def carried_by(self, carrier_id: str) -> Batch | None:
        """Return the batch of the references that a parked message waits for."""
        return self._of_carrier.get(carrier_id)

    def carriers(self) -> list[str]:
        """Return the ids of the parked messages that wait for a batch."""
        return list(self._of_carrier)

    def remove(self, message_id: str) -> Batch | None:
        """Remove a message id from its batch, and return the batch."""
        batch = self._of_id.pop(message_id, None)
        if batch is not None:
            del batch.ids[message_id]
            if not batch.ids:
                self.drop(batch)
        return batch

    def drop(self, batch: Batch) -> None:
        """Remove a batch with the ids that are left in it."""
        deque(map(self._of_id.__delitem__, batch.ids), maxlen=0)
        del self._batches[batch.key]
        queue = self._queues[batch.payer]
        del queue[batch.key]
        if not queue:
            del self._queues[batch.payer]
        self._shares.remove(batch.key)
        self.size -= self._sizes.pop(batch.key)
        if batch.is_parked:
            del self._of_carrier[batch.carrier_id]
            self._recorder.delete(UNSEEN, batch.carrier_id)

    def heaviest(self) -> Batch:
        """Return the oldest batch of the participant that has the most references."""
        return self._batches[self._shares.first_to_go()]

    def oldest(self) -> Batch | None:
        """Return the batch that has waited longest."""
        return next(iter(self._batches.values()), None)

    def payers(self) -> list[str]:
        """Return the senders whose budgets batches wait for."""
        return list(self._queues)

    def next_of(self, payer: str) -> Batch | None:
        """Return the next batch of a sender, and move the batch to the end of its queue."""
        queue = self._queues.get(payer)
        if not queue:
            return None
        key = next(iter(queue))
        queue.move_to_end(key)
        return queue[key]
