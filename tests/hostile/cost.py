"""What something costs, measured so that a busy machine does not matter."""

import sys
import tracemalloc
from collections.abc import Callable
from types import FrameType


def calls(action: Callable[[], object]) -> int:
    """How many calls, of Python and of C, an action makes."""
    count = 0

    def note(frame: FrameType, event: str, argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(note)
    try:
        action()
    finally:
        sys.setprofile(None)
    return count


def kept_bytes(action: Callable[[], object]) -> int:
    """How much memory an action leaves in use."""
    return _traced(action)[0]


def peak_bytes(action: Callable[[], object]) -> int:
    """How much memory an action takes at most."""
    return _traced(action)[1]


def _traced(action: Callable[[], object]) -> tuple[int, int]:
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        kept = action()
        now, peak = tracemalloc.get_traced_memory()
        del kept
    finally:
        tracemalloc.stop()
    return now - before, peak - before
