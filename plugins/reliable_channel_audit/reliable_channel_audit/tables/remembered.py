"""Findings about single participants, which are kept until a participant has other files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, TypeVar, get_args

import msgspec
import numpy as np

from ..columns.arrays import Array
from ..columns.fast_facts import Whose
from ..facts import Fact
from ..journals import Participant
from .ingest import Row
from .participants import Acknowledged, Facts, Many
from .stored_part import HourRow, hour_rows, hours_in

T = TypeVar("T")
FORMAT: Final = 4
"""Version of kept findings, which is raised when equal files give other findings."""
_KINDS: Final[dict[str, Callable[[Iterable[object]], Fact]]] = {
    kind.__name__: kind._make for kind in get_args(Fact)
}


class _Kept(msgspec.Struct):
    key: str
    few: list[tuple[str, list[Any]]]
    hours: list[tuple[Whose, list[HourRow]]]
    sent: dict[bytes, str]
    acknowledged: list[Acknowledged]
    by_rows: Many | None


def remembered(
    participant: Participant, rows: Sequence[Row], directory: Path, settle_ms: int | None
) -> Facts | None:
    """Return the kept findings about a participant with the same files, or None."""
    key = _key(participant, rows, settle_ms)
    kept = kept_in(path_of(directory, participant.channel_id, participant.participant_id), _Kept)
    if key is None or kept is None or kept.key != key:
        return None
    few = [_KINDS[kind](values) for kind, values in kept.few]
    rows = [] if kept.by_rows is not None else list(rows)
    hours = {whose: hours_in(each) for whose, each in kept.hours}
    return Facts(participant, few, hours, kept.sent, kept.acknowledged, rows, by_rows=kept.by_rows)


def remember(known: Facts, rows: Sequence[Row], directory: Path, settle_ms: int | None) -> None:
    """Keep the findings about a participant, unless one of its files is open."""
    key = _key(known.participant, rows, settle_ms)
    if key is None:
        return
    kept = _Kept(
        key,
        [(type(each).__name__, list(each)) for each in known.few],
        [(whose, hour_rows(hours)) for whose, hours in known.hours.items()],
        known.sent,
        known.acknowledged,
        known.by_rows,
    )
    keep(path_of(directory, known.participant.channel_id, known.participant.participant_id), kept)


def kept_in(path: Path, kind: type[T]) -> T | None:
    """Return what a file keeps, or None if the file is missing or has another form."""
    try:
        return msgspec.msgpack.decode(path.read_bytes(), type=kind, dec_hook=_array)
    except (FileNotFoundError, msgspec.DecodeError):
        return None


def keep(path: Path, value: object) -> None:
    """Write a value to a file completely or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_suffix(".tmp")
    unfinished.write_bytes(msgspec.msgpack.encode(value, enc_hook=_bytes))
    Path(unfinished).replace(path)


def path_of(directory: Path, *names: str) -> Path:
    """Return the file for what is kept about a channel, or about a participant of a channel."""
    return directory / "judged" / f"{sha256(repr(names).encode()).hexdigest()}.msgpack"


def _bytes(array: Array) -> bytes:
    return bytes(array.tobytes())


def _array(kind: type, data: bytes) -> Array:
    return np.frombuffer(data, np.int64)


def _key(participant: Participant, rows: Sequence[Row], settle_ms: int | None) -> str | None:
    if [row["path"] for row in rows] != list(participant.paths):
        return None
    files = [(row["path"], row["sha256"]) for row in rows]
    return sha256(repr((FORMAT, settle_ms, files)).encode()).hexdigest()
