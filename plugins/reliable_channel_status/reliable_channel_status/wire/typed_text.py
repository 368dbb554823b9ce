"""Texts as people type them on phones: quotes of all keyboards, invisible marks, forms of letters.

What looks like a command calls it: one with curly quotes, a full-width exclamation mark and a
right-to-left mark in front is `!poll "red wine"`.
"""

# ruff: noqa: RUF001 - look-alikes are what this is about

from typing import Final
from unicodedata import category, normalize

QUOTES: Final = {
    '"': '"',
    "'": "'",
    "“": "”“",
    "”": "”",
    "„": "“”„",
    "«": "»«",
    "»": "«»",
    "‘": "’‘",
    "’": "’",
    "‚": "‘’‚",
    "‹": "›‹",
    "›": "‹›",
    "「": "」",
    "『": "』",
}
"""Marks that open a quotation, with those that close it: keyboards and languages differ."""


def without_marks(text: str) -> str:
    """Return a text without blanks and invisible marks in front."""
    for at, character in enumerate(text):
        if not (character.isspace() or _is_invisible(character)):
            return text[at:]
    return ""


def after_prefix(text: str, prefix: str) -> str | None:
    """Return what follows a prefix, which may be written in full width; None if it is not there."""
    text = without_marks(text)
    head = text[: len(prefix)]
    return text[len(prefix) :] if head == prefix or normalize("NFKC", head) == prefix else None


def as_name(word: str) -> str:
    """Return a word as names are compared: in lower case, composed, without invisible marks."""
    shown = "".join(character for character in word if not _is_invisible(character))
    return normalize("NFKC", shown).lower()


def first_word(text: str) -> tuple[str, str]:
    """Return the first word, which quotes may hold together, and the rest."""
    text = text.lstrip()
    for closing in QUOTES.get(text[:1], ""):
        end = text.find(closing, 1)
        while end > 0 and not (text[end + 1 : end + 2] or " ").isspace():
            end = text.find(closing, end + 1)  # an apostrophe
        if end > 0:
            return text[1:end], text[end + 1 :]
    word, *rest = text.split(maxsplit=1) or [""]
    return word, "".join(rest)


def _is_invisible(character: str) -> bool:
    return category(character) in ("Cf", "Cc") or character in "\u034f\u115f\u1160\u3164\ufe0f"
