"""Buffers of SDS-R for repair requests and answers (seed guide and LIP 109, SDS Repair).

Hashes of ids spread requests over the time from `t_min` to `t_max`, and answers over `t_max`. For
each missing message, usually one participant asks and one participant answers. The original sender
of the message answers at once.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256
from typing import Final, NamedTuple

from ..agenda import Agenda, OwnedTimetable, Slot, Timetable
from ..changes import NO_RECORDER, Recorder, Row, typed_table
from ..message import HistoryEntry
from ..options import RepairOptions
from ..references.incoming import reference_row
from ..shares import in_turn
from .budget import RepairBudget


class _RepairRequestRow(NamedTuple):
    message_id: str
    sender_id: str | None
    retrieval_hint: bytes | None
    since_ms: int
    attempts: int
    t_req_ms: int | None
    resting_since_ms: int | None
    referrer_id: str


class _RepairResponseRow(NamedTuple):
    message_id: str
    t_resp_ms: int


REPAIR_REQUESTS: Final = typed_table("repair_requests", _RepairRequestRow)
REPAIR_RESPONSES: Final = typed_table("repair_responses", _RepairResponseRow)
MAX_REST: Final = 10
"""Longest pause before an unanswered request starts over, in units of t_max (20 minutes by
default)."""


def repair_hash(text: str) -> int:
    """Return the first 8 bytes of the sha256 of a text, as a big-endian number. js-waku uses
    sha256, because the specification names no hash."""
    return int.from_bytes(sha256(text.encode()).digest()[:8])


def t_req(participant_id: str, message_id: str, now_ms: int, options: RepairOptions) -> int:
    """Return the time at which `participant_id` asks for a missing message (guide §1, the corrected
    formula).

    DIVERGES: js-waku divides by zero if `t_min` equals `t_max`, but this function returns `now +
    t_min`.
    """
    span = options.t_max_ms - options.t_min_ms
    return (
        now_ms + options.t_min_ms + (repair_hash(participant_id + message_id) % span if span else 0)
    )


def t_resp(
    participant_id: str, sender_id: str, message_id: str, now_ms: int, options: RepairOptions
) -> int:
    """Return the time at which `participant_id` answers a request for a message of `sender_id`
    (guide §2)."""
    distance = repair_hash(participant_id) ^ repair_hash(sender_id)
    return now_ms + distance * repair_hash(message_id) % options.t_max_ms


def in_response_group(participant_id: str, sender_id: str, message_id: str, groups: int) -> bool:
    """Return True if `participant_id` may answer a request for a message of `sender_id` (guide §3).
    If no sender is given, no participant may answer."""
    if not sender_id:
        return False
    if groups <= 1:
        return True
    return (
        repair_hash(participant_id + message_id) % groups
        == repair_hash(sender_id + message_id) % groups
    )


def no_later(attempts: int) -> int:
    """Return the extra delay (ms) of a repeated request, which is 0 as for the first request."""
    return 0


@dataclass(frozen=True, slots=True)
class RepairTimers:
    """Formulas of a peer family for the times of repair requests and answers."""

    t_req: Callable[[str, str, int, RepairOptions], int]
    t_resp: Callable[[str, str, str, int, RepairOptions], int]
    in_response_group: Callable[[str, str, str, int], bool]
    again_ms: Callable[[int], int] = no_later
    """Function that returns the extra delay of a repeated request after T_req (ms)."""


SPEC_TIMERS: Final = RepairTimers(t_req, t_resp, in_response_group)


def response_groups(num_participants: int) -> int:
    """Return the number of response groups by LIP 109 (`num_participants / 128`, at least 1)."""
    return max(1, num_participants // 128)


@dataclass(slots=True)
class _Wanted:
    """A missing message, when it was first wanted, and how often it was asked for since it last
    rested."""

    entry: HistoryEntry
    since_ms: int
    referrer_id: str
    """The participant that referred to it; of several, the one with the fewest entries."""
    attempts: int = 0
    heard: set[str] = field(default_factory=set)
    """The participants that asked for it since we did; no more than there are attempts."""


class OutgoingRepairBuffer:
    """Planned repair requests for missing messages, each with its T_req."""

    def __init__(
        self,
        participant_id: str,
        options: RepairOptions,
        timers: RepairTimers = SPEC_TIMERS,
        recorder: Recorder = NO_RECORDER,
        agenda: Agenda | None = None,
    ) -> None:
        self.agenda = agenda or Agenda()
        """Where `Slot.REPAIR_REQUEST` is planned."""
        self._pauses_until_ms = 0
        self._recorder = recorder
        self._participant_id = participant_id
        self._options = options
        self._timers = timers
        self._wanted: dict[str, _Wanted] = {}
        self._timetable = OwnedTimetable(self._plan_request)
        self._resting: OrderedDict[str, int] = OrderedDict()
        """Since when an entry has no attempts left, the longest rested first."""

    def __len__(self) -> int:
        return len(self._wanted)

    def want(self, entry: HistoryEntry, now_ms: int, referrer_id: str = "") -> None:
        """Plan a request for a missing message, unless a request for it is planned.

        An entry without attempts left rests as long as it has been missing, at most `MAX_REST`
        times t_max. After the rest, the entry starts over, because participants may be reachable
        again. Recovery from an outage thus takes about as long as the outage, and a permanently
        lost message costs little. An entry without a sender is not requested, because no
        participant may answer (guide, edge case 4).

        A full buffer evicts the entry that has rested longest. If no entry rests, the buffer evicts
        the last due entry of the referrers with the most entries. The evicted entry may be the new
        entry. If each new entry evicted a waiting entry, no entry would ever be due. DIVERGES:
        js-waku evicts the entry that is due last, of all referrers.
        """
        message_id = entry.message_id
        if not entry.sender_id or self._rests(message_id, now_ms):
            return
        if message_id in self._timetable:
            if self._timetable.claim(message_id, referrer_id):
                self._wanted[message_id].referrer_id = referrer_id
            return
        before = self._wanted.get(message_id)
        self.remove(message_id)
        is_full = len(self._wanted) >= self._options.buffer_size
        due_ms = self._t_req(message_id, now_ms)
        if is_full and not self._resting and self._timetable.has_no_place(due_ms, referrer_id):
            return
        since_ms = min(before.since_ms, now_ms) if before else now_ms
        self._wanted[message_id] = _Wanted(entry, since_ms, referrer_id)
        self._plan(message_id, due_ms)
        if len(self._wanted) > self._options.buffer_size:
            resting = next(iter(self._resting), None)
            self.remove(resting or self._timetable.first_to_evict())

    def remove(self, message_id: str) -> None:
        """Remove the entry of a message that was received."""
        if self._wanted.pop(message_id, None) is not None:
            self._timetable.remove(message_id)
            self._resting.pop(message_id, None)
            self._recorder.delete(REPAIR_REQUESTS, message_id)

    def due(self, now_ms: int) -> list[HistoryEntry]:
        """Return the entries to request in the next message, lowest T_req first.

        If too many entries are due, their referrers take turns. In this way, false references with
        ids that are due early cannot delay all other entries.
        """
        if not self._wanted:
            return []
        due = self._timetable.until(now_ms, len(self._timetable))
        most = self._options.max_requests_per_message
        if len(due) > most:
            due = in_turn(due, self._timetable.owner_of)[:most]
        return [self._wanted[message_id].entry for message_id in due]

    def is_due(self, now_ms: int) -> bool:
        """Return True if a repair request is due."""
        due_ms = self._timetable.first_ms()
        return due_ms is not None and due_ms <= now_ms

    def asked(self, message_ids: Iterable[str], now_ms: int) -> None:
        """Note that requests for the given messages are sent. Plan each request again, because a
        sent request may be lost."""
        for message_id in message_ids:
            self._wanted[message_id].heard.clear()
            self._count_attempt(message_id, now_ms)

    def requested_by_other(self, message_id: str, now_ms: int, requester_id: str = "") -> None:
        """Note the request of another participant, which counts as an own request (guide, Receiving
        §3a).

        DIVERGES: The request of another participant counts once, until this participant asks. A
        participant that asks without end can thus not keep all others from asking.
        """
        if message_id not in self._timetable:
            return
        heard = self._wanted[message_id].heard
        if requester_id not in heard:
            heard.add(requester_id)
            self._count_attempt(message_id, now_ms)

    def pause(self, until_ms: int) -> None:
        """Send no sync message with requests before the given time."""
        self._pauses_until_ms = until_ms
        self._plan_request(self._timetable.first_ms())

    def drop_expired(self, now_ms: int) -> None:
        """Plan requests later than `now + t_max` again (guide, edge case 2), because the clock was
        set back."""
        while (last := self._timetable.last()) and last[0] > now_ms + self._options.t_max_ms:
            self._timetable.remove(last[1])
            self._plan(last[1], self._t_req(last[1], now_ms, self._wanted[last[1]].attempts))

    def planned(self) -> dict[str, int]:
        """Return the T_req of each planned request, by message id."""
        return dict(self._timetable.due_ms)

    def _count_attempt(self, message_id: str, now_ms: int) -> None:
        self._timetable.remove(message_id)
        wanted = self._wanted[message_id]
        wanted.attempts += 1
        if wanted.attempts < self._options.max_request_attempts:
            self._plan(message_id, self._t_req(message_id, now_ms, wanted.attempts))
        else:
            self._resting[message_id] = now_ms
            self._record(message_id)

    def _rests(self, message_id: str, now_ms: int) -> bool:
        spent_ms = self._resting.get(message_id)
        if spent_ms is None:
            return False
        wanted_ms = spent_ms - self._wanted[message_id].since_ms
        return 0 <= now_ms - spent_ms < min(wanted_ms, MAX_REST * self._options.t_max_ms)

    def _t_req(self, message_id: str, now_ms: int, attempts: int = 0) -> int:
        options = self._options
        due_ms = self._timers.t_req(self._participant_id, message_id, now_ms, options)
        if attempts:
            due_ms += self._timers.again_ms(attempts)
        # Never beyond what `drop_expired` takes for a clock set back: it would plan without end.
        return min(due_ms, now_ms + options.t_max_ms)

    def _plan_request(self, first_ms: int | None) -> None:
        at_ms = None if first_ms is None else max(first_ms, self._pauses_until_ms)
        self.agenda.plan(Slot.REPAIR_REQUEST, at_ms)

    def _plan(self, message_id: str, due_ms: int) -> None:
        self._timetable.add(message_id, due_ms, self._wanted[message_id].referrer_id)
        self._record(message_id)

    def restore(self, rows: Iterable[Row]) -> None:
        """Restore the requests that were saved before a restart."""
        for row in REPAIR_REQUESTS.read(rows):
            entry = HistoryEntry(row.message_id, row.retrieval_hint, row.sender_id)
            wanted = _Wanted(entry, row.since_ms, row.referrer_id, row.attempts)
            self._wanted[row.message_id] = wanted
            if row.t_req_ms is not None:
                self._timetable.add(row.message_id, row.t_req_ms, row.referrer_id)
            elif row.resting_since_ms is not None:
                self._resting[row.message_id] = row.resting_since_ms

    def _record(self, message_id: str) -> None:
        wanted = self._wanted[message_id]
        self._recorder.put(
            REPAIR_REQUESTS,
            *reference_row(wanted.entry),
            wanted.since_ms,
            wanted.attempts,
            self._timetable.due_ms.get(message_id),
            self._resting.get(message_id),
            wanted.referrer_id,
        )


class IncomingRepairBuffer:
    """Planned answers to repair requests, each with its T_resp."""

    def __init__(
        self,
        participant_id: str,
        options: RepairOptions,
        timers: RepairTimers = SPEC_TIMERS,
        recorder: Recorder = NO_RECORDER,
        agenda: Agenda | None = None,
    ) -> None:
        self.agenda = agenda or Agenda()
        """Where `Slot.REPAIR_ANSWER` is planned."""
        self._recorder = recorder
        self._participant_id = participant_id
        self._options = options
        self._timers = timers
        self._timetable = Timetable(partial(self.agenda.plan, Slot.REPAIR_ANSWER))
        self._paid: dict[str, tuple[str, int]] = {}
        """The requester, and how many bytes, by message id."""
        self.budget = RepairBudget(options)

    def __len__(self) -> int:
        return len(self._timetable)

    def request(
        self, entry: HistoryEntry, now_ms: int, requester_id: str = "", size_bytes: int = 0
    ) -> bool:
        """Plan an answer to a request for a held message of `size_bytes`. Return True if an answer
        is planned.

        A message of another response group, a second answer, or one over the budget gets no plan. A
        full buffer evicts the answer that is due last, perhaps the new answer.
        """
        message_id, sender_id = entry.message_id, entry.sender_id or ""
        groups = self._options.num_response_groups
        if message_id in self._timetable or not self._timers.in_response_group(
            self._participant_id, sender_id, message_id, groups
        ):
            return False
        if not self.budget.spend(requester_id, message_id, size_bytes, now_ms):
            return False
        self._paid[message_id] = requester_id, size_bytes
        due_ms = self._timers.t_resp(
            self._participant_id, sender_id, message_id, now_ms, self._options
        )
        self._timetable.add(message_id, due_ms)
        self._recorder.put(REPAIR_RESPONSES, message_id, due_ms)
        if len(self._timetable) > self._options.buffer_size and (last := self._timetable.last()):
            self.remove(last[1])
        return message_id in self._timetable

    def remove(self, message_id: str) -> None:
        """Remove a request that another participant answered, and give its cost back to the
        requester."""
        self._forget(message_id)
        if paid := self._paid.pop(message_id, None):
            self.budget.give_back(*paid)

    def _forget(self, message_id: str) -> None:
        if message_id in self._timetable:
            self._timetable.remove(message_id)
            self._recorder.delete(REPAIR_RESPONSES, message_id)

    def take_due(self, now_ms: int) -> list[str]:
        """Remove and return the message ids whose answer is due."""
        due = self._timetable.until(now_ms, len(self._timetable))
        for message_id in due:
            self._forget(message_id)
            self._paid.pop(message_id, None)
        return due

    def restore(self, rows: Iterable[Row]) -> None:
        """Restore the planned answers that were saved before a restart."""
        for message_id, t_resp_ms in REPAIR_RESPONSES.read(rows):
            self._timetable.add(message_id, t_resp_ms)

    def planned(self) -> dict[str, int]:
        """Return the T_resp of each planned answer, by message id."""
        return dict(self._timetable.due_ms)
