"""Trace of a run as lines of text, with a digest that depends only on the scenario."""

from collections.abc import Callable
from hashlib import sha256


class Trace:
    """Recorder of the trace's lines. `show` is called with each line during the run."""

    def __init__(self, show: Callable[[str], None] | None = None) -> None:
        self.show = show
        self.lines = 0
        self._digest = sha256()

    def note(self, at_ms: int, who: str, what: str) -> None:
        """Write a line with the time, the participant and the event."""
        line = f"{at_ms} {who} {what}"
        self.lines += 1
        self._digest.update(line.encode())
        self._digest.update(b"\n")
        if self.show is not None:
            self.show(line)

    def digest(self) -> str:
        """Return the SHA-256 over all lines so far, in hex."""
        return self._digest.hexdigest()
