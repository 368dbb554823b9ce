"""Conversion of journal lines from text to typed values, with reasons for unreadable lines."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Annotated, Final, Literal, NamedTuple, get_args

import msgspec

from reliable_channel.events import AnyEvent
from reliable_channel.spi import Unpacker

OPENED: Final = "journal_opened"
CONTINUED: Final = "journal_continued"
"""Event that replaces `journal_opened` if a session continues in the journal's next part."""
CLOSED: Final = "journal_closed"
GAP: Final = "journal_gap"
"""Event of a line in which the journal itself reports missing lines. A line about missing lines
counts as unreadable, with its text as the reason."""
LOGGED: Final = "message_logged"
WIRE_IN: Final = "wire_in"
WIRE_OUT: Final = "wire_out"
SET_ASIDE: Final = "set_aside"
"""Event of a line that could not be read. The `record` of the line contains the reason."""
WIRE: Final = frozenset({WIRE_IN, WIRE_OUT})
PLAIN: Final = WIRE | {LOGGED}
"""Events whose lines have no fields besides those of `Line`."""
KNOWN: Final = frozenset(
    {OPENED, CLOSED, LOGGED, WIRE_IN, WIRE_OUT} | {event.wire_name for event in get_args(AnyEvent)}
)


class Line(NamedTuple):
    """Line of a journal with typed fields. Fields that the line's event does not have are None."""

    event: str
    at_ms: int | None = None
    """Time of the line by the participant's clock."""
    message_id: str | None = None
    sender_id: str | None = None
    source: str | None = None
    """Path or reason of a message, or evidence of an acknowledgement."""
    outcome: str | None = None
    """Result of a received message (`sds.Outcome`). The outcome is `restored` for a log entry, and
    `redelivered` for a message emitted again."""
    message_hash: bytes | None = None
    timestamp_ns: int | None = None
    """Time of the message by its sender's clock."""
    lamport_timestamp: int | None = None
    position: int | None = None
    evicted: int | None = None
    content_sha256: bytes | None = None
    first_segment_id: str | None = None
    """Id of the first segment of an own message's payload, by which events name the message."""
    acknowledged_by: str | None = None
    """Participant whose message acknowledged an own message."""
    message_ids: list[str] | None = None
    """Ids of the messages that the event is about. For `message_logged`, `message_ids` are messages
    that were declared lost before."""
    payload: bytes | None = None
    """SDS message of `wire_in` and `wire_out`, or content in other events."""
    record: str | None = None
    """Text of the line, if the line has no payload and its event is not in `PLAIN`."""


LAST_MS: Final = 253_402_300_799_999
"""Last millisecond of the year 9999, after which no calendar shows times."""
_SECONDS: Final = range(10**9, 10**11)
"""Times of 2001 to 5138 in seconds; as milliseconds they would be of 1970 to 1973."""


def time_text(at_ms: int, form: str = "%Y-%m-%d %H:%M:%S.%f") -> str:
    """Return a time (UTC) to the millisecond as text, or as a number if it is beyond calendars."""
    if not 0 <= at_ms <= LAST_MS:
        return f"{at_ms} ms"
    text = datetime.fromtimestamp(at_ms / 1000, UTC).strftime(form)
    return text[:-3] if form.endswith("%f") else text


def time_unit(at_ms: int) -> str:
    """Return the name of a time's unit if it is not milliseconds, otherwise an empty text."""
    if at_ms in _SECONDS:
        return "its times are in seconds, not milliseconds since 1970"
    return "its times are beyond the year 9999, not milliseconds since 1970" * (at_ms > LAST_MS)


def set_aside(reason: str) -> Line:
    """Return the line that replaces an unreadable line, with the reason."""
    return Line(SET_ASIDE, record=reason)


Whole = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
"""Whole number that fits into a column of 64 bits. No honest participant sends a Lamport timestamp
beyond 64 bits."""


class _Entry(msgspec.Struct, gc=False):
    message_id: str


class Json(msgspec.Struct, gc=False):
    """Fields of a line that are read. Other fields are ignored."""

    event: Literal[tuple(sorted(KNOWN))]  # type: ignore[valid-type]
    at_ms: Whole
    message_id: str | None = None
    sender_id: str | None = None
    source: str | None = None
    outcome: str | None = None
    message_hash: str | None = None
    retrieval_hint: str | None = None
    timestamp_ns: Whole | None = None
    lamport_timestamp: Whole | None = None
    position: Whole | None = None
    evicted: Whole | None = None
    wanted_from_ms: Whole | None = None
    """Lamport timestamp from which the participant wants messages (ms)."""
    content_sha256: str | None = None
    first_segment_id: str | None = None
    acknowledged_by: str | None = None
    message_ids: list[str | _Entry] | None = None
    missing: list[str | _Entry] | None = None
    payload: bytes | None = None
    packed: str | None = None
    fresh: bool = False
    redelivered: bool = False


json_of: Final = msgspec.json.Decoder(Json).decode
"""Decoder of one JSON line. For an unreadable line, it raises `ValueError` or `RecursionError`."""


def line_of(text: bytes, unpacker: Unpacker | None = None) -> Line:
    """Return the journal line in a text. An unreadable text is replaced by a line with the reason.

    If the `unpacker` has not read the lines that a payload refers to, the payload is None.
    """
    try:
        return _line(json_of(text), text, unpacker)
    except (ValueError, RecursionError) as error:
        return set_aside(_why_not(text, error))


def _line(values: Json, text: bytes, unpacker: Unpacker | None) -> Line:
    event, payload = values.event, values.payload
    if unpacker is not None:
        payload = _unpacked(values, unpacker)
    return Line(
        event,
        values.at_ms,
        values.message_id,
        values.sender_id,
        values.source,
        "redelivered" if values.redelivered else values.outcome,
        _bytes(values.message_hash or values.retrieval_hint),
        values.timestamp_ns,
        values.lamport_timestamp,
        values.position,
        values.evicted,
        _bytes(values.content_sha256),
        values.first_segment_id,
        values.acknowledged_by,
        ids_in(values),
        payload,
        None if payload is not None or event in PLAIN else text.decode(),
    )


def ids_in(values: Json) -> list[str] | None:
    """Return the ids of messages that a line is about, or that were declared lost before."""
    ids = values.missing if values.message_ids is None else values.message_ids
    if ids is None:
        return None
    return [each if isinstance(each, str) else each.message_id for each in ids]


def _unpacked(values: Json, unpacker: Unpacker) -> bytes | None:
    if values.fresh or values.event == OPENED:
        unpacker.begin()
    if values.packed is None:
        return values.payload
    try:
        return unpacker.unpack(values.packed)
    except LookupError:
        return None


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else bytes.fromhex(text)


def _why_not(text: bytes, error: Exception) -> str:
    """The reason in a person's words; seldom needed, so that it may read the line once more."""
    try:
        values = json.loads(text.decode())
    except UnicodeDecodeError:
        return "not UTF-8"
    except (ValueError, RecursionError):
        return "not JSON: torn, or not of a journal"
    if not isinstance(values, dict):
        return "not a JSON object"
    event = values.get("event")
    if event == GAP:
        return (
            f"{values.get('lines')} lines are missing from {values.get('from_ms')} to "
            f"{values.get('at_ms')} ms: the journal could not be written "
            f"({str(values.get('reason'))[:100]})"
        )
    if event not in KNOWN:
        return "unknown event" if isinstance(event, str) else "no event"
    return f"bad value in {event}: {str(error)[:100]}"
