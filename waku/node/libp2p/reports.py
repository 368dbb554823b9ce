"""Log lines about peers that break rules, with a limited rate."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable
from typing import Final

__all__ = ["Reports"]

NS_PER_S: Final = 1_000_000_000
LINES: Final = 10
"""Maximum number of log lines within `INTERVAL_S`. Further reports are counted, but not logged."""
INTERVAL_S: Final = 60
MAX_TEXT: Final = 300

_log = logging.getLogger("waku.node.libp2p")


class Reports:
    """Writer of log lines about broken rules, with at most ten lines a minute."""

    def __init__(self, now_ns: Callable[[], int]) -> None:
        self.counts: Counter[str] = Counter()
        """How often each kind of it happened."""
        self._now_ns = now_ns
        self._begun_ns = now_ns()
        self._lines = 0
        self._unnamed = 0

    def note(self, kind: str, who: str, what: object) -> None:
        """Count a broken rule of a peer, and log it unless the limit is reached."""
        self.counts[kind] += 1
        now_ns = self._now_ns()
        if not 0 <= now_ns - self._begun_ns < INTERVAL_S * NS_PER_S:
            if self._unnamed:
                _log.warning("peers did %d more things that they may not", self._unnamed)
            self._begun_ns, self._lines, self._unnamed = now_ns, 0, 0
        if self._lines >= LINES:
            self._unnamed += 1
            return
        self._lines += 1
        text = "".join(c if c.isprintable() else "�" for c in str(what)[:MAX_TEXT])
        _log.warning("peer %s: %s", who, text)
