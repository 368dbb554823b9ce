"""Signed senders: what proves the `sender_id` of a message (docs/encryption.md).

The channel imposes no scheme: it is given an object that signs and verifies bytes. The package
`reliable-channel-signing` has one with Ed25519.
"""

from ..sds.signing import NotProven, Signing

__all__ = ["NotProven", "Signing"]

_PROBE = b"reliable-channel: is this sender_id mine?\0"


def check_own_name(signing: Signing, sender_id: str) -> None:
    """Check that what `signing` signs proves `sender_id` to itself.

    Raises:
        ValueError: participants that demand signatures would reject every message of this one.
    """
    try:
        signing.verify(sender_id, _PROBE, signing.sign(_PROBE))
    except NotProven as error:
        raise ValueError(
            f"`sender_id` is {sender_id!r}, but the given `signing` cannot prove this sender: "
            f"{error}"
        ) from error
