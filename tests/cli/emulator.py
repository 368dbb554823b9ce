"""As much of a terminal as `chat` uses: what a person sees after a stream of bytes."""

import re
from typing import Final

_PARTS: Final = re.compile(r"\x1b\[([?\d;]*)([A-Za-z])|\x1b([78])|([\r\n\x07])|([^\x1b\r\n\x07]+)")


class Emulator:
    """Rows of text with a cursor. Colours are ignored."""

    def __init__(self, columns: int, rows: int) -> None:
        self.columns, self._height = columns, rows
        self._rows = [""]
        self._row = self._column = 0
        self._saved = (0, 0)

    def feed(self, data: str) -> None:
        for parameters, letter, saving, control, text in _PARTS.findall(data):
            if letter:
                self._control(parameters, letter)
            elif saving == "7":
                self._saved = self._row, self._column
            elif saving == "8":
                self._row, self._column = self._saved
            elif control == "\r":
                self._column = 0
            elif control == "\n":
                self._down()
            else:
                for character in text:
                    self._put(character)

    @property
    def shown(self) -> list[str]:
        """The rows, without blanks at their ends."""
        return [row.rstrip() for row in self._rows]

    def _control(self, parameters: str, letter: str) -> None:
        number = int(parameters) if parameters.isdigit() else 0
        if letter == "A":
            self._row = max(0, self._row - max(1, number))
        elif letter == "C":
            self._column += max(1, number)
        elif letter == "H":
            self._row = max(0, len(self._rows) - self._height)
            self._column = 0
        elif letter == "K":
            self._rows[self._row] = self._rows[self._row][: self._column]
        elif letter == "J" and number == 2:
            self._rows = [""]
            self._row = self._column = 0
        elif letter == "J":
            self._rows[self._row] = self._rows[self._row][: self._column]
            del self._rows[self._row + 1 :]

    def _put(self, character: str) -> None:
        if self._column >= self.columns:
            self._column = 0
            self._down()
        row = self._rows[self._row].ljust(self._column)
        self._rows[self._row] = row[: self._column] + character + row[self._column + 1 :]
        self._column += 1

    def _down(self) -> None:
        self._row += 1
        if self._row == len(self._rows):
            self._rows.append("")
