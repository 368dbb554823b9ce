"""Sync status: completeness of a participant's log (js-waku's `syncStatus`)."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Final, Literal, Self

import anyio

from .._notifier import Notifier
from ..engine.sync_core import SyncCore

SyncState = Literal["synced", "syncing", "different"]


@dataclass(frozen=True, slots=True)
class SyncStatus:
    """Snapshot of the sync status. `synced` is possible with lost messages, because nothing waits
    for them any more.

    With `different`, this participant knows of no missing message, but another participant's log
    differs. One of the two logs lacks messages to which no message refers any more. Only
    participants of this SDK in the `spec` dialect notice it, some minutes after the messages were
    sent.
    """

    state: SyncState
    received: int
    """Delivered messages of other participants."""
    missing: int
    """Messages known only by reference, and messages that wait for them."""
    lost: int
    """Messages that were declared lost and have not arrived since."""
    different_from: tuple[str, ...] = ()
    """Participants whose logs differ permanently, at most 16."""
    repair_failed: bool = False
    """True if no active participant has the messages any more, with `preset="auto"`. The next try
    is after ten minutes, later ones after up to six hours."""


class SyncStatusWatch:
    """Wakes readers when the status changes, at most once in each turn of the event loop."""

    def __init__(self, core: SyncCore) -> None:
        self.closed = False
        self.changed: Final = Notifier()
        """Notified after each step, which may have changed the status."""
        self._core = core

    def current(self) -> SyncStatus:
        """Return the present sync status."""
        progress = self._core.progress()
        if progress.missing:
            state: SyncState = "syncing"
        else:
            state = "different" if progress.different_from else "synced"
        return SyncStatus(
            state=state,
            received=progress.received,
            missing=progress.missing,
            lost=progress.lost,
            different_from=progress.different_from,
            repair_failed=progress.repair_failed,
        )

    def close(self) -> None:
        """Let all waiting readers finish."""
        self.closed = True
        self.changed.notify()

    def changes(self) -> AsyncIterator[SyncStatus]:
        """Iterate over the present status and each later one."""
        return _Changes(self)


class _Changes:
    """One iteration over the changes; no generator, which trio resents being left halfway."""

    def __init__(self, watch: SyncStatusWatch) -> None:
        self._watch = watch
        self._last: SyncStatus | None = None

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SyncStatus:
        while True:
            await anyio.lowlevel.checkpoint()  # the rest of a batch
            status = self._watch.current()
            if status != self._last:
                self._last = status
                return status
            if self._watch.closed:
                raise StopAsyncIteration
            await self._watch.changed.wait()
