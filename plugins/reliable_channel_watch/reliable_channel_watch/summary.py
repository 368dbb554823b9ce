"""Summary of a view in one line of text, for a terminal or a log."""

from collections import Counter
from typing import Final

from reliable_channel._terminal_text import printable_name

from .model import View

MAX_NAMED: Final = 5
"""Maximum number of participants that a line names. Further participants are only counted, because
a group may have thousands."""


def summary(view: View) -> str:
    """Return a line with counts, and with the names of participants that miss messages."""
    gaps = view.gaps.values()
    missing = Counter(gap.lane for gap in gaps if gap.until_ms is None)
    behind = [
        f"{printable_name(view.lanes[lane].name)} ({count} missing)"
        for lane, count in missing.most_common(MAX_NAMED)
    ]
    if len(missing) > MAX_NAMED:
        behind.append(f"{len(missing) - MAX_NAMED} more")
    return (
        f"participants: {len(view.lanes)}; messages: {len(view.messages)}; "
        f"behind: {', '.join(behind) or 'none'}; lost: {sum(gap.is_lost for gap in gaps)}"
    )
