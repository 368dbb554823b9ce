"""Mentions in a text, as `@0x04…` from clients, `@zQ3sh…` from people, or of all members."""

import re
from typing import Final

from .keys import PublicKey

EVERYONE: Final = "@0x00001"
"""Mention of all members (`EveryoneMentionTag` of status-go)."""

_MENTION: Final = re.compile(r"@(0x04[0-9a-fA-F]{128}|zQ3[1-9A-HJ-NP-Za-km-z]{46})(?![0-9A-Za-z])")
_EVERYONE: Final = re.compile(rf"{EVERYONE}(?![0-9A-Za-z])")


def mention(public_key: PublicKey) -> str:
    """Return the text that clients show as a user's name."""
    return f"@{public_key.hex}"


def mentions(text: str) -> tuple[PublicKey, ...]:
    """Return the users that a text mentions, each once, in order. A mention without a valid key is
    skipped."""
    found: dict[PublicKey, None] = {}
    for match in _MENTION.finditer(text):
        try:
            found[PublicKey.parse(match[1])] = None
        except ValueError:
            continue
    return tuple(found)


def mentions_everyone(text: str) -> bool:
    """Return True if a text mentions all members."""
    return _EVERYONE.search(text) is not None
