import pytest

from waku.libp2p import DialTarget, InvalidInput, Multiaddr, PeerId

PEER = "16Uiu2HAmREpzUsGVTvdWdCMUDfq4PJwFQCiP8jCBJCuG7fzbE4ww"


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ("/ip4/1.2.3.4/tcp/60000", DialTarget("1.2.3.4", 60000, False, None, None)),
        (
            f"/dns4/a.example/tcp/8000/wss/p2p/{PEER}",
            DialTarget("a.example", 8000, True, "a.example", PeerId.parse(PEER)),
        ),
        ("/ip6/::1/tcp/1/ws", DialTarget("::1", 1, True, None, None)),
        (
            "/ip4/1.2.3.4/tcp/443/tls/sni/a.example/ws",
            DialTarget("1.2.3.4", 443, True, "a.example", None),
        ),
    ],
)
def test_dial_targets(text: str, target: DialTarget) -> None:
    assert Multiaddr.parse(text).dial_target == target


@pytest.mark.parametrize(
    "text",
    [
        "/ip4/1.2.3.4/udp/9000/quic-v1",
        "/dnsaddr/a.example",
        "/dns4/a.example/tcp/1/http",
        f"/ip4/1.2.3.4/tcp/5/p2p/{PEER}/p2p-circuit/p2p/{PEER}",
    ],
)
def test_what_cannot_be_dialled_says_what_can(text: str) -> None:
    with pytest.raises(InvalidInput, match="supported are /tcp"):
        Multiaddr.parse(text).dial_target  # noqa: B018


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("http://a:1", "not a multiaddress"),
        ("", "not a multiaddress"),
        ("/", "got 0"),
        ("//ip4/1.1.1.1", "unknown protocol ''"),
        ("/ip4", "value of 'ip4'"),
        ("/ip4/1.2.3", "value of 'ip4'"),
        ("/ip4/1.2.3.4/tcp/65536", "not a port"),
        ("/ip4/1.2.3.4/tcp/٣", "not a port"),
        ("/ip6/fe80::1%eth0/tcp/1", "ip6zone"),
        ("/dns4/../tcp/1", "not a name"),
        ("/dns4/" + "a" * 254, "not a name"),
        ("/nope/1", "unknown protocol 'nope'"),
        ("/ip4/1.2.3.4/tcp/1/p2p/xyz", "value of 'p2p'"),
        ("/ws" * 33, "got 33"),
    ],
)
def test_a_bad_address_says_what_is_wrong(text: str, reason: str) -> None:
    with pytest.raises(InvalidInput, match=reason):
        Multiaddr.parse(text)


def test_equal_addresses_are_equal() -> None:
    assert Multiaddr.parse("/ip6/0:0::1/tcp/007") == Multiaddr.parse("/ip6/::1/tcp/7/")
    assert Multiaddr.parse(f"/ip4/1.1.1.1/tcp/1/ipfs/{PEER}").peer_id == PeerId.parse(PEER)
    plain = Multiaddr.parse("/ip4/1.1.1.1/tcp/1")
    named = plain.with_peer_id(PeerId.parse(PEER))
    assert str(named) == f"/ip4/1.1.1.1/tcp/1/p2p/{PEER}"
    assert named.with_peer_id(PeerId.parse(PEER)) == named
    assert plain.peer_id is None
