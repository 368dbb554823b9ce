"""Keys that make a repeated `send` one message."""

import json
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from ..sds.changes import Recorder, Row, Table
from ..state.errors import StateError

SENDS: Final = Table(
    "sends",
    (
        ("idempotency_key", "TEXT"),
        ("number", "INTEGER"),
        ("request_id", "TEXT"),
        ("message_ids", "TEXT"),
    ),
)
KEYS_REMEMBERED: Final = 100_000
"""The oldest are forgotten beyond."""


@dataclass(slots=True)
class Accepted:
    """What became of a `send`: its request, and the ids of its segments."""

    request_id: str
    message_ids: tuple[str, ...]
    failure: StateError | None = field(default=None, compare=False)
    """Why it was not accepted after all: it could not be written."""


class Idempotency:
    """What was accepted under which key."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._accepted: OrderedDict[str, Accepted] = OrderedDict()
        self._number = 0

    def get(self, key: str | None) -> Accepted | None:
        """What was accepted under a key before."""
        return None if key is None else self._accepted.get(key)

    def add(self, key: str | None, accepted: Accepted) -> None:
        """Something is accepted under a key."""
        if key is None:
            return
        self._number += 1
        self._accepted[key] = accepted
        message_ids = json.dumps(accepted.message_ids)
        self._recorder.put(SENDS, key, self._number, accepted.request_id, message_ids)
        if len(self._accepted) > KEYS_REMEMBERED:
            self._recorder.delete(SENDS, self._accepted.popitem(last=False)[0])

    def discard(self, key: str | None) -> None:
        """What was accepted under a key was withdrawn."""
        if key is not None and self._accepted.pop(key, None) is not None:
            self._recorder.delete(SENDS, key)

    def restore(self, rows: Iterable[Row]) -> None:
        """Begin with the keys from before a restart."""
        for key, number, request_id, message_ids in sorted(rows, key=lambda row: int(row[1] or 0)):
            assert isinstance(key, str) and isinstance(number, int)
            assert isinstance(request_id, str) and isinstance(message_ids, str)
            self._accepted[key] = Accepted(request_id, tuple(json.loads(message_ids)))
            self._number = number
