"""One participant's life, read line by line: what can be judged from its own journal alone.

Whoever receives a message has its causal history in the journal, so causality needs nobody else's:
a journal is a unit, and a million of them are judged side by side.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from reliable_channel.engine.engine import JOINING_MS
from reliable_channel.options import ChannelOptions
from reliable_channel.repair_policies import WITHOUT_STORE
from reliable_channel.sds.message import Message
from reliable_channel.sds.repair import MAX_REST
from reliable_channel.sds.wire import CodecError, NimCodec, SpecCodec

from .findings import SETTLE_MS, Audit, Finding
from .journals import Noted, settings
from .lines import OPENED, SET_ASIDE, Line
from .log_order import Landed, LogOrder
from .misbehaviour import Misbehaviour, Names

BACK_MS: Final = 1_000
"""By so much a clock may seem to go back: what the channel's own clock tolerates."""
AHEAD_MS: Final = 20_000
"""By so much a message may be stamped ahead of the receiver's clock: beyond, Store refuses it
(nwaku)."""
SPECIFIED: Final = ("both", "sds-r-only")
"""The strategies that ask others as SDS-R has it."""
_TAKEN: Final = frozenset({"delivered", "parked"})
_HEARD: Final = _TAKEN | {"sync"}
_CODECS: Final = (SpecCodec(), NimCodec())
_DEFAULTS: Final = ChannelOptions()


class Life(NamedTuple):
    """A participant with one log, from its beginning to its end."""

    channel_id: str
    participant_id: str
    life: int
    path: str
    """Where it begins."""
    opened_ms: int
    until_ms: int
    """The last that its journal says of it."""
    owed_from_ms: int
    """From when on what is said is owed to it."""
    entries: int
    """Messages that entered its log."""
    log_digest: str


def message_of(payload: bytes | None) -> Message | None:
    """What went over the wire, in whichever dialect; None where it is no SDS message."""
    if payload is None:
        return None
    try:
        return next(codec.decode(payload) for codec in _CODECS if codec.recognises(payload))
    except (CodecError, StopIteration):
        return None


class Replay:
    """Reads the lines of one life in order; then `findings` says what was broken."""

    def __init__(
        self, channel_id: str, participant_id: str, life: int, *, settle_ms: int = SETTLE_MS
    ) -> None:
        self._whose = channel_id, participant_id, life
        self._settle_ms = settle_ms
        self.has_begun = False
        self._path = ""
        self._opened_ms = self._owed_from_ms = self._presume_until_ms = 0
        self._last_ms = self._until_ms = 0
        self._options: dict[str, Any] = {}
        self._log = LogOrder()
        self._seen: set[str] = set()
        self._histories: dict[bytes, list[str]] = {}
        """Of messages that came and are not logged yet, by message hash."""
        self._early: defaultdict[str, list[tuple[str, int]]] = defaultdict(list)
        """By a message that is not here: those logged that refer to it, and when they were."""
        self._presumed: set[str] = set()
        self._requests: dict[str, list[str]] = {}
        """The messages of own requests of which nothing was told yet."""
        self._unproven: set[str] = set()
        self._proven: dict[str, int] = {}
        """Own messages that others were seen to have, and since when."""
        self._asked: defaultdict[str, list[int]] = defaultdict(list)
        self._ahead: set[str] = set()
        """Names of those whose stamps were ahead; one finding each."""
        self._names = Names()
        self.misbehaviour = Misbehaviour(self._whose)
        self._found: list[Finding] = []

    def add(self, noted: Noted, message: Message | None) -> None:
        """Read a line, and the message that it carries."""
        line = noted.line
        if line.event == SET_ASIDE or line.at_ms is None:
            return
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
            case "message_logged":
                self._logged(line, message_id, line.at_ms)
            case "message_forged":
                self._seen.discard(message_id)
                self._log.forget(message_id)
            case "sending_message":
                self._requests[message_id] = []
            case "message_acknowledged" | "delivery_failed" | "send_failed":
                self._requests.pop(message_id, None)
            case "repair_requested":
                for asked_id in line.message_ids or ():
                    self._asked[asked_id].append(line.at_ms)

    @property
    def log(self) -> list[Landed]:
        """The log as it ended, without what was in it when the journal began."""
        return self._log.entries

    def life(self) -> Life:
        """Who this was, and how its log ended."""
        return Life(
            *self._whose,
            self._path,
            self._opened_ms,
            self._until_ms,
            self._owed_from_ms,
            len(self._seen),
            self._log.digest(),
        )

    def findings(self) -> list[Finding]:
        """What was broken, as far as this journal alone can tell."""
        deeds = (
            self._finding(
                Audit.MEMBERS,
                deed.message_id,
                deed.at_ms,
                f"{deed.sender}: {deed.what}, {deed.times} times",
            )
            for deed in self.misbehaviour
        )
        return [*self._found, *self._not_told(), *self._without_end(), *deeds]

    def _opened(self, noted: Noted, at_ms: int) -> None:
        values = settings(noted.line)
        options, wanted_ms = values.get("options"), values.get("wanted_from_ms")
        length = values.get("log_length")
        self._options = options if isinstance(options, dict) else {}
        self._log.go_on(length if isinstance(length, int) else 0)
        if self.has_begun:
            return
        self.has_begun = True
        self._path, self._opened_ms = noted.path, at_ms
        self._owed_from_ms = at_ms
        if isinstance(wanted_ms, int):
            asks = self._option("retrieval_strategy") not in WITHOUT_STORE
            asks = asks and self._option("query_on_connect")
            self._owed_from_ms = wanted_ms if asks else max(wanted_ms, at_ms)
        if self._option("history") != "all":
            self._presume_until_ms = at_ms + JOINING_MS

    def _option(self, name: str) -> Any:
        return self._options.get(name, getattr(_DEFAULTS, name))

    def _came(self, line: Line, message: Message | None, at_ms: int) -> None:
        if line.outcome not in _HEARD or message is None:
            return
        causal_ids = message.causal_ids
        if line.outcome in _TAKEN and line.message_hash is not None:
            self._histories[line.message_hash] = list(causal_ids)
        for message_id in self._unproven.intersection(causal_ids):
            self._unproven.discard(message_id)
            self._proven[message_id] = at_ms
        ahead_ms = (line.timestamp_ns or 0) // 1_000_000 - at_ms
        if ahead_ms > AHEAD_MS:
            sender = self._names.known_as(message.sender_id)
            if sender not in self._ahead:
                self._ahead.add(sender)
                detail = f"{sender}: stamps {ahead_ms} ms ahead of this clock"
                self._find(Audit.CLOCK, message.message_id, at_ms, detail)

    def _logged(self, line: Line, message_id: str, at_ms: int) -> None:
        entry = Landed(
            line.lamport_timestamp or 0,
            message_id,
            line.sender_id or "",
            line.content_sha256 or b"",
        )
        if line.outcome == "restored":
            if message_id not in self._seen:
                self._seen.add(message_id)
                self._log.restore(entry)
            return
        if message_id in self._seen:
            self._find(Audit.EXACTLY_ONCE, message_id, at_ms, "it was in the log already")
            return
        self._log.land(entry, line.position or 0, line.evicted or 0, at_ms)
        if line.first_segment_id is not None:
            self._unproven.add(message_id)
            if line.first_segment_id in self._requests:
                self._requests[line.first_segment_id].append(message_id)
        elif line.message_hash is not None:
            lost = set(line.message_ids or ())
            for dependency in self._histories.pop(line.message_hash, ()):
                if dependency not in self._seen and dependency not in lost:
                    self._refers_to_unknown(message_id, dependency, at_ms)
        self._seen.add(message_id)
        for early_id, early_ms in self._early.pop(message_id, ()):
            if message_id not in self._presumed:
                detail = f"delivered before {message_id}, to which it refers"
                self._find(Audit.CAUSAL_ORDER, early_id, early_ms, detail)

    def _refers_to_unknown(self, message_id: str, dependency: str, at_ms: int) -> None:
        """A newcomer may take what it does not know for older than what it asked for."""
        if at_ms < self._presume_until_ms:
            self._presumed.add(dependency)
        self._early[dependency].append((message_id, at_ms))

    def _not_told(self) -> Iterator[Finding]:
        """Own requests that were wholly proven to be received, and of which nothing was told."""
        for request_id, message_ids in self._requests.items():
            proofs = [self._proven.get(message_id) for message_id in message_ids]
            if proofs and None not in proofs:
                since_ms = max(filter(None, proofs), default=0)
                if since_ms + self._settle_ms <= self._until_ms:
                    detail = "others have it, and no acknowledgement was told"
                    yield self._finding(Audit.ACKNOWLEDGEMENTS, request_id, since_ms, detail)

    def _without_end(self) -> Iterator[Finding]:
        """Messages that were asked for more often than attempts and rests allow.

        So many attempts, then a rest as long as the message has been wanted, at most `MAX_REST`
        times T_max: the rounds double in length until they have the longest rest between them. Of
        the pace of other policies nothing is known here.
        """
        if self._option("retrieval_strategy") not in SPECIFIED:
            return
        attempts, t_max_ms = self._option("max_request_attempts"), self._option("repair_t_max_ms")
        for message_id, asked_ms in self._asked.items():
            span_ms = asked_ms[-1] - asked_ms[0]
            rounds = 2 + (span_ms // t_max_ms).bit_length() + span_ms // (MAX_REST * t_max_ms)
            if len(asked_ms) > attempts * rounds:
                detail = f"asked for {len(asked_ms)} times within {span_ms} ms"
                yield self._finding(Audit.REPAIR, message_id, asked_ms[0], detail)

    def _find(self, audit: Audit, message_id: str, at_ms: int, detail: str) -> None:
        self._found.append(self._finding(audit, message_id, at_ms, detail))

    def _finding(self, audit: Audit, message_id: str, at_ms: int, detail: str) -> Finding:
        channel_id, participant_id, life = self._whose
        return Finding(audit.value, channel_id, participant_id, life, message_id, at_ms, detail)
