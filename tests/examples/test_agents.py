"""Five agents with MCP over a channel: 30 % loss, each killed once, nothing lost, nothing twice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from random import Random
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from pytest_reliable_channel.channels import Channels, Participant
from reliable_channel import ReliableChannel
from tests.slow import slow

if TYPE_CHECKING:
    from mcp import Client

pytestmark = pytest.mark.anyio
NAMES = ("ann", "ben", "cid", "dot", "eva")
EACH = 4
"""Messages and questions of each agent."""


def client_of(channel: ReliableChannel) -> Client:
    """Import mcp here, because it takes a second, and each worker imports this module."""
    from mcp import Client

    from examples.agents.agent import make_server

    return Client(make_server(channel))


class Mind:
    """What an agent remembers of its own, beside its MCP server: it calls tools and may be cut off
    in the middle of each."""

    def __init__(self, participant: Participant, progress: Callable[[], None]) -> None:
        self.participant, self.progress = participant, progress
        self.sent = self.asked = 0
        self.heard: list[tuple[str, str]] = []
        self.handled = ""
        self.answers: list[str] = []

    async def call(self, client: Client, tool: str, **arguments: Any) -> Any:
        result = await client.call_tool(tool, arguments)
        assert not result.is_error, result
        assert result.structured_content is not None
        return result.structured_content["result"]

    async def speak(self, client: Client) -> None:
        while self.sent < EACH:
            await self.call(client, "send", text=f"{self.sent}", key=f"{self.sent}")
            self.sent += 1
            await anyio.sleep(1)

    async def listen(self, client: Client) -> None:
        while True:
            told = await self.call(client, "wait_for_message", handled=self.handled)
            if told is not None:
                self.heard.append((told["sender"], told["text"]))
                self.handled = told["id"]
                self.progress()

    async def wonder(self, client: Client) -> None:
        while self.asked < EACH:
            text, key = f"{self.participant.name} {self.asked}", f"{self.asked}"
            if told := await self.call(client, "ask", question=text, key=key):
                self.answers.append(told["text"])
                self.asked += 1
                self.progress()

    async def reply(self, client: Client) -> None:
        while True:
            if told := await self.call(client, "wait_for_question"):
                await self.call(client, "answer", id=told["id"], text=f"to {told['text']}")


@pytest.mark.parametrize("seed", [0, *slow(1)])
async def test_five_agents_lose_nothing_and_double_nothing(
    seed: int, channels: Channels, virtual_time: None
) -> None:
    print(f"seed {seed}")
    random = Random(seed)
    participants = await channels.open(*NAMES, loss=0.3, seed=seed * 10, preset="auto")
    finished, done = anyio.Event(), anyio.Event()

    def progress() -> None:
        heard = all(len(mind.heard) >= EACH * (len(NAMES) - 1) for mind in minds)
        if heard and all(len(mind.answers) == EACH for mind in minds):
            finished.set()

    minds = [Mind(participant, progress) for participant in participants]

    async def live(mind: Mind, for_s: float) -> None:
        """Use the tools for some time, or until all is done."""
        async with client_of(mind.participant.channel) as client:
            async with anyio.create_task_group() as tasks:
                for task in (mind.speak, mind.listen, mind.wonder, mind.reply):
                    tasks.start_soon(task, client)
                with anyio.move_on_after(for_s):
                    await done.wait()
                tasks.cancel_scope.cancel()

    async def twice(mind: Mind) -> None:
        await live(mind, random.uniform(1, 20))
        await mind.participant.crash()
        await anyio.sleep(random.uniform(0, 60))
        await mind.participant.start()
        await live(mind, float("inf"))

    async with anyio.create_task_group() as tasks:
        for mind in minds:
            tasks.start_soon(twice, mind)
        with anyio.fail_after(24 * 3600):
            await finished.wait()
        await anyio.sleep(600)  # what would come twice would come now
        done.set()
    for mind in minds:
        others = [name for name in NAMES if name != mind.participant.name]
        assert Counter(mind.heard) == Counter(
            (name, str(number)) for name in others for number in range(EACH)
        )
        name = mind.participant.name
        assert mind.answers == [f"to {name} {number}" for number in range(EACH)]


async def test_the_tools_are_described_and_history_is_in_order(channels: Channels) -> None:
    ann, ben = await channels.open("ann", "ben", preset="auto")
    from examples.agents.agent import INSTRUCTIONS

    async with client_of(ann.channel) as client:
        tools = (await client.list_tools()).tools
        assert [tool.name for tool in tools if not tool.description] == []
        for tool in tools:
            assert tool.name in ("history", "answer") or tool.name in INSTRUCTIONS
        await client.call_tool("send", {"text": "one", "key": "1"})
        await client.call_tool("send", {"text": "one", "key": "1"})
        await ben.receives("one")
        await ben.send("two")
        await ann.receives("two")
        result = await client.call_tool("history", {})
        assert result.structured_content is not None
        told = [(one["sender"], one["text"]) for one in result.structured_content["result"]]
        assert told == [("ann", "one"), ("ben", "two")]
        unknown = await client.call_tool("answer", {"id": "x", "text": "y"})
        assert unknown.structured_content == {"result": False}
