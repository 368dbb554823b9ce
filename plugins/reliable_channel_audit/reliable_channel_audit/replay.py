"""Reading of one participant's journal, line by line, with everything that it proves.

A receiver's journal has the causal history of each message, so causality needs no other journal.
Each journal can therefore be judged separately, and a million journals in parallel.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, Final, NamedTuple

from reliable_channel.spi import JOINING_MS, MAX_REST, WITHOUT_STORE, Message

from .findings import ALWAYS_MS, SETTLE_MS, Audit, Coverage, Finding, Gap, HeardSender, Orphan
from .journals import DEFAULTS, Noted, settings
from .lines import CONTINUED, LOGGED, OPENED, SET_ASIDE, WIRE, Line, time_unit
from .log_order import Landed, LogOrder
from .misbehaviour import MAX_SENDERS, Misbehaviour
from .reception import LINES_MISSING, TAKEN, Reception

BACK_MS: Final = 1_000
"""Maximum backward step of a clock that is tolerated, as in the channel itself (ms)."""
SPECIFIED: Final = ("both", "sds-r-only")
"""Retrieval strategies of a channel that use SDS-R."""
ACKNOWLEDGED_FIRST: Final = "acknowledged before it was in the log"
HEARD: Final = TAKEN | {"sync"}
"""Outcomes of messages that show what their sender has."""


class Life(NamedTuple):
    """Participant with one log, from the log's beginning to its end."""

    channel_id: str
    participant_id: str
    life: int
    path: str
    """Path of the journal file in which the log begins."""
    opened_ms: int
    until_ms: int
    """Time of the last line in the journal."""
    owed_from_ms: int
    """Time from which messages must be delivered to the participant."""
    settle_ms: int
    """Maximum time of a message to this participant, including a repair, from the options (ms)."""
    entries: int
    """Number of messages that entered the participant's log."""
    log_digest: str
    is_whole: bool
    """True if the final log has exactly the messages that entered it. Two whole logs with the same
    digest have the same deliveries."""
    last_lamport: int
    """Lamport timestamp of the participant's last own message."""
    is_in_order: bool
    """True if the log is ordered by Lamport timestamp and message id."""
    impostors: int
    """Number of entries under this participant's name that other participants sent."""
    time_unit: str
    """Reason why the times are not in milliseconds (empty if they are)."""


def case_counts(
    *, entries: int, arrivals: int, in_order: int, references: int, asked: int, heard: int
) -> dict[Audit, int]:
    """Return the number of cases for each audit of one log.

    A log has `entries`, of which `arrivals` are of others. `in_order` is the number of entries if
    the log is known from its beginning, otherwise 0. Entries have `references` to messages. The
    participant requested `asked` messages, and received `heard` accepted or sync messages.
    """
    return {
        Audit.DELIVERY: arrivals,
        Audit.ARRIVED: arrivals,
        Audit.RECEIVED: arrivals,
        Audit.EXACTLY_ONCE: entries,
        Audit.CAUSAL_ORDER: references,
        Audit.LOG_ORDER: in_order,
        Audit.EQUAL_LOGS: entries,
        Audit.IDS: entries,
        Audit.REFERENCES: references,
        Audit.ACKNOWLEDGEMENTS: max(entries - arrivals, 0),
        Audit.REPAIR: asked,
        Audit.CLOCK: heard,
        Audit.JOURNALS: 1,
    }


class Replay:
    """Reader of a participant's journal lines, in order, which finds broken promises."""

    def __init__(
        self, channel_id: str, participant_id: str, life: int, *, settle_ms: int | None = None
    ) -> None:
        """Let messages take as long as the options say, or `settle_ms`."""
        self._whose = channel_id, participant_id, life
        self._given_settle_ms = settle_ms
        self.settle_ms = SETTLE_MS if settle_ms is None else settle_ms
        """Maximum time that a message may be on its way to this participant (ms)."""
        self._time_unit = ""
        self._gaps: list[Gap] = []
        self._gap_why = ""
        """Why lines cannot be read, while they cannot."""
        self._impostors = self._last_lamport = 0
        self.has_begun = False
        self._path = ""
        self._opened_ms = self._owed_from_ms = self._presume_until_ms = 0
        self._last_ms = self._until_ms = 0
        self._options: dict[str, Any] = {}
        self.log = LogOrder()
        """Final log, without entries from before the beginning of the journal."""
        self._seen: dict[str, tuple[int, int]] = {}
        """Of what entered the log: its Lamport timestamp, and which one it was."""
        self._histories: dict[bytes, list[str]] = {}
        """Of messages that came and are not logged yet, by message hash."""
        self._early: defaultdict[str, list[tuple[str, int]]] = defaultdict(list)
        """By a message that is not here: those logged that refer to it, and when they were."""
        self._presumed: set[str] = set()
        self._lost: dict[str, tuple[str, int]] = {}
        """Messages that were declared lost, by which message that refers to them, and when."""
        self._requests: dict[str, list[str]] = {}
        """The messages of own requests without a result yet."""
        self._sending_ms: dict[str, int] = {}
        self._proven: dict[str, int | None] = {}
        """Own messages, and since when others were seen to have them."""
        self.asked: defaultdict[str, list[int]] = defaultdict(list)
        """Times of requests, by message."""
        self._references = self._messages_heard = 0
        self._unjudged: dict[Audit, str] = {}
        self._heard: dict[str, tuple[int, int, int]] = {}
        """By sender how many of its messages were heard, the last Lamport timestamp of those with
        content, and when it came."""
        self._hashes: dict[bytes, str] = {}
        """Message ids by the hashes that they went or came under."""
        self._hinted: set[str] = set()
        """Messages whose retrieval hints were looked at."""
        self._unproven_acks: list[tuple[str, int]] = []
        """Own messages that were acknowledged by a reference which did not arrive, and when."""
        self._unlogged_acks: dict[str, int] = {}
        """Messages that were acknowledged before they were in the log, and when."""
        self._doubtful: set[str] = set()
        """The same where lines of the journal are missing, which may be theirs."""
        self._is_whole = False
        """True if the log began with this journal."""
        self._foreign: set[str] = set()
        """Messages of others that are in the log."""
        self._acknowledged: set[str] = set()
        """Own messages whose acknowledgement was emitted in this session."""
        self._provers: dict[str, set[str]] = {}
        """By own message without an acknowledgement the senders of messages that refer to it."""
        self._before_restart: list[Landed] = []
        """The log of the session before, while that of this one is restored."""
        self._restored: set[str] = set()
        self._not_restored: dict[str, Finding] = {}
        """By message, unless a later line of the same session shows that it was restored."""
        self._reception = Reception(participant_id)
        self.misbehaviour = Misbehaviour(self._whose)
        self._found: list[Finding] = []

    def add(self, noted: Noted, message: Message | None) -> None:
        """Process the next line of the journal, with the message in the line."""
        line = noted.line
        self._reception.add(line, message)
        if line.event == SET_ASIDE or line.at_ms is None:
            self._gap_why = self._gap_why or line.record or LINES_MISSING
            self.log.lose()
            return
        if self._gap_why or (line.event in WIRE and line.payload is None):
            self._gap(line.at_ms, self._gap_why or LINES_MISSING)
        is_restored = line.event == LOGGED and line.outcome == "restored"
        if self._before_restart and not is_restored and line.event != CONTINUED:
            self._compare_restored(line.at_ms)
        if line.event == OPENED:
            self._opened(noted, line.at_ms)
        elif line.at_ms < self._last_ms - BACK_MS:
            back_ms = self._last_ms - line.at_ms
            self._find(Audit.CLOCK, "", line.at_ms, f"the clock went back by {back_ms} ms")
        self._last_ms = line.at_ms
        self._until_ms = max(self._until_ms, line.at_ms)
        self.misbehaviour.add(line, message, line.at_ms)
        message_id = line.message_id or ""
        match line.event:
            case "wire_in":
                self._came(line, message, line.at_ms)
            case "wire_out" if message is not None and line.message_hash is not None:
                self._hashes[line.message_hash] = message.message_id
                if line.source == "content":
                    self._went(message, line.at_ms)
            case "message_logged":
                self._logged(line, message_id, line.at_ms)
            case "message_forged":
                self._seen.pop(message_id, None)
                self.log.forget(message_id)
            case "sending_message":
                self._requests[message_id] = []
                self._sending_ms[message_id] = line.at_ms
            case "message_acknowledged":
                self._told(line, message_id, line.at_ms)
            case "delivery_failed" | "send_failed":
                self._requests.pop(message_id, None)
            case "repair_requested":
                for asked_id in line.message_ids or ():
                    self.asked[asked_id].append(line.at_ms)

    def life(self) -> Life:
        """Return the participant, with the end of its log."""
        return Life(
            *self._whose,
            self._path,
            self._opened_ms,
            self._until_ms,
            self._owed_from_ms,
            self.settle_ms,
            len(self._seen),
            self.log.digest(),
            self._seen.keys() == {entry.message_id for entry in self.log},
            self._last_lamport,
            self.log.disordered is None,
            self._impostors,
            self._time_unit,
        )

    def gaps(self) -> Iterator[Gap]:
        """Yield the time ranges whose lines are missing."""
        yield from self._gaps
        if self._gap_why:
            yield Gap(*self._whose, self._last_ms, self._until_ms, self._gap_why)
        if self._time_unit:
            yield Gap(*self._whose, *ALWAYS_MS, self._time_unit)

    def findings(self) -> list[Finding]:
        """Return the broken promises that this journal alone proves."""
        remarks = (self._finding(*remark) for remark in self._reception.remarks())
        alone = (*self._not_told(), *self._told_without_proof(), *self._without_end())
        found = (*self._found, *self._not_restored.values())
        return [*found, *remarks, *alone, *self._out_of_order()]

    def judged(self) -> Iterator[Coverage]:
        """Yield the number of cases for each audit, with reasons for unjudged cases."""
        cases = case_counts(
            entries=len(self._seen),
            arrivals=self._reception.arrivals,
            in_order=0 if self.log.is_partial else len(self.log),
            references=self._references,
            asked=len(self.asked),
            heard=self._messages_heard,
        )
        unjudged = dict(self._reception.unjudged()) | self._unjudged
        for audit in Audit:
            yield Coverage(*self._whose, audit.value, cases[audit], unjudged.get(audit))

    def heard(self) -> Iterator[HeardSender]:
        """Yield the senders from which the participant received messages."""
        for sender_id, values in self._heard.items():
            yield HeardSender(*self._whose, sender_id, *values)

    def orphans(self) -> Iterator[Orphan]:
        """Yield references to messages that are missing, unless a newcomer need not have them."""
        if self.log.is_partial:
            return  # the journal may lack the line of it
        for reference, early in self._early.items():
            message_id, at_ms = early[0]
            if reference not in self._presumed and at_ms + self.settle_ms <= self._until_ms:
                yield Orphan(*self._whose, reference, message_id, at_ms)
        for reference, (message_id, at_ms) in self._lost.items():
            if reference not in self._seen:
                yield Orphan(*self._whose, reference, message_id, at_ms)

    def _opened(self, noted: Noted, at_ms: int) -> None:
        values = settings(noted.line)
        options, wanted_ms = values.get("options"), values.get("wanted_from_ms")
        length = values.get("log_length")
        self._options = options if isinstance(options, dict) else {}
        self._time_unit = self._time_unit or time_unit(at_ms)
        self._acknowledged.clear()
        if "follows" in values:
            self._gap(at_ms, "an earlier part of its journal is missing")
        elif self.has_begun and not self.log.is_partial:
            self._before_restart = list(self.log)
        self._restored.clear()
        self._found += self._not_restored.values()
        self._not_restored.clear()
        if self._given_settle_ms is None:
            waits_ms = self.option("retry_interval_ms") + self.option("repair_t_max_ms")
            self.settle_ms = max(self.settle_ms, SETTLE_MS + waits_ms)
        self.log.go_on(length if isinstance(length, int) else 0)
        self._reception.is_plain = self._is_plain()
        self._reception.is_damaged |= self.log.is_partial
        if self.has_begun:
            return
        self.has_begun = True
        self._path = noted.path
        self._opened_ms = self._owed_from_ms = at_ms
        self._is_whole = isinstance(wanted_ms, int)
        asks = self.option("query_on_connect") and values.get("has_store") is not False
        if isinstance(wanted_ms, int) and asks:
            if self.option("retrieval_strategy") not in WITHOUT_STORE:
                self._owed_from_ms = min(wanted_ms, at_ms)  # it cannot want less than it is told
        if self.option("history") != "all":
            self._presume_until_ms = at_ms + JOINING_MS

    def _is_plain(self) -> bool:
        is_spec = self.option("wire_profile") == "spec"
        whole = self.option("segmentation") in (("none", "profile") if is_spec else ("none",))
        return whole and self.option("encryption_order") != "encrypt-then-sds"

    @property
    def oddity(self) -> str:
        """Reason why the session that was opened needs the row reader, or an empty text."""
        if self.log.is_partial:
            return "the journal begins with an existing log"
        if not self._reception.is_plain:
            return "contents in the journal are cut or encrypted"
        return self._time_unit

    def option(self, name: str) -> Any:
        """Return an option of the latest session, or the default if the value has another type."""
        default = DEFAULTS[name]
        value = self._options.get(name, default)
        return value if isinstance(default, type(value)) else default

    def _came(self, line: Line, message: Message | None, at_ms: int) -> None:
        if message is None or line.outcome == "own":
            return
        causal_ids = message.causal_ids
        for message_id in self._provers.keys() & causal_ids:
            self._provers[message_id].add(message.sender_id)
        if line.message_hash is not None:
            self._hashes[line.message_hash] = message.message_id
        if line.outcome not in HEARD:
            return
        if message.sender_id in self._heard or len(self._heard) < MAX_SENDERS:
            count, last, last_ms = self._heard.get(message.sender_id, (0, 0, 0))
            lamport = message.lamport_timestamp or 0
            if line.outcome in TAKEN and lamport > last:
                last, last_ms = lamport, at_ms
            self._heard[message.sender_id] = count + 1, last, last_ms
        self._messages_heard += 1
        self._hints(message, at_ms)
        if line.outcome in TAKEN and line.message_hash is not None:
            self._histories[line.message_hash] = list(causal_ids)
        for message_id in self._proven.keys() & causal_ids:
            if self._proven[message_id] is None:
                self._proven[message_id] = at_ms

    def _logged(self, line: Line, message_id: str, at_ms: int) -> None:
        lamport, sender_id = line.lamport_timestamp or 0, line.sender_id or ""
        entry = Landed(lamport, message_id, sender_id, line.content_sha256 or b"")
        is_own = sender_id == self._whose[1]
        if line.outcome == "restored":
            self._restored.add(message_id)
            was_missed = self._not_restored.pop(message_id, None) is not None
            if was_missed or message_id not in self._seen:
                self.log.restore(entry)
            self._last_lamport = max(self._last_lamport, lamport if is_own else 0)
            self._seen.setdefault(message_id, (lamport, len(self._seen)))
            return
        if message_id in self._seen:
            self._find(Audit.EXACTLY_ONCE, message_id, at_ms, "it was in the log already")
            return
        self.log.land(entry, line.position or 0, line.evicted or 0, at_ms)
        if not is_own:
            self._foreign.add(message_id)
        elif line.message_hash is not None:
            self._impostors += 1
        else:
            self._last_lamport = max(self._last_lamport, lamport)
        if line.first_segment_id is not None:
            self._provers[message_id], self._proven[message_id] = set(), None
            if line.first_segment_id in self._requests:
                self._requests[line.first_segment_id].append(message_id)
        elif line.message_hash is not None:
            self._refers(line, message_id, line.message_hash, at_ms)
        self._seen[message_id] = lamport, len(self._seen)
        for early_id, early_ms in self._early.pop(message_id, ()):
            if message_id not in self._presumed:
                detail = f"delivered before {message_id}, to which it refers"
                self._find(Audit.CAUSAL_ORDER, early_id, early_ms, detail)

    def _refers(self, line: Line, message_id: str, message_hash: bytes, at_ms: int) -> None:
        """A message of others was logged: what it refers to must be there, and before it."""
        history = self._histories.pop(message_hash, None)
        if history is None:
            why = "what a message refers to is not in the journal"
            self._unjudged |= {Audit.CAUSAL_ORDER: why, Audit.REFERENCES: why}
            return
        lost = set(line.message_ids or ())
        self._references += len(history)
        for dependency in history:
            seen = self._seen.get(dependency)
            if dependency in lost:
                self._lost.setdefault(dependency, (message_id, at_ms))
            elif seen is None:
                if at_ms < self._presume_until_ms:  # a newcomer may take it for older than it asked
                    self._presumed.add(dependency)
                self._early[dependency].append((message_id, at_ms))
            elif seen[0] >= (line.lamport_timestamp or 0):
                what = "a Lamport timestamp that is not after those it refers to"
                self.misbehaviour.note(line.sender_id or "", what, message_id, at_ms)

    def _went(self, message: Message, at_ms: int) -> None:
        """An own message refers to what was in the log before it."""
        own = self._seen.get(message.message_id)
        if own is None:
            return
        self._references += len(message.causal_ids)
        for dependency in message.causal_ids:
            seen = self._seen.get(dependency)
            if seen is None:
                self._early[dependency].append((message.message_id, at_ms))
            elif seen[1] > own[1]:
                detail = f"delivered before {dependency}, to which it refers"
                self._find(Audit.CAUSAL_ORDER, message.message_id, at_ms, detail)

    def _hints(self, message: Message, at_ms: int) -> None:
        """A retrieval hint must not be that of another message."""
        if self._hinted.issuperset(message.causal_ids):
            return
        for place, message_id in enumerate(message.causal_ids):
            if message_id in self._hinted:
                continue
            self._hinted.add(message_id)
            hint = message.causal_history[place].retrieval_hint
            if hint is not None and self._hashes.get(hint, message_id) != message_id:
                what = "a retrieval hint of another message"
                self.misbehaviour.note(message.sender_id, what, message.message_id, at_ms)

    def _not_told(self) -> Iterator[Finding]:
        """Own requests that were wholly proven to be received, and without an emitted result."""
        for request_id, message_ids in self._requests.items():
            proofs = [self._proven.get(message_id) for message_id in message_ids]
            if proofs and None not in proofs:
                since_ms = max(filter(None, proofs), default=0)
                if any(gap.to_ms >= self._sending_ms[request_id] for gap in self.gaps()):
                    self._unjudged[Audit.ACKNOWLEDGEMENTS] = LINES_MISSING
                elif since_ms + SETTLE_MS <= self._until_ms:
                    detail = "other participants have it, but no acknowledgement was emitted"
                    yield self._finding(Audit.ACKNOWLEDGEMENTS, request_id, since_ms, detail)

    def _told_without_proof(self) -> Iterator[Finding]:
        """Messages that were acknowledged and never sent, or sent later; and own ones acknowledged
        by a reference, and none arrived."""
        for message_id, at_ms in sorted(self._unlogged_acks.items()):
            is_logged = message_id in self._seen
            unsent = "acknowledged, and this participant never sent it"
            detail = ACKNOWLEDGED_FIRST if is_logged else unsent
            yield self._finding(Audit.ACKNOWLEDGEMENTS, message_id, at_ms, detail)
        if self._reception.is_damaged:
            if self._unproven_acks or self._doubtful - self._seen.keys():
                self._unjudged[Audit.ACKNOWLEDGEMENTS] = LINES_MISSING
            return
        for message_id, at_ms in self._unproven_acks:
            detail = "acknowledged by a reference that did not arrive"
            yield self._finding(Audit.ACKNOWLEDGEMENTS, message_id, at_ms, detail)

    def _told(self, line: Line, message_id: str, at_ms: int) -> None:
        """An acknowledgement is emitted once, of an own message, by a participant that has it."""
        if message_id not in self._seen and self._is_whole:
            if self._reception.is_damaged:
                self._doubtful.add(message_id)
            else:
                self._unlogged_acks.setdefault(message_id, at_ms)
        request = self._requests.pop(message_id, None)
        of_each = (self._provers.pop(each, ()) for each in request or (message_id,))
        provers = set[str]().union(*of_each)
        by_reference = line.source == "causal_history"
        if request and by_reference and not provers:
            self._unproven_acks.append((message_id, at_ms))
        if line.outcome == "redelivered":
            return
        if message_id in self._acknowledged:
            self._find(Audit.ACKNOWLEDGEMENTS, message_id, at_ms, "acknowledged twice")
        elif message_id in self._foreign:
            detail = "acknowledged, and another participant sent it"
            self._find(Audit.ACKNOWLEDGEMENTS, message_id, at_ms, detail)
        elif by_reference and provers and line.acknowledged_by not in (None, *provers):
            detail = f"acknowledged by {line.acknowledged_by}, of which no reference arrived"
            self._find(Audit.ACKNOWLEDGEMENTS, message_id, at_ms, detail)
        self._acknowledged.add(message_id)

    def _gap(self, to_ms: int, why: str) -> None:
        """Lines are missing between the last one and a time."""
        from_ms = self._last_ms if self.has_begun else ALWAYS_MS[0]
        self._gaps.append(Gap(*self._whose, from_ms, to_ms, why))
        self._gap_why = ""

    def _compare_restored(self, at_ms: int) -> None:
        """All that was in the log before a restart is in it afterwards, but for the oldest."""
        before, self._before_restart = self._before_restart, []
        keys = {each.message_id: each.key for each in before}
        oldest = min((keys[each] for each in self._restored & keys.keys()), default=None)
        for each in before:
            if oldest is not None and each.key > oldest and each.message_id not in self._restored:
                detail = "in the log before the restart, and not after it"
                self._not_restored[each.message_id] = self._finding(
                    Audit.ARRIVED, each.message_id, at_ms, detail
                )
                self.log.forget(each.message_id)
                self.log.lose()

    def _out_of_order(self) -> Iterator[Finding]:
        """The first place at which the log is not in order of Lamport timestamp and id."""
        if (beyond := self.log.beyond) is not None:
            detail = "its position is beyond the end of the log"
            yield self._finding(Audit.LOG_ORDER, beyond.message_id, self._until_ms, detail)
        if (disordered := self.log.disordered) is not None:
            one, other = disordered
            detail = f"in the log before {other.message_id}, after which it belongs"
            yield self._finding(Audit.LOG_ORDER, one.message_id, self._until_ms, detail)

    def _without_end(self) -> Iterator[Finding]:
        """Messages that were asked for more often than attempts and rests allow.

        So many attempts, then a rest as long as the message has been wanted, at most `MAX_REST`
        times T_max: the rounds double in length until they have the longest rest between them. Of
        the pace of other policies nothing is known here.
        """
        if self.option("retrieval_strategy") not in SPECIFIED:
            return
        attempts = self.option("repair_max_request_attempts")
        t_max_ms = max(1, self.option("repair_t_max_ms"))
        for message_id, asked_ms in self.asked.items():
            steps_ms = [after - before for before, after in pairwise(asked_ms)]
            back_ms = -sum(step_ms for step_ms in steps_ms if step_ms < 0)
            span_ms = sum(map(abs, steps_ms))  # the most that a clock that went back may hide
            rounds = 2 + (span_ms // t_max_ms).bit_length() + span_ms // (MAX_REST * t_max_ms)
            if len(asked_ms) > attempts * rounds:
                went_back = f", while this participant's clock went back by {back_ms} ms"
                within = went_back if back_ms else f" within {span_ms} ms"
                detail = f"asked for {len(asked_ms)} times{within}"
                yield self._finding(Audit.REPAIR, message_id, asked_ms[0], detail)

    def _find(self, audit: Audit, message_id: str, at_ms: int, detail: str) -> None:
        self._found.append(self._finding(audit, message_id, at_ms, detail))

    def _finding(self, audit: Audit, message_id: str, at_ms: int, detail: str) -> Finding:
        channel_id, participant_id, life = self._whose
        return Finding(audit.value, channel_id, participant_id, life, message_id, at_ms, detail)
