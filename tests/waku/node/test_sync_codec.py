"""What joined nodes write to synchronise their stores reads the same, and nothing else is read."""

from __future__ import annotations

import json
from typing import Any

import pytest

from waku import WakuMessage
from waku.node.envelope import Envelope
from waku.node.reconciliation import LIST_IDS, MAX_RANGES, PARTS, Listed, Split, Summary
from waku.node.sync_codec import (
    MAX_GIFT,
    gift_json,
    gift_of,
    ranges_json,
    ranges_of,
    replies_json,
    replies_of,
)

HASH = bytes(range(32))
SUMMARY = Summary((5, b""), (9, HASH), 3, 2**256 - 1)
ID: list[object] = [5, HASH.hex()]
RANGE: list[object] = [ID, ID, 3, HASH.hex()]


def carried(value: dict[str, object]) -> dict[str, Any]:
    """What arrives at the other end."""
    arrived: dict[str, Any] = json.loads(json.dumps(value))
    return arrived


def test_ranges_read_as_they_were_written() -> None:
    assert ranges_of(carried(ranges_json([SUMMARY] * MAX_RANGES))) == [SUMMARY] * MAX_RANGES


def test_replies_read_as_they_were_written() -> None:
    replies = [None, Listed([(5, HASH)]), Listed([]), Split([SUMMARY, SUMMARY])]
    assert replies_of(carried(replies_json(replies, -7))) == (replies, -7)


def test_messages_read_as_they_were_written() -> None:
    one = Envelope.of("/waku/2/rs/1/0", WakuMessage(b"a", "/app/1/chat/proto", timestamp=5))
    assert gift_of(carried(gift_json([one]))) == [one]


@pytest.mark.parametrize(
    "ranges",
    [
        None,
        [RANGE] * (MAX_RANGES + 1),
        [[ID, ID, 3]],
        [[ID, ID, -1, HASH.hex()]],
        [[ID, ID, 2**60, HASH.hex()]],
        [[ID, ID, 3, ""]],
        [[ID, ID, 3, "0g" * 32]],
        [[ID, [5, "00"], 3, HASH.hex()]],
        [[ID, [2**63, ""], 3, HASH.hex()]],
        [[ID, [5.5, ""], 3, HASH.hex()]],
        [[ID, "5", 3, HASH.hex()]],
    ],
    ids=lambda value: str(value)[:40],
)
def test_ranges_that_are_none_are_refused(ranges: object) -> None:
    with pytest.raises(ValueError, match=r"range|timestamp|hash|hexadecimal"):
        ranges_of({"service": "reconcile", "ranges": ranges})


@pytest.mark.parametrize(
    "replies",
    [
        "none",
        [None] * (MAX_RANGES + 1),
        [5],
        [{}],
        [{"ids": [ID] * (LIST_IDS + 1)}],
        [{"parts": [RANGE] * (PARTS + 1)}],
    ],
    ids=lambda value: str(value)[:40],
)
def test_replies_that_are_none_are_refused(replies: object) -> None:
    with pytest.raises(ValueError, match=r"not an answer|not the reply"):
        replies_of({"status": 200, "since": 5, "replies": replies})


def test_too_many_messages_at_once_are_refused() -> None:
    message = {"pubsubTopic": "/waku/2/rs/1/0", "message": {"payload": "", "contentTopic": "/a"}}
    with pytest.raises(ValueError, match="100 messages"):
        gift_of({"messages": [message] * (MAX_GIFT + 1)})
