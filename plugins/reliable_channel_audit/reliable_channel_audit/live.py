"""A stream of journal lines watched while it comes: acknowledgements, recoveries and alarms.

State is kept by participant, one value each, so that an alarm needs no other participant. A
join of two streams would report unacknowledged messages only as long as other acknowledgements
come: just when it matters, it would be silent.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pyspark.sql import DataFrame
from pyspark.sql.types import StructField, StructType

from .schemas import NUMBER, TEXT

if TYPE_CHECKING:
    import pandas as pd

PATIENCE_MS: Final = 300_000
"""How long a message may be unacknowledged or missing before that is an alarm."""
WATCHED: Final = (
    "message_logged",
    "message_acknowledged",
    "delivery_failed",
    "send_failed",
    "message_missing",
    "message_lost",
)
NOTICE: Final = StructType(
    [
        StructField("channel_id", TEXT),
        StructField("participant_id", TEXT),
        StructField("kind", TEXT),
        StructField("message_id", TEXT),
        StructField("at_ms", NUMBER),
        StructField("after_ms", NUMBER),
    ]
)
"""`acknowledged`, `failed`, `recovered`, `lost`; or an alarm, `unacknowledged` or `missing`;
raised at `at_ms`, this long after it was accepted, or first missed."""
_STATE: Final = StructType([StructField("watch", TEXT)])
_COLUMNS: Final = ("at_ms", "event", "message_id", "first_segment_id", "message_ids")


class Notice(NamedTuple):
    """A notice about a message."""

    kind: str
    message_id: str
    at_ms: int
    after_ms: int


@dataclass(slots=True)
class Watch:
    """What is open at one participant."""

    unacknowledged: dict[str, int] = field(default_factory=dict)
    """Own messages, and when they were accepted."""
    missing: dict[str, int] = field(default_factory=dict)
    """Messages known by reference alone, and since when."""
    alarmed: dict[str, int] = field(default_factory=dict)
    """Messages of which an alarm was raised, and when."""

    def notices(
        self, lines: Iterable[tuple[int, str, str | None, str | None, Any]], patience_ms: int
    ) -> Iterator[Notice]:
        """Take lines (`at_ms`, `event`, `message_id`, `first_segment_id`, `message_ids`) and return
        the notices."""
        now_ms = 0
        for at_ms, event, message_id, first_segment_id, message_ids in lines:
            now_ms = max(now_ms, at_ms)
            yield from self._line(at_ms, event, message_id or "", first_segment_id, message_ids)
        for kind, waiting in (("unacknowledged", self.unacknowledged), ("missing", self.missing)):
            for message_id, since_ms in waiting.items():
                if now_ms - since_ms > patience_ms and message_id not in self.alarmed:
                    self.alarmed[message_id] = now_ms
                    yield Notice(kind, message_id, now_ms, now_ms - since_ms)

    def _line(
        self, at_ms: int, event: str, message_id: str, first_segment_id: str | None, ids: Any
    ) -> Iterator[Notice]:
        match event:
            case "message_logged" if first_segment_id == message_id:
                self.unacknowledged[message_id] = at_ms
            case "message_logged":
                yield from self._settled("recovered", self.missing, message_id, at_ms)
            case "message_lost":
                yield from self._settled("lost", self.missing, message_id, at_ms)
            case "message_acknowledged":
                yield from self._settled("acknowledged", self.unacknowledged, message_id, at_ms)
            case "delivery_failed" | "send_failed":
                yield from self._settled("failed", self.unacknowledged, message_id, at_ms)
            case "message_missing":
                for missing_id in () if ids is None else ids:
                    self.missing.setdefault(missing_id, at_ms)

    def _settled(
        self, kind: str, waiting: dict[str, int], message_id: str, at_ms: int
    ) -> Iterator[Notice]:
        since_ms = waiting.pop(message_id, None)
        if since_ms is not None:
            self.alarmed.pop(message_id, None)
            yield Notice(kind, message_id, at_ms, at_ms - since_ms)


def notices(journal: DataFrame, *, patience_ms: int = PATIENCE_MS) -> DataFrame:
    """The notices of a stream of `sds_journal` (`NOTICE`).

    Time is the journal's own: a participant that writes nothing more raises no alarm by itself.
    """

    def watched(key: tuple[str, str], frames: Iterator[pd.DataFrame], state: Any) -> Iterator[Any]:
        import pandas as pd

        watch = Watch(**json.loads(state.get[0])) if state.exists else Watch()
        lines = pd.concat(list(frames)).sort_values("at_ms", kind="stable")
        told = watch.notices(lines[list(_COLUMNS)].itertuples(index=False, name=None), patience_ms)
        rows = [(*key, *notice) for notice in told]
        state.update((json.dumps(asdict(watch)),))
        yield pd.DataFrame(rows, columns=NOTICE.names)

    return (
        journal.where(journal.event.isin(*WATCHED))
        .select("channel_id", "participant_id", *_COLUMNS)
        .groupBy("channel_id", "participant_id")
        .applyInPandasWithState(watched, NOTICE, _STATE, "append", "NoTimeout")
    )
