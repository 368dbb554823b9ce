"""What the checks share: results, and the notations of jsvec/1 (bytes, blobs, wires, history
entries)."""

from collections.abc import Callable, Iterator, Sequence
from hashlib import sha256
from typing import Any

from reliable_channel.sds import HistoryEntry, Message

Result = tuple[str, str | None]


def cases(document: Any, check: Callable[[Any], str | None]) -> Iterator[Result]:
    """Run `check` over the cases of a document; one that cannot be read is a difference."""
    try:
        found = document["cases"]
    except (KeyError, TypeError):
        yield "file", "it has no list of cases"
        return
    for number, case in enumerate(found):
        yield _name(case, number), guarded(check, case)


def guarded(check: Callable[[Any], str | None], case: Any) -> str | None:
    """The difference that `check` finds; a case that it stumbles over differs too."""
    try:
        return check(case)
    except Exception as error:
        return f"unreadable or wrong: {type(error).__name__}: {error}"


def _name(case: Any, number: int) -> str:
    name = case.get("name") if isinstance(case, dict) else None
    return str(name) if name is not None else f"case {number}"


def first_difference(pairs: Sequence[tuple[str, object, object]]) -> str | None:
    """The first of `(what, ours, theirs)` that is not equal, as text."""
    for what, ours, theirs in pairs:
        if ours != theirs:
            return f"{what}: ours {_short(ours)}, recorded {_short(theirs)}"
    return None


def _short(value: object) -> str:
    text = value.hex() if isinstance(value, bytes) else repr(value)
    return text if len(text) <= 120 else text[:100] + f"… ({len(text)} characters)"


def bits_to_bytes(bits: Sequence[int], length: int) -> bytes:
    """A filter from its set bits: 64-bit words, big-endian."""
    data = bytearray(length)
    for bit in bits:
        data[(bit // 64) * 8 + 7 - (bit % 64) // 8] |= 1 << (bit % 8)
    return bytes(data)


def blob(value: Any) -> bytes | None:
    """A bloom filter's bytes, checked against the digest that stands beside them."""
    if value is None:
        return None
    if "hex" in value:
        data = bytes.fromhex(value["hex"])
    elif value.get("all_ones"):
        data = b"\xff" * value["len"]
    else:
        data = bits_to_bytes(value["bits"], value["len"])
    return _checked(data, value)


def wire(value: Any) -> bytes:
    """The bytes of an encoded message, checked likewise."""
    if "hex" in value:
        return _checked(bytes.fromhex(value["hex"]), value)
    bloom_filter = blob(value["bloom"])
    assert bloom_filter is not None
    data = bytes.fromhex(value["pre"]) + bloom_filter + bytes.fromhex(value["post"])
    return _checked(data, value)


def hostile(value: Any) -> bytes:
    """Bytes with a run: `{pre, repeat: {byte, count}, post}`, or plain."""
    if "hex" in value:
        return _checked(bytes.fromhex(value["hex"]), value)
    repeat = value["repeat"]
    byte = repeat["byte"]
    run = (bytes.fromhex(byte) if isinstance(byte, str) else bytes([byte])) * repeat["count"]
    return _checked(bytes.fromhex(value["pre"]) + run + bytes.fromhex(value["post"]), value)


def _checked(data: bytes, value: Any) -> bytes:
    if "len" in value and len(data) != value["len"]:
        raise ValueError(f"the vector's own length is {value['len']}, its bytes are {len(data)}")
    if "sha256" in value and sha256(data).hexdigest() != value["sha256"]:
        raise ValueError("the vector's own sha256 does not fit its bytes")
    return data


def optional_hex(value: str | None) -> bytes | None:
    return None if value is None else bytes.fromhex(value)


def entries(values: Any) -> tuple[HistoryEntry, ...]:
    return tuple(
        HistoryEntry(v["message_id"], optional_hex(v.get("retrieval_hint")), v.get("sender_id"))
        for v in values
    )


def message(fields: Any) -> Message:
    """A message from its fields as the vectors write them."""
    lamport = fields.get("lamport_timestamp")
    return Message(
        fields.get("sender_id", ""),
        fields.get("message_id", ""),
        fields.get("channel_id", ""),
        None if lamport is None else int(lamport),
        entries(fields.get("causal_history", ())),
        blob(fields.get("bloom_filter")),
        entries(fields.get("repair_request", ())),
        optional_hex(fields.get("content")),
    )
