"""Findings about single participants, which are kept until a participant has other files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Final, get_args

import msgspec

from ..facts import Fact
from ..journals import Participant
from ..log_order import Hour
from .ingest import Row
from .participants import Acknowledged, Known, Many, Whose

FORMAT: Final = 3
"""Version of kept findings, which is raised when equal files give other findings."""
_KINDS: Final[dict[str, Callable[[Iterable[object]], Fact]]] = {
    kind.__name__: kind._make for kind in get_args(Fact)
}


class _Kept(msgspec.Struct):
    key: str
    few: list[tuple[str, list[object]]]
    hours: list[tuple[Whose, int, int, str, int, int]]
    sent: dict[bytes, str]
    acknowledged: list[Acknowledged]
    by_rows: Many | None


def remembered(
    participant: Participant, rows: Sequence[Row], directory: Path, settle_ms: int | None
) -> Known | None:
    """Return the kept findings about a participant with the same files, or None."""
    path = _path(participant, directory)
    key = _key(participant, rows, settle_ms)
    if key is None or not path.exists():
        return None
    try:
        kept = msgspec.msgpack.decode(path.read_bytes(), type=_Kept)
    except msgspec.DecodeError:
        return None
    if kept.key != key:
        return None
    few = [_KINDS[kind](values) for kind, values in kept.few]
    rows = [] if kept.by_rows is not None else list(rows)
    known = Known(participant, few, {}, kept.sent, kept.acknowledged, rows, by_rows=kept.by_rows)
    for whose, hour_ms, entries, total, *span in kept.hours:
        known.hours.setdefault(whose, {})[hour_ms] = Hour(entries, int(total, 16), *span)
    return known


def remember(known: Known, rows: Sequence[Row], directory: Path, settle_ms: int | None) -> None:
    """Keep the findings about a participant, unless one of its files is open."""
    key = _key(known.participant, rows, settle_ms)
    if key is None:
        return
    kept = _Kept(
        key,
        [(type(each).__name__, list(each)) for each in known.few],
        [
            (whose, hour_ms, hour.entries, f"{hour.total:032x}", hour.first_ms, hour.last_ms)
            for whose, hours in known.hours.items()
            for hour_ms, hour in hours.items()
        ],
        known.sent,
        known.acknowledged,
        known.by_rows,
    )
    path = _path(known.participant, directory)
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_suffix(".tmp")
    unfinished.write_bytes(msgspec.msgpack.encode(kept))
    Path(unfinished).replace(path)


def _path(participant: Participant, directory: Path) -> Path:
    name = f"{participant.channel_id}\0{participant.participant_id}"
    return directory / "judged" / f"{sha256(name.encode()).hexdigest()}.msgpack"


def _key(participant: Participant, rows: Sequence[Row], settle_ms: int | None) -> str | None:
    if [row["path"] for row in rows] != list(participant.paths):
        return None
    files = [(row["path"], row["sha256"]) for row in rows]
    return sha256(repr((FORMAT, settle_ms, files)).encode()).hexdigest()
