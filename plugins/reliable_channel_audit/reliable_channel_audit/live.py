"""Stream of journal lines with acknowledgements, recoveries and alarms while it arrives.

State is kept for each participant, so an alarm needs no other participant. A timer raises it even
if no line comes any more. A join of two streams would report unacknowledged messages only while
other acknowledgements come, so it would fail when it matters.
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
"""Time that a message may be unacknowledged or missing before it is an alarm."""
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
"""Kind: `acknowledged`, `failed`, `recovered` or `lost`. Alarms are `unacknowledged` and `missing`.
`forgotten` is a message that is not watched any more. `at_ms` is the time, and the age counts since
the message was accepted, or first missed."""
UNACKNOWLEDGED: Final = "unacknowledged"
MISSING: Final = "missing"
KEEP_MS: Final = 86_400_000
"""Time for which an open message is watched after it was accepted, or first missed."""
MAX_OPEN: Final = 10_000
"""Maximum number of watched open messages of a participant. The oldest are evicted."""
TRIES: Final = 5
"""Number of starts of a query whose source does not start in time."""
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
"""Columns `at_ms`, `event`, `message_id`, `first_segment_id` and `message_ids`."""


class Notice(NamedTuple):
    """Notice about a message."""

    kind: str
    message_id: str
    at_ms: int
    after_ms: int


class Open(NamedTuple):
    """Message that is neither delivered nor acknowledged yet."""

    kind: str
    """Kind: `UNACKNOWLEDGED` for an own message, `MISSING` for one that is known only by
    reference."""
    since_ms: int
    is_alarmed: bool = False


@dataclass(slots=True)
class Watch:
    """Open messages of one participant. Its time is that of its journal, and continues with our
    clock when no line comes."""

    open: dict[str, Open] = field(default_factory=dict)
    newest_ms: int = 0
    """Time of the newest line."""
    read_ms: int = 0
    """Time at which that line was read, by our clock."""

    def take(self, lines: Iterable[WatchedLine], now_ms: int) -> Iterator[Notice]:
        """Process new lines. Return notices of the messages that they close."""
        for line in lines:
            if line[0] > self.newest_ms:
                self.newest_ms, self.read_ms = line[0], now_ms
            yield from self._line(*line)
        for message_id in list(self.open)[: max(0, len(self.open) - MAX_OPEN)]:
            yield self._forgotten(message_id, self.newest_ms)

    def due(self, now_ms: int, patience_ms: int) -> Iterator[Notice]:
        """Return an alarm for each message that has been open for too long, once."""
        at_ms = self.newest_ms + max(0, now_ms - self.read_ms)
        for message_id, one in list(self.open.items()):
            after_ms = at_ms - one.since_ms
            if not one.is_alarmed and after_ms > patience_ms:
                self.open[message_id] = one._replace(is_alarmed=True)
                yield Notice(one.kind, message_id, at_ms, after_ms)
            if after_ms > max(KEEP_MS, patience_ms):
                yield self._forgotten(message_id, at_ms)

    def next_ms(self, patience_ms: int) -> int | None:
        """Return the time of the next call of `due`, by our clock, or None if nothing is open."""
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
    """Keeper of each participant's `Watch` in Spark's state, with one timer."""

    def __init__(self, patience_ms: int) -> None:
        self._patience_ms = patience_ms

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Declare the state of the processor."""
        self._handle = handle
        self._open = handle.getMapState("open", _KEY, _OPEN)
        self._clock = handle.getValueState("clock", _CLOCK)

    def handleInputRows(
        self, key: tuple[str, str], rows: Iterator[Row], timerValues: TimerValues
    ) -> Iterator[Row]:
        """Process the new lines of a participant."""
        lines = sorted((tuple(row[name] for name in _COLUMNS) for row in rows), key=_at_ms)
        return self._notices(key, lines, timerValues)

    def handleExpiredTimer(
        self, key: tuple[str, str], timerValues: TimerValues, expiredTimerInfo: ExpiredTimerInfo
    ) -> Iterator[Row]:
        """Raise the due alarms."""
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
    """Return the notices of a stream of `sds_journal` (`NOTICE`).

    State needs RocksDB, which `session.session` selects. A timer needs batches without lines, so
    give the query a `trigger(processingTime=…)`, and start it with `start`.
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
    """Start a query that writes into a directory. It runs on, or ends at the present end of the
    journals.

    Spark gives the Python process of a streaming source ten seconds to start, which is too short on
    a busy machine. The query is then started again. A query with timers that should end must not
    run batches without lines, because it would never end.

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
