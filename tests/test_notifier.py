"""Who is woken, and who is not."""

import anyio
import pytest

from reliable_channel._notifier import FEW, Notifier

pytestmark = pytest.mark.anyio


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


async def waiting(
    notifier: Notifier, woken: list[str], name: str, within_s: float | None = None
) -> None:
    await notifier.wait(within_s)
    woken.append(name)


async def test_a_notification_wakes_all_that_wait_and_no_later_one() -> None:
    notifier, woken = Notifier(), list[str]()
    async with anyio.create_task_group() as tasks:
        for name in "ab":
            tasks.start_soon(waiting, notifier, woken, name)
        await anyio.wait_all_tasks_blocked()
        notifier.notify()
        await anyio.wait_all_tasks_blocked()
        tasks.start_soon(waiting, notifier, woken, "c")
        await anyio.wait_all_tasks_blocked()
        assert sorted(woken) == ["a", "b"]
        tasks.cancel_scope.cancel()


async def test_one_can_be_woken_the_one_that_has_waited_longest() -> None:
    notifier, woken = Notifier(), list[str]()
    async with anyio.create_task_group() as tasks:
        for name in "abc":
            tasks.start_soon(waiting, notifier, woken, name)
            await anyio.wait_all_tasks_blocked()
        notifier.notify_one()
        await anyio.wait_all_tasks_blocked()
        assert woken == ["a"]
        notifier.notify()


async def test_a_task_that_gave_up_takes_no_notification() -> None:
    notifier, woken = Notifier(), list[str]()
    with anyio.move_on_after(0):
        await notifier.wait()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(waiting, notifier, woken, "a")
        await anyio.wait_all_tasks_blocked()
        notifier.notify_one()
    assert woken == ["a"]


async def test_of_two_that_wait_the_cancelled_one_takes_no_notification() -> None:
    notifier, woken = Notifier(), list[str]()
    async with anyio.create_task_group() as tasks:
        scope = anyio.CancelScope()

        async def gives_up() -> None:
            with scope:
                await notifier.wait()

        tasks.start_soon(gives_up)
        await anyio.wait_all_tasks_blocked()
        tasks.start_soon(waiting, notifier, woken, "b")
        await anyio.wait_all_tasks_blocked()
        scope.cancel()
        await anyio.wait_all_tasks_blocked()
        notifier.notify_one()
    assert woken == ["b"]


async def test_one_that_waited_long_enough_goes_on_and_takes_no_notification() -> None:
    notifier, woken = Notifier(), list[str]()
    await notifier.wait(0)
    await notifier.wait(0.001)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(waiting, notifier, woken, "a")
        await anyio.wait_all_tasks_blocked()
        notifier.notify_one()
    assert woken == ["a"]


async def test_a_notification_ends_a_wait_that_has_time() -> None:
    notifier, woken = Notifier(), list[str]()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(waiting, notifier, woken, "a", 3_600)
        await anyio.wait_all_tasks_blocked()
        notifier.notify()


async def test_waits_that_were_given_up_are_not_kept() -> None:
    """Also not if another task waits after each."""
    notifier, woken, scopes = Notifier(), list[str](), list[anyio.CancelScope]()

    async def gives_up() -> None:
        with anyio.CancelScope() as scope:
            scopes.append(scope)
            await notifier.wait()

    async with anyio.create_task_group() as tasks:
        for _ in range(100):
            tasks.start_soon(gives_up)
            await anyio.wait_all_tasks_blocked()
            for scope in scopes[:-1]:
                scope.cancel()
        assert len(notifier.waiting) <= FEW
        tasks.start_soon(waiting, notifier, woken, "a")
        await anyio.wait_all_tasks_blocked()
        notifier.notify()
    assert woken == ["a"]
