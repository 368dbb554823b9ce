"""A Store that says other than what is."""

from base64 import b64encode
from typing import Any

import httpx
import pytest

from waku.hashing import message_hash
from waku.models import WakuMessage

from .nodes import CONTENT_TOPIC, Line, over

pytestmark = pytest.mark.anyio

TRUE = WakuMessage(b"true", CONTENT_TOPIC, timestamp=1_700_000_000_000_000_000)
OTHER = WakuMessage(b"other", CONTENT_TOPIC, timestamp=1_700_000_000_000_000_001)


def stored(message: WakuMessage, digest: bytes) -> dict[str, Any]:
    fields = {**message.to_json(), "payload": b64encode(message.payload).decode()}
    return {"messageHash": "0x" + digest.hex(), "message": fields, "pubsubTopic": "/waku/2/rs/9/9"}


async def test_a_message_under_anothers_hash_is_left_out_and_counted() -> None:
    it = Line()
    transport = over(it)
    shard = transport.settings.shard
    true_hash, other_hash = message_hash(shard, TRUE), message_hash(shard, OTHER)
    entries = [stored(OTHER, true_hash), stored(OTHER, other_hash), stored(TRUE, true_hash)]
    it.disturbance = lambda request: httpx.Response(
        200, json={"statusCode": 200, "statusDesc": "OK", "messages": entries}
    )
    found = await transport.by_hash([true_hash])
    assert [received.payload for received in found] == [b"true"]
    assert transport.mislabelled == 2
    pages = [page async for page in transport.by_time(1, 2)]
    assert {received.payload for page in pages for received in page} == {b"other", b"true"}
    assert transport.mislabelled == 3
    await transport.aclose()
