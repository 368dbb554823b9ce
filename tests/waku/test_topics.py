from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from waku.errors import WakuError
from waku.topics import ContentTopic, InvalidTopic, PubsubTopic, pubsub_topic_for, shard_for

parts = st.text(st.characters(codec="utf-8", exclude_characters="/"), min_size=1)
indexes = st.integers(0, 0xFFFF)


@given(parts, parts, parts, parts)
def test_content_topics_are_read_as_written(app: str, version: str, name: str, enc: str) -> None:
    topic = ContentTopic(app, version, name, enc)
    assert ContentTopic.parse(str(topic)) == topic
    assert ContentTopic.parse(f"/0{topic}") == topic


@given(parts, parts, parts, parts, st.integers(1, 1024))
def test_only_application_and_version_choose_the_shard(
    app: str, version: str, name: str, enc: str, num_shards: int
) -> None:
    shard = shard_for(ContentTopic(app, version, name, enc), num_shards)
    assert 0 <= shard < num_shards
    assert shard == shard_for(ContentTopic(app, version, "other", "rlp"), num_shards)


@given(indexes, indexes)
def test_static_shards_are_read_as_written(cluster_id: int, shard: int) -> None:
    topic = PubsubTopic(cluster_id, shard)
    assert PubsubTopic.parse(str(topic)) == topic


def test_the_specified_example() -> None:
    assert pubsub_topic_for("/myapp/1/latest/proto") == "/waku/2/rs/1/0"
    topic = ContentTopic.parse("/0/toychat/2/huilong/proto")
    assert (topic.application, topic.version, topic.name, topic.encoding, topic.generation) == (
        "toychat",
        "2",
        "huilong",
        "proto",
        0,
    )
    assert str(topic) == "/toychat/2/huilong/proto"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "bad",
        "/a/b/c",
        "app/1/x/proto",
        "//1/x/proto",
        "/app/1/x/",
        "/1/app/1/x/proto",
        "/x/app/1/x/proto",
        "/0/app/1/x/proto/extra",
        "/app/1/\ud800/proto",
    ],
)
def test_bad_content_topics(text: str) -> None:
    with pytest.raises(InvalidTopic) as caught:
        ContentTopic.parse(text)
    assert isinstance(caught.value, ValueError)
    assert isinstance(caught.value, WakuError)
    assert not caught.value.retryable


def test_generations_above_0_are_refused() -> None:
    with pytest.raises(InvalidTopic, match="generation"):
        ContentTopic("app", "1", "x", "proto", generation=1)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "/waku/2/default-waku/proto",
        "/waku/2/rs/1",
        "/waku/2/rs/1/65536",
        "/waku/2/rs/-1/0",
        "/waku/2/rs/1/0/",
        "/waku/2/rs/1/٣",
        "/waku/2/rs/1/0\n",
    ],
)
def test_bad_pubsub_topics(text: str) -> None:
    with pytest.raises(InvalidTopic):
        PubsubTopic.parse(text)


@pytest.mark.parametrize("num_shards", [0, -1, 65537])
def test_the_number_of_shards_is_checked(num_shards: int) -> None:
    with pytest.raises(ValueError, match="num_shards"):
        shard_for("/app/1/x/proto", num_shards)
