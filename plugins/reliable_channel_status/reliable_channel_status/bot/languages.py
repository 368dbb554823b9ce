"""The language of each user: chosen with `!language`, kept over a restart."""

from collections.abc import Mapping
from string import Formatter
from typing import Any, Final

from reliable_channel.spi import Table

from ..keys import PublicKey
from ..recent import Recent
from .happenings import Happening
from .memory import BotMemory
from .texts import BotTexts

MAX_CHOICES: Final = 10_000
"""Users whose choice is kept; then the oldest choice goes."""
_CHOICES: Final = Table(
    "bot_languages", (("user", "TEXT"), ("language", "TEXT"), ("at", "INTEGER"))
)


class Languages:
    """The choices of users.

    Args:
        memory: keeps them.
        default: the name of the language of users that chose none.
        texts: the bot's own texts in each language.
    """

    def __init__(self, memory: BotMemory, default: str, texts: Mapping[str, BotTexts]) -> None:
        self._memory = memory
        self._default = default
        self._texts = texts
        rows = sorted(memory.rows(_CHOICES), key=lambda row: row[2])
        self._chosen: Recent[str, str] = Recent(MAX_CHOICES + 1)
        for user, language, _ in rows:
            self._chosen[user] = language
        self._last = rows[-1][2] if rows else 0

    @property
    def names(self) -> tuple[str, ...]:
        """What users can choose."""
        return tuple(self._texts)

    def of(self, user: PublicKey) -> str:
        """The language of a user."""
        chosen = self._chosen.get(user.hex, self._default)
        return chosen if chosen in self._texts else self._default

    def texts(self, user: PublicKey) -> BotTexts:
        """The bot's own texts in the language of a user."""
        return self._texts[self.of(user)]

    def choose(self, user: PublicKey, language: str) -> None:
        """Keep a choice."""
        self._last += 1
        self._chosen.renew(user.hex, language)
        self._memory.put(_CHOICES, user.hex, language, self._last)
        if len(self._chosen) > MAX_CHOICES:
            oldest, _ = self._chosen.popitem(last=False)
            self._memory.erase(_CHOICES, oldest)
        self._memory.write()


class Phrases:
    """A bot's texts in several languages, as templates of `str.format`.

        PHRASES = Phrases(en={"hello": "Hello {name}"}, de={"hello": "Hallo {name}"})
        PHRASES(message, "hello", name=message.author_name)

    The first language is the one for users of another.

    Raises:
        ValueError: a language lacks a text of the first, has one more, or names other fields.
    """

    def __init__(self, **languages: Mapping[str, str]) -> None:
        if not languages:
            raise ValueError("give a language at least: Phrases(en={…})")
        self._languages = languages
        self._first = next(iter(languages))
        first = languages[self._first]
        for language, texts in languages.items():
            if missing := sorted(first.keys() ^ texts.keys()):
                raise ValueError(f"`{missing[0]}` is in one of `{self._first}` and `{language}`")
            for name, text in texts.items():
                if _fields(name, text) != _fields(name, first[name]):
                    raise ValueError(
                        f"`{name}` in `{language}` must name the fields of `{self._first}`: "
                        f"{first[name]!r} (got {text!r})"
                    )

    def __call__(self, about: Happening, name: str, /, **given: Any) -> str:
        """A text in the language of the user that an event is about."""
        texts = self._languages.get(about.language, self._languages[self._first])
        return texts[name].format(**given)


def _fields(name: str, text: str) -> set[str]:
    try:
        return {field for _, field, _, _ in Formatter().parse(text) if field is not None}
    except ValueError as error:
        raise ValueError(f"`{name}` must be a template (got {text!r})") from error
