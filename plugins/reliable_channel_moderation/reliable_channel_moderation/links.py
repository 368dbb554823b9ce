"""Hosts to which a text links, and links that disguise their host.

Links are read as browsers read them (WHATWG URL). After `https:`, any number of slashes or
backslashes may precede the host, and one of them ends it.
"""

import re
from collections.abc import Collection, Iterator
from typing import Final
from unicodedata import name as name_of
from unicodedata import normalize
from urllib.parse import unquote

from .appearance import looks_latin, plain

MAX_LINKS: Final = 50
"""Maximum number of links in a message that are examined. A message with more links is refused."""
_HOST: Final = r"[^\s/\\?#<>()\"'|]{1,255}"
_LINK: Final = re.compile(
    rf"\b(?:https?|hxxps?|ftp|wss?)\s*:(?:\s*[/\\]+)?(?P<web>{_HOST})"
    rf"|(?<![\w:/\\])[/\\]{{2,}}(?P<bare>{_HOST}\.{_HOST})"
    rf"|\b(?P<www>www\.{_HOST})"
    rf"|(?<![\w@.])(?P<path>(?:[\w-]+\.)+[^\W\d_]{{2,}})(?=[/\\]\w)",
    re.IGNORECASE,
)
_OTHER: Final = re.compile(
    r"\b([a-z][a-z0-9+.-]*)://\S|\b(about|blob|data|ethereum|intent|javascript|mailto|vbscript):\S",
    re.IGNORECASE,
)
"""Links that do not lead to a web host."""
_WEB: Final = ("http", "https", "hxxp", "hxxps", "ftp", "ws", "wss")
_DOTS: Final = str.maketrans("。｡", "..")
"""Which browsers take for a dot."""
_DISGUISED: Final = re.compile(
    "://[^\\s/]*[\u2044\u2215\uff0f\uff3c\uff1f\uff03\uff20\uff1a\uff05]"
)
"""Look-alikes of what ends a host: browsers refuse them or take them for it."""


def why_not_allowed(text: str, allowed: Collection[str] | None) -> str | None:
    """Return the reason why a text's links are not allowed, or None.

    Args:
        text: of a message.
        allowed: hosts, with all below them; None for all.
    """
    shown = plain(text).translate(_DOTS)
    found = [next(filter(None, one.groups())) for one in _at_most(_LINK.finditer(shown))]
    if len(found) > MAX_LINKS:
        return f"more than {MAX_LINKS} links"
    if allowed is not None and (hidden := _DISGUISED.search(text)) is not None:
        return f"link that cannot be read: {_shown(hidden[0])}"
    for place in found:
        if (why := _why_not(unquote(place), allowed)) is not None:
            return why
    for other in _OTHER.finditer(shown) if allowed is not None else ():
        scheme = (other[1] or other[2]).lower()
        if scheme not in _WEB:
            return f"link of another kind, {_shown(scheme)}"
    return None


def _why_not(place: str, allowed: Collection[str] | None) -> str | None:
    user, at, host = re.split(r"[/\\?#]", place)[0].rpartition("@")
    if at:  # https://status.app@evil.example
        return f"link that hides its host {_shown(host)} behind {_shown(user)}"
    if host.startswith("["):
        return None if allowed is None else f"link to the address {_shown(host)}"
    name = normalize("NFKC", host).split(":")[0].rstrip(".,;:!]}*_").lower()
    if any(label.startswith("xn--") or _is_disguised(label) for label in name.split(".")):
        return f"link to {_shown(name)}, which may look like another host"
    if allowed is not None and not _is_below(name, allowed):
        return f"link to {_shown(name)}"
    return None


def _at_most(found: Iterator[re.Match[str]]) -> Iterator[re.Match[str]]:
    return (one for _, one in zip(range(MAX_LINKS + 1), found, strict=False))


def _is_below(host: str, allowed: Collection[str]) -> bool:
    """Return True if a host or one above it is listed: constant work a label."""
    labels = host.split(".")
    return any(".".join(labels[first:]) in allowed for first in range(len(labels)))


def _is_disguised(label: str) -> bool:
    """Return True if a label has letters of several scripts, or looks like one of Latin letters."""
    scripts = {name_of(letter, "?").split()[0] for letter in label if letter.isalpha()}
    return len(scripts) > 1 or (scripts != {"LATIN"} and looks_latin(label))


def _shown(text: str) -> str:
    return repr(text[:60])[1:-1]
