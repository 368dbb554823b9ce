"""Stream of journal lines that reports acknowledgements, recoveries and alarms as lines arrive.

The state is kept for each participant, so an alarm needs no data of other participants. A timer
raises alarms even if no more lines arrive. A join of two streams would only report unacknowledged
messages while other acknowledgements come.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from operator import itemgetter
from typing import Final

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.streaming import DataStreamWriter, StreamingQuery
from pyspark.sql.streaming.stateful_processor import (
    ExpiredTimerInfo,
    StatefulProcessor,
    StatefulProcessorHandle,
    TimerValues,
)

from .live_audit.alarms import PATIENCE_MS, WATCHED, Open, Watch, WatchedLine
from .schemas import FLAG, NUMBER, TEXT, table_type

NOTICE: Final = table_type(
    channel_id=TEXT, participant_id=TEXT, kind=TEXT, message_id=TEXT, at_ms=NUMBER, after_ms=NUMBER
)
"""Columns of a notice, whose `kind` is `acknowledged`, `failed`, `recovered` or `lost`. Alarms have
the kinds `unacknowledged` and `missing`. The kind `forgotten` means that a message is no longer
watched. `at_ms` is the time of the notice, and `after_ms` the age of the message."""
TRIES: Final = 12
"""Maximum number of attempts to start a query whose source does not start in time."""
LOOK_S: Final = 0.2
NOT_CONNECTED: Final = "Python worker failed to connect back"
_EMPTY_BATCHES: Final = "spark.sql.streaming.noDataMicroBatches.enabled"
_STARTING: Final = "Initializing", "Getting offsets"
_KEY: Final = table_type(message_id=TEXT)
_OPEN: Final = table_type(kind=TEXT, since_ms=NUMBER, is_alarmed=FLAG)
_CLOCK: Final = table_type(newest_ms=NUMBER, read_ms=NUMBER)
_COLUMNS: Final = ("at_ms", "event", "message_id", "first_segment_id", "message_ids")


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
        lines = sorted((tuple(row[name] for name in _COLUMNS) for row in rows), key=itemgetter(0))
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
        there = set(self._handle.listTimers())
        for each in there - {at_ms}:
            self._handle.deleteTimer(each)
        if at_ms is not None and at_ms not in there:
            self._handle.registerTimer(at_ms)


def notices(journal: DataFrame, *, patience_ms: int = PATIENCE_MS) -> DataFrame:
    """Return the notices about a stream of `sds_journal`, with the columns of `NOTICE`.

    The state of the stream needs RocksDB, which `session.session` selects. The timer needs batches
    without lines, so use `trigger(processingTime=…)` and `start`.
    """
    return (
        journal.where(journal.event.isin(*WATCHED))
        .where("outcome is null or outcome <> 'restored'")
        .select("channel_id", "participant_id", *_COLUMNS)
        .groupBy("channel_id", "participant_id")
        .transformWithState(Watcher(patience_ms), NOTICE, "append", "processingTime")
    )


def start(writer: DataStreamWriter, directory: str, *, until_now: bool = False) -> StreamingQuery:
    """Start a query that writes into a folder. The query runs without end, or until the present end
    of the journals.

    Spark gives the Python process of a streaming source only ten seconds to start. On a busy
    machine that may be too short, so the query is started again. With `until_now`, the query must
    not run batches without lines, because it would never end.

    Raises:
        StreamingQueryException: the query failed for another reason, or `TRIES` times.
    """
    query = _started(writer, directory, until_now)
    for _ in range(TRIES - 1):
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
