"""The small table that Jupyter shows for a log or an event.

Names and contents come from other participants, so everything is escaped: no text becomes markup.
"""

from collections.abc import Iterable, Sequence
from dataclasses import fields
from typing import Any, Final

from ._terminal_text import printable
from .sds.message import LogEntry

__all__ = ["Log", "event_html", "table"]

MAX_TEXT: Final = 200
"""The characters of a cell. Of a longer text the beginning and the length are shown."""
SHOWN_ENTRIES: Final = 20
"""A longer log is shown by its first and last entries, half of this number each."""
SHORT_ID: Final = 8
"""Characters of a message id in a log."""
_CELL: Final = "text-align: left; white-space: pre-wrap"


class Log(list[LogEntry]):
    """The entries of a log, in log order: a list that Jupyter shows as a table."""

    def _repr_html_(self) -> str:
        half = SHOWN_ENTRIES // 2
        numbers: Sequence[int] = range(len(self))
        if len(self) > SHOWN_ENTRIES:
            numbers = [*range(half), *range(len(self) - half, len(self))]
        rows = [self._row(number) for number in numbers]
        if len(rows) < len(self):
            rows.insert(half, ("…", "", f"{len(self) - len(rows)} more", ""))
        return table(("", "sender", "content", "message id"), rows)

    def _row(self, number: int) -> tuple[object, ...]:
        entry = self[number]
        return number, entry.sender_id, entry.content, entry.message_id[:SHORT_ID]


def event_html(event: Any) -> str:
    """Return an event as a table of its fields."""
    rows = [(field.name, getattr(event, field.name)) for field in fields(event)]
    return table((type(event).__name__, ""), rows)


def table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return rows as an HTML table. `bytes` that are UTF-8 are shown as text."""
    lines = [_row("th", header), *(_row("td", row) for row in rows)]
    return f"<table>{''.join(lines)}</table>"


def _row(tag: str, cells: Sequence[object]) -> str:
    from html import escape  # a program that shows no table need not load it

    texts = (f'<{tag} style="{_CELL}">{escape(_text(cell))}</{tag}>' for cell in cells)
    return f"<tr>{''.join(texts)}</tr>"


def _text(cell: object) -> str:
    if isinstance(cell, bytes):
        try:
            cell = cell.decode()
        except UnicodeDecodeError:
            cell = repr(cell)
    text = printable(str(cell))
    return text if len(text) <= MAX_TEXT else f"{text[:MAX_TEXT]}… ({len(text)} characters)"
