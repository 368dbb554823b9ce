from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from waku.models import Health, ProtocolHealth, StoreQuery, StoreV1Query, WakuMessage

INT64 = st.integers(-(2**63), 2**63 - 1)

messages = st.builds(
    WakuMessage,
    payload=st.binary(max_size=300),
    content_topic=st.text(max_size=40),
    version=st.none() | st.integers(0, 2**32 - 1),
    timestamp=INT64,
    meta=st.binary(max_size=64),
    ephemeral=st.booleans(),
    proof=st.binary(max_size=40),
)

json_values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=6,
)
FIELDS = ("payload", "contentTopic", "version", "timestamp", "meta", "ephemeral", "proof")


@given(messages)
def test_a_message_survives_its_json(message: WakuMessage) -> None:
    assert WakuMessage.from_json(json.loads(json.dumps(message.to_json()))) == message


@given(st.dictionaries(st.sampled_from(FIELDS), json_values))
def test_any_json_is_a_message_or_a_value_error(fields: dict[str, Any]) -> None:
    try:
        message = WakuMessage.from_json(fields)
    except ValueError:
        return
    assert WakuMessage.from_json(message.to_json()) == message


@given(st.binary(max_size=50))
def test_base64_is_read_in_either_alphabet_with_or_without_padding(data: bytes) -> None:
    standard, urlsafe = base64.b64encode(data).decode(), base64.urlsafe_b64encode(data).decode()
    for text in (standard, urlsafe, standard.rstrip("="), urlsafe.rstrip("=")):
        message = WakuMessage.from_json({"payload": text, "contentTopic": "t", "meta": text})
        assert (message.payload, message.meta) == (data, data)


def test_only_what_is_there_is_written() -> None:
    assert WakuMessage(b"a", "/a/1/b/c", version=None).to_json() == {
        "payload": "YQ==",
        "contentTopic": "/a/1/b/c",
    }
    assert WakuMessage(b"", "t", 2, -5, b"m", True, b"p").to_json() == {
        "payload": "",
        "contentTopic": "t",
        "version": 2,
        "timestamp": -5,
        "meta": "bQ==",
        "ephemeral": True,
        "proof": "cA==",
    }


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        # nwaku, relay
        (
            {"contentTopic": "t", "version": 0, "timestamp": 7, "ephemeral": False, "proof": ""},
            WakuMessage(b"", "t", 0, 7),
        ),
        # go-waku, relay: optionals left out, ephemeral always there
        (
            {"payload": "YQ==", "contentTopic": "t", "ephemeral": None},
            WakuMessage(b"a", "t", version=None),
        ),
        # go-waku, store v3: the timestamp is a text
        (
            {"payload": "YQ==", "contentTopic": "t", "timestamp": "1681964442000000000"},
            WakuMessage(b"a", "t", None, 1681964442000000000),
        ),
        ({"payload": "YQ", "content_topic": "t", "new": 1}, WakuMessage(b"a", "t", version=None)),
        (
            {"contentTopic": "t", "payload": None, "meta": None, "timestamp": None, "proof": None},
            WakuMessage(b"", "t", version=None),
        ),
    ],
)
def test_both_nodes_shapes_are_read(fields: dict[str, Any], expected: WakuMessage) -> None:
    assert WakuMessage.from_json(fields) == expected


@pytest.mark.parametrize(
    "fields",
    [
        None,
        [],
        "text",
        {},
        {"contentTopic": None},
        {"contentTopic": 5},
        {"contentTopic": "\ud800"},
        {"contentTopic": "t", "payload": "***"},
        {"contentTopic": "t", "payload": 5},
        {"contentTopic": "t", "payload": "YQ==YQ=="},
        {"contentTopic": "t", "payload": "YQ==\n"},
        {"contentTopic": "t", "timestamp": 1.5},
        {"contentTopic": "t", "timestamp": True},
        {"contentTopic": "t", "timestamp": "1_0"},
        {"contentTopic": "t", "timestamp": 2**63},
        {"contentTopic": "t", "version": -1},
        {"contentTopic": "t", "version": 2**32},
        {"contentTopic": "t", "ephemeral": "yes"},
    ],
)
def test_what_no_node_means_is_refused(fields: object) -> None:
    with pytest.raises(ValueError, match=r".+"):
        WakuMessage.from_json(fields)


def test_a_version_that_ends_a_node_cannot_be_made() -> None:
    # nwaku-rest/crash_negative_version.json: nwaku's process dies of it
    with pytest.raises(ValueError, match="version"):
        WakuMessage(b"a", "t", version=-1)


@pytest.mark.parametrize("timestamp", [2**63, -(2**63) - 1])
def test_a_timestamp_has_64_bits(timestamp: int) -> None:
    with pytest.raises(ValueError, match="timestamp"):
        WakuMessage(b"a", "t", timestamp=timestamp)


@pytest.mark.parametrize(
    "wrong",
    [
        {"content_topics": ("/a,b/1/x/proto",)},
        {"hashes": (b"short",)},
        {"cursor": b"short"},
        {"page_size": 0},
    ],
)
def test_a_query_that_cannot_be_asked_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r".+"):
        StoreQuery(**wrong)


def test_a_legacy_query_has_no_comma_either() -> None:
    with pytest.raises(ValueError, match="comma"):
        StoreV1Query(content_topics=("/a,b/1/x/proto",))


def test_a_protocol_that_is_not_listed_is_not_mounted() -> None:
    health = Health("READY", (ProtocolHealth("Relay", "NOT_READY"),))
    assert health.status_of("Relay") == "NOT_READY"
    assert health.status_of("Mix") == "NOT_MOUNTED"
