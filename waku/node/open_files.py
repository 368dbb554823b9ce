"""Maximum number of connections, by the number of files that the process may open."""

from __future__ import annotations

from typing import Final

__all__ = ["BACKLOG", "files_allowed"]

BACKLOG: Final = 128
"""Maximum number of connections that wait to be accepted."""
FILES_OF_OTHERS: Final = 64
"""Number of open files besides connections, for store, log and joined nodes."""
FEWEST_CONNECTIONS: Final = 16


def files_allowed() -> int:
    """Return how many connections the process can have next to its other open files."""
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return 1 << 20
    allowed, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if allowed == resource.RLIM_INFINITY:
        return 1 << 20
    return max(FEWEST_CONNECTIONS, allowed - BACKLOG - FILES_OF_OTHERS)
