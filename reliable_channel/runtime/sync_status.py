"""Whether a participant has all that it knows of (js-waku's `syncStatus`)."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Literal, Self

import anyio

from .._notifier import Notifier
from ..engine.sync_core import SyncCore

SyncState = Literal["synced", "syncing", "different"]


@dataclass(frozen=True, slots=True)
class SyncStatus:
    """A snapshot. `synced` with lost messages is possible: nothing waits for these any more.

    `different` means that nothing is missing as far as this participant knows, and that another
    participant's log differs all the same: one of both lacks messages that are not referred to any
    more. That is noticed between participants of this SDK in the `spec` dialect, some minutes after
    the messages were sent.
    """

    state: SyncState
    received: int
    """Messages of others that were delivered."""
    missing: int
    """Messages known by reference alone, and those that wait for them."""
    lost: int
    """Messages that were given up and have not come since."""
    different_from: tuple[str, ...] = ()
    """Participants whose logs differ and stay so, 16 at most."""
    repair_failed: bool = False
    """With `preset="auto"`: no participant that is heard has the messages any more. The next try is
    after ten minutes, later ones after up to six hours."""


class SyncStatusWatch:
    """Wakes readers when the status changes, once a turn of the event loop however much happened in
    it."""

    def __init__(self, core: SyncCore) -> None:
        self.closed = False
        self._core = core
        self._version = 0
        self._changed = Notifier()

    def current(self) -> SyncStatus:
        """The present status."""
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

    @property
    def version(self) -> int:
        """Grows with everything that happens."""
        return self._version

    def notify(self) -> None:
        """Something happened."""
        self._version += 1
        if self._changed.waiting:
            self._changed.notify()

    def close(self) -> None:
        """Let readers finish."""
        self.closed = True
        self.notify()

    async def newer_than(self, version: int) -> None:
        """Wait until something happened after `version`, and let the batch it belongs to end."""
        while self._version == version:
            await self._changed.wait()
        await anyio.lowlevel.checkpoint()

    def changes(self) -> AsyncIterator[SyncStatus]:
        """The present status, then each other one."""
        return _Changes(self)


class _Changes:
    """One iteration over the changes; no generator, which trio resents being left halfway."""

    def __init__(self, watch: SyncStatusWatch) -> None:
        self._watch = watch
        self._version = -1
        self._last: SyncStatus | None = None

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SyncStatus:
        while True:
            await self._watch.newer_than(self._version)
            self._version = self._watch.version
            status = self._watch.current()
            if status != self._last:
                self._last = status
                return status
            if self._watch.closed:
                raise StopAsyncIteration
