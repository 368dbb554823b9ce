"""What the lines of one life say, as columns; in the order of lines, which have numbers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any, Final, NamedTuple, TypeVar, cast

import numpy as np

from ..journals import Noted, Participant
from ..lines import LOGGED, WIRE_IN, Json, ids_in
from .messages import DIGEST_BYTES, Ids, Messages
from .reading import RECEIVED, LineRange, Lines, hashed, line_ranges, opened_lines
from .tables import NOT_GIVEN, Log, Wire
from .wire import Array, NeedsRowReader, Whole

EXTRAORDINARY: Final = frozenset(
    {"message_forged", "message_lost", "message_rejected", "delivery_failed", "send_failed"}
)
"""Events of a life that is judged row by row."""
MAX_MS: Final = 2**53
"""A time beyond, in 285,000 years, is left to rows: sums of times stay within 64 bits."""
T = TypeVar("T")


class Received(NamedTuple):
    line: Whole
    message_id: Whole
    sender: Whole
    lamport_timestamp: Whole
    content_sha256: Array


class Emitted(NamedTuple):
    line: Whole
    at_ms: Whole
    message_id: Whole
    source: Whole
    acknowledged_by: Whole


class Gathered(NamedTuple):
    """A life without extraordinary events."""

    opened: Noted
    at_ms: Whole
    """Of each line, from the first on."""
    log: Log
    wire: Wire
    messages: Messages
    received: Received
    emitted: Emitted
    missing: list[tuple[int, list[str]]]
    """When messages were noted as missing, and which."""
    requested: list[tuple[int, list[str]]]
    """When messages were asked of others, and which."""
    repaired: list[str]
    """Messages that were sent again for others."""
    ids: Ids
    words: Ids
    """Sources and outcomes."""


TABLES: Final = (Log, Wire, Messages, Received, Emitted)


def gathered(participant: Participant) -> Gathered:
    """The journals of a participant with one life.

    Raises:
        NeedsRowReader: another one, or lines that are not understood here.
    """
    ids, words = Ids(), Ids()
    columns: defaultdict[type, list[Any]] = defaultdict(list)
    at_ms: list[int] = []
    rare: dict[str, list[Json]] = defaultdict(list)
    opened: list[Noted] = []
    for piece in _pieces(participant, at_ms, ids):
        if isinstance(piece, Noted):
            opened.append(piece)
            at_ms.append(piece.line.at_ms or 0)
            continue
        if not EXTRAORDINARY.isdisjoint(piece.by_event):
            raise NeedsRowReader("an extraordinary event")
        at_ms += piece.at_ms
        columns[Log].append(_log(piece.lines(LOGGED), ids))
        columns[Wire].append(_wire(piece.wire, words))
        columns[Messages].append(piece.messages)
        columns[Received].append(_received(piece.lines(RECEIVED), piece.contents, ids))
        columns[Emitted].append(_emitted(piece.lines("message_acknowledged"), ids, words))
        for event in ("message_missing", "repair_requested", "repair_sent"):
            rare[event] += piece.lines(event).rows
    if not columns:
        raise NeedsRowReader("a journal without lines")
    log, wire, messages, received, emitted = (_joined(columns[kind]) for kind in TABLES)
    times_ms = np.array(at_ms, np.int64)
    if times_ms.min() < -MAX_MS or times_ms.max() > MAX_MS:
        raise NeedsRowReader("a time that is none")
    return Gathered(
        opened=opened[0],
        at_ms=times_ms,
        log=log,
        wire=wire,
        messages=messages,
        received=received,
        emitted=emitted,
        missing=[(row.at_ms, ids_in(row) or []) for row in rare["message_missing"]],
        requested=[(row.at_ms, ids_in(row) or []) for row in rare["repair_requested"]],
        repaired=[row.message_id or "" for row in rare["repair_sent"]],
        ids=ids,
        words=words,
    )


def _pieces(
    participant: Participant, at_ms: Sequence[int], ids: Ids
) -> Iterator[Noted | LineRange]:
    """The lines with which files begin, and what stands between them."""
    for opened, blocks in opened_lines(participant):
        yield opened
        yield from line_ranges(blocks, len(at_ms), ids)


def _joined(parts: Sequence[Any]) -> Any:
    columns = zip(*parts, strict=True)
    return type(parts[0])(
        *(
            list(chain(*column)) if isinstance(column[0], list) else np.concatenate(column)
            for column in columns
        )
    )


def _log(lines: Lines, ids: Ids) -> Log:
    outcomes, lost, missing, first, hashes, hints, *columns = lines.columns(
        *("outcome", "message_ids", "missing", "first_segment_id", "message_hash"),
        *("retrieval_hint", "content_sha256", "message_id", "sender_id"),
        *("lamport_timestamp", "position", "evicted", "at_ms"),
    )
    if any(outcomes) or any(lost) or any(missing) or any(hints):
        raise NeedsRowReader("restored, or with messages that were declared lost")
    contents, message_ids, senders, lamport_timestamps, positions, evicted, at_ms = columns
    own = np.array([each is not None for each in first], bool)
    if (own == np.array([bool(each) for each in hashes], bool)).any():
        raise NeedsRowReader("neither an own message nor one of others, or both")
    if any(a not in (None, b) for a, b in zip(first, message_ids, strict=True)):
        raise NeedsRowReader("a payload of several messages")
    segments = np.full(len(first), -1, np.int64)
    segments[own] = ids.codes([each for each in first if each is not None])
    message_hashes = np.zeros((len(first), DIGEST_BYTES), np.uint8)
    message_hashes[~own] = _hashes([each for each in hashes if each])
    return Log(
        lines.numbers,
        _numbers(at_ms),
        ids.codes(_all(message_ids)),
        ids.codes(_all(senders)),
        _numbers(_all(lamport_timestamps)),
        _numbers(_all(positions)),
        _numbers(_all(evicted)),
        segments,
        _hashes(_all(contents)),
        message_hashes,
    )


def _wire(lines: Lines, words: Ids) -> Wire:
    events, outcomes, sources, timestamps, hashes, contents, at_ms = lines.columns(
        "event", "outcome", "source", "timestamp_ns", "message_hash", "content_sha256", "at_ms"
    )
    if any(contents) or not all(hashes):
        raise NeedsRowReader("a message without its hash, or with another")
    if NOT_GIVEN in timestamps:
        raise NeedsRowReader("a timestamp that stands for none here")
    is_in = np.array([event == WIRE_IN for event in events], bool)
    found = np.full(len(events), -1, np.int64)
    came = [outcome for outcome, event in zip(outcomes, events, strict=True) if event == WIRE_IN]
    found[is_in] = words.codes(_all(came))
    return Wire(
        lines.numbers,
        _numbers(at_ms),
        is_in,
        words.codes(_all(sources)),
        found,
        _numbers([NOT_GIVEN if each is None else each for each in timestamps]),
        _hashes(hashes),
    )


def _received(lines: Lines, contents: Array, ids: Ids) -> Received:
    message_ids, senders, lamport_timestamps = lines.columns(
        "message_id", "sender_id", "lamport_timestamp"
    )
    return Received(
        lines.numbers,
        ids.codes(_all(message_ids)),
        ids.codes(_all(senders)),
        _numbers(_all(lamport_timestamps)),
        contents,
    )


def _emitted(lines: Lines, ids: Ids, words: Ids) -> Emitted:
    message_ids, sources, senders, at_ms = lines.columns(
        "message_id", "source", "acknowledged_by", "at_ms"
    )
    return Emitted(
        lines.numbers,
        _numbers(at_ms),
        ids.codes(_all(message_ids)),
        words.codes(_all(sources)),
        ids.codes(_all(senders)),
    )


def _numbers(values: Sequence[int]) -> Whole:
    return np.array(values, np.int64)


def _hashes(texts: Sequence[str]) -> Array:
    return np.frombuffer(hashed(texts), np.uint8).reshape(-1, DIGEST_BYTES)


def _all(values: Sequence[T | None]) -> Sequence[T]:
    """Values none of which is missing."""
    if None in values:
        raise NeedsRowReader("a line without a value that others of its kind have")
    return cast("Sequence[T]", values)
