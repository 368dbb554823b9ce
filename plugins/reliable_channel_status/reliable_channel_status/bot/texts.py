"""Texts that the bot itself writes to users. Each text of the bot can be replaced, for example by a
translation."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from string import Formatter
from typing import Any, Final

from reliable_channel.spi import Table

from ..wire.keys import PublicKey
from ..wire.recent import Recent
from .events import BotEvent
from .memory import BotMemory


@dataclass(frozen=True, slots=True, kw_only=True)
class BotTexts:
    """Texts of a bot, as templates of `str.format`. A template may omit its fields.

    Raises:
        ValueError: a text names what it is not given, or is no template.
    """

    missing: str = "`{parameter}` is missing"
    """Text for a missing argument of a command (field `parameter`)."""
    not_a_number: str = "`{parameter}` must be a number (got {got})"
    """Text for a word that is no number (fields `parameter`, `got`)."""
    not_a_whole_number: str = "`{parameter}` must be a whole number (got {got})"
    """Text for a word that is no whole number (fields `parameter`, `got`)."""
    not_yes_or_no: str = "`{parameter}` must be yes or no (got {got})"
    """Text for a word that is neither yes nor no (fields `parameter`, `got`)."""
    not_a_user: str = "`{parameter}` must be a mention of a user or a public key (got {got})"
    """Text for a word that names no user (fields `parameter`, `got`)."""
    not_a_choice: str = "`{parameter}` must be one of {choices} (got {got})"
    """Text for a word that is no valid choice (fields `parameter`, `choices`, `got`)."""
    not_a_duration: str = "`{parameter}` must be a duration such as 10m or 2h30m (got {got})"
    """Text for a word that is no duration (fields `parameter`, `got`)."""
    not_a_date: str = "`{parameter}` must be a date such as 2026-12-31 (got {got})"
    """Text for a word that is no date (fields `parameter`, `got`)."""
    out_of_range: str = "`{parameter}` must be between {low} and {high} (got {got})"
    """Text for a value outside its limits (fields `parameter`, `low`, `high`, `got`)."""
    not_valid: str = "`{parameter}` {rule} (got {got})"
    """Text for a word that a `Converter` cannot read (fields `parameter`, `rule`, `got`)."""
    too_much: str = "I do not understand {got} at the end"
    """Text for too many words at the end of a command (field `got`)."""
    too_many_words: str = "A command can have {limit} words (got {count})"
    """Text for a command of too many words (fields `limit`, `count`)."""
    usage: str = "{problem}. Usage: {usage}"
    """Answer to a wrong call of a command (fields `problem`, `usage`). The field `problem` is
    another text of the bot."""
    text: str = "text"
    """Name for a text parameter in the usage of a command."""
    number: str = "number"
    """Name for a number parameter in the usage of a command."""
    user: str = "@user"
    """Name for a user parameter in the usage of a command."""
    duration: str = "duration"
    """Name for a duration parameter in the usage of a command."""
    date: str = "date"
    """Name for a date parameter in the usage of a command."""
    command_line: str = "{usage} — {about}"
    """Line of the command `help` for one command (fields `usage`, `about`)."""
    no_commands: str = "There are no commands."
    """Answer to `help` if the bot has no commands."""
    no_such_command: str = "There is no command {got}. {prefix}help lists the commands."
    """Answer to a call of an unknown command (fields `got`, `prefix`)."""
    not_permitted: str = "You may not use {command}."
    """Answer to a user that may not call a command (field `command`)."""
    cooldown: str = "{command} can be used again in {seconds} s."
    """Answer to a call during the command's cooldown (fields `command`, `seconds`)."""
    answer_again: str = "{problem}. Please answer again, or write {cancel}."
    """Text for an answer that does not fit a dialogue's question (fields `problem`, `cancel`)."""
    step_failed: str = "That failed. You can answer again, or write {cancel}."
    """Text for a dialogue's function that raised an error (field `cancel`)."""
    question_forgotten: str = "I do not know any more what I asked you. Please begin again."
    """Text for an answer to a question that this version of the bot does not have."""
    cancelled: str = "Cancelled."
    """Answer to the command `cancel` that ended a dialogue."""
    nothing_to_cancel: str = "There is nothing to cancel."
    """Answer to the command `cancel` without an open question."""
    cancel_about: str = "Ends what I asked you about."
    """Line of the command `help` for `cancel`."""
    language_chosen: str = "I will write to you in: {language}"
    """Answer to the command `language`, in the chosen language (field `language`)."""
    language_about: str = "Chooses the language that I write to you."
    """Line of the command `help` for `language`."""
    failed: str = "{command} failed."
    """Answer to a command whose function raised an error (field `command`)."""
    loop_stopped: str = (
        "I stop answering {user} here for {minutes} minutes: {rounds} times in a row we answered "
        "each other within a second, as two bots do. Commands still work."
    )
    """Text that the bot sends once when it found a loop (fields `user`, `minutes`, `rounds`)."""

    def __post_init__(self) -> None:
        for field in fields(self):
            _check(field.name, getattr(self, field.name), GIVEN.get(field.name, ()))

    def render(self, name: str, **given: Any) -> str:
        """Return the bot's text of the given name, with the given fields filled in."""
        text: str = getattr(self, name)
        return text.format(**given)


GIVEN: Final[dict[str, tuple[str, ...]]] = {
    "missing": ("parameter",),
    "not_a_number": ("parameter", "got"),
    "not_a_whole_number": ("parameter", "got"),
    "not_yes_or_no": ("parameter", "got"),
    "not_a_user": ("parameter", "got"),
    "not_a_choice": ("parameter", "choices", "got"),
    "not_a_duration": ("parameter", "got"),
    "not_a_date": ("parameter", "got"),
    "out_of_range": ("parameter", "low", "high", "got"),
    "not_valid": ("parameter", "rule", "got"),
    "too_much": ("got",),
    "too_many_words": ("limit", "count"),
    "usage": ("problem", "usage"),
    "command_line": ("usage", "about"),
    "no_such_command": ("got", "prefix"),
    "not_permitted": ("command",),
    "cooldown": ("command", "seconds"),
    "language_chosen": ("language",),
    "answer_again": ("problem", "cancel"),
    "step_failed": ("cancel",),
    "failed": ("command",),
    "loop_stopped": ("user", "minutes", "rounds"),
}
"""Names of the fields of each text template. A template that is not listed has no fields."""


def _check(name: str, text: Any, given: tuple[str, ...]) -> None:
    if not isinstance(text, str) or not text.strip():
        raise ValueError(f"`{name}` must be a text (got {text!r})")
    allowed = ", ".join(f"{{{one}}}" for one in given) or "no names in braces"
    try:
        text.format(**dict.fromkeys(given, ""))
    except (ValueError, IndexError, KeyError, AttributeError) as error:
        raise ValueError(f"`{name}` must be a template with {allowed} (got {text!r})") from error


ENGLISH: Final = BotTexts()
"""Default texts of a bot."""


MAX_CHOICES: Final = 10_000
"""Maximum number of users whose language choice is stored. Beyond the maximum, the oldest language
choice is evicted."""
_CHOICES: Final = Table(
    "bot_languages", (("user", "TEXT"), ("language", "TEXT"), ("at", "INTEGER"))
)


class Languages:
    """Languages that users chose for the bot's answers.

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
        return tuple(self._texts)

    def of(self, user: PublicKey) -> str:
        """Return the language in which the bot answers a user."""
        chosen = self._chosen.get(user.hex, self._default)
        return chosen if chosen in self._texts else self._default

    def texts(self, user: PublicKey) -> BotTexts:
        """Return the bot's own texts in the language that a user chose."""
        return self._texts[self.of(user)]

    def choose(self, user: PublicKey, language: str) -> None:
        self._last += 1
        self._chosen.renew(user.hex, language)
        self._memory.put(_CHOICES, user.hex, language, self._last)
        if len(self._chosen) > MAX_CHOICES:
            oldest, _ = self._chosen.popitem(last=False)
            self._memory.erase(_CHOICES, oldest)
        self._memory.write()


class Phrases:
    """Texts of a bot in several languages, as templates of `str.format`.

        PHRASES = Phrases(en={"hello": "Hello {name}"}, de={"hello": "Hallo {name}"})
        PHRASES(message, "hello", name=message.author_name)

    The first language of the phrases is the default for users of other languages.

    Raises:
        ValueError: a language lacks a text of the first, has one more, or names other fields.
    """

    def __init__(self, **languages: Mapping[str, str]) -> None:
        if not languages:
            raise ValueError("Phrases needs at least one language, such as Phrases(en={…})")
        self._languages = languages
        self._first = next(iter(languages))
        first = languages[self._first]
        for language, texts in languages.items():
            if missing := sorted(first.keys() ^ texts.keys()):
                raise ValueError(
                    f"the text `{missing[0]}` is in only one of the languages `{self._first}` and "
                    f"`{language}`"
                )
            for name, text in texts.items():
                if _fields(name, text) != _fields(name, first[name]):
                    raise ValueError(
                        f"`{name}` in `{language}` must name the fields of `{self._first}`: "
                        f"{first[name]!r} (got {text!r})"
                    )

    def __call__(self, about: BotEvent, name: str, /, **given: Any) -> str:
        """A text in the language of the user that an event is about."""
        texts = self._languages.get(about.language, self._languages[self._first])
        return texts[name].format(**given)


def _fields(name: str, text: str) -> set[str]:
    try:
        return {field for _, field, _, _ in Formatter().parse(text) if field is not None}
    except ValueError as error:
        raise ValueError(f"`{name}` must be a template (got {text!r})") from error
