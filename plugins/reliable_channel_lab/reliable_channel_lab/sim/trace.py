"""Trace of a run, as lines of text and as their digest, which a seed determines."""

from collections.abc import Callable
from hashlib import sha256


class Trace:
    """Recorder of the trace. `show` is called with each line, for readers during the run."""

    def __init__(self, show: Callable[[str], None] | None = None) -> None:
        self.show = show
        self.lines = 0
        self._digest = sha256()

    def note(self, at_ms: int, who: str, what: str) -> None:
        """Write one line: time, participant, event."""
        line = f"{at_ms} {who} {what}"
        self.lines += 1
        self._digest.update(line.encode())
        self._digest.update(b"\n")
        if self.show is not None:
            self.show(line)

    def digest(self) -> str:
        """Return the hex sha256 over all lines so far."""
        return self._digest.hexdigest()
