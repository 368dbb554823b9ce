"""Conversation on a terminal, shown above the line that is being typed.

A shown line can get a mark later, such as a tick. To find the line again, the screen counts rows.
If the terminal changes its size, the lines that fit are written again. If the output is no
terminal, lines are only printed.
"""

import sys
from collections import deque
from contextlib import suppress
from dataclasses import dataclass
from math import ceil
from typing import Final

from rich.cells import cell_len
from rich.text import Text

from .console import INDENT, columns, out, rows_of

KEPT: Final = 1_000
"""Maximum number of lines that can still be marked or written again."""


@dataclass(eq=False, slots=True)
class Line:
    """Shown line of the conversation."""

    text: Text
    mark: tuple[str, str] = ("", "")
    """Character before the text, with its style."""

    @property
    def shown(self) -> Text:
        """Text of the line with its mark."""
        sign, style = self.mark
        return Text.assemble((sign, style), " ", self.text) if sign else self.text


class Screen:
    """Lines of the conversation, with the prompt below them."""

    def __init__(self, prompt: str) -> None:
        self.is_terminal: Final = sys.stdin.isatty() and sys.stdout.isatty()
        self._prompt = prompt
        self._is_typing = False
        self._lines: deque[Line] = deque(maxlen=KEPT)

    def show(self, text: Text, mark: tuple[str, str] = ("", "")) -> Line:
        """Show a line of the conversation above the prompt."""
        line = Line(text, mark)
        self._lines.append(line)
        if not self.is_terminal:
            out.print(line.shown, soft_wrap=True)
            return line
        self._write(self._erasing() + self._rendered(line) + self._typed())
        return line

    def typed(self, text: str) -> None:
        """Remove the line that was just typed, because it is shown again with a mark."""
        self._is_typing = False
        if self.is_terminal:
            rows = _rows(self._prompt + text)
            sys.stdout.write(f"\x1b[{rows}A\r\x1b[J")
            sys.stdout.flush()

    def typing(self) -> None:
        """Show the prompt below the lines from now on."""
        self._is_typing = True

    def mark(self, line: Line, sign: str, style: str) -> bool:
        """Put a mark before a line, and return True if it is still on the screen."""
        line.mark = sign, style
        if not self.is_terminal or line not in self._lines:
            return False
        rows_up = _rows(self._prompt + _typed()) - 1 if self._is_typing else 0
        for one in reversed(self._lines):
            rows_up += len(rows_of(one.shown))
            if one is line:
                break
        if rows_up >= out.height:
            return False
        sys.stdout.write(f"\x1b7\x1b[{rows_up}A\r")
        out.print(Text(sign, style), end="")
        sys.stdout.write("\x1b8")
        sys.stdout.flush()
        return True

    def resized(self) -> None:
        """Write the lines that fit again, because the terminal changed its size."""
        if not self.is_terminal:
            return
        room, lines = out.height - 2, deque[Line]()
        for line in reversed(self._lines):
            if (room := room - len(rows_of(line.shown))) < 0:
                break
            lines.appendleft(line)
        rendered = "".join(map(self._rendered, lines))
        self._write("\x1b[2J\x1b[H" + rendered + self._typed())

    def _write(self, text: str) -> None:
        """Write at once: what is typed meanwhile is echoed before or after all of it."""
        sys.stdout.write(text)
        sys.stdout.flush()

    def _rendered(self, line: Line) -> str:
        with out.capture() as captured:
            for number, row in enumerate(rows_of(line.shown)):
                out.print(Text(INDENT if number else "") + row, soft_wrap=True)
        return captured.get()

    def _erasing(self) -> str:
        rows = _rows(self._prompt + _typed()) - 1 if self._is_typing else 0
        up = f"\x1b[{rows}A" if rows else ""
        return f"{up}\r\x1b[J\r\x1b[K"

    def _typed(self) -> str:
        return self._prompt + _typed() if self._is_typing else ""


def _typed() -> str:
    """What is on the line that is being typed."""
    with suppress(ImportError):
        import readline

        return readline.get_line_buffer()
    return ""


def _rows(text: str) -> int:
    return max(1, ceil(cell_len(text) / columns()))
