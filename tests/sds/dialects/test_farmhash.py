"""Golden values of nim-sds are in `tests/vectors`; here, of google/farmhash for each length."""

from hashlib import sha256

import pytest

from reliable_channel.sds.dialects.farmhash import fingerprint64


@pytest.mark.parametrize(
    ("data", "fingerprint"),
    [(b"", 0x9AE16A3B2F90404F), (b"m1", 0xE912C1D8689C31C9), (b"m1 b", 0xCCC3CAACF8D810B5)],
)
def test_what_nim_computes(data: bytes, fingerprint: int) -> None:
    assert fingerprint64(data) == fingerprint


def test_each_length_up_to_1000() -> None:
    # Recorded with google/farmhash's own C++ (pyfarmhash 0.5.1, `fingerprint64`).
    total = sha256()
    for length in range(1001):
        data = bytes((i * 7 + length) & 0xFF for i in range(length))
        total.update(fingerprint64(data).to_bytes(8))
    assert total.hexdigest() == "24e199a0c9274fc7d8095d3835e415b6cd704bbc051b5751db39d8aa4a5aa188"
