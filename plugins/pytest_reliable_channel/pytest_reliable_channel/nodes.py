"""Waku node on a port, whose server runs in a thread, so that tests on trio can use it."""

from collections.abc import Iterator
from contextlib import contextmanager

from anyio.abc import TaskStatus
from anyio.from_thread import start_blocking_portal

from waku.node import EmbeddedNode, serve_node


@contextmanager
def served_node() -> Iterator[str]:
    """Serve a Waku node while the context is open, and yield its address."""
    with start_blocking_portal() as portal:
        served, address = portal.start_task(_serve)
        yield address
        served.cancel()


async def _serve(*, task_status: TaskStatus[str]) -> None:
    async with EmbeddedNode() as node:
        await serve_node(node, port=0, started=task_status.started)
