"""Visual form of a text, so that texts which look alike are equal.

The visual form ignores hidden characters, marks, similar letters, and numbers at the end.
"""

import unicodedata
from functools import lru_cache
from typing import Final

from confusable_homoglyphs.confusables import confusables_data

MAX_CHARACTERS: Final = 8_192
"""Maximum number of characters of a text that are examined. A message of Status has at most 4,096
characters."""
MAX_MARKS: Final = 4
"""Maximum number of combining marks on one letter in `plain`. More marks make normalizing slow, and
do not occur in real words."""
_BLANKS: Final = "\u115f\u1160\u2800\u3164\uffa0"
"""Letters and symbols that show nothing."""
_SAME: Final = str.maketrans("01i|", "olll")
"""ASCII letters and digits that look alike in many fonts."""


def plain(text: str) -> str:
    """Return a text without invisible characters and in a normal form, to find links."""
    kept: list[str] = []
    marks = 0
    for character in text[:MAX_CHARACTERS]:
        marks = marks + 1 if unicodedata.combining(character) else 0
        if marks <= MAX_MARKS and not _is_hidden(character):
            kept.append(character)
    return unicodedata.normalize("NFKC", "".join(kept))


def appearance(text: str) -> str:
    """Return the visual form of a text, which is only for comparisons."""
    words = " ".join("".join(map(_shown, _untailed(text[:MAX_CHARACTERS]))).split())
    return _untailed(words).translate(_SAME)


def looks_latin(label: str) -> bool:
    """Return True if a word in another script looks like a word of Latin letters."""
    return not label.isascii() and appearance(label).isascii()


def _untailed(text: str) -> str:
    """Return a text up to its last letter."""
    end = len(text)
    while end and not text[end - 1].isalpha():
        end -= 1
    return text[:end]


def _is_hidden(character: str) -> bool:
    is_selector = "\ufe00" <= character <= "\ufe0f" or "\U000e0100" <= character <= "\U000e01ef"
    return (
        is_selector
        or character in _BLANKS
        or character in "\u034f\u17b4\u17b5\u180b\u180c\u180d\u180f"
        or unicodedata.category(character) == "Cf"
    )


@lru_cache(20_000)
def _shown(character: str) -> str:
    """Return what stands for a character: nothing for marks, an ASCII letter for look-alikes."""
    if character.isascii():
        return character.lower()
    if _is_hidden(character):
        return ""
    whole = unicodedata.normalize("NFKD", character)
    return "".join(_like(one) for one in whole if unicodedata.category(one) not in ("Mn", "Me"))


def _like(character: str) -> str:
    similar = (one["c"] for one in confusables_data.get(character, ()))
    return next((one for one in similar if one.isascii() and one.isalpha()), character).casefold()
