"""Sync status of a participant, which tells how complete its log is (`syncStatus` in js-waku)."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any, Final, Literal, Self

import anyio

from .._notifier import Notifier
from ..engine.driver import Driver

SyncState = Literal["synced", "syncing", "different"]


@dataclass(frozen=True, slots=True)
class SyncStatus:
    """Snapshot of the sync status. The state `synced` is possible with lost messages, because no
    message waits for lost messages.

    In the state `different`, no message is missing, but another participant's log differs. If logs
    differ, one of them lacks messages that no newer message refers to. Only participants of this
    SDK in the `spec` dialect notice a difference, after some minutes.
    """

    state: SyncState
    received: int
    """Number of delivered messages of other participants."""
    missing: int
    """Number of messages known only by reference, and of messages that wait for them."""
    lost: int
    """Number of messages that were declared lost and have not arrived since."""
    different_from: tuple[str, ...] = ()
    """Participants (at most 16) whose logs permanently differ from the own log."""
    repair_failed: bool = False
    """True if no active participant has the missing messages any more, with `preset="auto"`. The
    next attempt to repair is after ten minutes, and later attempts after up to six hours."""


class SyncStatusWatch:
    """Source of sync status changes for readers, with at most one change in each event loop
    turn."""

    def __init__(self, driver: Driver[Any]) -> None:
        self.closed = False
        self.changed: Final = Notifier()
        """Notified after each step from the first `changes` on: it may have changed the status."""
        self._driver = driver

    def current(self) -> SyncStatus:
        """Return the current sync status."""
        progress = self._driver.engine.core.progress()
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
        """Let all waiting readers of the status finish."""
        self.closed = True
        self.changed.notify()

    def changes(self) -> AsyncIterator[SyncStatus]:
        """Iterate over the current sync status and each later status."""
        self._driver.note_step = self.changed.notify
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
