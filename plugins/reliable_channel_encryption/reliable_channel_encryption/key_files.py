"""Encryption from the URL `aes-256-gcm:///path` of a key file, or from `aes-256-gcm:hex.hex`."""

from pathlib import Path
from urllib.parse import unquote, urlsplit

from reliable_channel.spi import Encryption

from .keys import Keyring, Secret
from .symmetric import CIPHERS, SymmetricEncryption

ALLOWED = (
    "aes-256-gcm:///relative/path or chacha20-poly1305:///relative/path, with four slashes for an "
    "absolute one"
)


def make_encryption(url: str, channel_id: str) -> Encryption:
    """Return an encryption that uses the first key of a file, and decrypts with all of its keys.

    The context is the channel id, so a message for another channel cannot be decrypted. A URL
    without slashes contains a key and its context in hex, as `key_text` writes them.

    Raises:
        ValueError: no path, a file that cannot be read, or one without keys. Or a malformed key.
    """
    parts = urlsplit(url)
    algorithm = next(name for name in CIPHERS if name == parts.scheme)
    text = url.partition(":")[2]
    key, dot, context = text.partition(".")
    if dot and "/" not in text:
        secret = Secret.from_hex(key)
        return SymmetricEncryption(
            Keyring(secret), algorithm=algorithm, context=bytes.fromhex(context)
        )
    path = Path(unquote(parts.path[1:]))
    is_path = parts.path.startswith("/") and path != Path()
    if not is_path or parts.netloc or {*"?#"} & {*url}:
        raise ValueError(f"`encryption` must be {ALLOWED} (got {url!r})")
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(
            f"`encryption` is {url!r}, but the key file cannot be read: {error}"
        ) from error
    secrets = [Secret.from_hex(line) for line in lines if line.strip()]
    if not secrets:
        raise ValueError(
            f"`encryption` is {url!r}, but the key file holds no keys; write one key a line, in hex"
        )
    return SymmetricEncryption(Keyring(*secrets), algorithm=algorithm, context=channel_id.encode())
