"""A task that holds something open, so that any task may open and close it."""

import asyncio
import sys
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Final, Generic, TypeVar

import anyio

T = TypeVar("T")

_running: Final = set[asyncio.Task[None]]()
"""asyncio keeps weak references to tasks only."""


class OwnTask(Generic[T]):
    """A task that enters an async context manager, and leaves it on request.

    The context manager has task groups. The task that entered them must leave them, inside of
    everything that it entered before. In a separate task any other task can open and close it, in
    any order and inside of time limits. No task group awaits this task, so its user has to leave.

    Args: held: the context manager. failed: called with an error that ends it before `leave`.
    """

    def __init__(
        self,
        held: AbstractAsyncContextManager[T],
        failed: Callable[[Exception], None] = lambda _: None,
    ) -> None:
        self._held = held
        self._failed = failed
        self._value: T | None = None
        self._scope = anyio.CancelScope()
        self._entered, self._unused, self._ended = anyio.Event(), anyio.Event(), anyio.Event()
        self.failure: Exception | None = None
        """Error that ended it."""

    @property
    def has_ended(self) -> bool:
        """True if nothing is held any more."""
        return self._ended.is_set()

    def start(self) -> None:
        trio = sys.modules.get("trio")
        if trio is not None and trio.lowlevel.in_trio_run():
            trio.lowlevel.spawn_system_task(self._hold)
            return
        task = asyncio.ensure_future(self._hold())
        _running.add(task)
        task.add_done_callback(_running.discard)

    async def entered(self) -> T:
        """Wait until the context manager is entered, and return its value.

        Raises:
            Exception: entering failed, or it has ended with this error.
        """
        await self._entered.wait()
        if self.failure is not None:
            raise self.failure
        return self._value  # type: ignore[return-value]

    async def leave(self) -> None:
        """Leave, and wait until that is done. A caller that is cancelled cancels the leaving
        too."""
        self._unused.set()
        try:
            await self._ended.wait()
        finally:
            if not self.has_ended:
                self._scope.cancel()
                with anyio.CancelScope(shield=True):
                    await self._ended.wait()

    async def _hold(self) -> None:
        try:
            with self._scope:
                async with self._held as self._value:
                    self._entered.set()
                    await self._unused.wait()
        except Exception as error:  # nobody awaits this task: those that use it raise the error
            self.failure = error
            if self._entered.is_set() and not self._unused.is_set():
                self._failed(error)
        finally:
            self._entered.set()
            self._ended.set()
