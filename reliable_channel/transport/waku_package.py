"""Check for an unrelated distribution that also installs a package `waku`. The other distribution
and this SDK overwrite each other's files."""

from typing import Final

import waku

OURS: Final = "reliable-channel"


def require_own_waku() -> None:
    """Check which installed distribution the package `waku` comes from.

    Raises:
        ImportError: It is not the package of this distribution; the text names what to do.
    """
    if getattr(waku, "__distribution__", None) != OURS:
        place = getattr(waku, "__file__", None) or "a folder without __init__.py"
        raise ImportError(
            f"the package `waku` at {place} does not belong to reliable-channel: another "
            "distribution replaced or hides it; use separate environments, or run `pip uninstall "
            "waku` and `pip install --force-reinstall --no-deps reliable-channel`",
            name="waku",
        )
