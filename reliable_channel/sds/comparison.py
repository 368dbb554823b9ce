"""Comparison of the own log with the logs of other participants.

Each sync message carries the root hash of its sender's log. The newest messages are left out of the
root, because they may still be on their way. A receiver compares the root with its own log. A
lasting difference becomes an event and part of the sync status. `adaptive/reconciliation.py` finds
the differing messages.
"""

from collections import OrderedDict, deque
from dataclasses import dataclass
from typing import ClassVar, Final

from .events import LogAgrees, LogDiffers
from .log.log import MessageLog
from .log.root import SECOND_MS
from .message import LogRoot, Message
from .references.joining import Joining

STABLE_MS: Final = 300_000
"""Minimum age (ms) of compared messages, as long as missing messages are awaited."""
STAYS_MS: Final = 20_000
"""Time (ms) for which two roots must differ before the difference is reported. A shorter difference
may come from messages on their way."""
OVERTAKEN_MS: Final = 300_000
"""Time (ms) in which a sync message with an earlier Lamport timestamp is ignored as overtaken. A
forged timestamp may be far ahead, and must not silence its sender for longer."""
FORGET_MS: Final = 3_600_000
"""Time (ms) of silence after which a participant with a different log no longer counts."""
MAX_SUSPECTS: Final = 16
"""Maximum number of remembered participants with a different log."""
SAMPLES: Final = 5
"""Number of times for which the end of the log is noted, to find a part old enough to compare."""


@dataclass(slots=True)
class _Suspect:
    """A participant whose last root differed."""

    root: LogRoot
    lamport_timestamp: int
    """Of the sync message that carried it."""
    since_ms: int
    heard_ms: int
    is_confirmed: bool = False


class LogComparison:
    """Comparison of the roots of other participants with the own log."""

    stable_ms: ClassVar[int] = STABLE_MS
    """Age (ms) below which messages are not part of the own root."""

    def __init__(self, log: MessageLog, joining: Joining) -> None:
        self._sample_ms = self.stable_ms // SAMPLES
        self._log = log
        self._joining = joining
        self._samples: deque[tuple[int, int]] = deque()
        """Where the part of the log ended that was over, and when that was; one sample a minute."""
        self._changes = 0
        self._changed_ms: int | None = None
        """When it was last seen that the log had changed."""
        self._suspects: OrderedDict[str, _Suspect] = OrderedDict()
        self._differing_since_ms: int | None = None
        """When the first of the roots came that have differed without exception since."""
        self._asked_start: int | None = None
        """Where the last range heard began, if later than ours: its sender can compare no larger
        one, neither to notice a difference nor its end."""
        self._was_asked = False
        """True if the last root was of such a range."""

    @property
    def different_from(self) -> tuple[str, ...]:
        """Participants whose logs permanently differ from the own log."""
        return tuple(name for name, suspect in self._suspects.items() if suspect.is_confirmed)

    @property
    def repair_failed(self) -> bool:
        """True if no participant was able to repair the difference."""
        return False

    def root(self, now_ms: int) -> LogRoot | None:
        """Return the root for the next sync message, or None if there is nothing to compare."""
        self._sample(now_ms)
        at_ms, end = self._samples[0]
        if not self._is_over(end, now_ms):
            end -= 1
        asked, self._asked_start = self._asked_start, None
        start = self.start
        # Every other time at most, so that nobody can keep the rest of the log from comparison.
        self._was_asked = asked is not None and start < asked < end and not self._was_asked
        if asked is not None and self._was_asked:
            start = asked
        if now_ms - at_ms < self.stable_ms or end <= start:
            return None
        return self._log.sums.root(start, end)

    def review(self, sync: Message, now_ms: int) -> LogDiffers | LogAgrees | None:
        """Compare the root in another participant's sync message with the own log. Return an event
        if the result changed."""
        self._sample(now_ms)
        root, lamport = sync.log_root, sync.lamport_timestamp or 0
        suspect = self._suspects.get(sync.sender_id)
        if root is None or root.start < self.start or root.end <= root.start:
            return None
        if not self._is_over(root.end, now_ms):
            return None
        if (
            suspect is not None
            and lamport <= suspect.lamport_timestamp
            and 0 <= now_ms - suspect.heard_ms < OVERTAKEN_MS
        ):
            return None
        was_different = bool(self.different_from)
        here = self._log.sums.root(root.start, root.end)
        if here == root:
            self._suspects.pop(sync.sender_id, None)
            self._agrees(now_ms)
        else:
            self._differs(sync.sender_id, root, here, lamport, now_ms)
        if root.start > self.start:
            self._asked_start = root.start
        self._clear(now_ms)
        if bool(self.different_from) is was_different:
            return None
        if was_different:
            return LogAgrees()
        return LogDiffers(
            sync.sender_id, root.start * SECOND_MS, root.end * SECOND_MS, here.count, root.count
        )

    @property
    def start(self) -> int:
        """First second whose messages this participant has completely, so that they can be
        compared."""
        return max(self._log.sums.start, -(-self._joining.wanted_from // SECOND_MS))

    def _agrees(self, now_ms: int) -> None:
        """Take note that a log is equal."""
        self._differing_since_ms = None

    def _differs(
        self, sender_id: str, root: LogRoot, here: LogRoot, lamport: int, now_ms: int
    ) -> None:
        """Take note of a log with `root` where the own one has `here`."""
        if self._differing_since_ms is None:
            self._differing_since_ms = now_ms
        before = self._suspects.pop(sender_id, None)
        since_ms = before.since_ms if before else now_ms
        stayed_ms = now_ms - min(since_ms, self._differing_since_ms)
        is_confirmed = stayed_ms >= STAYS_MS or (before is not None and before.is_confirmed)
        self._suspects[sender_id] = _Suspect(root, lamport, since_ms, now_ms, is_confirmed)
        if len(self._suspects) > MAX_SUSPECTS:
            self._suspects.popitem(last=False)

    def _clear(self, now_ms: int) -> None:
        """Look again at those whose root the own log may have come to equal."""
        for name, suspect in list(self._suspects.items()):
            root = suspect.root
            if (
                root.start < self.start
                or now_ms - suspect.heard_ms > FORGET_MS
                or self._log.sums.root(root.start, root.end) == root
            ):
                del self._suspects[name]

    def _sample(self, now_ms: int) -> None:
        if self._changed_ms is None or self._changes != self._log.sums.changes:
            self._changes, self._changed_ms = self._log.sums.changes, now_ms
        samples = self._samples
        if samples and samples[-1][0] > now_ms:
            samples.clear()  # the clock was set back
            self._changed_ms = now_ms
        if not samples or now_ms - samples[-1][0] >= self._sample_ms:
            samples.append((now_ms, self._end(now_ms)))
        while len(samples) > 1 and now_ms - samples[1][0] >= self.stable_ms:
            samples.popleft()

    def _end(self, now_ms: int) -> int:
        """The second after the newest message; that of the message itself where it is not over."""
        end = self._newest_second + 1
        return end if self._is_over(end, now_ms) else end - 1

    def _is_over(self, end: int, now_ms: int) -> bool:
        """Return True if no new message is expected before the second `end`.

        Lamport timestamps may run ahead of the time, by a day where a participant lied. New
        messages then fall into the second of the newest one, so it is over only when the log has
        rested.
        """
        assert self._changed_ms is not None
        has_rested = now_ms - self._changed_ms >= self.stable_ms
        return end <= self._newest_second or end * SECOND_MS <= now_ms or has_rested

    @property
    def _newest_second(self) -> int:
        """That of the newest message; -1 in an empty log."""
        newest = self._log.last(1)
        return newest[0].lamport_timestamp // SECOND_MS if newest else -1
