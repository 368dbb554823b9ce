"""The hook that makes an encryption of a URL, and commands that use it."""

import os
from pathlib import Path

import pytest

from reliable_channel.spi import DecryptionFailed
from reliable_channel_encryption import Keyring, Secret, SymmetricEncryption
from reliable_channel_encryption.key_files import make_encryption
from tests.cli import forked

pytestmark = pytest.mark.anyio

OLD, NEW = Secret(bytes(range(32))), Secret(bytes(range(1, 33)))


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def keys(tmp_path: Path) -> Path:
    path = tmp_path / "keys of all.txt"
    path.write_text(f"{NEW.reveal().hex()}\n\n{OLD.reveal().hex()}\n")
    return path


@pytest.mark.parametrize("algorithm", ["aes-256-gcm", "chacha20-poly1305"])
async def test_it_seals_with_the_first_key_and_opens_with_any(keys: Path, algorithm: str) -> None:
    ours = make_encryption(f"{algorithm}:///{keys}", "general")
    assert isinstance(ours, SymmetricEncryption)
    assert ours.algorithm == algorithm
    new, old = (SymmetricEncryption(Keyring(it), context=b"general") for it in (NEW, OLD))
    assert await new.decrypt(await ours.encrypt(b"hello")) == b"hello"
    assert await ours.decrypt(await old.encrypt(b"hello")) == b"hello"
    elsewhere = make_encryption(f"{algorithm}:///{keys}", "another channel")
    assert elsewhere is not None
    with pytest.raises(DecryptionFailed):
        await elsewhere.decrypt(await ours.encrypt(b"hello"))


@pytest.mark.parametrize(
    ("url", "text"),
    [
        ("aes-256-gcm:", "must be aes-256-gcm:///relative/path"),
        ("aes-256-gcm://keys.txt", "must be aes-256-gcm:///relative/path"),
        ("aes-256-gcm:///keys#2", "must be aes-256-gcm:///relative/path"),
        ("aes-256-gcm:///keys#", "must be aes-256-gcm:///relative/path"),
        ("aes-256-gcm:///keys?", "must be aes-256-gcm:///relative/path"),
        (f"aes-256-gcm:{64 * '0'}.00#x", "non-hexadecimal"),
        ("aes-256-gcm:///absent.txt", r"cannot be read: .*absent\.txt"),
        ("aes-256-gcm:////dev/null", "the key file holds no keys"),
    ],
)
def test_what_is_wrong_is_said(url: str, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        make_encryption(url, "general")


def test_a_wrong_key_is_refused_and_not_shown(tmp_path: Path) -> None:
    (tmp_path / "keys").write_text("sesame")
    with pytest.raises(ValueError, match="a key in hex must have 64 digits") as raised:
        make_encryption(f"aes-256-gcm:///{tmp_path}/keys", "general")
    assert "sesame" not in str(raised.value)


def test_the_command_line_finds_it(keys: Path) -> None:
    command = ["send", "--sender-id", "alice", "hello"]
    flags = ["--node", "memory://x", "--state", "memory:"]
    environment = os.environ | {"RELIABLE_CHANNEL_PLUGINS": "encryption"}
    for url, status in ((f"aes-256-gcm:///{keys}", 0), ("rot13:///x", 2)):
        done = forked.run(*command, *flags, "--encryption", url, env=environment)
        assert done.returncode == status, done.stderr
    assert "schemes aes-256-gcm, chacha20-poly1305 (got 'rot13:///x')" in done.stderr
