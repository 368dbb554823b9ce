"""What a task of its own holds open can be opened and closed by any task."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import pytest

from reliable_channel._own_task import OwnTask

pytestmark = pytest.mark.anyio


@asynccontextmanager
async def group(told: list[str], fails: bool = False) -> AsyncIterator[anyio.abc.TaskGroup]:
    async with anyio.create_task_group() as tasks:
        if fails:
            raise LookupError("it cannot be entered")
        told.append("entered")
        try:
            yield tasks
        finally:
            told.append("left")
            tasks.cancel_scope.cancel()


async def started(held: OwnTask[anyio.abc.TaskGroup]) -> anyio.abc.TaskGroup:
    held.start()
    return await held.entered()


async def test_it_is_entered_within_a_limit_and_left_by_another_task_in_any_order() -> None:
    told: list[str] = []
    held = [OwnTask(group(told)) for _ in range(3)]
    with anyio.fail_after(60):
        for one in held:
            await started(one)
    async with anyio.create_task_group() as tasks:
        for one in held:
            tasks.start_soon(one.leave)
    assert told == ["entered"] * 3 + ["left"] * 3
    assert all(one.has_ended and one.failure is None for one in held)


async def test_an_error_of_entering_is_raised() -> None:
    held = OwnTask(group([], fails=True))
    with pytest.raises(ExceptionGroup) as failed:
        await started(held)
    assert isinstance(failed.value.exceptions[0], LookupError)
    await held.leave()
    assert held.has_ended


async def test_an_error_later_is_told_and_kept() -> None:
    async def fail() -> None:
        raise LookupError("a mistake of a plugin")

    told: list[Exception] = []
    held = OwnTask(group([]), told.append)
    (await started(held)).start_soon(fail)
    while not held.has_ended:
        await anyio.lowlevel.checkpoint()
    assert told == [held.failure]
    assert isinstance(held.failure, ExceptionGroup)


async def test_a_caller_that_is_cancelled_hands_that_on() -> None:
    @asynccontextmanager
    async def slow() -> AsyncIterator[None]:
        try:
            yield
        finally:
            await anyio.sleep_forever()

    held = OwnTask(slow())
    held.start()
    await held.entered()
    with anyio.CancelScope() as scope:
        scope.cancel()
        await held.leave()
    assert held.has_ended
