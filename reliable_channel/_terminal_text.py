"""Text of other participants, made safe to print in a terminal."""

import unicodedata
from typing import Final

UNSAFE: Final = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
"""Unicode categories that steer a terminal or reorder a line: control and format characters (those
that override the writing direction among them), lone surrogates, line and paragraph separators."""
JOINERS: Final = "\u200c\u200d"
"""Format characters that scripts and emoji are spelled with. They move nothing."""


def printable(text: str) -> str:
    """Return `text` as one line in which no character can steer a terminal.

    Print texts and names of other participants through it. Otherwise a newline could forge a line
    of someone else, and an escape sequence could write the clipboard. A bidirectional override
    could show the words in another order. Such characters are replaced by escapes as in Python:
    `\n`, `\x1b`, `\u202e`.
    """
    if text.isprintable():
        return text
    return "".join(map(_shown, text))


def printable_name(name: str) -> str:
    """Return a sender id in a form that shows where it ends: in quotes if it is empty or has
    spaces, colons or quotes."""
    shown = printable(name)
    if shown and not any(character.isspace() or character in ':"' for character in shown):
        return shown
    return '"' + shown.replace('"', '\\"') + '"'


def is_text(value: str) -> bool:
    """Return True if `value` can be written as UTF-8, which lone surrogates cannot.

    Python makes them of bytes that the locale cannot read: in arguments, variables, file names.
    """
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _shown(character: str) -> str:
    if unicodedata.category(character) not in UNSAFE or character in JOINERS:
        return character
    return character.encode("unicode_escape").decode()
