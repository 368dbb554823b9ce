"""Texts as people type them on phones, with quotes of all keyboards and invisible marks.

A text that looks like a command to its author calls the command. For example, curly quotes and a
full-width exclamation mark are read as plain characters.
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
"""Opening quotation marks, each with its closing marks. Keyboards and languages have different
quotation marks."""


def without_marks(text: str) -> str:
    """Return a text without leading blanks and without invisible marks."""
    for at, character in enumerate(text):
        if not (character.isspace() or _is_invisible(character)):
            return text[at:]
    return ""


def after_prefix(text: str, prefix: str) -> str | None:
    """Return the text after a prefix, which users may type in full width. For a text without the
    prefix, `after_prefix` returns None."""
    text = without_marks(text)
    head = text[: len(prefix)]
    return text[len(prefix) :] if head == prefix or normalize("NFKC", head) == prefix else None


def as_name(word: str) -> str:
    """Return a word in lower case, composed and without invisible marks, to compare names."""
    shown = "".join(character for character in word if not _is_invisible(character))
    return normalize("NFKC", shown).lower()


def first_word(text: str) -> tuple[str, str]:
    """Return the first word of a text, which may be quoted, and the rest of the text."""
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
