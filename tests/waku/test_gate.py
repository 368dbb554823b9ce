"""What waits for a node: bounded, ordered, fair, and nothing is lost by a cancelled task."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import pytest

from waku._gate import MAX_BYTES, MAX_REQUESTS, OTHERS_EVERY, Load, passing

pytestmark = pytest.mark.anyio

NODE = "http://node"


class Requests:
    """Requests that last until they are told to end."""

    def __init__(self, tasks: anyio.abc.TaskGroup) -> None:
        self.begun: list[str] = []
        self._tasks = tasks
        self.ends: dict[str, anyio.Event] = {}
        self.scopes: dict[str, anyio.CancelScope] = {}

    async def start(
        self,
        name: str,
        size_bytes: int = 0,
        *,
        lane: str = "",
        urgent: bool = True,
        node: str = NODE,
        protocol: str = "publish",
    ) -> None:
        async def run() -> None:
            with self.scopes.setdefault(name, anyio.CancelScope()):
                async with passing(node, Load(protocol, size_bytes, lane, urgent)):
                    self.begun.append(name)
                    await self.ends.setdefault(name, anyio.Event()).wait()

        self._tasks.start_soon(run)
        await anyio.wait_all_tasks_blocked()

    async def end(self, *names: str) -> None:
        for name in names:
            self.ends[name].set()
            await anyio.wait_all_tasks_blocked()

    async def cancel(self, name: str) -> None:
        self.scopes[name].cancel()
        await anyio.wait_all_tasks_blocked()


@asynccontextmanager
async def requests() -> AsyncIterator[Requests]:
    async with anyio.create_task_group() as tasks:
        yield Requests(tasks)
        tasks.cancel_scope.cancel()


async def test_so_many_requests_go_at_a_time_and_the_rest_follows() -> None:
    async with requests() as r:
        names = [str(number) for number in range(MAX_REQUESTS + 3)]
        for name in names:
            await r.start(name)
        assert r.begun == names[:MAX_REQUESTS]
        await r.end("1", "0")
        assert r.begun == names[: MAX_REQUESTS + 2]


async def test_so_many_bytes_go_at_a_time_and_nothing_overtakes_what_waits() -> None:
    async with requests() as r:
        await r.start("half", MAX_BYTES // 2)
        await r.start("too much", MAX_BYTES // 2 + 1)
        await r.start("small", 1)
        assert r.begun == ["half"]
        await r.end("half")
        assert set(r.begun) == {"half", "too much", "small"}


async def test_a_message_above_the_bound_goes_alone() -> None:
    async with requests() as r:
        await r.start("small", 1)
        await r.start("large", MAX_BYTES + 1)
        await r.start("next", 1)
        assert r.begun == ["small"]
        await r.end("small")
        assert r.begun == ["small", "large"]
        await r.end("large")
        assert r.begun == ["small", "large", "next"]


async def test_what_is_urgent_goes_first_and_the_rest_does_not_starve() -> None:
    async with requests() as r:
        await r.start("first", MAX_BYTES)
        for number in range(3):
            await r.start(f"sync {number}", MAX_BYTES, urgent=False)
        urgent = [f"content {number}" for number in range(2 * OTHERS_EVERY)]
        for name in urgent:
            await r.start(name, MAX_BYTES)
        for _ in range(2 * OTHERS_EVERY):
            await r.end(r.begun[-1])
        assert [name for name in r.begun if name in urgent] == urgent[: 2 * OTHERS_EVERY - 2]
        assert r.begun[1] == "content 0"
        assert [name for name in r.begun if name not in urgent] == ["first", "sync 0", "sync 1"]


async def test_lanes_take_turns() -> None:
    async with requests() as r:
        await r.start("first", MAX_BYTES)
        for number in range(3):
            await r.start(f"a{number}", MAX_BYTES, lane="a")
        await r.start("b0", MAX_BYTES, lane="b")
        await r.start("c0", MAX_BYTES, lane="c")
        for _ in range(5):
            await r.end(r.begun[-1])
        assert r.begun == ["first", "a0", "b0", "c0", "a1", "a2"]


async def test_a_cancelled_task_gives_its_place_back() -> None:
    async with requests() as r:
        await r.start("first", 1)
        await r.start("large", MAX_BYTES)
        await r.start("behind", 1)
        assert r.begun == ["first"]
        await r.cancel("large")  # while it waits
        assert r.begun == ["first", "behind"]
        await r.start("next", MAX_BYTES)
        await r.cancel("first")  # while it is on its way
        await r.cancel("behind")
        assert r.begun == ["first", "behind", "next"]


async def test_a_task_that_is_cancelled_as_its_turn_comes_passes_it_on() -> None:
    async with requests() as r:
        await r.start("first", MAX_BYTES)
        await r.start("second", MAX_BYTES)
        await r.start("third", MAX_BYTES)
        r.ends["first"].set()
        r.scopes["second"].cancel()
        await anyio.wait_all_tasks_blocked()
        assert r.begun[-1] == "third"


async def test_other_nodes_wait_for_nothing_and_other_protocols_for_room_alone() -> None:
    async with requests() as r:
        await r.start("first", MAX_BYTES)
        await r.start("waits", 1)
        await r.start("there", MAX_BYTES, node="http://other")
        await r.start("store", protocol="store")
        await r.start("light", 1, protocol="light push")
        assert r.begun == ["first", "there", "store"]
        await r.end("first")
        assert sorted(r.begun[3:]) == ["light", "waits"]


def test_each_event_loop_has_gates_of_its_own() -> None:
    async def hang() -> None:
        with anyio.move_on_after(0):
            async with passing(NODE, Load("publish", MAX_BYTES)), passing(NODE, Load("store")):
                await anyio.sleep_forever()

    for backend in ("asyncio", "trio", "asyncio"):
        anyio.run(hang, backend=backend)
