"""What peers write is read, or refused in one way. The vectors have what real peers wrote."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from waku import StoreQuery, WakuMessage
from waku.libp2p import InvalidInput
from waku.p2p import codec
from waku.p2p import waku_libp2p_pb2 as pb
from waku.p2p.protocols import MAX_PAGE_ENTRIES

HASH = bytes(range(32))


@given(
    message=st.builds(
        WakuMessage,
        payload=st.binary(max_size=50),
        content_topic=st.just("/app/1/chat/proto"),
        version=st.sampled_from([None, 1, 2**32 - 1]),
        timestamp=st.integers(-(2**63), 2**63 - 1),
        meta=st.binary(max_size=64),
        ephemeral=st.booleans(),
        proof=st.binary(max_size=10),
    )
)
def test_a_message_survives_the_wire(message: WakuMessage) -> None:
    push = pb.MessagePush(waku_message=codec.to_proto(message), pubsub_topic="/waku/2/rs/1/0")
    assert codec.decode_push(push.SerializeToString()) == ("/waku/2/rs/1/0", message)


def test_metadata_name_the_shards_in_both_notations() -> None:
    """T12: nwaku reads one field, go-waku the other."""
    data = codec.encode_metadata(codec.Metadata(16, frozenset({32, 64})))
    message = pb.Metadata.FromString(data)
    assert list(message.shards) == list(message.shards_packed) == [32, 64]
    assert codec.decode_metadata(b"") == codec.Metadata(None)


@pytest.mark.parametrize(("answered", "status", "ours"), [
    ("a", 200, True), ("b", 200, False), ("", 200, False), ("", 300, True), ("b", 300, False),
])  # fmt: skip
def test_a_refusal_needs_no_request_id(answered: str, status: int, ours: bool) -> None:
    """T16."""
    assert codec.ResponseStatus(answered, status).is_for("a") is ours


def test_a_bad_page_is_refused() -> None:
    def answer(**fields: object) -> bytes:
        return pb.StoreQueryResponse(status_code=200, **fields).SerializeToString()  # type: ignore[arg-type]

    entry = pb.WakuMessageKeyValue(message_hash=HASH)
    with pytest.raises(InvalidInput, match=r"a page of 101 messages; at most 100"):
        codec.decode_store_answer(answer(messages=[entry] * (MAX_PAGE_ENTRIES + 1)))
    with pytest.raises(InvalidInput, match=r"32 bytes \(got 3\)"):
        codec.decode_store_answer(answer(messages=[pb.WakuMessageKeyValue(message_hash=b"abc")]))
    with pytest.raises(InvalidInput, match=r"32 bytes \(got 1\)"):
        codec.decode_store_answer(answer(pagination_cursor=b"x"))
    _, page = codec.decode_store_answer(answer(messages=[entry], pagination_cursor=b""))
    assert (page.entries[0].message, page.cursor) == (None, None)


def test_a_query_names_what_it_asks_for() -> None:
    query = StoreQuery(hashes=(HASH,), page_size=7, ascending=False)
    message = pb.StoreQueryRequest.FromString(codec.encode_store_query("id", query))
    assert list(message.message_hashes) == [HASH]
    assert (message.pagination_limit, message.pagination_forward) == (7, False)
    assert not message.HasField("time_start")
