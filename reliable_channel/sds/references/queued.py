"""References that wait until they are looked for, in batches of one message each.

Nothing is done for each of them but entries in a few dicts, made and removed by the batch, so that
nine hundred cost about what reading them does. Where there are too many, whole batches go, from the
participant that has most.
"""

from collections import OrderedDict, deque
from collections.abc import Callable, Iterator, KeysView, Sequence
from dataclasses import dataclass, replace
from typing import Final

from ..changes import NO_RECORDER, Recorder, Table
from ..message import HistoryEntry
from ..shares import Shares

UNSEEN: Final = Table("unseen_references", (("message_id", "TEXT"), ("since_ms", "INTEGER")))
"""Parked messages some of whose references wait here; which ones follows from their causal
history."""


@dataclass(slots=True, eq=False)
class Batch:
    carrier_id: str
    """The message."""
    is_parked: bool
    """True if it waits for them; sync messages do not."""
    referrer_id: str
    payer: str
    """Whose budget they are followed with."""
    since_ms: int
    ids: dict[str, int]
    """Their ids, oldest first, and their places in the causal history."""
    history: Callable[[], Sequence[HistoryEntry]]
    """Reads the causal history again."""
    data_size: int
    """What is charged beside them where they alone keep the message's bytes."""
    is_handed_on: bool = False
    """True if they stay for the sake of other messages than the one that brought them."""

    @property
    def size(self) -> int:
        """What is charged when it is noted."""
        return len(self.ids) + (0 if self.is_parked else self.data_size)

    @property
    def key(self) -> str:
        return f"{id(self):x}"

    def newest(self, count: int) -> list[str]:
        """The newest so many ids, oldest first."""
        ids = list(self.ids)
        return ids[-count:] if count else []


class QueuedReferences:
    """All batches, by id, by message, and by the budget that they wait for."""

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
        """Those of the ids that are noted."""
        return message_ids & self._of_id.keys()

    def add(self, batch: Batch) -> None:
        """Note references none of which is noted yet."""
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
        """Note some of the references of a batch, which was dropped, as another participant's."""
        self.add(
            replace(batch, referrer_id=referrer_id, ids=ids, is_parked=False, is_handed_on=True)
        )

    def get(self, message_id: str) -> Batch | None:
        """The batch of an id."""
        return self._of_id.get(message_id)

    def carried_by(self, carrier_id: str) -> Batch | None:
        """The batch that a parked message waits for."""
        return self._of_carrier.get(carrier_id)

    def carriers(self) -> list[str]:
        """The parked messages that wait for a batch."""
        return list(self._of_carrier)

    def remove(self, message_id: str) -> Batch | None:
        """Forget an id; return the batch that it was of."""
        batch = self._of_id.pop(message_id, None)
        if batch is not None:
            del batch.ids[message_id]
            if not batch.ids:
                self.drop(batch)
        return batch

    def drop(self, batch: Batch) -> None:
        """Forget all that is left of a batch."""
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
        """The oldest batch of the participant that has most."""
        return self._batches[self._shares.first_to_go()]

    def oldest(self) -> Batch | None:
        """The batch that has waited longest."""
        return next(iter(self._batches.values()), None)

    def payers(self) -> list[str]:
        """Whose budgets are waited for."""
        return list(self._queues)

    def next_of(self, payer: str) -> Batch | None:
        """The batch whose turn it is; it comes last from then on."""
        queue = self._queues.get(payer)
        if not queue:
            return None
        key = next(iter(queue))
        queue.move_to_end(key)
        return queue[key]
