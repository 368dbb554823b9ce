"""Plugin for `encryption="aes-256-gcm:///path"`, with keys in a file, for commands and settings."""

from reliable_channel.spi import Register, hookimpl


@hookimpl
def register_encryptions(register: Register) -> None:
    """Register a URL scheme for each cipher."""
    for cipher in ("aes-256-gcm", "chacha20-poly1305"):
        register(cipher, "reliable_channel_encryption.key_files:make_encryption")
