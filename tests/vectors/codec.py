"""Encoded messages of js-waku, and hostile bytes."""

from collections.abc import Iterator
from typing import Any

from reliable_channel.sds import Message, MessageKind, Outcome, SdsOptions, SdsProtocol
from reliable_channel.sds.dialects import CodecError, SpecCodec
from reliable_channel.sds.dialects.spec import MAX_LAMPORT_TIMESTAMP
from reliable_channel.sds.ids import js_waku_id
from reliable_channel.sds.options import RepairOptions

from .case import (
    Result,
    blob,
    cases,
    entries,
    first_difference,
    hostile,
    message,
    optional_hex,
    wire,
)

_CODEC = SpecCodec()


def check_messages(document: Any) -> Iterator[Result]:
    setup = document.get("channel_setup") if isinstance(document, dict) else None

    def check(case: Any) -> str | None:
        match case["set"]:
            case "valid":
                return _valid(case)
            case "hostile":
                return _hostile(case, setup)
        return f"unknown set {case['set']!r}"

    yield from cases(document, check)


def _valid(case: Any) -> str | None:
    fields, data = message(case["fields"]), wire(case["wire"])
    well_formed = not _is_js_encoder_defect(fields)
    lamport = fields.lamport_timestamp
    if well_formed and (lamport is None or 0 <= lamport <= MAX_LAMPORT_TIMESTAMP):
        if difference := first_difference([("encoded", _CODEC.encode(fields), data)]):
            return difference
    if case["decoded"] is None:
        return _refused(data)
    if not well_formed:
        # These bytes hold a field number 0, which protobuf forbids.
        return first_difference([("own encoding", _CODEC.decode(_CODEC.encode(fields)), fields)])
    return _means(_CODEC.decode(data), case["decoded"])


def _is_js_encoder_defect(fields: Message) -> bool:
    """protons writes 2^31 as five zero bytes."""
    return fields.lamport_timestamp == 2**31


def _refused(data: bytes) -> str | None:
    try:
        return f"js-waku refuses these bytes, read here as {_CODEC.decode(data)!r}"
    except CodecError:
        return None


def _means(ours: Message, recorded: Any) -> str | None:
    content = ours.content if ours.kind is not MessageKind.SYNC else None
    return first_difference(
        [
            ("kind", ours.kind.value if ours.kind else None, recorded["kind"]),
            ("sender_id", ours.sender_id, recorded["sender_id"]),
            ("message_id", ours.message_id, recorded["message_id"]),
            ("channel_id", ours.channel_id, recorded["channel_id"]),
            ("lamport_timestamp", _text(ours.lamport_timestamp), recorded["lamport_timestamp"]),
            ("causal_history", tuple(ours.causal_history), entries(recorded["causal_history"])),
            ("repair_request", tuple(ours.repair_request), entries(recorded["repair_request"])),
            ("bloom_filter", ours.bloom_filter, blob(recorded["bloom_filter"])),
            ("content", content, optional_hex(recorded["content"])),
        ]
    )


def _text(number: int | None) -> str | None:
    return None if number is None else str(number)


def _hostile(case: Any, setup: Any) -> str | None:
    """Hostile bytes raise nothing but `CodecError` and, where they are refused, leave no trace."""
    data = hostile(case["bytes"])
    now_ms = setup["now"]
    core = SdsProtocol(
        setup["channel_id"],
        setup["own_id"],
        now_ms=now_ms,
        random=lambda: 0.5,
        id_function=js_waku_id,
        options=SdsOptions(repair=RepairOptions(enabled=setup["enable_repair"])),
    )
    core.send(bytes.fromhex(setup["own_message_payload"]), now_ms)
    before = _trace(core)
    try:
        _CODEC.decode(data)
        refused = False
    except CodecError:
        refused = True
    arrival = core.receive(data, now_ms)
    core.on_deadline(now_ms)
    if refused and arrival.outcome is not Outcome.REJECTED:
        return f"the codec refuses these bytes and the core took them as {arrival.outcome.value}"
    if arrival.outcome in (Outcome.REJECTED, Outcome.OWN) and _trace(core) != before:
        return f"a {arrival.outcome.value} message left a trace: {before} became {_trace(core)}"
    honest = Message("honest", "ab" * 32, setup["channel_id"], now_ms + 5, content=b"honest")
    if core.receive(_CODEC.encode(honest), now_ms).outcome is not Outcome.DELIVERED:
        return "an honest message that came afterwards was not delivered"
    return None


def _trace(core: SdsProtocol) -> tuple[object, ...]:
    return (
        core.clock.value,
        core.log.digest(),
        bytes(core.bloom_filter),
        sorted(core.incoming_buffer.parked),
        sorted(core.incoming_buffer.missing),
        core.outgoing_buffer.partition(),
        core.repair_requests.planned(),
        core.repair_responses.planned(),
        len(core.participants),
    )
