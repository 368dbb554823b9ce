"""Keys, which do not show themselves, and the file that holds one."""

import copy
import json
import os
import pickle
import stat
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from reliable_channel_status import (
    KeyFileError,
    PrivateKey,
    PublicKey,
    SymmetricKey,
    key_file,
    needs_passphrase,
    read_key,
    recover,
    write_key,
)
from reliable_channel_status import plugin as status_plugin
from reliable_channel_status.key_file import PASSPHRASE_VARIABLE
from status_tests.world import ALICE, BOB

SECRET = bytes(range(1, 33))
ORDER = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141


@pytest.fixture
def cheap_scrypt(monkeypatch: pytest.MonkeyPatch) -> None:
    """Passphrases that a computer need not be slow to try."""
    monkeypatch.setattr(key_file, "SCRYPT_COST", 2)


@pytest.mark.parametrize("key", [PrivateKey(SECRET), SymmetricKey(SECRET)])
def test_a_key_does_not_show_itself(key: PrivateKey | SymmetricKey) -> None:
    for text in (repr(key), str(key), f"{key}", repr([key]), repr({"key": key})):
        assert SECRET.hex() not in text
        assert repr(SECRET) not in text
    for copied in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="cannot be pickled or copied"):
            copied(key)
    assert key.reveal() == SECRET
    assert not hasattr(key, "__dict__")


@pytest.mark.parametrize(
    "key", [b"", bytes(31), bytes(33), bytes(32), ORDER.to_bytes(32), b"\xff" * 32]
)
def test_what_is_no_private_key_is_refused(key: bytes) -> None:
    with pytest.raises(ValueError, match="a private key") as error:
        PrivateKey(key)
    assert not key or key.hex() not in str(error.value)


def test_private_keys_from_text_and_chance() -> None:
    assert PrivateKey.from_hex(SECRET.hex()).reveal() == SECRET
    assert PrivateKey.generate().reveal() != PrivateKey.generate().reveal()
    with pytest.raises(ValueError, match="64 digits"):
        PrivateKey.from_hex("zz")
    with pytest.raises(TypeError):
        PrivateKey("1" * 32)  # type: ignore[arg-type]


@pytest.mark.parametrize("key", [b"", bytes(32), bytes(range(16))])
def test_what_is_no_symmetric_key_is_refused(key: bytes) -> None:
    with pytest.raises(ValueError, match="a key"):
        SymmetricKey(key)


def test_symmetric_keys_are_equal_where_their_bytes_are() -> None:
    assert SymmetricKey(SECRET) == SymmetricKey(SECRET)
    assert len({SymmetricKey(SECRET), SymmetricKey(SECRET)}) == 1
    assert SymmetricKey(SECRET) != SymmetricKey(SECRET[::-1])
    assert SymmetricKey(SECRET) != SECRET


def test_public_keys_are_equal_however_written() -> None:
    key = ALICE.public_key
    assert PublicKey(key.compressed) == key == PublicKey.parse(str(key))
    assert hash(PublicKey(key.compressed)) == hash(key)
    assert len({ALICE.public_key, BOB.public_key}) == 2
    assert repr(key) == f"PublicKey(0x{key.compressed.hex()})"


@pytest.mark.parametrize("data", [b"", bytes(33), bytes(65), b"\x04" + b"\x11" * 64, bytes(64)])
def test_what_is_no_public_key_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"public key must have 33 or 65|not a point"):
        PublicKey(data)


def test_a_signature_names_its_signer_with_both_kinds_of_v() -> None:
    signature = ALICE.sign(b"data")
    assert len(signature) == 65
    assert signature[-1] in (0, 1)
    assert signature == ALICE.sign(b"data")
    older = signature[:-1] + bytes([27 + signature[-1]])
    assert recover(b"data", signature) == recover(b"data", older) == ALICE.public_key
    assert recover(b"other", signature) != ALICE.public_key


@pytest.mark.parametrize(
    "signature",
    [b"", bytes(65), b"\xff" * 65, *(ALICE.sign(b"data")[:-1] + bytes([v]) for v in (2, 26, 29))],
)
def test_what_is_nobodys_signature(signature: bytes) -> None:
    assert recover(b"data", signature) is None


def test_both_sides_share_a_secret() -> None:
    shared = ALICE.shared_secret(BOB.public_key)
    assert shared == BOB.shared_secret(ALICE.public_key)
    assert len(shared) == 32


@pytest.mark.parametrize("passphrase", [None, "correct horse"])
def test_a_key_file_is_its_owners_alone(tmp_path: Path, passphrase: str | None) -> None:
    path = tmp_path / "bot.key"
    write_key(path, ALICE, passphrase)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert read_key(path, passphrase).public_key == ALICE.public_key
    assert needs_passphrase(path) is (passphrase is not None)
    assert (ALICE.reveal().hex() in path.read_text()) is (passphrase is None)
    with pytest.raises(KeyFileError, match="exists; move the file away"):
        write_key(path, BOB, passphrase)
    assert read_key(path, passphrase).public_key == ALICE.public_key


@pytest.mark.usefixtures("cheap_scrypt")
def test_a_wrong_passphrase_is_told(tmp_path: Path) -> None:
    path = tmp_path / "bot.key"
    write_key(path, ALICE, "correct horse")
    with pytest.raises(KeyFileError, match=r"passphrase of .* is wrong"):
        read_key(path, "battery staple")
    for missing in (None, ""):
        with pytest.raises(KeyFileError, match="needs a passphrase"):
            read_key(path, missing)
    with pytest.raises(KeyFileError, match="is empty"):
        write_key(tmp_path / "other", ALICE, "")
    assert not (tmp_path / "other").exists()


@pytest.mark.usefixtures("cheap_scrypt")
def test_a_changed_public_key_is_told(tmp_path: Path) -> None:
    for passphrase, reason in ((None, "does not belong to the private key"), ("p", "was changed")):
        path = tmp_path / f"{passphrase}.key"
        write_key(path, ALICE, passphrase)
        document = json.loads(path.read_text())
        document["public_key"] = BOB.public_key.hex
        path.write_text(json.dumps(document))
        with pytest.raises(KeyFileError, match=reason):
            read_key(path, passphrase)


@pytest.mark.parametrize(
    "content",
    [
        *("", "[]", "null", "{}", '{"format": "other"}', "\udc80"),
        f'{{"format": "reliable-channel-status-key/1", "private_key": "{SECRET.hex()}xx"}}',
        '{"format": "reliable-channel-status-key/1", "public_key": 1, "salt": 5}',
    ],
)
def test_what_is_no_key_file_is_told_without_its_content(tmp_path: Path, content: str) -> None:
    path = tmp_path / "bot.key"
    path.write_bytes(content.encode(errors="surrogateescape"))
    path.chmod(0o600)
    with pytest.raises(KeyFileError, match=r"bot\.key") as error:
        read_key(path, "passphrase")
    assert SECRET.hex() not in str(error.value)
    assert not needs_passphrase(path)


def test_a_key_that_others_may_read_is_not_used(tmp_path: Path) -> None:
    path = tmp_path / "bot.key"
    write_key(path, ALICE)
    path.chmod(0o640)
    with pytest.raises(KeyFileError, match="chmod 600"):
        read_key(path)
    with pytest.raises(KeyFileError, match="bot key"):
        read_key(tmp_path / "none")
    assert not needs_passphrase(tmp_path / "none")


@pytest.mark.usefixtures("cheap_scrypt")
def test_the_command_makes_a_key_and_tells_the_public_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app, path = typer.Typer(), tmp_path / "bot.key"
    status_plugin.register_commands(app)
    made = CliRunner().invoke(app, ["bot", "key", str(path)])
    assert made.exit_code == 0, made.output
    key = read_key(path)
    assert made.output.strip() == key.public_key.hex
    assert key.reveal().hex() not in made.output
    shown = CliRunner().invoke(app, ["bot", "key", "--show", str(path)])
    assert shown.output == made.output
    again = CliRunner().invoke(app, ["bot", "key", str(path)])
    assert again.exit_code == 2
    assert "exists; move the file away" in again.output

    sealed = tmp_path / "sealed.key"
    answers = "correct horse\ncorrect horse\n"
    asked = CliRunner().invoke(app, ["bot", "key", "--passphrase", str(sealed)], input=answers)
    assert asked.exit_code == 0
    assert "correct horse" not in asked.output
    monkeypatch.setenv(PASSPHRASE_VARIABLE, "correct horse")
    told = CliRunner().invoke(app, ["bot", "key", "--show", str(sealed)])
    assert told.output.strip() == read_key(sealed, "correct horse").public_key.hex


def test_the_command_line_has_the_command(tmp_path: Path) -> None:
    """As a user runs it: the plugin is found by its entry point."""
    command = Path(sys.executable).with_name("reliable-channel")
    made = subprocess.run(
        [command, "bot", "key", "my.key"],
        cwd=tmp_path,
        env={"PATH": "", "RELIABLE_CHANNEL_PLUGINS": "status"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert made.stderr == ""
    assert made.stdout.strip() == read_key(tmp_path / "my.key").public_key.hex


def test_a_system_that_keeps_no_file_private_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(os, "fchmod")
    with pytest.raises(KeyFileError, match="no POSIX file modes; make the key in WSL"):
        write_key(tmp_path / "bot.key", ALICE)
    assert list(tmp_path.iterdir()) == []
