"""Keys are of the right length, and never seen by accident."""

import copy
import pickle
import traceback
from hashlib import scrypt, sha256

import pytest

from reliable_channel_encryption import Keyring, Secret, keys

KEY = bytes(range(32))
SALT = b"sixteen bytes :-"


def test_a_secret_does_not_show_its_key() -> None:
    secret = Secret(KEY)
    for shown in (repr(secret), str(secret), f"{secret}", repr([secret]), repr(Keyring(secret))):
        assert KEY.hex() not in shown
        assert repr(KEY)[2:-1] not in shown
        assert secret.id.hex() in shown
    assert not hasattr(secret, "__dict__")


@pytest.mark.parametrize("copied", [pickle.dumps, copy.copy, copy.deepcopy])
def test_a_secret_is_not_copied_by_accident(copied: object) -> None:
    assert callable(copied)
    with pytest.raises(TypeError, match=r"reveal\(\)"):
        copied(Secret(KEY))


def test_the_id_follows_from_the_key_alone() -> None:
    assert Secret(KEY).id == sha256(b"reliable-channel key id" + KEY).digest()[:8]
    assert Secret(KEY).id != Secret(KEY[::-1]).id


@pytest.mark.parametrize("length", [0, 1, 16, 24, 31, 33, 64])
def test_a_key_of_the_wrong_length_is_refused(length: int) -> None:
    with pytest.raises(ValueError, match=rf"32 bytes \(got {length}\)"):
        Secret(bytes(length))


def test_text_is_no_key() -> None:
    with pytest.raises(TypeError):
        Secret("x" * 32)  # type: ignore[arg-type]


def test_generated_keys_differ() -> None:
    assert Secret.generate().reveal() != Secret.generate().reveal()
    assert len(Secret.generate().reveal()) == 32


def test_a_key_survives_being_written_down() -> None:
    secret = Secret.generate()
    assert Secret.from_hex(secret.reveal().hex() + "\n").id == secret.id
    assert Secret.from_hex(secret.reveal().hex().upper()).reveal() == secret.reveal()


@pytest.mark.parametrize("text", ["", "00", "zz" * 32, "0x" + "00" * 32, "00" * 33, "0" * 63])
def test_malformed_hex_is_refused_and_not_repeated(text: str) -> None:
    with pytest.raises(ValueError, match=r"bytes|digits") as caught:
        Secret.from_hex(text)
    message = "".join(traceback.format_exception_only(caught.value))
    assert len(text) < 4 or text not in message


def test_a_password_makes_the_key_of_scrypt() -> None:
    secret = Secret.from_password("correct horse", SALT)
    assert secret.reveal() == scrypt(
        b"correct horse", salt=SALT, n=2**17, r=8, p=1, maxmem=2**28, dklen=32
    )


def test_it_does_not_matter_how_an_accent_was_typed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keys, "SCRYPT_COST", 2)
    composed, decomposed = "caf\u00e9", "cafe\u0301"
    assert composed != decomposed
    assert Secret.from_password(composed, SALT).id == Secret.from_password(decomposed, SALT).id


def test_a_weak_salt_or_no_password_is_refused() -> None:
    with pytest.raises(ValueError, match=r"at least 16 bytes \(got 15\)"):
        Secret.from_password("correct horse", SALT[:-1])
    with pytest.raises(ValueError, match="password is empty"):
        Secret.from_password("", SALT)


def test_a_keyring_holds_each_key_once() -> None:
    new, old = Secret.generate(), Secret(KEY)
    assert list(Keyring(new, old)) == [new, old]
    with pytest.raises(ValueError, match="twice"):
        Keyring(new, old, Secret(KEY))
    with pytest.raises(ValueError, match="twice"):
        Keyring(old, old)
