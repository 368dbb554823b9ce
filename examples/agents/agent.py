# /// script
# requires-python = ">=3.11"
# dependencies = ["mcp>=2.3", "reliable-channel"]
# ///
"""An MCP server over a channel: agents of several machines talk without a broker.

    python agent.py INVITATION NAME

Each agent starts one as its MCP server (stdio). Messages and questions survive lost packets and
`kill -9`: a tool that changes something can be called again, and does it once.
"""

import sys
from dataclasses import dataclass

import anyio
from mcp.server import MCPServer

from reliable_channel import ReliableChannel, run
from reliable_channel.conversation import Message, Question
from reliable_channel.conversation.asking import is_envelope
from reliable_channel.errors import NoAnswer

WITHIN_S = 30.0
INSTRUCTIONS = """\
You share a channel with other agents. Every agent gets the same messages, each once. Read with
wait_for_message, and give `handled`, the id of the message before, when you have acted on it. Other
agents' questions come from wait_for_question: answer each. Give `send` and `ask` a `key` of your
own choice, and repeat the call with the same key if it failed: nothing is sent twice."""


@dataclass
class Told:
    """A message or a question of another agent, or its answer."""

    id: str
    sender: str
    text: str


class Agent:
    """The tools of one agent."""

    def __init__(self, channel: ReliableChannel) -> None:
        self._channel = channel
        self._messages = channel.messages(confirm=False)
        self._questions = channel.questions()
        self._read: Message[bytes] | None = None
        self._open: dict[str, Question[bytes]] = {}

    async def send(self, text: str, key: str) -> str:
        """Send a message to all agents. Returns its id; the same one for the same key."""
        return (await self._channel.send(text.encode(), idempotency_key=f"send {key}")).message_id

    async def wait_for_message(self, handled: str = "", within_s: float = WITHIN_S) -> Told | None:
        """Wait for the next message. `handled` is the id of the message that was acted on."""
        with anyio.move_on_after(within_s):
            if self._read is None:
                self._read = await anext(self._messages)
            while self._read.message_id == handled:
                await self._channel.confirm(self._read.event)
                self._read = None  # where it ends now, the next call waits for the next one
                self._read = await anext(self._messages)
            return _told(self._read)
        return None

    async def ask(self, question: str, key: str, within_s: float = WITHIN_S) -> Told | None:
        """Ask all agents; returns the first answer, or nothing in time. Ask again with this key."""
        try:
            answer = await self._channel.ask(
                question.encode(), within_s=within_s, idempotency_key=f"ask {key}"
            )
        except NoAnswer:
            return None
        return _told(answer)

    async def wait_for_question(self, within_s: float = WITHIN_S) -> Told | None:
        """Wait for a question of another agent that is not answered yet."""
        with anyio.move_on_after(within_s):
            question = await anext(self._questions)
            self._open[question.message_id] = question
            return _told(question)
        return None

    async def answer(self, id: str, text: str) -> bool:
        """Answer a question, once. Returns false for an unknown id: then wait for it again."""
        if (question := self._open.get(id)) is None:
            return False
        await question.answer(text.encode())
        del self._open[id]
        return True

    async def history(self, last: int = 20) -> list[Told]:
        """Return the newest messages, own ones too, in the order that all agents see."""
        return [
            Told(entry.message_id, entry.sender_id, entry.content.decode(errors="replace"))
            for entry in self._channel.log(last=last)
            if not is_envelope(entry.content)
        ]


def _told(message: Message[bytes]) -> Told:
    return Told(message.message_id, message.sender_id, message.content.decode(errors="replace"))


def make_server(channel: ReliableChannel) -> MCPServer:
    """Return the MCP server of an open channel."""
    server, agent = MCPServer(channel.sender_id, instructions=INSTRUCTIONS), Agent(channel)
    for tool in (
        agent.send,
        agent.wait_for_message,
        agent.ask,
        agent.wait_for_question,
        agent.answer,
        agent.history,
    ):
        server.tool()(tool)
    return server


async def main() -> None:
    """Serve until the agent closes standard input."""
    invitation, name = sys.argv[1:]
    state = f"sqlite:///{name}.db"
    async with ReliableChannel.join(invitation, sender_id=name, state=state) as channel:
        await make_server(channel).run_stdio_async()


if __name__ == "__main__":
    run(main)
