"""Traces of the newest messages for `explain`, with more notes for missing messages.

A message without problems costs two entries of a table. No decision of the engine depends on the
traces.
"""

from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from ..explanation import SHORT_ID, Dispatch, Explanation, RequestSeen, StoreSearch, Way
from ..sds.events import (
    DeliveryFailed,
    MessageAcknowledged,
    MessageLost,
    MessageMissing,
    MessageReceived,
    MessageReconciled,
    Outgoing,
    RepairRequested,
    RepairRequestReceived,
)
from ..sds.ids import js_waku_id, reliable_channel_id
from ..sds.message import LogEntry

MAX_EXPLAINED: Final = 1_000
"""Maximum number of traced messages that arrived, and of traced messages that are missing or own.
The oldest traces are evicted."""
MAX_NOTED: Final = 16
"""Maximum number of requests, searches and dispatches in the trace of one message."""


class _Arrival(NamedTuple):
    at_ms: int
    sent_at_ns: int
    """Of the copy that came."""
    from_store: bool


class _Trace:
    """What is known of a message that was missing, parked, reconciled or own.

    Of most messages that is little, so that what is not known is the default of the class.
    """

    sent_ms: int | None = None
    noticed_ms: int | None = None
    noticed_through = noticed_from = answered_by = ""
    acknowledged_by = failure = ""
    requests: tuple[RequestSeen, ...] = ()
    searches: tuple[StoreSearch, ...] = ()
    dispatches: tuple[Dispatch, ...] = ()
    waited_for: tuple[str, ...] = ()
    reconciled_ms: int | None = None
    logged_ms: int | None = None
    lost_ms: int | None = None
    acknowledged_ms: int | None = None


class _Traces(OrderedDict[str, _Trace]):
    """Traces by message id. A trace begins when it is first looked up."""

    def __missing__(self, message_id: str) -> _Trace:
        trace = self[message_id] = _Trace()
        if len(self) > MAX_EXPLAINED:
            self.popitem(last=False)
        return trace


class MessageTraces:
    """Traces of the messages that one participant sent, received or missed.

    Args:
        proves_copies: ids are those of LIP 173, which show which copy of a message came.
    """

    def __init__(self, participant_id: str, *, proves_copies: bool) -> None:
        self._participant_id = participant_id
        self._proves_copies = proves_copies
        self._arrivals: OrderedDict[str, _Arrival] = OrderedDict()
        self._traces = _Traces()
        self.notes: Final[dict[type, Callable[[Any, int], None]]] = {
            MessageMissing: self._missing,
            RepairRequested: self._requested,
            RepairRequestReceived: self._request_heard,
            MessageReconciled: self._reconciled,
            MessageReceived: self._received,
            MessageLost: self._lost,
            MessageAcknowledged: self._acknowledged,
            DeliveryFailed: self._failed,
        }
        """What takes note of an event of the core, by its type."""

    # -- what happens ------------------------------------------------------------------------------

    def arrived(
        self, message_id: str, sent_at_ns: int, now_ms: int, *, from_store: bool, is_parked: bool
    ) -> None:
        """Note that another participant's message arrived for the first time."""
        arrivals = self._arrivals
        arrivals[message_id] = _Arrival(now_ms, sent_at_ns, from_store)
        if len(arrivals) > MAX_EXPLAINED:
            arrivals.popitem(last=False)
        if is_parked:
            _ = self._traces[message_id]  # a look-up makes it

    def accepted(self, message_id: str, now_ms: int) -> None:
        """Note that an own message was accepted."""
        self._traces[message_id].sent_ms = now_ms

    def dispatched(self, outgoing: Outgoing, now_ms: int) -> None:
        """Note that the transport accepted an own message. Dispatches of other participants'
        messages are not noted."""
        trace = self._traces.get(outgoing.message_id)
        if trace is None or trace.sent_ms is None or len(trace.dispatches) >= MAX_NOTED:
            return
        kind = "copy" if outgoing.is_redundant else outgoing.kind.value
        trace.dispatches += (Dispatch(now_ms, kind),)

    def refused(self, message_id: str, reason: str) -> None:
        """Note that an own message will not be sent."""
        self._traces[message_id].failure = reason

    def withdrawn(self, message_id: str) -> None:
        """Note that an own message was withdrawn before it was sent."""
        self._traces.pop(message_id, None)

    def searched(self, message_id: str, search: StoreSearch) -> None:
        """Note that Store was queried for a message."""
        trace = self._traces[message_id]
        if len(trace.searches) < MAX_NOTED:
            trace.searches += (search,)

    def _missing(self, event: MessageMissing, now_ms: int) -> None:
        for entry in event.missing:
            trace = self._traces[entry.message_id]
            if trace.noticed_ms is None:
                trace.noticed_ms = now_ms
                trace.noticed_through = event.carrier_id
                trace.noticed_from = event.referrer_id
        if (carrier := self._traces.get(event.carrier_id)) is not None:
            room = MAX_NOTED - len(carrier.waited_for)
            carrier.waited_for += tuple(entry.message_id for entry in event.missing[:room])

    def _requested(self, event: RepairRequested, now_ms: int) -> None:
        self._note_requests(event.message_ids, self._participant_id, now_ms)

    def _request_heard(self, event: RepairRequestReceived, now_ms: int) -> None:
        self._note_requests(event.message_ids, event.sender_id, now_ms)

    def _note_requests(
        self, message_ids: tuple[str, ...], participant_id: str, now_ms: int
    ) -> None:
        for message_id in message_ids[:MAX_NOTED]:
            if message_id in self._arrivals:
                continue
            trace = self._traces.get(message_id)
            if trace is None and participant_id == self._participant_id:
                trace = self._traces[message_id]
            if trace is not None and len(trace.requests) < MAX_NOTED:
                trace.requests += (RequestSeen(now_ms, participant_id),)

    def _reconciled(self, event: MessageReconciled, now_ms: int) -> None:
        trace = self._traces[event.message_id]
        trace.reconciled_ms, trace.answered_by = now_ms, event.sender_id

    def _received(self, event: MessageReceived, now_ms: int) -> None:
        if (trace := self._traces.get(event.message_id)) is not None:
            trace.logged_ms = now_ms

    def _lost(self, event: MessageLost, now_ms: int) -> None:
        self._traces[event.message_id].lost_ms = now_ms

    def _acknowledged(self, event: MessageAcknowledged, now_ms: int) -> None:
        trace = self._traces[event.message_id]
        trace.acknowledged_ms, trace.acknowledged_by = now_ms, event.acknowledged_by

    def _failed(self, event: DeliveryFailed, now_ms: int) -> None:
        self._traces[event.message_id].failure = event.reason

    # -- what is asked -----------------------------------------------------------------------------

    def explain(self, message_id: str, entry: LogEntry | None, now_ms: int) -> Explanation:
        """Return the known facts about a message and its delay. `entry` is the log entry of the
        message, or None."""
        trace = self._traces.get(message_id) or _Trace()
        arrival = self._arrivals.get(message_id)
        arrived_ms = trace.reconciled_ms if arrival is None else arrival.at_ms
        way = None if arrived_ms is None else self._way(message_id, entry, arrival, trace)
        logged_ms = trace.logged_ms
        if logged_ms is None and entry is not None and trace.sent_ms is None:
            logged_ms = arrived_ms
        sent_ms = trace.sent_ms
        if sent_ms is None and way is Way.FIRST_COPY and arrival is not None:
            sent_ms = arrival.sent_at_ns // 1_000_000
        if sent_ms is None and entry is not None and arrived_ms is not None:
            sent_ms = min(entry.lamport_timestamp, arrived_ms)  # it may run ahead of the time
        return Explanation(
            message_id=message_id,
            participant_id=self._participant_id,
            at_ms=now_ms,
            sender_id=self._sender(entry, trace),
            sent_ms=sent_ms,
            noticed_ms=trace.noticed_ms,
            noticed_through=trace.noticed_through,
            noticed_from=trace.noticed_from,
            requests=trace.requests,
            searches=trace.searches,
            arrived_ms=arrived_ms,
            way=way,
            answered_by=trace.answered_by,
            waited_for=tuple(message_id[:SHORT_ID] for message_id in trace.waited_for),
            logged_ms=logged_ms,
            lost_ms=trace.lost_ms,
            dispatches=trace.dispatches,
            acknowledged_ms=trace.acknowledged_ms,
            acknowledged_by=trace.acknowledged_by,
            failure=trace.failure,
            in_log=entry is not None,
        )

    def _sender(self, entry: LogEntry | None, trace: _Trace) -> str | None:
        if entry is not None:
            return entry.sender_id
        return None if trace.sent_ms is None else self._participant_id

    def _way(
        self, message_id: str, entry: LogEntry | None, arrival: _Arrival | None, trace: _Trace
    ) -> Way:
        if arrival is None:
            return Way.RECONCILIATION
        if arrival.from_store:
            return Way.STORE
        proves = self._proves_copies and entry is not None
        if proves and entry is not None:
            made = reliable_channel_id(entry.sender_id, arrival.sent_at_ns, entry.content)
            if made == message_id:
                return Way.FIRST_COPY
            proves = js_waku_id(entry.sender_id, 0, entry.content) != message_id
        if trace.requests:
            return Way.REPAIR
        return Way.EXTRA_COPY if proves else Way.LIVE
