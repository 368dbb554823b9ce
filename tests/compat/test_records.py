"""The identity of a container, and the address that others read in its record."""

from pathlib import Path

import pytest

from interop.compat.flags import BadFlag, NodeFlags
from interop.compat.records import address_in, node_key
from waku.libp2p import InvalidInput

KEY = "0f" * 32


def test_a_key_is_read_or_made() -> None:
    assert node_key(KEY).peer_id == node_key(KEY).peer_id
    assert node_key("").peer_id != node_key("").peer_id
    with pytest.raises(InvalidInput, match="32 bytes"):
        node_key("0f")


def test_a_record_leads_to_the_node_that_signed_it(tmp_path: Path) -> None:
    first = NodeFlags.of(
        [f"--nodekey={KEY}", "--nat=extip:172.18.0.9", "--tcp-port=60001"], tmp_path
    )
    address = f"/ip4/172.18.0.9/tcp/60001/p2p/{node_key(KEY).peer_id}"
    assert address_in(first.options.record) == address
    bootstrap = f"--discv5-bootstrap-node={first.options.record}"
    assert NodeFlags.of([bootstrap], tmp_path).join == (address,)
    assert NodeFlags.of([bootstrap, "--discv5-discovery=false"], tmp_path).join == ()
    for ignored in ("", "nonsense"):
        assert NodeFlags.of([f"--discv5-bootstrap-node={ignored}"], tmp_path).join == ()
    with pytest.raises(BadFlag, match="32 bytes"):
        NodeFlags.of(["--nodekey=0f"], tmp_path)


def test_a_record_without_an_address_leads_nowhere(tmp_path: Path) -> None:
    nowhere = NodeFlags.of(["--nat=extip:172.18.0.9"], tmp_path)
    with pytest.raises(InvalidInput, match="has no address"):
        address_in(nowhere.options.record)
