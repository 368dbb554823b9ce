"""nwaku's server for metrics: the page of a node on a separate port."""

from __future__ import annotations

import anyio
from anyio.abc import TaskStatus

from waku.node import EmbeddedNode, serve_node
from waku.node.app import App, Receive, Scope, Send
from waku.node.metrics_api import CONTENT_TYPE, figures

__all__ = ["serve_metrics"]


async def serve_metrics(
    node: EmbeddedNode,
    *,
    host: str,
    port: int,
    task_status: TaskStatus[str] = anyio.TASK_STATUS_IGNORED,
) -> None:
    """Serve `/metrics` until cancellation; `task_status` gets the URL. 0 takes a free port.

    Raises:
        CannotListen: the port is taken.
    """
    await serve_node(node, host=host, port=port, app=_page(node), started=task_status.started)


def _page(node: EmbeddedNode) -> App:
    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        found = scope["path"] == "/metrics"
        headers = [(b"content-type", CONTENT_TYPE.encode())] if found else []
        status = 200 if found else 404
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": figures(node) if found else b""})

    return answer
