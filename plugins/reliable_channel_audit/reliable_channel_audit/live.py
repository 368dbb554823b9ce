"""Stream of journal lines that reports acknowledgements, recoveries and alarms as lines arrive.

The state is kept for each participant, so an alarm needs no data of other participants. A timer
raises alarms even if no more lines arrive. A join of two streams would only report unacknowledged
messages while other acknowledgements come.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.streaming import DataStreamWriter, StreamingQuery
from pyspark.sql.streaming.stateful_processor import (
    ExpiredTimerInfo,
    StatefulProcessor,
    StatefulProcessorHandle,
    TimerValues,
)
from pyspark.sql.types import StructField, StructType

from .schemas import FLAG, NUMBER, TEXT

PATIENCE_MS: Final = 300_000
"""Time that a message may be unacknowledged or missing before an alarm is raised."""
WATCHED: Final = (
    "message_logged",
    "message_acknowledged",
    "delivery_failed",
    "send_failed",
    "message_missing",
    "message_lost",
)
NOTICE: Final = StructType(
    [
        StructField("channel_id", TEXT),
        StructField("participant_id", TEXT),
        StructField("kind", TEXT),
        StructField("message_id", TEXT),
        StructField("at_ms", NUMBER),
        StructField("after_ms", NUMBER),
    ]
)
"""Columns of a notice, whose `kind` is `acknowledged`, `failed`, `recovered` or `lost`. Alarms have
the kinds `unacknowledged` and `missing`. The kind `forgotten` means that a message is no longer
watched. `at_ms` is the time of the notice, and `after_ms` the age of the message."""
UNACKNOWLEDGED: Final = "unacknowledged"
MISSING: Final = "missing"
KEEP_MS: Final = 86_400_000
"""Time for which an open message is watched after it was accepted or first missing."""
MAX_OPEN: Final = 10_000
"""Maximum number of open messages that are watched for one participant. Beyond the maximum, the
oldest open messages are evicted."""
TRIES: Final = 5
"""Maximum number of attempts to start a query whose source does not start in time."""
LOOK_S: Final = 0.2
NOT_CONNECTED: Final = "Python worker failed to connect back"
_EMPTY_BATCHES: Final = "spark.sql.streaming.noDataMicroBatches.enabled"
_STARTING: Final = "Initializing", "Getting offsets"
_KEY: Final = StructType([StructField("message_id", TEXT)])
_OPEN: Final = StructType(
    [StructField("kind", TEXT), StructField("since_ms", NUMBER), StructField("is_alarmed", FLAG)]
)
_CLOCK: Final = StructType([StructField("newest_ms", NUMBER), StructField("read_ms", NUMBER)])
_COLUMNS: Final = ("at_ms", "event", "message_id", "first_segment_id", "message_ids")
WatchedLine = tuple[int, str, str | None, str | None, Iterable[str] | None]
"""Columns `at_ms`, `event`, `message_id`, `first_segment_id` and `message_ids` of a line."""


class Notice(NamedTuple):
    """Notice about a message, such as its acknowledgement."""

    kind: str
    message_id: str
    at_ms: int
    after_ms: int


class Open(NamedTuple):
    """Open message, which is not delivered or not acknowledged yet."""

    kind: str
    """Kind of the open message, `UNACKNOWLEDGED` (own) or `MISSING` (known only by reference)."""
    since_ms: int
    is_alarmed: bool = False


@dataclass(slots=True)
class Watch:
    """Open messages of one participant. Time is that of the journal's lines, and continues with
    this machine's clock between lines."""

    open: dict[str, Open] = field(default_factory=dict)
    newest_ms: int = 0
    """Time of the participant's newest line."""
    read_ms: int = 0
    """Time at which the newest line was read, by this machine's clock."""

    def take(self, lines: Iterable[WatchedLine], now_ms: int) -> Iterator[Notice]:
        """Process new lines of a participant. For each message that the lines close, `take` yields
        a notice."""
        for line in lines:
            if line[0] > self.newest_ms:
                self.newest_ms, self.read_ms = line[0], now_ms
            yield from self._line(*line)
        for message_id in list(self.open)[: max(0, len(self.open) - MAX_OPEN)]:
            yield self._forgotten(message_id, self.newest_ms)

    def due(self, now_ms: int, patience_ms: int) -> Iterator[Notice]:
        """Yield an alarm once for each message that has been open for too long."""
        at_ms = self.newest_ms + max(0, now_ms - self.read_ms)
        for message_id, one in list(self.open.items()):
            after_ms = at_ms - one.since_ms
            if not one.is_alarmed and after_ms > patience_ms:
                self.open[message_id] = one._replace(is_alarmed=True)
                yield Notice(one.kind, message_id, at_ms, after_ms)
            if after_ms > max(KEEP_MS, patience_ms):
                yield self._forgotten(message_id, at_ms)

    def next_ms(self, patience_ms: int) -> int | None:
        """Return the time of the next call of `due` by this machine's clock, or None without open
        messages."""
        keep_ms = max(KEEP_MS, patience_ms)
        times = (
            one.since_ms + (keep_ms if one.is_alarmed else patience_ms)
            for one in self.open.values()
        )
        first_ms = min(times, default=None)
        return None if first_ms is None else first_ms - self.newest_ms + self.read_ms + 1

    def _forgotten(self, message_id: str, at_ms: int) -> Notice:
        since_ms = self.open.pop(message_id).since_ms
        return Notice("forgotten", message_id, at_ms, at_ms - since_ms)

    def _line(
        self,
        at_ms: int,
        event: str,
        message_id: str | None,
        first_segment_id: str | None,
        message_ids: Iterable[str] | None,
    ) -> Iterator[Notice]:
        message_id = message_id or ""
        match event:
            case "message_logged" if first_segment_id == message_id:
                self.open[message_id] = Open(UNACKNOWLEDGED, at_ms)
            case "message_logged":
                yield from self._settled("recovered", MISSING, message_id, at_ms)
            case "message_lost":
                yield from self._settled("lost", MISSING, message_id, at_ms)
            case "message_acknowledged":
                yield from self._settled("acknowledged", UNACKNOWLEDGED, message_id, at_ms)
            case "delivery_failed" | "send_failed":
                yield from self._settled("failed", UNACKNOWLEDGED, message_id, at_ms)
            case "message_missing":
                for missing_id in message_ids or ():
                    self.open.setdefault(missing_id, Open(MISSING, at_ms))

    def _settled(self, what: str, kind: str, message_id: str, at_ms: int) -> Iterator[Notice]:
        one = self.open.get(message_id)
        if one is not None and one.kind == kind:
            del self.open[message_id]
            yield Notice(what, message_id, at_ms, at_ms - one.since_ms)


class Watcher(StatefulProcessor):
    """Processor that keeps each participant's `Watch` in Spark's state, with a timer."""

    def __init__(self, patience_ms: int) -> None:
        self._patience_ms = patience_ms

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Declare the state of the processor to Spark."""
        self._handle = handle
        self._open = handle.getMapState("open", _KEY, _OPEN)
        self._clock = handle.getValueState("clock", _CLOCK)

    def handleInputRows(
        self, key: tuple[str, str], rows: Iterator[Row], timerValues: TimerValues
    ) -> Iterator[Row]:
        """Process the new lines of a participant, and yield notices."""
        lines = sorted((tuple(row[name] for name in _COLUMNS) for row in rows), key=_at_ms)
        return self._notices(key, lines, timerValues)

    def handleExpiredTimer(
        self, key: tuple[str, str], timerValues: TimerValues, expiredTimerInfo: ExpiredTimerInfo
    ) -> Iterator[Row]:
        """Yield the alarms of a participant that are due."""
        return self._notices(key, [], timerValues)

    def _notices(
        self, key: tuple[str, str], lines: list[WatchedLine], timer_values: TimerValues
    ) -> Iterator[Row]:
        now_ms = timer_values.getCurrentProcessingTimeInMs()
        before = {message_id: Open(*values) for (message_id,), values in self._open.iterator()}
        clock = self._clock.get() if self._clock.exists() else (0, 0)
        watch = Watch(dict(before), *clock)
        notices = [*watch.take(lines, now_ms), *watch.due(now_ms, self._patience_ms)]
        for message_id in before.keys() - watch.open.keys():
            self._open.removeKey((message_id,))
        for message_id, one in watch.open.items():
            if before.get(message_id) != one:
                self._open.updateValue((message_id,), one)
        self._clock.update((watch.newest_ms, watch.read_ms))
        self._set_timer(watch.next_ms(self._patience_ms))
        return (Row(**dict(zip(NOTICE.names, (*key, *each), strict=True))) for each in notices)

    def _set_timer(self, at_ms: int | None) -> None:
        wanted = set() if at_ms is None else {at_ms}
        there = set(self._handle.listTimers())
        for each in there - wanted:
            self._handle.deleteTimer(each)
        for each in wanted - there:
            self._handle.registerTimer(each)


def notices(journal: DataFrame, *, patience_ms: int = PATIENCE_MS) -> DataFrame:
    """Return the notices about a stream of `sds_journal`, with the columns of `NOTICE`.

    The state of the stream needs RocksDB, which `session.session` selects. The timer needs batches
    without lines, so use `trigger(processingTime=…)` and `start`.
    """
    return (
        journal.where(journal.event.isin(*WATCHED))
        .select("channel_id", "participant_id", *_COLUMNS)
        .groupBy("channel_id", "participant_id")
        .transformWithState(Watcher(patience_ms), NOTICE, "append", "processingTime")
    )


def start(
    writer: DataStreamWriter, directory: str, *, until_now: bool = False, tries: int = TRIES
) -> StreamingQuery:
    """Start a query that writes into a folder. The query runs without end, or until the present end
    of the journals.

    Spark gives the Python process of a streaming source only ten seconds to start. On a busy
    machine that may be too short, so the query is started again. With `until_now`, the query must
    not run batches without lines, because it would never end.

    Raises:
        StreamingQueryException: the query failed for another reason, or `tries` times.
    """
    query = _started(writer, directory, until_now)
    for _ in range(tries - 1):
        while query.isActive and query.status["message"].startswith(_STARTING):
            time.sleep(LOOK_S)
        failure = query.exception()
        if failure is None or NOT_CONNECTED not in str(failure):
            break
        query = _started(writer, directory, until_now)
    return query


def _started(writer: DataStreamWriter, directory: str, until_now: bool) -> StreamingQuery:
    if not until_now:
        return writer.start(directory)
    conf = SparkSession.active().conf
    before = conf.get(_EMPTY_BATCHES)
    conf.set(_EMPTY_BATCHES, "false")
    try:
        return writer.trigger(availableNow=True).start(directory)
    finally:
        conf.set(_EMPTY_BATCHES, before or "true")


def _at_ms(line: WatchedLine) -> int:
    return line[0]
