"""Files that only their owner can read."""

import os


def private(path: str, flags: int) -> int:
    """Open a file, for `open(…, opener=private)`. A new file has mode 0600."""
    return os.open(path, flags, 0o600)
