"""What a container's callers wait for: handshakes, answers, and connections that are open still."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from interop.compat.container_network import ContainerNetwork
from interop.compat.egress import Egress

pytestmark = pytest.mark.anyio


class Caller:
    """Calls a container whose every answer is `hello` in two parts, and measures."""

    def __init__(self, rule: str) -> None:
        egress = Egress(lambda: 7)
        egress.tc(["qdisc", "add", "dev", "eth0", "root", *rule.split()])
        self.network = ContainerNetwork(egress)
        self.began_s: list[float] = []
        self._app = self.network.in_front_of(self._hello)

    async def call(self, port: int) -> float:
        """Return how many seconds a call on a connection takes."""
        came: list[Any] = []

        async def send(event: Any) -> None:
            came.append(event)

        began_s = anyio.current_time()
        await self._app({"client": ("127.0.0.1", port)}, _nothing, send)
        assert [event["type"] for event in came[:1]] == ["http.response.start"]
        content = b"".join(event["body"] for event in came[1:])
        assert content == b"hello"
        return anyio.current_time() - began_s

    async def _hello(self, scope: Any, receive: Any, send: Any) -> None:
        self.began_s.append(anyio.current_time())
        await send({"type": "http.response.start", "status": 200, "headers": [(b"a", b"b")]})
        await send({"type": "http.response.body", "body": b"hello"})


async def _nothing() -> dict[str, Any]:
    raise AssertionError("a request without a body is not read")


async def test_a_call_on_a_new_connection_waits_twice_and_reaches_the_node_in_between() -> None:
    caller = Caller("netem delay 2s")
    began_s = anyio.current_time()
    assert await caller.call(1) == pytest.approx(4)
    assert caller.began_s == [pytest.approx(began_s + 2)]


async def test_a_connection_is_kept_for_a_while() -> None:
    caller = Caller("netem delay 2s")
    await caller.call(1)
    await anyio.sleep(5)
    assert await caller.call(1) == pytest.approx(2)
    assert await caller.call(2) == pytest.approx(4)
    await anyio.sleep(6)
    assert await caller.call(1) == pytest.approx(4)


async def test_an_answer_that_never_leaves_is_not_heard() -> None:
    caller = Caller("netem loss 100%")
    with anyio.move_on_after(3600) as given_up:
        await caller.call(1)
    assert given_up.cancelled_caught and not caller.began_s


async def test_a_rate_counts_the_head_as_well() -> None:
    # The handshake's frame, and one with the start line, a header and the content.
    caller = Caller("netem rate 8kbit")
    assert await caller.call(1) == pytest.approx((66 + 66 + 64 + 6 + 5) / 1000)


async def test_what_is_frozen_waits_beside_what_is_slow() -> None:
    caller = Caller("netem delay 2s")
    caller.network.freeze()
    took_s: list[float] = []

    async def call() -> None:
        took_s.append(await caller.call(1))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(call)
        await anyio.sleep(10)
        caller.network.thaw()
    assert took_s == [pytest.approx(12)]
