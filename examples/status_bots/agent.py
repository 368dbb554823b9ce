"""Connects an agent framework to Status: one asynchronous generator in, one call out.

    python agent.py http://127.0.0.1:8645 COMMUNITY

Replace `think` by your framework's call, and keep what it remembers by `Incoming.conversation`.
"""

import sys
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field

import anyio

from reliable_channel_status.bot import BotOptions, Message, StatusBot

MAX_ANSWER = 4_000
"""Characters of a message; a longer answer becomes several."""
MAX_MESSAGES = 5
THINKING_MS = 600_000


@dataclass(frozen=True)
class Incoming:
    """What a user said to the agent: in a chat with it alone, or by a mention."""

    conversation: str
    """The same for all that a user says in a chat."""
    author: str
    text: str
    message: Message = field(repr=False)


class Conversations:
    """What users say to a bot, one after the other.

    A message counts as handled when the next one is asked for. One that a crash cut off is given
    again after the restart, and what was answered then is not said again.
    """

    def __init__(self, bot: StatusBot) -> None:
        self._waiting: deque[tuple[Incoming, anyio.Event]] = deque()  # as many as functions run
        self._news = anyio.Event()
        bot.on_mention(self._heard)
        bot.on_direct_message(self._heard)

    async def messages(self) -> AsyncIterator[Incoming]:
        """What users say, until the bot stops."""
        while True:
            while not self._waiting:
                self._news = anyio.Event()
                await self._news.wait()
            incoming, is_handled = self._waiting.popleft()
            try:
                yield incoming
            finally:
                is_handled.set()

    async def answer(self, incoming: Incoming, text: str) -> None:
        """Answer, in several messages where the text is long."""
        for start in range(0, min(len(text), MAX_ANSWER * MAX_MESSAGES), MAX_ANSWER):
            await incoming.message.reply(text[start : start + MAX_ANSWER])

    async def _heard(self, message: Message) -> None:
        conversation = f"{message.room.chat_id} {message.author.hex}"
        is_handled = anyio.Event()
        incoming = Incoming(conversation, message.author_name, message.text_with_names, message)
        self._waiting.append((incoming, is_handled))
        self._news.set()
        await is_handled.wait()


async def think(incoming: Incoming) -> str:
    return f"{incoming.author}, you wrote {len(incoming.text.split())} words."


def make_bot(
    node: str, community: str, think: Callable[[Incoming], Awaitable[str]] = think
) -> StatusBot:
    options = BotOptions(handler_timeout_ms=THINKING_MS)
    bot = StatusBot(node=node, community=community, options=options)
    conversations = Conversations(bot)

    @bot.task
    async def agent() -> None:
        async for incoming in conversations.messages():
            await conversations.answer(incoming, await think(incoming))

    return bot


if __name__ == "__main__":
    make_bot(sys.argv[1], sys.argv[2]).run()
