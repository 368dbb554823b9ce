"""What a channel with a state store starts from, and the single values that the runtime keeps."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

from ..sds.changes import CHANNEL, Recorder, Tables, Value
from ..state import ArchiveOverlay, Identity, Saved, StateStore
from .backoff import Backoff
from .keeper import StateKeeper
from .rate_limit import Spent

LAST_LOOK: Final = "last_look_ms"
BUDGET_EPOCH: Final = "rate_limit_epoch_index"
BUDGET_SPENT: Final = "rate_limit_messages"


@dataclass(frozen=True, slots=True)
class Kept:
    """An open state store, and what was in it."""

    keeper: StateKeeper
    saved: Saved
    archive: ArchiveOverlay

    @property
    def is_restart(self) -> bool:
        """Whether there was a start before this one."""
        return any(self.saved.tables.values())

    @property
    def last_look_ms(self) -> int:
        """When the transport was last listened to before a restart; 0 where there was none."""
        return value_of(self.saved.tables, LAST_LOOK)


@asynccontextmanager
async def kept_in(
    store: StateStore, identity: Identity, now_ms: Callable[[], int], random: Callable[[], float]
) -> AsyncIterator[Kept]:
    """Open a state store for as long as the context lasts.

    Raises:
        StateError: it cannot be used.
    """
    keeper = StateKeeper(store, now_ms, Backoff(random, first_ms=1_000, most_ms=10_000))
    saved, archive = await keeper.open(identity)
    try:
        yield Kept(keeper, saved, archive)
    finally:
        await keeper.aclose()


class StateBudget:
    """The spent budget, kept with the rest of the state."""

    def __init__(self, recorder: Recorder, tables: Tables) -> None:
        self._recorder = recorder
        self._tables = tables

    def load(self) -> Spent | None:
        """What was saved last, or None."""
        epoch_index = value_of(self._tables, BUDGET_EPOCH)
        return Spent(epoch_index, value_of(self._tables, BUDGET_SPENT)) if epoch_index else None

    def save(self, spent: Spent) -> None:
        """Record; whoever spends waits until that is written."""
        self._recorder.put(CHANNEL, BUDGET_EPOCH, spent.epoch_index)
        self._recorder.put(CHANNEL, BUDGET_SPENT, spent.messages)


def value_of(tables: Tables, name: str) -> int:
    """A single value, or 0."""
    values: dict[Value, Value] = {row[0]: row[1] for row in tables.get(CHANNEL.name, ())}
    value = values.get(name)
    return value if isinstance(value, int) else 0
