"""Signed senders: what proves the `sender_id` of a message (docs/encryption.md).

The channel imposes no scheme: it is given an object that signs and verifies bytes. The package
`reliable-channel-signing` has one with Ed25519.
"""

from typing import Final

from ..sds.signing import NotProven, Signing

__all__ = ["CheckedSigning", "NotProven", "Signing"]

_PROBE = b"reliable-channel: is this sender_id mine?\0"


class CheckedSigning:
    """Signing of a channel, whose first signature must prove the `sender_id` of the channel.

    A key may be away when the channel is made. The key is then checked when it signs.

    Raises:
        ValueError: participants that demand signatures would reject every message of this one.
    """

    def __init__(self, signing: Signing, sender_id: str) -> None:
        self.verify: Final = signing.verify
        self._signing, self._sender_id = signing, sender_id
        self._is_checked = False
        self._failure: Exception | None = None
        try:
            signature = signing.sign(_PROBE)
        except Exception as error:  # of a plugin: received and saved messages need no new signature
            self._failure = error
        else:
            self._check(_PROBE, signature)

    @property
    def warning(self) -> str | None:
        """Return the reason for which the last signature failed, or None."""
        if self._failure is None:
            return None
        return (
            f"`signing` cannot sign ({self._failure!r}), so `send` fails and no sync message "
            "acknowledges what arrives; make the key available"
        )

    def sign(self, data: bytes) -> bytes:
        """Return the signature of the given `signing`, or raise its error."""
        try:
            signature = self._signing.sign(data)
            if not self._is_checked:
                self._check(data, signature)
        except Exception as error:
            self._failure = error
            raise
        self._failure = None
        return signature

    def _check(self, data: bytes, signature: bytes) -> None:
        try:
            self.verify(self._sender_id, data, signature)
        except NotProven as error:
            raise ValueError(
                f"`sender_id` is {self._sender_id!r}, but the given `signing` cannot prove this "
                f"sender: {error}"
            ) from error
        self._is_checked = True
