"""Both ways to compute a shared point give the same, and each end gets what the other gets."""

from importlib import import_module

import pytest

from reliable_channel_status import PrivateKey
from reliable_channel_status.wire.diffie_hellman import by_libsecp256k1, by_openssl, shared_x

KEYS = [PrivateKey(bytes([n + 1]) * 32) for n in range(8)]


@pytest.mark.parametrize("own", KEYS)
def test_libsecp256k1_and_openssl_agree(own: PrivateKey) -> None:
    exchange = by_libsecp256k1()
    assert exchange is not None
    for peer in KEYS:
        public = peer.public_key.uncompressed
        x = by_openssl(own.reveal(), public)
        assert x == exchange(own.reveal(), public) == shared_x(own.reveal(), public)
        assert x == by_openssl(peer.reveal(), own.public_key.uncompressed)


def test_what_is_no_key_is_refused() -> None:
    exchange = by_libsecp256k1()
    assert exchange is not None
    with pytest.raises(ValueError, match="private key is not between"):
        exchange(bytes(32), KEYS[0].public_key.uncompressed)


def test_without_the_binding_openssl_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    class Forbidding:
        def callback(self, signature: str, function: object) -> object:
            raise MemoryError("writable and executable memory is forbidden")

    monkeypatch.setattr(import_module("coincurve._libsecp256k1"), "ffi", Forbidding())
    assert by_libsecp256k1() is None
