"""A nonce is used once a key, as far as a bounded memory can tell."""

from itertools import count, cycle
from random import Random

import pytest

from reliable_channel_encryption import KeyExhausted, NonceRefused, Secret
from reliable_channel_encryption.nonces import MAX_MESSAGES, REMEMBERED_NONCES, NonceLedger


def test_random_nonces_are_taken() -> None:
    ledger, random = NonceLedger(), Random(7)
    nonces = {ledger.draw(random.randbytes) for _ in range(3 * REMEMBERED_NONCES)}
    assert len(nonces) == ledger.drawn == 3 * REMEMBERED_NONCES


@pytest.mark.parametrize("period", [1, 2, 1000, REMEMBERED_NONCES])
def test_a_source_that_repeats_itself_is_noticed(period: int) -> None:
    ledger = NonceLedger()
    source = cycle([index.to_bytes(12) for index in range(period)])
    for _ in range(period):
        ledger.draw(lambda _: next(source))
    with pytest.raises(NonceRefused):
        ledger.draw(lambda _: next(source))
    assert ledger.drawn == period


def test_only_the_last_nonces_are_kept() -> None:
    ledger, numbers = NonceLedger(), count()
    for _ in range(2 * REMEMBERED_NONCES):
        ledger.draw(lambda length: next(numbers).to_bytes(length))
    oldest = (0).to_bytes(12)
    assert ledger.draw(lambda _: oldest) == oldest


def test_the_limit_is_that_of_the_algorithms() -> None:
    assert MAX_MESSAGES == 2**32
    ledger, random = NonceLedger(), Random(7)
    ledger.drawn = MAX_MESSAGES - 1
    ledger.draw(random.randbytes)
    with pytest.raises(KeyExhausted, match="4,294,967,296 messages"):
        ledger.draw(random.randbytes)


def test_a_secret_counts_what_was_sealed_with_it() -> None:
    secret, random = Secret.generate(), Random(7)
    for _ in range(3):
        secret.new_nonce(random.randbytes)
    assert secret.sealed == 3
