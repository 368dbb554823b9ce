"""Private key in a file that only its owner may read, with or without a passphrase.

The JSON file has the public key, and the private key, plain or encrypted (AES-256-GCM, scrypt).
"""

import json
import os
import stat
from pathlib import Path
from typing import Any, Final
from unicodedata import normalize

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.scrypt import Scrypt

from .wire.keys import KEY_BYTES, PrivateKey

PASSPHRASE_VARIABLE: Final = "RELIABLE_CHANNEL_BOT_PASSPHRASE"
"""Environment variable with the passphrase of the key, for commands and bots."""
FORMAT: Final = "reliable-channel-status-key/1"
MODE: Final = 0o600
MAX_FILE_BYTES: Final = 10_000
SALT_BYTES: Final = 16
NONCE_BYTES: Final = 12
SCRYPT_COST: Final = 2**17
SCRYPT_BLOCK_SIZE: Final = 8
SCRYPT_PARALLELISM: Final = 1
"""Cost of scrypt (RFC 7914) as OWASP recommends, 128 MiB and a few tenths of a second per guess."""


class KeyFileError(ValueError):
    """Error that a key file cannot be used. The text of the error gives the reason and the
    solution."""


def write_key(path: Path, key: PrivateKey, passphrase: str | None = None) -> None:
    """Write a key to a new file with mode 0600. If the file exists already, `write_key` does not
    change it.

    Raises:
        KeyFileError: there is such a file, the passphrase is empty, or the system has no file
            modes.
        OSError: it cannot be written.
    """
    if not hasattr(os, "fchmod"):
        raise KeyFileError(
            f"other users could read {path}, because this system has no POSIX file modes; make "
            "the key in WSL or a container"
        )
    document: dict[str, str] = {"format": FORMAT, "public_key": key.public_key.hex}
    if passphrase is None:
        document["private_key"] = key.reveal().hex()
    else:
        salt, nonce = os.urandom(SALT_BYTES), os.urandom(NONCE_BYTES)
        sealed = _cipher(passphrase, salt).encrypt(nonce, key.reveal(), _context(document))
        document |= {"salt": salt.hex(), "nonce": nonce.hex(), "sealed_private_key": sealed.hex()}
    try:
        # The mode belongs to the creation: nobody reads the file in between.
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, MODE)
    except FileExistsError:
        raise KeyFileError(
            f"{path} exists; move the file away, or choose another name, because a lost key "
            "cannot be recovered"
        ) from None
    with os.fdopen(descriptor, "w", encoding="ascii") as file:
        os.fchmod(descriptor, MODE)  # whatever the umask is
        file.write(json.dumps(document, indent=1) + "\n")


def read_key(path: Path, passphrase: str | None = None) -> PrivateKey:
    """Return the private key in a key file.

    Raises:
        KeyFileError: no such file, one that others may read, one without a key, or a passphrase
            that is missing or wrong.
    """
    try:
        with path.open("rb") as file:
            mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
            data = file.read(MAX_FILE_BYTES)
    except OSError as error:
        raise KeyFileError(
            f"the key cannot be read: {error}; `reliable-channel bot key {path}` makes a new key"
        ) from None
    if mode & 0o077:
        raise KeyFileError(f"other users may read {path} (mode {mode:o}); run: chmod 600 {path}")
    try:
        document: dict[str, Any] = json.loads(data)
        if document["format"] != FORMAT:
            raise KeyFileError(
                f"{path} has the format {document['format']!r}; the known format is {FORMAT}"
            )
        if "private_key" in document:
            key = PrivateKey.from_hex(document["private_key"])
        else:
            key = _unsealed(path, document, passphrase)
    except KeyFileError:
        raise
    except (KeyError, TypeError, ValueError) as error:
        # Not the error's text, which may quote the file.
        raise KeyFileError(f"{path} is not a key file ({type(error).__name__})") from None
    if document.get("public_key") != key.public_key.hex:
        raise KeyFileError(
            f"the public key in {path} does not belong to the private key in the file"
        )
    return key


def needs_passphrase(path: Path) -> bool:
    """Return True if a key file needs a passphrase. For an unreadable file the result is False,
    because `read_key` reports the problem."""
    try:
        document = json.loads(path.read_bytes()[:MAX_FILE_BYTES])
    except (OSError, ValueError):
        return False
    return isinstance(document, dict) and "sealed_private_key" in document


def _unsealed(path: Path, document: dict[str, Any], passphrase: str | None) -> PrivateKey:
    if not passphrase:
        raise KeyFileError(f"the key file {path} needs a passphrase")
    salt, nonce, sealed = (
        bytes.fromhex(document[name]) for name in ("salt", "nonce", "sealed_private_key")
    )
    try:
        key = _cipher(passphrase, salt).decrypt(nonce, sealed, _context(document))
    except InvalidTag:
        raise KeyFileError(f"the passphrase of {path} is wrong, or the file was changed") from None
    return PrivateKey(key)


def _cipher(passphrase: str, salt: bytes) -> AESGCM:
    if not passphrase:
        raise KeyFileError("the passphrase is empty")
    scrypt = Scrypt(salt, KEY_BYTES, SCRYPT_COST, SCRYPT_BLOCK_SIZE, SCRYPT_PARALLELISM)
    return AESGCM(scrypt.derive(normalize("NFC", passphrase).encode()))


def _context(document: dict[str, Any]) -> bytes:
    return f"{document['format']} {document['public_key']}".encode()
