from __future__ import annotations

import hashlib

from hypothesis import given

from tests.waku.test_models import messages
from waku.hashing import HASH_BYTES, message_hash
from waku.models import WakuMessage


def test_the_specified_vector() -> None:
    message = WakuMessage(
        payload=bytes.fromhex("010203045445535405060708"),
        content_topic="/waku/2/default-content/proto",
        meta=bytes.fromhex("73757065722d736563726574"),
        timestamp=0x175789BFA23F8400,
    )
    assert message_hash("/waku/2/default-waku/proto", message).hex() == (
        "64cce733fed134e83da02b02c6f689814872b1a0ac97ea56b76095c3c72bfe05"
    )


@given(messages)
def test_the_layout(message: WakuMessage) -> None:
    flat = b"".join(
        (
            b"/waku/2/rs/1/0",
            message.payload,
            message.content_topic.encode(),
            message.meta,
            message.timestamp.to_bytes(8, "big", signed=True),
        )
    )
    digest = message_hash("/waku/2/rs/1/0", message)
    assert digest == hashlib.sha256(flat).digest()
    assert len(digest) == HASH_BYTES


def test_an_absent_timestamp_counts_as_zero() -> None:
    # DIVERGES from js-waku; go-waku and nwaku write the eight bytes
    absent = WakuMessage.from_json({"payload": "YQ==", "contentTopic": "t"})
    assert message_hash("p", absent) == hashlib.sha256(b"pat" + bytes(8)).digest()
