"""Diffie-Hellman on secp256k1 by libsecp256k1, in an eighth of OpenSSL's time.

With both libraries, Diffie-Hellman takes the same time for every key. `coincurve` offers
Diffie-Hellman only with a hash of the result. Status needs the coordinate itself, so this module
passes a "hash" function that copies it. If passing the function fails, for example under a security
policy, OpenSSL computes the coordinate.
"""

from collections.abc import Callable
from importlib import import_module
from typing import Any, Final, TypeAlias

import coincurve

X_BYTES: Final = 32
Exchange: TypeAlias = Callable[[bytes, bytes], bytes]
"""Function from a private key and an uncompressed public key to the x coordinate of the shared
point."""


def by_openssl(private: bytes, public: bytes) -> bytes:
    """Return the shared x coordinate, computed by OpenSSL."""
    from cryptography.hazmat.primitives.asymmetric import ec

    curve = ec.SECP256K1()
    own = ec.derive_private_key(int.from_bytes(private), curve)
    return own.exchange(ec.ECDH(), ec.EllipticCurvePublicKey.from_encoded_point(curve, public))


def by_libsecp256k1() -> Exchange | None:
    """Return the function that uses libsecp256k1, or None if the library cannot be used."""
    try:
        binding = import_module("coincurve._libsecp256k1")
        context = import_module("coincurve.context").GLOBAL_CONTEXT
        ffi, compute = binding.ffi, binding.lib.secp256k1_ecdh
        copied = ffi.callback(_SIGNATURE, _copier(ffi))
    except (ImportError, AttributeError, MemoryError, OSError):
        return None

    def exchange(private: bytes, public: bytes) -> bytes:
        output = ffi.new("unsigned char[]", X_BYTES)
        point = coincurve.PublicKey(public).public_key
        if not compute(context.ctx, output, point, private, copied, ffi.NULL):
            raise ValueError("the private key is not between 1 and the order of secp256k1")
        return bytes(ffi.buffer(output, X_BYTES))

    return exchange


_SIGNATURE: Final = "int(unsigned char*, const unsigned char*, const unsigned char*, void*)"


def _copier(ffi: Any) -> Callable[[Any, Any, Any, Any], int]:
    def copy(output: Any, x: Any, y: Any, data: Any) -> int:
        ffi.memmove(output, x, X_BYTES)
        return 1

    return copy


shared_x: Final[Exchange] = by_libsecp256k1() or by_openssl
