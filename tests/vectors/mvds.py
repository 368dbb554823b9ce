"""What the Go reference of 2/MVDS (v0.0.23) writes, reads and hashes."""

from collections.abc import Callable, Iterator
from typing import Any, Final

from reliable_channel_mvds import SEED, CodecError, GroupId, Message, MessageId, Payload

from .case import Result, first_difference, guarded


def check_mvds(document: Any) -> Iterator[Result]:
    for section, check in _SECTIONS.items():
        for case in document[section]:
            name = case.get("name") if isinstance(case, dict) else case
            yield f"{section}: {name}", guarded(check, case)


def _message_id(case: Any) -> str | None:
    message = _message(case["message"])
    encoded = bytes.fromhex(case["wire"])
    return first_difference(
        [
            ("id", message.id.hex(), case["message"]["id"]),
            ("encoded", SEED.encode_message(message), encoded),
        ]
    )


def _payload(case: Any) -> str | None:
    payload, data = _fields(case), bytes.fromhex(case["wire"])
    return first_difference(
        [
            ("encoded", SEED.encode(payload), data),
            ("decoded", SEED.decode(data), payload),
            ("is_valid", not payload.is_empty, case["is_valid"]),
            ("ids", [m.id.hex() for m in payload.messages], [m["id"] for m in case["messages"]]),
        ]
    )


def _decode(case: Any) -> str | None:
    """What the reference refuses is refused; what it accepts means the same, and is written so."""
    try:
        decoded = SEED.decode(bytes.fromhex(case["wire"]))
    except CodecError as error:
        return f"the reference accepts this: {error}" if case["ok"] else None
    if not case["ok"]:
        return f"the reference refuses this ({case['error']}), read here as {decoded!r}"
    recorded = _fields(case["payload"])
    known = [Message(m.group_id, m.timestamp, m.body) for m in decoded.messages]
    return first_difference(
        [
            ("acks", decoded.acks, recorded.acks),
            ("offers", decoded.offers, recorded.offers),
            ("requests", decoded.requests, recorded.requests),
            ("messages", tuple(known), recorded.messages),
            ("is_valid", not decoded.is_empty, case["payload"]["is_valid"]),
            ("encoded again", SEED.encode(decoded), bytes.fromhex(case["reencoded"])),
        ]
    )


def _fields(case: Any) -> Payload:
    return Payload(
        _ids(case["acks"]),
        _ids(case["offers"]),
        _ids(case["requests"]),
        tuple(map(_message, case["messages"])),
    )


def _ids(values: Any) -> tuple[MessageId, ...]:
    return tuple(MessageId(bytes.fromhex(value)) for value in values)


def _message(fields: Any) -> Message:
    group_id = GroupId(bytes.fromhex(fields["group_id"]))
    return Message(group_id, int(fields["timestamp_str"]), bytes.fromhex(fields["body"]))


_SECTIONS: Final[dict[str, Callable[[Any], str | None]]] = {
    "message_ids": _message_id,
    "payloads": _payload,
    "decode": _decode,
}
