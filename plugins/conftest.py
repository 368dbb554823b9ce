"""Where channels of the plugins' tests meet over real sockets."""

from collections.abc import Iterator

import pytest
from anyio.abc import TaskStatus
from anyio.from_thread import start_blocking_portal

from tests.multicast_groups import group_url
from waku.node import EmbeddedNode, serve_node


@pytest.fixture(params=["waku", "multicast"])
def real_node(request: pytest.FixtureRequest) -> Iterator[str]:
    """The URL of a node of each kind: an embedded one with its REST API, and a multicast group."""
    if request.param == "multicast":
        yield group_url()
        return
    with start_blocking_portal() as portal:  # the server needs asyncio, whatever the test runs on
        served, url = portal.start_task(_serve)
        yield url
        served.cancel()


async def _serve(*, task_status: TaskStatus[str]) -> None:
    async with EmbeddedNode() as node:
        await serve_node(node, port=0, started=task_status.started)
