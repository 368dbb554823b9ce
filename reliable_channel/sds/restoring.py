"""Restoring the state of a participant from the rows that a `Recorder` saved.

The state that has no table is computed from the saved rows. The bloom filter follows from the
newest entries of the log. The dependencies of a parked message follow from its causal history.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from .acknowledgements import PARTICIPANTS
from .changes import CHANNEL, Row, Table, Tables, Value
from .dialects import CodecError
from .log.archive import LOG_BLOCKS
from .log.log import EVICTED
from .log.root import LOG_SUMS
from .message import LogEntry
from .options import SdsOptions
from .outgoing import OUTGOING, OUTGOING_PROGRESS
from .profile import WireProfile
from .references.incoming import LOST, MISSING, PARKED, ParkedMessage
from .references.joining import HISTORIC, PRESUMED
from .references.queued import UNSEEN
from .repair.buffers import REPAIR_REQUESTS, REPAIR_RESPONSES
from .repair.cache import DIFFERENCES, REPAIR_CACHE
from .state import REFERABLE, ChannelState
from .states_of import TransitionCheck

TABLES: Final[tuple[Table, ...]] = (
    CHANNEL,
    DIFFERENCES,
    EVICTED,
    LOG_BLOCKS,
    LOG_SUMS,
    LOST,
    MISSING,
    OUTGOING,
    OUTGOING_PROGRESS,
    PARKED,
    PARTICIPANTS,
    PRESUMED,
    REFERABLE,
    REPAIR_CACHE,
    REPAIR_REQUESTS,
    REPAIR_RESPONSES,
    HISTORIC,
    UNSEEN,
)
"""Small tables of the saved state of LIP 109."""


def restore(
    state: ChannelState,
    tables: Tables,
    newest: Sequence[LogEntry],
    now_ms: int,
) -> None:
    """Fill the new `state` with the saved rows of a participant that listened to the same
    dialects."""
    tables = _not_ahead(tables, state.options, now_ms)

    def rows(table: Table) -> list[Row]:
        return list(tables.get(table.name, ()))

    values: dict[Value, Value] = {row[0]: row[1] for row in rows(CHANNEL)}
    state.clock.value = max(state.clock.value, _number(values.get("clock")))
    state.log.restore_from(tables, newest)
    state.participants.restore(rows(PARTICIPANTS))
    cached = state.repair_cache.restore(rows(REPAIR_CACHE), rows(DIFFERENCES))
    state.outgoing_buffer.restore(rows(OUTGOING), rows(OUTGOING_PROGRESS), now_ms, cached)
    state.repair_cache.fill(cached)
    state.repair_requests.restore(rows(REPAIR_REQUESTS))
    state.repair_responses.restore(rows(REPAIR_RESPONSES))
    state.referable_syncs.restore(rows(REFERABLE))
    state.joining.restore(
        _number(values.get("wanted_from")), _number(values.get("presume_until_ms")), tables
    )
    state.incoming_buffer.restore_references(rows(MISSING), rows(LOST))
    state.incoming_buffer.restore_parked(
        _parked(rows(PARKED), state.setup.listen_to), rows(UNSEEN), state.log.entries.__contains__
    )
    if state.options.repair.repair_on_demand:
        # Whether the owner had decided on them by then is not known.
        for missing in state.incoming_buffer.missing.values():
            state.want(missing.entry, now_ms, missing.referrer_id)
    if isinstance(state.on_transition, TransitionCheck):
        state.on_transition.restored()
    if state.has_filters:
        _fill_bloom_filter(state, newest)


def _not_ahead(tables: Tables, options: SdsOptions, now_ms: int) -> Tables:
    """The same rows, with no time beyond what could be noted, or planned, now: the clock may have
    been set back meanwhile, and what waits until then would wait for hours."""
    repair_ms = now_ms + options.repair.t_max_ms
    retry_ms = max(options.retry_interval_ms, options.possibly_acknowledged_interval_ms)
    latest_ms = {
        **dict.fromkeys(("arrived_ms", "first_heard_ms", "resting_since_ms", "since_ms"), now_ms),
        **dict.fromkeys(("t_req_ms", "t_resp_ms"), repair_ms),
        "due_ms": now_ms + retry_ms,
    }

    def within(row: Row, limits: Sequence[int | None]) -> Row:
        return tuple(
            min(value, most) if most is not None and isinstance(value, int) else value
            for value, most in zip(row, limits, strict=True)
        )

    cut: dict[str, Sequence[Row]] = dict(tables)
    for table in TABLES:
        limits = [latest_ms.get(name) for name, _ in table.columns]
        if any(limits):
            cut[table.name] = [within(row, limits) for row in tables.get(table.name, ())]
    return cut


def _fill_bloom_filter(state: ChannelState, newest: Sequence[LogEntry]) -> None:
    parked = state.incoming_buffer.parked
    room = max(0, state.bloom_filter.parameters.capacity - len(parked))
    for entry in newest[len(newest) - min(room, len(newest)) :]:
        state.bloom_filter.insert(entry.message_id)
    for message_id in parked:
        state.bloom_filter.insert(message_id)


def _parked(rows: Sequence[Row], listen_to: Sequence[WireProfile]) -> Iterator[ParkedMessage]:
    for _, arrived_ms, retrieval_hint, data in PARKED.read(rows):
        codec = next((p.codec for p in listen_to if p.codec.recognises(data)), None)
        try:
            if codec is not None:
                yield ParkedMessage(
                    codec.decode(data), data, retrieval_hint, arrived_ms=arrived_ms, unmet=set()
                )
        except CodecError:
            # It was read before, by a version that was less strict: it must come again.
            continue


def _number(value: Value) -> int:
    return value if isinstance(value, int) else 0
