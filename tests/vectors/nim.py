"""What nim-sds 0.3.0 was recorded to write, read, hash and deliver.

Lamport timestamps are seconds in the vectors and milliseconds in a `Message`; an empty text or
filter there is an absent one here.

The channel of a behaviour is that of its messages on the wire. Options of the participant may stand
as `options` in the file, and in a case, which wins: by the names of `ChannelOptions`, over the
defaults of the family.
"""

from collections.abc import Callable, Iterator
from typing import Any, Final

from reliable_channel.config import nested
from reliable_channel.options import ChannelOptions
from reliable_channel.sds import NIM, HistoryEntry, Message, SdsProtocol
from reliable_channel.sds.bloom import BloomFilter, BloomLayout, BloomParameters, RollingBloomFilter
from reliable_channel.sds.dialects import CodecError, NimCodec
from reliable_channel.sds.dialects.farmhash import fingerprint64
from reliable_channel.sds.dialects.nim import NIM_BLOOM, text
from reliable_channel.sds.events import (
    AcknowledgementSource,
    MessageAcknowledged,
    MessagePossiblyAcknowledged,
    MessageReceived,
)
from reliable_channel.sds.options import RepairOptions
from reliable_channel.sds.repair.nim import nim_in_response_group, nim_t_req, nim_t_resp
from tests.sds.world import taken

from .case import Result, first_difference, guarded

_CODEC: Final = NimCodec()


def check_nim_wire(document: Any) -> Iterator[Result]:
    options = document.get("options", {})
    for section, check in _SECTIONS.items():
        for number, case in enumerate(document[section]):
            name = case.get("name", f"{section} {number}") if isinstance(case, dict) else section
            if section in _BEHAVIOUR and isinstance(case, dict):
                case = case | {"options": options | case.get("options", {})}
            yield f"{section}: {name}", guarded(check, case)


# -- the wire --------------------------------------------------------------------------------------


def _message(fields: Any) -> Message:
    return Message(
        _id(fields["sender_id"]),
        _id(fields["message_id"]),
        _id(fields["channel_id"]),
        int(fields["lamport_timestamp"]) * 1000,
        tuple(map(_entry, fields["causal_history"])),
        bytes.fromhex(fields["bloom_filter_hex"]) or None,
        tuple(map(_entry, fields["repair_request"])),
        bytes.fromhex(fields["content_hex"]) or None,
    )


def _entry(fields: Any) -> HistoryEntry:
    hint = bytes.fromhex(fields["retrieval_hint_hex"]) or None
    return HistoryEntry(_id(fields["message_id"]), hint, _id(fields["sender_id"]) or None)


def _id(value: Any) -> str:
    return text(bytes.fromhex(value["not_utf8_hex"])) if isinstance(value, dict) else str(value)


def _written(case: Any) -> str | None:
    """`hex` and `fields` are each other, but for what ends the process of whoever reads it."""
    fields, data = _message(case["fields"]), bytes.fromhex(case["hex"])
    if not case["nim_decodes"]:
        return _refused(lambda: _CODEC.decode(data)) or _refused(lambda: _CODEC.encode(fields))
    return first_difference(
        [
            ("encoded", _CODEC.encode(fields), data),
            ("decoded", _CODEC.decode(data), fields),
            ("recognised", NIM.codec.recognises(data), True),
        ]
    )


def _refused(attempt: Callable[[], object]) -> str | None:
    try:
        return f"this ends the process of nim-sds, and is taken here: {attempt()!r}"
    except CodecError:
        return None


def _read(case: Any) -> str | None:
    """What nim accepts means the same; what it refuses raises at most the codec's own error."""
    try:
        decoded = _CODEC.decode(bytes.fromhex(case["hex"]))
    except CodecError as error:
        return f"nim-sds accepts this: {error}" if case["accepted"] else None
    if not case["accepted"]:
        return None
    return first_difference([("decoded", decoded, _message(case["fields"]))])


# -- hashes, filters, timers -----------------------------------------------------------------------


def _string_hash(case: Any) -> str | None:
    fingerprint = f"{fingerprint64(bytes.fromhex(case['s_hex'])):016x}"
    return first_difference([("hash", fingerprint, case["hash_u64_hex"])])


def _bloom(case: Any) -> str | None:
    parameters = BloomParameters(case["capacity"], case["error_rate"])
    layout = parameters.layout_in(NIM_BLOOM)
    made = BloomFilter(layout)
    for item in case["items"]:
        made.insert(item)
    field = bytes.fromhex(case["hex"])
    read_layout, words = NIM_BLOOM.read(field, parameters)
    lookups = {item: _is_in(read_layout, words, item) for item in case["lookups"]}
    return first_difference(
        [
            ("k_hashes", layout.hash_count, case["k_hashes"]),
            ("m_bits", layout.bit_count, case["m_bits"]),
            ("int_count", layout.byte_count // 8, case["int_count"]),
            ("set_bits", _set_bits(bytes(made)), case["set_bits"]),
            ("bytes", NIM_BLOOM.write(parameters, bytes(made)), field),
            ("length", len(field), case["len"]),
            ("layout", read_layout, layout),
            ("lookups", lookups, case["lookups"]),
        ]
    )


def _is_in(layout: BloomLayout, words: bytes, item: str) -> bool:
    return layout.holds(words, layout.form.hash_pair(item))


def _set_bits(words: bytes) -> list[int]:
    return [i for i in range(8 * len(words)) if words[i >> 3] >> (i & 7) & 1]


def _rolling_bloom(case: Any) -> str | None:
    """The ids of nim's final filter are in its filter, and at least the newest of them in ours."""
    parameters = BloomParameters(case["capacity"], case["error_rate"])
    ids = [f"{case['prefix']}{n}" for n in range(case["adds"])]
    window = ids[-case["final_len"] :]
    ours = RollingBloomFilter(parameters, ids, form=NIM_BLOOM)
    layout, words = NIM_BLOOM.read(bytes.fromhex(case["final_filter_hex"]), parameters)
    newest = window[-len(ours) :]
    return first_difference(
        [
            ("found in nim's filter", [i for i in window if _is_in(layout, words, i)], window),
            ("found in ours", [i for i in newest if i in ours], newest),
            ("nim's first of the window", window[0], _first_of_window(case, ids)),
        ]
    )


def _first_of_window(case: Any, ids: list[str]) -> str:
    return str(case["clean_events"][-1]["first_kept"]) if case["clean_events"] else ids[0]


def _repair_timer(case: Any) -> str | None:
    participant, sender = case["participant"], case["sender"]
    options = RepairOptions(t_min_ms=case["t_min_ms"], t_max_ms=case["t_max_ms"])
    pairs: list[tuple[str, object, object]] = []
    for row in case["rows"]:
        message_id = row["message_id"]
        groups = {
            count: nim_in_response_group(participant, sender, message_id, int(count))
            for count in row["in_response_group"]
        }
        pairs += [
            (
                f"t_req {message_id}",
                nim_t_req(participant, message_id, 0, options),
                row["t_req_ms"],
            ),
            (
                f"t_resp {message_id}",
                nim_t_resp(participant, sender, message_id, 0, options),
                row["t_resp_ms"],
            ),
            (f"groups {message_id}", groups, row["in_response_group"]),
        ]
    return first_difference(pairs)


# -- behaviour -------------------------------------------------------------------------------------


def _acknowledged(case: Any) -> str | None:
    """What nim reports as sent is at least possibly acknowledged; nothing else by a proof."""
    data = bytes.fromhex(case["ack_hex"])
    now_ms = _CODEC.decode(data).lamport_timestamp or 0
    ids = iter(case["sent_ids"])
    channel_id = _CODEC.decode(bytes.fromhex(case["sent_wire_hex"][0])).channel_id
    core = _core(case, channel_id, "nim-A", now_ms, lambda *_: next(ids))
    for message_id in case["sent_ids"]:
        core.send(b"payload " + message_id.encode(), now_ms)
    core.events.clear()
    core.receive(data, now_ms)
    proved, likely = set(), set()
    for event in taken(core.events):
        match event:
            case MessageAcknowledged(message_id, AcknowledgementSource.CAUSAL_HISTORY):
                proved.add(message_id)
            case MessageAcknowledged(message_id) | MessagePossiblyAcknowledged(message_id):
                likely.add(message_id)
    recorded = set(case["on_message_sent_order"])
    return first_difference(
        [
            ("sent and not acknowledged", sorted(recorded - proved - likely), []),
            ("left and acknowledged", sorted(proved & set(case["outgoing_left"])), []),
            ("fates", sorted(recorded | set(case["outgoing_left"])), sorted(case["sent_ids"])),
        ]
    )


def _delivered(case: Any) -> str | None:
    """After each step that is delivered whose dependencies are met, in causal order; in the end
    what nim has."""
    wires = [bytes.fromhex(step["hex"]) for step in case["steps"]]
    messages = [_CODEC.decode(data) for data in wires]
    now_ms = max(message.lamport_timestamp or 0 for message in messages)
    core = _core(case, messages[0].channel_id, "nim-R", now_ms)
    arrived: dict[str, Message] = {}
    delivered: list[str] = []
    for step, data, message in zip(case["steps"], wires, messages, strict=True):
        arrived[message.message_id] = message
        core.receive(data, message.lamport_timestamp or 0)
        delivered += [e.message_id for e in taken(core.events) if isinstance(e, MessageReceived)]
        if difference := first_difference([("delivered", sorted(delivered), _met(arrived))]):
            return f"step {step['step']}: {difference}"
    for position, message_id in enumerate(delivered):
        if not set(arrived[message_id].causal_ids) <= set(delivered[:position]):
            return f"{message_id} was delivered before what it refers to"
    history = case["steps"][-1]["history"]
    return first_difference([("nim's history", sorted(delivered), sorted(history))])


def _met(arrived: dict[str, Message]) -> list[str]:
    met: set[str] = set()
    while ready := {i for i, m in arrived.items() if i not in met and set(m.causal_ids) <= met}:
        met |= ready
    return sorted(met)


def _core(
    case: Any,
    channel_id: str,
    sender_id: str,
    now_ms: int,
    id_function: Callable[[str, int, bytes], str] | None = None,
) -> SdsProtocol:
    return SdsProtocol(
        channel_id,
        sender_id,
        now_ms=now_ms,
        random=lambda: 0.5,
        profile=NIM,
        listen_to=[NIM],
        options=ChannelOptions(wire_profile="nim", **nested(case["options"])).sds_options(),
        id_function=id_function,
    )


_SECTIONS: Final[dict[str, Callable[[Any], str | None]]] = {
    "messages": _written,
    "decode_cases": _read,
    "string_hashes": _string_hash,
    "blooms": _bloom,
    "rolling_blooms": _rolling_bloom,
    "repair_timers": _repair_timer,
    "acks": _acknowledged,
    "dependencies": _delivered,
}
_BEHAVIOUR: Final = ("acks", "dependencies")
