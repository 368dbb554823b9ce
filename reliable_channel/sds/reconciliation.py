"""Range-based reconciliation: what two logs differ in, found and mended between participants.

A reference reaches back only so far. Where the root of another log (`comparison.py`) differs from
the own one, a participant describes the range in question: by 16 roots of parts of it, or, where
the own log has few messages there, by short hashes of their ids. All hear that. One of those whose
log differs describes the parts that differ further, and participants with messages not in a list of
hashes broadcast them, several whole messages in one. So a difference is found in a few exchanges,
for any length of the log, and repaired for all that share it.

Source: A. Meyer, Range-Based Set Reconciliation (SRDS 2023); negentropy v1 has the same leaf and
branching. Work for others is bounded: by budgets of what is sent, by limits of what is read.
"""

from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from .changes import LogKey
from .control import feedback_ms
from .log import MessageLog
from .log_root import SECOND_MS, SHORT_BYTES, ListedIds, LogRoot, Reconciling, key_hash
from .observation import Observations
from .pacing import Bucket
from .sync import Random

PARTS: Final = 16
LEAF: Final = 64
"""With no more messages in a range they are listed."""
MAX_RANGES: Final = 64
"""Ranges of one message that are looked at; more would be work for nothing."""
MAX_LISTED: Final = 4_096
"""Messages that are listed for one range."""
BUNDLE_BYTES: Final = 100_000
FIRST_BUNDLE_BYTES: Final = 8_000
"""The first is short, since several participants may send it before they hear each other."""
INBOX_BYTES: Final = 8 * 1024 * 1024
"""Of bundles that came and are not opened; more are dropped, and asked for again."""
MAX_LACKING: Final = 50_000
"""Messages that others lack and that are planned to be broadcast."""
DESCRIPTIONS: Final = 20
DESCRIPTIONS_EVERY_MS: Final = 1_000
BUNDLES: Final = 80
BUNDLES_EVERY_MS: Final = 1_000
HEARINGS: Final = 60
HEARINGS_EVERY_MS: Final = 200
"""Messages that are compared: of all senders together, as names cost nothing."""
COMPARED: Final = 100_000
COMPARED_EVERY_MS: Final = 0.1
"""Messages that are hashed to be compared with lists: 10,000 a second cost 1 % of a core."""
MANY: Final = 16
"""A difference of so many messages is not one of messages underway."""
AGAIN_SCALES: Final = 6
"""Of D: how long after a question the next one for the same range goes."""
AGAIN_MAX_MS: Final = 30_000
YIELDS: Final = 20
"""Bundles of others that a participant waits for before its answer."""
PERSISTS: Final = 2
"""Differing roots after which a small difference is asked about."""
ATTEMPTS: Final = 12
REST_MS: Final = 600_000
"""How long no question goes after so many without success; doubled each time."""
MAX_REST_MS: Final = 6 * 3_600_000


@dataclass(slots=True)
class _Question:
    """A root that differed from the own log, until it does not."""

    root: LogRoot
    seen: int = 1
    attempts: int = 0
    due_ms: int | None = None


@dataclass(frozen=True, slots=True)
class _Failed:
    """A difference that no participant could repair."""

    difference: int
    """By how many messages the logs differed in number."""
    times: int
    until_ms: int

    def rests(self, difference: int, now_ms: int) -> bool:
        """Whether it is not asked about; a difference that grew much is another one."""
        return now_ms < self.until_ms and difference < self.difference + MANY


@dataclass(slots=True)
class _Plan:
    """What is to be broadcast, and when."""

    due_ms: int | None = None
    ranges: OrderedDict[tuple[int, int], None] = field(default_factory=OrderedDict)


class Reconciliation:
    """The exchanges of one participant."""

    def __init__(
        self,
        own_id: str,
        log: MessageLog,
        observations: Observations,
        random: Random,
        held: Callable[[str, str | None], bytes | None],
    ) -> None:
        self._own_id = own_id
        self._log = log
        self._observations = observations
        self._random = random
        self._held = held
        """A message as it is to be broadcast, made anew after the message of the second id where
        its bytes are gone."""
        self._question: _Question | None = None
        self._failed: _Failed | None = None
        self._plan = _Plan()
        self._lacking: OrderedDict[LogKey, None] = OrderedDict()
        """What another participant lacks, to be broadcast from here."""
        self._bundle_ms: int | None = None
        self._limit_bytes = FIRST_BUNDLE_BYTES
        self._answers = False
        """Whether the first bundle of an answer is out."""
        self._yielded = 0
        self._sent_last: str | None = None
        """The message that was broadcast last in this answer."""
        self.inbox: deque[tuple[bytes, str]] = deque()
        """Messages of bundles that came, and the participants that sent these. The owner takes each
        in a separate step, since an archive knows only what earlier steps changed."""
        self._inbox_bytes = self._inbox_ms = 0
        self._descriptions = Bucket(DESCRIPTIONS, DESCRIPTIONS_EVERY_MS)
        self._bundles = Bucket(BUNDLES, BUNDLES_EVERY_MS)
        self._hearings = Bucket(HEARINGS, HEARINGS_EVERY_MS)
        self._compared = Bucket(COMPARED, COMPARED_EVERY_MS)

    # -- inputs ------------------------------------------------------------------------------------

    def differs(self, root: LogRoot, here: LogRoot, now_ms: int) -> None:
        """The root of another participant is not that of the own log: ask at once where much is
        different, else if it stays so."""
        question, difference = self._question, abs(root.count - here.count)
        if self._failed is not None and self._failed.rests(difference, now_ms):
            return
        if question is None:
            question = self._question = _Question(root)
        else:
            question.seen += 1
            if root.count != question.root.count or root.end > question.root.end:
                question.root = root
        is_plain = difference >= MANY
        if question.due_ms is None and (is_plain or question.seen >= PERSISTS):
            question.due_ms = now_ms + self._draw_ms()

    def agrees(self) -> None:
        """The root of another participant is that of the own log."""
        self._question = self._failed = None

    @property
    def has_failed(self) -> bool:
        """Whether no participant answered so far, and it will be a while until the next try."""
        return self._failed is not None

    def hear(self, said: Reconciling, sender_id: str, start: int, now_ms: int) -> None:
        """Take another participant's description of parts of its log, or notice what it
        broadcasts; ranges from before second `start` are not compared."""
        if not self._hearings.take(now_ms):
            return
        for root in said.roots[:MAX_RANGES]:
            self._hear_root(root, start, now_ms)
        for listed in said.lists[:MAX_RANGES]:
            self._hear_list(listed, start, now_ms)
        if said.bundle:
            self._give_way(sender_id, now_ms)
        if sum(map(len, said.bundle)) + self._inbox_bytes <= INBOX_BYTES:
            self.inbox.extend((data, sender_id) for data in said.bundle)
            self._inbox_bytes += sum(map(len, said.bundle))
            self._inbox_ms = now_ms

    def open(self) -> tuple[bytes, str]:
        """Take a message out of the bundles that came, and the participant that sent the bundle."""
        data, sender_id = self.inbox.popleft()
        self._inbox_bytes -= len(data)
        return data, sender_id

    def came(self, key: LogKey) -> None:
        """Another participant broadcasts this message in a bundle, so that it need not be done
        here."""
        self._lacking.pop(key, None)

    # -- time --------------------------------------------------------------------------------------

    def next_deadline_ms(self) -> int | None:
        """When `take` has something to broadcast, or to look at."""
        question = self._question
        if self.inbox:
            return self._inbox_ms
        dues = (self._plan.due_ms, self._bundle_ms, question.due_ms if question else None)
        return min((due_ms for due_ms in dues if due_ms is not None), default=None)

    def take(self, now_ms: int) -> Iterator[Reconciling]:
        """What is to be broadcast now, a message each."""
        if (question := self._question) and _is_due(question.due_ms, now_ms):
            self._ask(question, now_ms)
        if _is_due(self._plan.due_ms, now_ms):
            yield from self._describe(now_ms)
        if _is_due(self._bundle_ms, now_ms):
            yield from self._send_bundle(now_ms)

    # -- inside ------------------------------------------------------------------------------------

    def _ask(self, question: _Question, now_ms: int) -> None:
        root = question.root
        if self._is_equal(root) or question.attempts >= ATTEMPTS:
            self._question = None
            if not self._is_equal(root):
                self._give_up(root, now_ms)
            return
        self._plan_range(root.start, root.end, now_ms, at_once=True)
        question.attempts += 1
        again_ms = min(AGAIN_SCALES * self._scale_ms * question.attempts, AGAIN_MAX_MS)
        question.due_ms = now_ms + again_ms + self._draw_ms()

    def _give_up(self, root: LogRoot, now_ms: int) -> None:
        """Rest, since no participant that hears this one has what is missing any more."""
        here = self._log.sums.root(root.start, root.end)
        times = 1 if self._failed is None else self._failed.times + 1
        rest_ms = min(REST_MS << min(times - 1, 16), MAX_REST_MS)
        self._failed = _Failed(abs(root.count - here.count), times, now_ms + rest_ms)

    def _give_way(self, sender_id: str, now_ms: int) -> None:
        """Another participant answers: give it time, and do not ask again meanwhile.

        Of several that began the first by name goes on. The wait is bounded.
        """
        goes_on = self._answers and self._own_id < sender_id
        if self._bundle_ms is not None and not goes_on and self._yielded < YIELDS:
            self._yielded += 1
            later_ms = now_ms + 2 * self._scale_ms + self._draw_ms()
            self._bundle_ms = max(self._bundle_ms, later_ms)
        if (question := self._question) is not None and question.due_ms is not None:
            question.due_ms = max(question.due_ms, now_ms + AGAIN_SCALES * self._scale_ms)

    def _hear_root(self, root: LogRoot, start: int, now_ms: int) -> None:
        if start <= root.start < root.end:
            if self._is_equal(root):
                self._is_described(root.start, root.end)
            else:
                self._plan_range(root.start, root.end, now_ms)

    def _hear_list(self, listed: ListedIds, start: int, now_ms: int) -> None:
        if not start <= listed.start < listed.end:
            return
        theirs = listed.split()
        count = self._log.sums.root(listed.start, listed.end).count
        if not self._compared.take(now_ms, count + len(theirs)):
            return
        mine = set()
        for key in self._keys(listed.start, listed.end):
            short = key_hash(key)[:SHORT_BYTES]
            mine.add(short)
            if short not in theirs and len(self._lacking) < MAX_LACKING:
                self._lacking[key] = None
        if not theirs <= mine:
            self._plan_range(listed.start, listed.end, now_ms)
        elif theirs == mine:
            self._is_described(listed.start, listed.end)
        if self._lacking and self._bundle_ms is None:
            self._limit_bytes = FIRST_BUNDLE_BYTES
            self._answers, self._yielded, self._sent_last = False, 0, None
            self._bundle_ms = now_ms + self._draw_ms()

    def _is_described(self, start: int, end: int) -> None:
        """Another participant, with the same messages, describes a part of what was planned."""
        ranges = self._plan.ranges
        for range_ in [each for each in ranges if each[0] <= start and end <= each[1]]:
            del ranges[range_]

    def _plan_range(self, start: int, end: int, now_ms: int, *, at_once: bool = False) -> None:
        plan = self._plan
        if len(plan.ranges) < MAX_RANGES:
            plan.ranges[start, end] = None
        due_ms = now_ms if at_once else now_ms + self._draw_ms()
        plan.due_ms = due_ms if plan.due_ms is None else min(plan.due_ms, due_ms)

    def _describe(self, now_ms: int) -> Iterator[Reconciling]:
        plan = self._plan
        if not plan.ranges:
            plan.due_ms = None
            return
        if not self._descriptions.take(now_ms):
            plan.due_ms = now_ms + max(1, self._descriptions.wait_ms(now_ms))
            return
        ranges, self._plan = plan.ranges, _Plan()
        roots, lists = list[LogRoot](), list[ListedIds]()
        for start, end in ranges:
            count = self._log.sums.root(start, end).count
            parts = self._log.sums.split(start, end, PARTS) if count > LEAF else []
            if len(parts) > 1:
                roots += [self._log.sums.root(*part) for part in parts]
            elif count <= MAX_LISTED:
                keys = self._keys(start, end)
                hashes = b"".join(key_hash(key)[:SHORT_BYTES] for key in keys)
                lists.append(ListedIds(start, end, hashes))
        for first in range(0, max(len(roots), len(lists)), MAX_RANGES):
            part = slice(first, first + MAX_RANGES)
            yield Reconciling(tuple(roots[part]), tuple(lists[part]))

    def _send_bundle(self, now_ms: int) -> Iterator[Reconciling]:
        self._bundle_ms = None
        bundle, size_bytes = list[bytes](), 0
        while self._lacking:
            key = next(iter(self._lacking))
            data = self._held(key[1], self._sent_last)
            if data is not None and bundle and size_bytes + len(data) > self._limit_bytes:
                break
            del self._lacking[key]
            if data is not None:
                self._sent_last = key[1]
                bundle.append(data)
                size_bytes += len(data)
        if not bundle:
            return
        self._answers = True
        self._limit_bytes = min(4 * self._limit_bytes, BUNDLE_BYTES)
        if self._bundles.take(now_ms):
            yield Reconciling(bundle=tuple(bundle))
        else:
            self._lacking.clear()  # whoever lacks them will ask again
        if self._lacking:
            pause_ms = max(self._scale_ms, self._bundles.wait_ms(now_ms))
            self._bundle_ms = now_ms + pause_ms

    def _is_equal(self, root: LogRoot) -> bool:
        return self._log.sums.root(root.start, root.end) == root

    def _keys(self, start: int, end: int) -> Iterable[LogKey]:
        return self._log.keys_between(start * SECOND_MS, end * SECOND_MS)

    def _draw_ms(self) -> int:
        measured = self._observations.measured()
        return 1 if measured.others == 1 else 1 + feedback_ms(measured, self._random())

    @property
    def _scale_ms(self) -> int:
        return round(self._observations.delays.scale_ms)


def _is_due(due_ms: int | None, now_ms: int) -> bool:
    return due_ms is not None and due_ms <= now_ms
