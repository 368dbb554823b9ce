"""Addresses and texts as people may see them: `***` in place of user, password and token."""

from __future__ import annotations

import re
from typing import Final

__all__ = ["masked_address", "masked_text"]

_NONE: Final = r"/(?![^/@]*:)|[\w.-]+(?::\d+)?/"
"""Beginning of an address with `@` that has no user: a path alone, or a host with its path."""
_HAS_NONE: Final = re.compile(_NONE)
_RUN: Final = re.compile(r"[^\s\"'<>]+")
_HAS_USER: Final = re.compile(rf"(?<!enrtree)(?<!libp2p)://(?!{_NONE})")


def masked_address(address: str) -> str:
    """Return one address without what stands before its host; a malformed one as well.

    Service peers have no secrets: the key in `enrtree://KEY@domain` is public.
    """
    scheme, separator, rest = address.partition("://")
    if not separator:
        scheme, rest = "", address
    if "@" not in rest or scheme in ("enrtree", "libp2p") or _HAS_NONE.match(rest):
        return address
    return f"{scheme}{separator}***@{rest.rpartition('@')[2]}"


def masked_text(text: str) -> str:
    """Return a text with the same done to each URL in it."""
    return _RUN.sub(_masked_run, text) if "@" in text else text


def _masked_run(found: re.Match[str]) -> str:
    run, end = found[0], found[0].rfind("@") + 1
    begin = _HAS_USER.search(run, 0, end)  # reads no character for two `://`, as texts are hostile
    return f"{run[: begin.start()]}://***@{run[end:]}" if begin else run
