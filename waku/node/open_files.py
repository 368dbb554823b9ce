"""How many connections the process can have, by the files that it may open."""

from __future__ import annotations

from typing import Final

__all__ = ["BACKLOG", "files_allowed"]

BACKLOG: Final = 128
"""Connections that wait to be accepted, and that are accepted at once."""
FILES_OF_OTHERS: Final = 64
"""Open files that the process has beside the server's: its store, log and joined nodes."""
FEWEST_CONNECTIONS: Final = 16


def files_allowed() -> int:
    """How many connections leave room for the other files of the process."""
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return 1 << 20
    allowed, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if allowed == resource.RLIM_INFINITY:
        return 1 << 20
    return max(FEWEST_CONNECTIONS, allowed - BACKLOG - FILES_OF_OTHERS)
