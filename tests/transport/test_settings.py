"""Where on Waku a channel lives."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import pytest

from reliable_channel import ChannelOptions
from reliable_channel.transport import WakuSettings, WakuTransport

TOPIC = "/app/1/chat/proto"


def test_defaults_are_those_of_a_channel() -> None:
    settings, options = WakuSettings(TOPIC), ChannelOptions()
    shared = {one.name for one in fields(settings)} & {one.name for one in fields(options)}
    assert {"cluster_id", "num_shards", "service", "store_peer", "network", "ca_file"} < shared
    for name in shared - {"content_topic", "max_message_bytes", "redundancy"}:
        assert getattr(settings, name) == getattr(options, name)


@pytest.mark.parametrize(
    ("name", "value", "must_be"),
    [
        ("service", "x", "'auto', 'relay' or 'light'"),
        ("cluster_id", 65_536, "between 0 and 65535"),
        ("num_shards", 0, "between 1 and 65536"),
        ("pubsub_topic", 5, "a text"),
        ("ca_file", 5, "the path of a file"),
    ],
)
def test_a_value_is_checked_as_that_of_a_channel(name: str, value: Any, must_be: str) -> None:
    with pytest.raises(ValueError, match=f"^`{name}` must be {must_be} "):
        WakuSettings(TOPIC, **{name: value})


def test_a_content_topic_with_a_comma_is_refused_by_a_node_in_words() -> None:
    with pytest.raises(ValueError, match=r"must have no comma \(got '/app/1/a,b/proto'\)"):
        WakuTransport("http://127.0.0.1:8645", WakuSettings("/app/1/a,b/proto"))
