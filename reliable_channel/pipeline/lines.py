"""The lines of journals: text to typed values, and what cannot be read set aside with a reason."""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Callable
from typing import Any, Final, NamedTuple, TypeVar, get_args

from ..events import Event

T = TypeVar("T")
OPENED: Final = "journal_opened"
CLOSED: Final = "journal_closed"
LOGGED: Final = "message_logged"
WIRE_IN: Final = "wire_in"
WIRE_OUT: Final = "wire_out"
SET_ASIDE: Final = "set_aside"
"""The event of a line that could not be read; its `record` says why."""
KNOWN: Final = frozenset(
    {OPENED, CLOSED, LOGGED, WIRE_IN, WIRE_OUT} | {event.wire_name for event in get_args(Event)}
)


class Line(NamedTuple):
    """A line of a journal. A field that its event has not is None."""

    event: str
    at_ms: int | None = None
    """By the clock of the participant whose journal it is."""
    message_id: str | None = None
    sender_id: str | None = None
    source: str | None = None
    """How a message came or why it went; of an acknowledgement, how it is known."""
    outcome: str | None = None
    """What became of a message that came (`sds.Outcome`)."""
    message_hash: bytes | None = None
    timestamp_ns: int | None = None
    """By the clock of whoever sent the message."""
    lamport_timestamp: int | None = None
    position: int | None = None
    evicted: int | None = None
    content_sha256: bytes | None = None
    first_segment_id: str | None = None
    """Of an own message in the log the first one of its payload, which events name."""
    message_ids: list[str] | None = None
    """Of `message_logged` what was declared lost before, of other events what they are about."""
    payload: bytes | None = None
    """Of `wire_in` and `wire_out` an SDS message, of other events its content."""
    record: str | None = None
    """The line itself, where it has no payload and is no `message_logged`."""


def set_aside(reason: str) -> Line:
    """In place of a line that cannot be read."""
    return Line(SET_ASIDE, record=reason)


def line_of(text: bytes) -> Line:
    """Read a line; one that cannot be read becomes one that says why."""
    try:
        values = json.loads(text.decode())
    except UnicodeDecodeError:
        return set_aside("not UTF-8")
    except (ValueError, RecursionError):
        return set_aside("not JSON: torn, or not of a journal")
    if not isinstance(values, dict):
        return set_aside("not a JSON object")
    event = values.get("event")
    if event not in KNOWN:
        return set_aside("unknown event" if isinstance(event, str) else "no event")
    try:
        return _line(event, values, text)
    except (KeyError, TypeError, ValueError) as error:
        return set_aside(f"bad value in {event}: {_short(error)}")


def _line(event: str, values: dict[str, Any], text: bytes) -> Line:
    payload = values.get("payload")
    return Line(
        event,
        _required(values, "at_ms", _whole),
        _optional(values, "message_id", _text),
        _optional(values, "sender_id", _text),
        _optional(values, "source", _text),
        _optional(values, "outcome", _text),
        _optional(values, "message_hash", bytes.fromhex)
        or _optional(values, "retrieval_hint", bytes.fromhex),
        _optional(values, "timestamp_ns", _whole),
        _optional(values, "lamport_timestamp", _whole),
        _optional(values, "position", _whole),
        _optional(values, "evicted", _whole),
        _optional(values, "content_sha256", bytes.fromhex),
        _optional(values, "first_segment_id", _text),
        _ids(values),
        None if payload is None else b64decode(payload, validate=True),
        None if payload is not None or event == LOGGED else text.decode(),
    )


def _ids(values: dict[str, Any]) -> list[str] | None:
    ids = values.get("message_ids", values.get("missing"))
    if ids is None:
        return None
    return [_text(each["message_id"] if isinstance(each, dict) else each) for each in ids]


def _required(values: dict[str, Any], name: str, read: Callable[[Any], int]) -> int:
    if name not in values:
        raise ValueError(f"{name} is absent")
    return read(values[name])


def _optional(values: dict[str, Any], name: str, read: Callable[[Any], T]) -> T | None:
    value = values.get(name)
    return None if value is None else read(value)


def _whole(value: Any) -> int:
    """A number that a column of 64 bits holds; a Lamport timestamp beyond is no honest one."""
    if not isinstance(value, int) or isinstance(value, bool) or not -(2**63) <= value < 2**63:
        raise ValueError(f"{value!r:.40} is no whole number of 64 bits")
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r:.40} is no text")
    return value


def _short(error: Exception) -> str:
    return str(error)[:100]
