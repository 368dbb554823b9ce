"""Rows of a view for the web page, all of them at first and then the changes.

Times are milliseconds since the second `base`, in which the view begins.
"""

import json
from itertools import islice
from typing import Any, Final

from ..model import View
from ..values import LAMPS, Gap, Message

MAX_ROWS: Final = 4_000
"""Maximum number of rows of one kind in a message to the page. Further rows follow in the next
message."""


class Rows:
    """Rows that were not sent to a page yet. The set of unsent rows never has more rows than the
    view."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._messages = dict.fromkeys(view.messages)
        self._gaps = dict.fromkeys(view.gaps)
        self._lanes = 0
        self._heard: list[int] = []
        self._second = 0
        self._seconds: list[tuple[int, int, int]] = []
        self._lamps = -1
        self._base_ms: int | None = None

    def changed(self, messages: set[int], gaps: set[int]) -> None:
        """Note that rows have changed and must be sent again."""
        self._messages.update(dict.fromkeys(messages))
        self._gaps.update(dict.fromkeys(gaps))

    def take(self) -> str | None:
        """Return the next rows for the page as JSON, or None if nothing changed."""
        view = self._view
        if view.first_ms is None:
            return None
        values: dict[str, Any] = {}
        if self._base_ms is None:
            self._base_ms = view.first_ms // 1000 * 1000
            values["base"] = self._base_ms
        self._add_tables(values)
        messages = _some(self._messages)
        found = [self._message(view.messages[each]) for each in messages if each in view.messages]
        gaps = [self._gap(view.gaps[each]) for each in _some(self._gaps) if each in view.gaps]
        values |= {"messages": found} if found else {}
        values |= {"gaps": gaps} if gaps else {}
        if not values:
            return None
        values["last"] = self._since(view.last_ms)
        values["forgotten"] = view.forgotten
        values["more"] = bool(self._messages or self._gaps)
        return json.dumps(values, separators=(",", ":"))

    def _add_tables(self, values: dict[str, Any]) -> None:
        """Participants, lamps and traffic, where they changed."""
        view = self._view
        if self._lanes < len(view.lanes):
            new = view.lanes[self._lanes :]
            values["lanes"] = [[lane.name, self._since(lane.since_ms)] for lane in new]
            values["channels"] = sorted(view.channel_ids)
            self._lanes = len(view.lanes)
        heard = [self._since(lane.heard_ms) for lane in view.lanes]
        if heard != self._heard:
            self._heard = values["heard"] = heard
        changes = sum(len(s.changes) for each in view.lamps.values() for s in each.values())
        if changes != self._lamps:
            self._lamps = changes
            values["lamps"] = [
                [lane, node, [self._changes(services[lamp].changes) for lamp in LAMPS]]
                for (lane, node), services in view.lamps.items()
            ]
        base_s = (self._base_ms or 0) // 1000
        # The newest second may grow; what is older is sent once, but for clocks that differ.
        seconds = list(view.seconds(self._second - 1))
        if seconds and seconds != self._seconds:
            self._second = max(each[0] for each in seconds)
            self._seconds = [each for each in seconds if each[0] >= self._second - 1]
            values["seconds"] = [[each[0] - base_s, *each[1:]] for each in seconds]

    def _message(self, message: Message) -> list[Any]:
        reached = list(message.reached)
        reached[::2] = [self._since(at_ms) for at_ms in reached[::2]]
        return [
            message.number,
            self._since(message.at_ms),
            message.lane,
            self._maybe(message.sent_ms),
            self._maybe(message.failed_ms),
            message.count,
            message.parents,
            reached,
        ]

    def _gap(self, gap: Gap) -> list[Any]:
        return [
            gap.number,
            gap.lane,
            self._since(gap.since_ms),
            self._maybe(gap.until_ms),
            gap.is_lost,
            gap.message_id[:8],
            gap.sender_id,
            gap.hint is not None,
            [self._since(at_ms) for at_ms in gap.asked_ms],
        ]

    def _changes(self, changes: list[tuple[int, bool, str]]) -> list[Any]:
        return [[self._since(at_ms), is_on, why] for at_ms, is_on, why in changes]

    def _maybe(self, at_ms: int | None) -> int | None:
        return None if at_ms is None else self._since(at_ms)

    def _since(self, at_ms: int) -> int:
        return at_ms - (self._base_ms or 0)


def _some(waiting: dict[int, None]) -> list[int]:
    found = list(islice(waiting, MAX_ROWS))
    for each in found:
        del waiting[each]
    return found
