"""Topics, keys and ids of chats; the golden vectors are in tests/vectors."""

from dataclasses import FrozenInstanceError

import pytest

from reliable_channel_status import (
    CONTENT_SHARD,
    CONTROL_SHARD,
    DEFAULT_SHARD,
    NON_PROTECTED_SHARD,
    Community,
    Topic,
    carries,
    contact_code_topic,
    content_topic,
    negotiated_topic_id,
    partitioned_topic,
    personal_discovery_topic,
    symmetric_key,
    topic_bytes,
)
from status_tests.world import ALICE, CHAT_ID, COMMUNITY, GENERAL, OTHER, OWNER

PUBLISHED = "0x02dcec6041fb999d65f1d33363e08c93d3c1f6f0fbbb26add383e2cf46c2b921f4"


@pytest.mark.parametrize(
    ("chat_id", "topic", "key"),
    [
        ("test", "/waku/1/0x9c22ff5f/rfc26", ""),
        (PUBLISHED, "/waku/1/0xab002603/rfc26", "10c65161629598d5"),
        (PUBLISHED + "-memberUpdate", "/waku/1/0x5fc810da/rfc26", "968a5dc1e3efd495"),
        (PUBLISHED + "-ping", "/waku/1/0x1b710d66/rfc26", "af2d01a3efb82370"),
        (PUBLISHED + GENERAL, "/waku/1/0xc078ec6f/rfc26", "76ff5bf0a74a8e724367c7fc003f066d"),
        ("arbitrary data here", "", "c49ad65ebf2a7b7253bf400e3d277193"),
    ],
)
def test_what_status_js_and_status_go_derive(chat_id: str, topic: str, key: str) -> None:
    assert content_topic(chat_id).startswith(topic)
    assert symmetric_key(chat_id).reveal().hex().startswith(key)
    assert Topic(chat_id).content_topic == content_topic(chat_id)


def test_a_key_is_derived_once_for_each_id() -> None:
    assert (
        symmetric_key("derived once") is symmetric_key("derived once") == Topic("derived once").key
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("/waku/1/0x9c22ff5f/rfc26", "9c22ff5f"),
        ("/waku/1/0x9C22FF5F/rfc26", None),
        ("/waku/1/9c22ff5f/rfc26", None),
        ("/waku/1/0x9c22ff5f/rfc26/", None),
        ("/waku/2/0x9c22ff5f/rfc26", None),
        ("", None),
    ],
)
def test_a_content_topic_is_read(text: str, expected: str | None) -> None:
    found = topic_bytes(text)
    assert (None if found is None else found.hex()) == expected


def test_shards_are_those_of_cluster_16() -> None:
    shards = (DEFAULT_SHARD, NON_PROTECTED_SHARD, CONTROL_SHARD, CONTENT_SHARD)
    assert [str(shard) for shard in shards] == [
        f"/waku/2/rs/16/{index}" for index in (32, 64, 128, 256)
    ]


def test_a_community_is_named_by_its_key_compressed_or_not() -> None:
    key = OWNER.public_key
    texts = (key.hex, key.hex[2:], COMMUNITY.id, COMMUNITY.id[2:], COMMUNITY.id.upper()[2:])
    assert {Community.parse(text) for text in texts} == {COMMUNITY}
    assert str(COMMUNITY) == COMMUNITY.id == f"0x{key.compressed.hex()}"
    assert Community.parse(PUBLISHED).id == PUBLISHED


@pytest.mark.parametrize("text", ["", "0x", "general", "0x02" + "ff" * 32, PUBLISHED[:-1]])
def test_what_is_no_community_is_refused_with_what_is_asked_for(text: str) -> None:
    with pytest.raises(ValueError, match=r"its id is 0x02… or 0x03… and 64 digits"):
        Community.parse(text)


def test_topics_of_a_community() -> None:
    assert COMMUNITY.channel_topic(GENERAL) == COMMUNITY.channel_topic(OTHER)
    assert COMMUNITY.channel_topic(GENERAL).id == COMMUNITY.id + "-memberUpdate"
    assert COMMUNITY.channel_topic(GENERAL, "per-channel").id == COMMUNITY.id + GENERAL == CHAT_ID
    assert COMMUNITY.channel_id(CHAT_ID) == CHAT_ID
    assert COMMUNITY.description_topic.id == COMMUNITY.id
    assert COMMUNITY.requests_topic.id == OWNER.public_key.hex[2:]
    assert COMMUNITY.ping_topic.id.endswith("-ping")
    assert COMMUNITY.magnetlinks_topic.id.endswith("-magnetlinks")
    assert COMMUNITY.shard_info_topic.id.endswith("-shard-info")


@pytest.mark.parametrize("channel", ["", "general", GENERAL.upper(), "0x02" + GENERAL])
def test_what_is_no_channel_is_refused(channel: str) -> None:
    with pytest.raises(ValueError, match="is not a uuid"):
        COMMUNITY.channel_id(channel)


def test_chats_of_a_topic() -> None:
    other = Community(ALICE.public_key)
    assert COMMUNITY.owns(CHAT_ID)
    assert carries(COMMUNITY.universal_topic, CHAT_ID)
    assert carries(Topic(CHAT_ID), CHAT_ID)
    assert not other.owns(CHAT_ID)
    assert not carries(other.universal_topic, CHAT_ID)
    assert not carries(Topic(CHAT_ID), COMMUNITY.channel_id(OTHER))
    assert not carries(COMMUNITY.universal_topic, COMMUNITY.id)
    assert not carries(COMMUNITY.universal_topic, CHAT_ID + "0")


def test_topics_of_a_user() -> None:
    key = ALICE.public_key
    assert contact_code_topic(key).id == f"{key.hex}-contact-code"
    assert negotiated_topic_id(key) == f"{key.hex}-negotiated"
    assert personal_discovery_topic(key).id == f"contact-discovery-{key.hex[2:]}"
    x = int(key.hex[4:68], 16)
    assert partitioned_topic(key).id == f"contact-discovery-{x % 5000}"


def test_topics_do_not_change() -> None:
    with pytest.raises(FrozenInstanceError):
        COMMUNITY.universal_topic.id = "other"  # type: ignore[misc]
