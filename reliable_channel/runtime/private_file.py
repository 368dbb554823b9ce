"""Opening of files that only their owner can read."""

import os


def private(path: str, flags: int) -> int:
    """Open a file for its owner only, for `open(…, opener=private)`. A new file gets the mode
    0600."""
    return os.open(path, flags, 0o600)
