"""The hosts that a text links to, and links that hide theirs. Pure."""

import re
import unicodedata
from collections.abc import Collection
from typing import Final

MAX_LINKS: Final = 50
"""Links of a message that are looked at; a message with more is refused by its number."""
_LINK: Final = re.compile(
    r"(?:https?|hxxps?)\s*:\s*//([^\s/?#<>()\[\]\"']{1,255})|\b(www\.[^\s/?#<>()\[\]\"']{1,255})",
    re.IGNORECASE,
)
_INVISIBLE: Final = re.compile("[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff]")


def plain(text: str) -> str:
    """A text without invisible characters, in one form: what a reader takes it for."""
    return unicodedata.normalize("NFKC", _INVISIBLE.sub("", text))


def why_not_allowed(text: str, allowed: Collection[str] | None) -> str | None:
    """Why a text's links are not allowed, or None.

    Args:
        text: of a message.
        allowed: hosts, with all below them; None for all.
    """
    found = [first or second for first, second in _LINK.findall(plain(text))[: MAX_LINKS + 1]]
    if len(found) > MAX_LINKS:
        return f"more than {MAX_LINKS} links"
    for place in found:
        user, at, host = place.rpartition("@")
        if at:  # https://status.app@evil.example
            return f"link that hides its host {_shown(host)} behind {_shown(user)}"
        name = host.split(":")[0].rstrip(".").lower()
        if name.startswith("xn--") or ".xn--" in name or _is_mixed(name):
            return f"link to {_shown(name)}, which may look like another host"
        if allowed is not None and not _is_below(name, allowed):
            return f"link to {_shown(name)}"
    return None


def _is_below(host: str, allowed: Collection[str]) -> bool:
    """Whether a host or one above it is listed: constant work a label."""
    labels = host.split(".")
    return any(".".join(labels[first:]) in allowed for first in range(len(labels)))


def _is_mixed(host: str) -> bool:
    """Whether a label has letters of several scripts, as a disguise has."""
    for label in host.split("."):
        scripts = {unicodedata.name(letter, "?").split()[0] for letter in label if letter.isalpha()}
        if len(scripts) > 1:
            return True
    return False


def _shown(text: str) -> str:
    return repr(text[:60])[1:-1]
