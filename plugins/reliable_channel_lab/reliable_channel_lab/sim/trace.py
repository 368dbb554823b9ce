"""What happened, as lines of text and as one digest of them all: the bytes that a seed decides."""

from collections.abc import Callable
from hashlib import sha256


class Trace:
    """Takes note. `show` is called with each line, for readers during the run."""

    def __init__(self, show: Callable[[str], None] | None = None) -> None:
        self.show = show
        self.lines = 0
        self._digest = sha256()

    def note(self, at_ms: int, who: str, what: str) -> None:
        """One line: time, participant, event."""
        line = f"{at_ms} {who} {what}"
        self.lines += 1
        self._digest.update(line.encode())
        self._digest.update(b"\n")
        if self.show is not None:
            self.show(line)

    def digest(self) -> str:
        """Hex sha256 over all lines so far."""
        return self._digest.hexdigest()
