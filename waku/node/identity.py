"""Peer ids and multiaddresses, checked as in nwaku's REST API, without the extra `[libp2p]`."""

from __future__ import annotations

import secrets
from typing import Final

from waku import _base58

__all__ = ["BadAddress", "check_address", "is_peer_id", "new_peer_id"]

_SECP256K1_PREFIX: Final = bytes.fromhex("00250802122102")
"""Identity multihash of 37 bytes, key type 2, 33 bytes of public key, the first of which is 02."""


class BadAddress(ValueError):
    """The text is not a multiaddress with a host and a TCP port. The text of the error is
    nwaku's."""


def check_address(text: str) -> str | None:
    """Return the peer id in a multiaddress, or None if it has no peer id.

    Raises:
        BadAddress: it cannot be dialled.
    """
    if not text.startswith("/"):
        raise BadAddress(
            "MultiAddress.init [multiaddress: Invalid MultiAddress, must start with `/`]"
        )
    match text[1:].split("/"):
        case [("ip4" | "ip6" | "dns" | "dns4" | "dns6"), _, "tcp", port, *rest]:
            pass
        case [("ip4" | "ip6"), _, protocol, *_] if protocol not in ("tcp", "udp"):
            raise BadAddress(f"MultiAddress.init [multiaddress: Unsupported protocol '{protocol}']")
        case _:
            raise BadAddress(f"no IP address and TCP port in {text!r}")
    if not (port.isascii() and port.isdigit() and 0 < int(port) < 65536):
        raise BadAddress(f"{port!r} is not a port")
    peer_id = rest[-1] if len(rest) >= 2 and rest[-2] == "p2p" else None
    if peer_id is not None and not is_peer_id(peer_id):
        raise BadAddress(f"{peer_id!r} is not a peer id")
    return peer_id


def new_peer_id() -> str:
    """Return a random peer id in the form of libp2p. No key belongs to the returned peer id."""
    return _base58.encode(_SECP256K1_PREFIX + secrets.token_bytes(32))


def is_peer_id(text: str) -> bool:
    """Return True if a text has the form of a libp2p peer id (an identity or SHA-256 multihash)."""
    try:
        data = _base58.decode(text)
    except ValueError:
        return False
    if len(data) < 3 or len(data) != 2 + data[1]:
        return False
    return data[0] == 0x00 or (data[0] == 0x12 and data[1] == 32)
