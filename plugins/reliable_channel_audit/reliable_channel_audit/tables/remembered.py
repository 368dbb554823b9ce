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
    participant: Participant,
    rows: Sequence[Row],
    directory: Path,
    settle_ms: int | None,
    judged: Callable[[Participant, Sequence[Row], Path, int | None], Facts],
) -> Facts:
    """Return the kept findings about a participant with the same files, otherwise what `judged`
    finds. The findings are kept unless one of the files is open."""
    key = _key(participant, rows, settle_ms)
    path = path_of(directory, participant.channel_id, participant.participant_id)
    kept = None if key is None else kept_in(path, _Kept)
    if kept is not None and kept.key == key:
        few = [_KINDS[kind](values) for kind, values in kept.few]
        hours = {whose: hours_in(each) for whose, each in kept.hours}
        rows = [] if kept.by_rows is not None else list(rows)
        return Facts(
            participant, few, hours, kept.sent, kept.acknowledged, rows, by_rows=kept.by_rows
        )
    found = judged(participant, rows, directory, settle_ms)
    if key is not None:
        few_values = [(type(each).__name__, list(each)) for each in found.few]
        hour_values = [(whose, hour_rows(hours)) for whose, hours in found.hours.items()]
        kept = _Kept(key, few_values, hour_values, found.sent, found.acknowledged, found.by_rows)
        keep(path, kept)
    return found


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
