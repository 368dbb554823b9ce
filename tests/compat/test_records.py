"""The identity of a container, and the address that others read in its record."""

from pathlib import Path

import pytest

from interop.compat.flags import BadFlag, NodeFlags
from interop.compat.records import address_in, node_key
from waku.libp2p import InvalidInput, Multiaddr
from waku.node import NodeOptions
from waku.node.libp2p.addresses import own_record

KEY = "0f" * 32


def test_a_key_is_read_or_made() -> None:
    assert node_key(KEY).peer_id == node_key(KEY).peer_id
    assert node_key("").peer_id != node_key("").peer_id
    with pytest.raises(InvalidInput, match="32 bytes"):
        node_key("0f")


def test_a_record_leads_to_the_node_that_signed_it(tmp_path: Path) -> None:
    address = "/ip4/172.18.0.9/tcp/60001"
    record = own_record(node_key(KEY), [Multiaddr.parse(address)], NodeOptions(), relays=True)
    named = f"{address}/p2p/{node_key(KEY).peer_id}"
    assert address_in(record) == named
    bootstrap = f"--discv5-bootstrap-node={record}"
    assert NodeFlags.of([bootstrap], tmp_path).join == (named,)
    assert NodeFlags.of([bootstrap, "--discv5-discovery=false"], tmp_path).join == ()
    for ignored in ("", "nonsense"):
        assert NodeFlags.of([f"--discv5-bootstrap-node={ignored}"], tmp_path).join == ()
    with pytest.raises(BadFlag, match="32 bytes"):
        NodeFlags.of(["--nodekey=0f"], tmp_path)


def test_a_record_without_an_address_leads_nowhere() -> None:
    nowhere = own_record(node_key(KEY), [], NodeOptions(), relays=True)
    with pytest.raises(InvalidInput):
        address_in(nowhere)
