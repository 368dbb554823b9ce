"""httpx logs each request at level INFO: ours would be several lines a second."""

import logging

import httpx
import pytest

from waku import WakuClient
from waku.node import EmbeddedNode

pytestmark = pytest.mark.anyio


async def test_our_requests_are_not_in_the_log_of_httpx_and_others_are(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.DEBUG):
        async with EmbeddedNode() as node:
            way = httpx.ASGITransport(app=node.app)
            async with WakuClient("http://node", app=node.app) as client:
                await client.version()
            assert [record.name for record in caplog.records] == ["waku"]
            assert caplog.messages == ["GET /debug/v1/version: status 200"]
            async with httpx.AsyncClient(transport=way, base_url="http://127.0.0.1") as other:
                await other.get("/health")
    assert [record.name for record in caplog.records] == ["waku", "httpx"]
