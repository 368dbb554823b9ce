"""Conversations of several steps with one user in one chat, which survive a restart.

A function returns a `Question` that names the function for the answer (`@bot.step`). The bot stores
the name of that function and the data, so no code runs between question and answer.
"""

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from reliable_channel.spi import Table

from ..wire.recent import Recent
from .events import Message
from .limits import Pair
from .memory import BotMemory

MAX_DIALOGUES: Final = 10_000
"""Maximum number of open questions. Beyond the maximum, the oldest question is dropped."""
MAX_DATA_BYTES: Final = 10_000
"""Maximum size of a dialogue's data as JSON."""
_DIALOGUES: Final = Table(
    "bot_dialogues",
    (("pair", "TEXT"), ("step", "TEXT"), ("data", "TEXT"), ("expires_ms", "INTEGER")),
)


@dataclass(frozen=True, slots=True)
class Question:
    """Question to the author of a message, which a function returns. The author's next text in the
    chat of the question is the answer, unless it calls a command.

    Raises:
        ValueError: the data is more than 10,000 bytes of JSON, or there is no time to answer.
        TypeError: JSON cannot hold the data.
    """

    text: str
    then: Callable[..., Awaitable[Any]]
    """Function that is called with the answer, declared with `@bot.step`."""
    data: Mapping[str, Any] = field(default_factory=dict)
    """Data for the function that gets the answer, in addition to the data of the dialogue."""
    expires_s: float = 3600.0
    """Time limit for the user's answer."""

    def __post_init__(self) -> None:
        if not self.expires_s > 0:
            raise ValueError(f"`expires_s` must be positive (got {self.expires_s})")
        _json(self.data)


@dataclass(frozen=True, slots=True, kw_only=True)
class Talk(Message):
    """Answer of a user to a question of the bot."""

    data: Mapping[str, Any]
    """Data that the questions of the dialogue have collected."""


@dataclass(frozen=True, slots=True)
class Dialogue:
    """Question that waits for the user's answer."""

    step: str
    data: Mapping[str, Any]
    expires_ms: int


class Dialogues:
    """Open questions of a bot, in memory and in the bot's state.

    A change of a question is written in the same transaction as the end of its event. A crash
    therefore neither asks twice nor uses one answer for two questions.
    """

    def __init__(self, memory: BotMemory) -> None:
        self._memory = memory
        rows = sorted(memory.rows(_DIALOGUES), key=lambda row: row[3])
        self._open: Recent[str, Dialogue] = Recent(MAX_DIALOGUES + 1)
        for pair, step, data, expires_ms in rows:
            self._open[pair] = Dialogue(step, json.loads(data), expires_ms)

    def of(self, pair: Pair, now_ms: int) -> Dialogue | None:
        """Return the open dialogue with a user in a chat, or None."""
        found = self._open.get(_key(pair))
        return found if found is not None and now_ms < found.expires_ms else None

    def put(self, pair: Pair, dialogue: Dialogue | None) -> None:
        """Open or end a dialogue. The next `BotMemory.write` stores the change."""
        key = _key(pair)
        if dialogue is None:
            if self._open.pop(key, None) is not None:
                self._memory.erase(_DIALOGUES, key)
            return
        self._open.renew(key, dialogue)
        self._memory.put(_DIALOGUES, key, dialogue.step, _json(dialogue.data), dialogue.expires_ms)
        if len(self._open) > MAX_DIALOGUES:
            oldest, _ = self._open.popitem(last=False)
            self._memory.erase(_DIALOGUES, oldest)


def after(question: Question, before: Mapping[str, Any], now_ms: int) -> Dialogue:
    """Return the dialogue after a question, which may continue an earlier dialogue.

    Raises:
        ValueError: its data has become too much.
    """
    data = {**before, **question.data}
    _json(data)
    return Dialogue(question.then.__qualname__, data, now_ms + round(question.expires_s * 1000))


def _json(data: Mapping[str, Any]) -> str:
    text = json.dumps(dict(data))
    if len(text.encode()) > MAX_DATA_BYTES:
        raise ValueError(f"a dialogue's data must be at most {MAX_DATA_BYTES:,} bytes of JSON")
    return text


def _key(pair: Pair) -> str:
    chat_id, user = pair
    return f"{chat_id} {user.hex}"
