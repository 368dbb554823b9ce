"""Node records: what is read, and what is refused. The vectors have go-waku's."""

import pytest

from waku.discovery import Capability, NodeRecord, signed_record
from waku.libp2p import InvalidInput, KeyType, Multiaddr, PrivateKey

from .zone import Key, record, text_of, waku_record

WS = "/dns4/node.example/tcp/8000/wss"


def test_a_waku_node_is_read() -> None:
    read = NodeRecord.parse(waku_record(7, WS, waku2=10, cluster_id=16, shards=[32, 64]))
    assert str(read.addresses[0]) == f"{WS}/p2p/{read.peer_id}"
    assert read.capabilities == Capability.STORE | Capability.LIGHT_PUSH
    assert (read.cluster_id, read.shards) == (16, frozenset({32, 64}))


def test_addresses_by_ip_come_first_and_what_nobody_can_read_is_left_out() -> None:
    ours = Multiaddr.parse(WS).encode()
    unknown = b"\xff\x7f\x01"
    listed = b"".join(len(a).to_bytes(2, "big") + a for a in (unknown, ours))
    read = NodeRecord.parse(
        record(
            Key(7),
            {
                b"ip": bytes([10, 0, 0, 1]),
                b"tcp": b"\x1f\x40",
                b"ip6": bytes(15) + b"\x01",
                b"tcp6": b"\x50",
                b"multiaddrs": listed,
                b"eth": b"",
            },
        )
    )
    assert [str(a).partition("/p2p")[0] for a in read.addresses] == [
        "/ip4/10.0.0.1/tcp/8000",
        "/ip6/::1/tcp/80",
        WS,
    ]
    assert (read.capabilities, read.cluster_id, read.shards) == (None, None, frozenset())


@pytest.mark.parametrize(
    ("pairs", "reason"),
    [
        ({b"id": b"v5"}, "identity scheme"),
        ({b"secp256k1": bytes(33)}, "not a point on the curve"),
        ({b"rs": b"\0\x01\x02\0\0"}, "`rs`"),
        ({b"rsv": b"\0\x01\x02"}, "`rsv` of the ENR record has 3 bytes"),
        ({b"a": bytes(300)}, "more than 300 bytes"),
    ],
)
def test_a_record_that_says_nonsense_is_refused(pairs: dict[bytes, bytes], reason: str) -> None:
    with pytest.raises(InvalidInput, match=reason):
        NodeRecord.parse(record(Key(7), pairs))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("enrtree://", "does not begin"),
        ("enr:a*b", "base64"),
        ("enr:" + "a" * 500, "more than 300 bytes"),
        ("enr:", "item is expected"),
        ("enr:gA", "one RLP list"),
        (text_of(b"\x81\x80"), "number followed by pairs"),
        (text_of(b"\x81\x80\x01\x02\x03\x01\x04"), "sorted"),
    ],
)
def test_what_is_no_record_is_refused(text: str, reason: str) -> None:
    with pytest.raises(InvalidInput, match=reason):
        NodeRecord.parse(text)


def test_a_changed_bit_is_noticed() -> None:
    """In the signature, too, and in what says how long it is."""
    data = NodeRecord.parse(waku_record(7, WS)).encoded
    for at in range(8 * len(data)):
        changed = bytearray(data)
        changed[at // 8] ^= 1 << at % 8
        with pytest.raises(InvalidInput):
            NodeRecord.decode(bytes(changed))


def test_an_own_record_is_read_as_it_was_written() -> None:
    key = PrivateKey(KeyType.SECP256K1, bytes(31) + b"\x05")
    addresses = [
        Multiaddr.parse(text)
        for text in ("/ip4/192.0.2.7/tcp/60000", "/dns4/node.example/tcp/443/wss", "/ip6/::1/tcp/9")
    ]
    for shards in (frozenset({32, 64}), frozenset(range(100))):
        if len(shards) == 100:
            addresses = addresses[:1]  # the bitmap takes 132 bytes of 300
        text = signed_record(
            key,
            addresses,
            capabilities=Capability.STORE,
            cluster_id=16,
            shards=shards,
            sequence=7,
        )
        record = NodeRecord.parse(text)
        assert (record.sequence, record.peer_id) == (7, key.peer_id)
        assert (record.cluster_id, record.shards) == (16, shards)
        assert record.capabilities == Capability.STORE
        assert set(record.addresses) == {one.with_peer_id(key.peer_id) for one in addresses}
        assert NodeRecord.decode(record.encoded) == record


def test_a_record_that_would_be_too_long() -> None:
    """T14."""
    key = PrivateKey(KeyType.SECP256K1, bytes(31) + b"\x05")
    many = [Multiaddr.parse(f"/dns4/node-{n}.example/tcp/443/wss") for n in range(9)]
    with pytest.raises(InvalidInput, match="at most 300"):
        signed_record(key, many, capabilities=Capability(0), cluster_id=1, shards=(0,), sequence=1)
    with pytest.raises(InvalidInput, match="Ed25519 key signs messages"):
        signed_record(
            PrivateKey(KeyType.ED25519, bytes(32)),
            many[:1],
            capabilities=Capability(0),
            cluster_id=1,
            shards=(0,),
            sequence=1,
        )
