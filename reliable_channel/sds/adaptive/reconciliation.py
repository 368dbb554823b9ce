"""Range-based reconciliation, by which participants find and repair the differences between two
logs.

References of messages reach back only to the newest messages. If the root of another log
(`comparison.py`) differs, a participant describes the range in question. The description has the
roots of 16 parts, or, for few messages, short hashes of their ids. All participants hear the
description. A participant with a different log describes the differing parts further. A participant
broadcasts its messages that are missing in a list of hashes, several messages at once. A few
exchanges thus find a difference in a log of any length. The broadcasts repair the difference for
all participants that share it.

The method is described in Meyer, Range-Based Set Reconciliation (SRDS 2023). negentropy v1 uses the
same leaf size and branching. Budgets limit the data sent for others, and limits bound the data read
from others.
"""

from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import islice
from typing import Final

from ..agenda import Agenda, Slot
from ..changes import LogKey
from ..log.log import MessageLog
from ..log.root import SECOND_MS, key_hash
from ..message import SHORT_BYTES, ListedIds, LogRoot, Reconciling
from ..pacing import Bucket
from ..sync import Random
from .bundles import Bundles, readable
from .estimates import Observations
from .inbox import Inbox

PARTS: Final = 16
LEAF: Final = 64
"""Maximum number of messages in a range for which a participant lists hashes, not the roots of
parts."""
MAX_RANGES: Final = 64
"""Maximum number of ranges of one message that a participant examines."""
MAX_LISTED: Final = 4_096
"""Maximum number of messages that are listed for one range."""
DESCRIPTIONS: Final = 20
DESCRIPTIONS_EVERY_MS: Final = 1_000
HEARINGS: Final = 60
HEARINGS_EVERY_MS: Final = 200
"""Interval (ms) in which one more description or bundle is read, for all senders together."""
COMPARED: Final = 100_000
COMPARED_EVERY_MS: Final = 0.1
"""Time (ms) for one more message to be hashed, so that hashing uses about 1 % of a core."""
MANY: Final = 16
"""Number of differing messages from which a participant asks at once."""
AGAIN_SCALES: Final = 6
"""Time from a question to the next question about the same range, in units of D."""
AGAIN_MAX_MS: Final = 30_000
NEXT_SCALES: Final = 2
"""Time from a useful bundle to the next question, in units of D, so that the next bundle can
arrive."""
AGREES_MS: Final = 3_000
"""Time (ms) without a differing root after which an equal root ends a question. In a split group, a
participant hears equal and differing roots."""
SAID_SCALES: Final = 2
"""Time in which a range that was described is not described again, in units of D. The limit also
covers descriptions by participants with the same messages."""
MAX_SAID: Final = 256
PRECISE: Final = 2
"""Number of unanswered questions about known gaps, after which a question covers the whole log."""
MAX_BROUGHT: Final = 50_000
ATTEMPTS: Final = 12
REST_MS: Final = 600_000
"""Pause (ms) after `ATTEMPTS` questions without an answer. The pause doubles each time."""
MAX_REST_MS: Final = 3 * REST_MS
"""Longest pause (ms) between questions. A longer pause would leave logs different for hours after
the network recovered."""


Range = tuple[int, int]
"""First second of a range, and the second after the range."""
Parked = Sequence[tuple[LogKey, bool]]
"""Waiting messages in log order, each with True if it waits for a lost message."""


@dataclass(slots=True)
class _Question:
    """A root that differed from the own log, until it does not."""

    root: LogRoot
    heard_ms: int
    """When a root differed last."""
    stays: bool = False
    """True if more than one root differed."""
    attempts: int = 0
    brought: list[LogKey] = field(default_factory=list)
    """Messages that bundles brought."""
    due_ms: int | None = None


@dataclass(frozen=True, slots=True)
class _Failed:
    """A difference that no participant could repair."""

    difference: int
    """By how many messages the logs differed in number."""
    rest_ms: int
    until_ms: int

    def rests(self, difference: int, now_ms: int) -> bool:
        """Return True if it is not asked about; a difference that grew much is another one."""
        return now_ms < self.until_ms and difference < self.difference + MANY


@dataclass(slots=True)
class _Plan:
    """What is to be broadcast, and when."""

    due_ms: int | None = None
    ranges: OrderedDict[Range, bool] = field(default_factory=OrderedDict)
    """And whether to list them even where they are large."""


class Reconciliation:
    """Exchanges by which one participant repairs differences between logs."""

    def __init__(
        self,
        own_id: str,
        log: MessageLog,
        observations: Observations,
        random: Random,
        held: Callable[[str, str | None], bytes | None],
        parked: Callable[[], Parked],
        agenda: Agenda | None = None,
    ) -> None:
        self.agenda = agenda or Agenda()
        """Where `Slot.RECONCILIATION` is planned."""
        self._log = log
        self._observations = observations
        self._random = random
        self._parked = parked
        self._question: _Question | None = None
        self._failed: _Failed | None = None
        self._plan = _Plan()
        self._said: OrderedDict[tuple[Range, bool], tuple[bytes, int]] = OrderedDict()
        """What was described last, as a list or not: its fingerprint, and when."""
        self._open: OrderedDict[Range, set[bytes]] = OrderedDict()
        """What others listed, for ranges in which that was more than there is here."""
        self._bundles = Bundles(own_id, observations, random, held, log.__len__)
        self.inbox = Inbox()
        """The owner takes each message in a separate step, since an archive knows only what earlier
        steps changed."""
        self._descriptions = Bucket(DESCRIPTIONS, DESCRIPTIONS_EVERY_MS)
        self._hearings = Bucket(HEARINGS, HEARINGS_EVERY_MS)
        self._compared = Bucket(COMPARED, COMPARED_EVERY_MS)

    # -- inputs ------------------------------------------------------------------------------------

    def differs(self, root: LogRoot, here: LogRoot, now_ms: int, alike: int = 1) -> None:
        """Note that the root of another participant differs from the own root. Ask at once if many
        messages differ, otherwise only if the difference stays. `alike` is the number of
        participants with that root."""
        self._bundles.lacked_by(alike)
        question, difference = self._question, abs(root.count - here.count)
        if self._failed is not None and self._failed.rests(difference, now_ms):
            return
        if question is None:
            question = self._question = _Question(root, now_ms)
        else:
            question.stays = True
            question.heard_ms = now_ms
            if root.count != question.root.count or root.end > question.root.end:
                question.root = root
        is_plain = difference >= MANY
        if question.due_ms is None and (is_plain or question.stays):
            question.due_ms = now_ms + self._draw_ms()
            self._plan_next()

    def agrees(self, now_ms: int, *, all_agree: bool) -> None:
        """Note that the root of another participant equals the own root. `all_agree` is True if the
        roots of all heard participants equal the own root."""
        question = self._question
        if all_agree:
            self._failed = None
        if all_agree or (question and now_ms - question.heard_ms >= AGREES_MS):
            self._end_question()
            self._plan_next()

    @property
    def has_failed(self) -> bool:
        """True if no participant has answered so far, and the next question is not soon."""
        return self._failed is not None

    def hear(self, said: Reconciling, sender_id: str, start: int, now_ms: int) -> dict[str, bool]:
        """Receive a description of another participant's log, or the messages that it broadcast.
        Ranges before second `start` are ignored. Return the participants whose messages are partly
        dropped, and True if a shared limit is the reason."""
        if not self._hearings.take(now_ms):
            return {}
        for root in said.roots[:MAX_RANGES]:
            self._hear_root(root, start, now_ms)
        parked = self._parked() if said.lists else []
        dropped = dict[str, bool]()
        for listed in said.lists[:MAX_RANGES]:
            if start <= listed.start < listed.end:
                if not self._hear_list(listed, parked, now_ms):
                    dropped[sender_id] = True
        bundle, has_more = readable(said, sender_id)
        if has_more:
            dropped.setdefault(sender_id, False)
        dropped |= dict.fromkeys(self.inbox.put(bundle, now_ms), True)
        self._plan_next()
        return dropped

    def came(self, key: LogKey, sender_id: str, now_ms: int) -> None:
        """Note that another participant broadcast a message of the own log, and do not broadcast it
        again."""
        self._bundles.came(key, sender_id, now_ms)
        self._plan_next()

    def answered(self, key: LogKey, now_ms: int) -> None:
        """Note that this participant answers a repair request for a message of its log."""
        self._bundles.answered(key, now_ms)
        self._plan_next()

    def brought(self, key: LogKey, now_ms: int) -> None:
        """Note that a bundle contained a missing message. More bundles may follow, so this
        participant asks no question for a while."""
        if (question := self._question) is not None and question.due_ms is not None:
            question.attempts = 0
            if len(question.brought) < MAX_BROUGHT:
                question.brought.append(key)
            self._ask_later(question, now_ms)
            self._plan_next()

    # -- time --------------------------------------------------------------------------------------

    def take(self, now_ms: int) -> list[Reconciling]:
        """Return the messages to broadcast now, after the inbox was processed."""
        said = list(self._due(now_ms))
        self._plan_next()
        return said

    # -- inside ------------------------------------------------------------------------------------

    def _plan_next(self) -> None:
        question = self._question
        dues = (
            self.inbox.due_ms,
            self._plan.due_ms,
            self._bundles.due_ms,
            question.due_ms if question else None,
        )
        first_ms = min((due_ms for due_ms in dues if due_ms is not None), default=None)
        self.agenda.plan(Slot.RECONCILIATION, first_ms)

    def _due(self, now_ms: int) -> Iterator[Reconciling]:
        if (question := self._question) and _is_due(question.due_ms, now_ms):
            self._ask(question, now_ms)
        if _is_due(self._plan.due_ms, now_ms):
            yield from self._describe(now_ms)
        if bundle := self._bundles.take(now_ms):
            yield Reconciling(packed=bundle)

    def _ask(self, question: _Question, now_ms: int) -> None:
        root = question.root
        if self._is_equal(root) or question.attempts >= ATTEMPTS:
            self._end_question()
            if not self._is_equal(root):
                self._give_up(root, now_ms)
            return
        known = self._known_gaps(question) if question.attempts < PRECISE else []
        for range_ in known or [(root.start, root.end)]:
            self._plan_range(range_, now_ms, at_once=True, as_list=bool(known))
        question.attempts += 1
        again_ms = min(AGAIN_SCALES * self._scale_ms * question.attempts, AGAIN_MAX_MS)
        question.due_ms = now_ms + again_ms + self._draw_ms()

    def _end_question(self) -> None:
        self._question = None
        self._open.clear()

    def _give_up(self, root: LogRoot, now_ms: int) -> None:
        """Rest, since no participant that hears this one has what is missing any more."""
        here = self._log.sums.root(root.start, root.end)
        rest_ms = REST_MS if self._failed is None else min(2 * self._failed.rest_ms, MAX_REST_MS)
        self._failed = _Failed(abs(root.count - here.count), rest_ms, now_ms + rest_ms)

    def _ask_later(self, question: _Question, now_ms: int) -> None:
        question.due_ms = now_ms + NEXT_SCALES * self._scale_ms + self._draw_ms()

    def _known_gaps(self, question: _Question) -> list[Range]:
        """Where messages are known to be missing: in what others listed, or, where bundles brought
        messages that wait for one that did not come, between these."""
        parked = self._parked()
        for range_, theirs in list(self._open.items()):
            if theirs <= self._hashes(range_, parked).keys():
                del self._open[range_]
        if self._open or not question.brought:
            return list(self._open)
        gaps = list[Range]()
        brought = sorted(question.brought)
        for key in (key for key, waits in parked if waits):
            place = bisect_left(brought, key)
            start = brought[place - 1][0] // SECOND_MS if place else question.root.start
            if gaps and start < gaps[-1][1]:
                start = gaps.pop()[0]
            gaps.append((start, key[0] // SECOND_MS + 1))
        return gaps[:MAX_RANGES]

    def _hear_root(self, root: LogRoot, start: int, now_ms: int) -> None:
        if start <= root.start < root.end:
            if self._is_equal(root):
                range_ = root.start, root.end
                self._is_described(range_, root.fingerprint, now_ms, as_list=False)
            else:
                self._plan_range((root.start, root.end), now_ms)

    def _hear_list(self, listed: ListedIds, parked: Parked, now_ms: int) -> bool:
        """Return False if messages that are not in the list are not broadcast."""
        theirs, range_ = listed.split(), (listed.start, listed.end)
        count = self._log.sums.root(*range_).count
        if not self._compared.take(now_ms, count + len(theirs)):
            return True
        mine = self._hashes(range_, parked)
        lacked = (key for short, key in mine.items() if key is not None and short not in theirs)
        has_left = self._bundles.lacks(lacked, now_ms)
        if theirs <= mine.keys():
            self._is_asked_for(range_, now_ms)
            if len(theirs) == len(mine):
                self._is_described(range_, _fingerprint(mine), now_ms, as_list=True)
        else:
            self._plan_range(range_, now_ms)
            known = self._open.setdefault(range_, set())
            known.update(islice(theirs, max(0, MAX_LISTED - len(known))))
            if len(self._open) > MAX_RANGES:
                self._open.popitem(last=False)
        return has_left

    def _is_asked_for(self, range_: Range, now_ms: int) -> None:
        """Another participant lacks all that is missing here, and said so."""
        if range_ in self._open:
            self._plan.ranges.pop(range_, None)
            if (question := self._question) is not None and question.due_ms is not None:
                self._ask_later(question, now_ms)

    def _is_described(
        self, range_: Range, fingerprint: bytes, now_ms: int, *, as_list: bool
    ) -> None:
        """Another participant, with the same messages, describes a part of what was planned."""
        self._note_said(range_, fingerprint, now_ms, as_list=as_list)
        ranges = self._plan.ranges
        for each in [each for each in ranges if each[0] <= range_[0] and range_[1] <= each[1]]:
            del ranges[each]

    def _note_said(self, range_: Range, fingerprint: bytes, now_ms: int, *, as_list: bool) -> None:
        place = range_, as_list
        self._said[place] = fingerprint, now_ms
        self._said.move_to_end(place)
        if len(self._said) > MAX_SAID:
            self._said.popitem(last=False)

    def _was_said(self, range_: Range, fingerprint: bytes, now_ms: int, *, as_list: bool) -> bool:
        if (said := self._said.get((range_, as_list))) is None:
            return False
        described, at_ms = said
        return described == fingerprint and now_ms - at_ms <= SAID_SCALES * self._scale_ms

    def _plan_range(
        self, range_: Range, now_ms: int, *, at_once: bool = False, as_list: bool = False
    ) -> None:
        plan = self._plan
        if len(plan.ranges) < MAX_RANGES:
            plan.ranges[range_] = as_list
        if at_once:
            plan.due_ms = now_ms
        elif plan.due_ms is None:  # one draw for all, as each more would be an earlier one
            plan.due_ms = now_ms + self._draw_ms()

    def _describe(self, now_ms: int) -> Iterator[Reconciling]:
        plan = self._plan
        if not plan.ranges:
            plan.due_ms = None
            return
        if not self._descriptions.take(now_ms):
            plan.due_ms = now_ms + self._descriptions.wait_ms(now_ms)
            return
        ranges, self._plan = plan.ranges, _Plan()
        roots, lists = list[LogRoot](), list[ListedIds]()
        parked = self._parked()
        for range_, as_list in ranges.items():
            count = self._log.sums.root(*range_).count
            if count <= (MAX_LISTED if as_list else LEAF):
                lists += self._list(range_, parked, now_ms)
            elif len(parts := self._log.sums.split(*range_, PARTS)) > 1:
                roots += self._roots(parts, now_ms)
            elif count <= MAX_LISTED:
                lists += self._list(range_, parked, now_ms)
        for first in range(0, max(len(roots), len(lists)), MAX_RANGES):
            part = slice(first, first + MAX_RANGES)
            yield Reconciling(tuple(roots[part]), tuple(lists[part]))

    def _roots(self, parts: Sequence[Range], now_ms: int) -> list[LogRoot]:
        roots = [self._log.sums.root(*part) for part in parts]
        said = [(part, root.fingerprint) for part, root in zip(parts, roots, strict=True)]
        if all(self._was_said(*each, now_ms, as_list=False) for each in said):
            return []
        for each in said:
            self._note_said(*each, now_ms, as_list=False)
        return roots

    def _list(self, range_: Range, parked: Parked, now_ms: int) -> list[ListedIds]:
        mine = self._hashes(range_, parked)
        said = range_, _fingerprint(mine)
        if self._was_said(*said, now_ms, as_list=True):
            return []
        self._note_said(*said, now_ms, as_list=True)
        return [ListedIds(*range_, b"".join(mine))]

    def _is_equal(self, root: LogRoot) -> bool:
        return self._log.sums.root(root.start, root.end) == root

    def _hashes(self, range_: Range, parked: Parked) -> dict[bytes, LogKey | None]:
        """The messages of the log by their short hashes, and those that wait, without a key."""
        start, end = range_[0] * SECOND_MS, range_[1] * SECOND_MS
        first, last = (bisect_left(parked, ((at, ""),)) for at in (start, end))
        waiting = {key_hash(key)[:SHORT_BYTES]: None for key, _ in parked[first:last]}
        logged = self._log.keys_between(start, end)
        return waiting | {key_hash(key)[:SHORT_BYTES]: key for key in logged}

    def _draw_ms(self) -> int:
        return self._observations.draw_ms(self._random())

    @property
    def _scale_ms(self) -> int:
        return round(self._observations.delays.scale_ms)


def _fingerprint(hashes: Iterable[bytes]) -> bytes:
    return sha256(b"".join(sorted(hashes))).digest()


def _is_due(due_ms: int | None, now_ms: int) -> bool:
    return due_ms is not None and due_ms <= now_ms
