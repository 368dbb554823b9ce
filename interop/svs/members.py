"""Members of a group, ours and ndnd's, as the tests see them: they publish, and have received."""

import json
import subprocess
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Protocol

import anyio
from anyio.abc import Process, TaskGroup
from anyio.streams.text import TextReceiveStream

from reliable_channel_svs.ndn import NodeEvent, PublicationReceived, SvsNode

Place = tuple[str, int, int]
"""Node, bootstrap time and sequence number."""


class Member(Protocol):
    """What is asked of either kind."""

    name: str
    received: list[tuple[Place, bytes]]
    """In the order in which they came."""

    async def publish(self, content: bytes) -> None: ...


class OurMember:
    """A node of this package."""

    def __init__(self, name: str, node: SvsNode) -> None:
        self.name, self.node = name, node
        self.received: list[tuple[Place, bytes]] = []
        self.events: list[NodeEvent] = []

    async def publish(self, content: bytes) -> None:
        await self.node.publish(content)

    async def listen(self) -> None:
        async for event in self.node.events():
            if isinstance(event, PublicationReceived):
                place = str(event.name), event.bootstrap_time, event.seq
                self.received.append((place, event.content))
            else:
                self.events.append(event)


class GoMember:
    """A process of the Go peer."""

    def __init__(self, name: str, process: Process) -> None:
        self.name, self._process = name, process
        self.received: list[tuple[Place, bytes]] = []
        self.errors: list[str] = []
        self.ready = anyio.Event()

    async def publish(self, content: bytes) -> None:
        await self._order({"op": "publish", "content": content.hex()})

    async def listen(self) -> None:
        async for line in lines(self._process):
            match line["event"]:
                case "publication":
                    place = line["name"], line["boot"], line["seq"]
                    self.received.append((place, bytes.fromhex(line["content"])))
                case "ready":
                    self.ready.set()
                case _:
                    self.errors.append(line["error"])

    async def _order(self, order: dict[str, str]) -> None:
        assert self._process.stdin is not None
        await self._process.stdin.send(json.dumps(order).encode() + b"\n")


async def lines(process: Process) -> AsyncIterator[dict[str, Any]]:
    """The JSON lines that a process writes."""
    assert process.stdout is not None
    rest = ""
    async for text in TextReceiveStream(process.stdout):
        *whole, rest = (rest + text).split("\n")
        for line in whole:
            yield json.loads(line)


@asynccontextmanager
async def running(program: Path, *arguments: str) -> AsyncIterator[Process]:
    """A process of the Go peer, for as long as the block lasts."""
    async with await anyio.open_process(
        [str(program), *arguments], stderr=subprocess.DEVNULL
    ) as process:
        try:
            yield process
        finally:
            with suppress(ProcessLookupError):  # it ended by itself
                process.terminate()


@asynccontextmanager
async def go_member(
    program: Path, forwarder: str, group: str, name: str, arguments: Sequence[str]
) -> AsyncIterator[GoMember]:
    command = ["node", "-forwarder", forwarder, "-group", group, "-name", name, *arguments]
    async with running(program, *command) as process, anyio.create_task_group() as tasks:
        member = GoMember(name, process)
        tasks.start_soon(member.listen)
        await member.ready.wait()
        yield member
        tasks.cancel_scope.cancel()


@asynccontextmanager
async def our_member(node: SvsNode) -> AsyncIterator[OurMember]:
    tasks: TaskGroup
    async with node, anyio.create_task_group() as tasks:
        member = OurMember(str(node.name), node)
        tasks.start_soon(member.listen)
        await node.wait_connected()
        yield member
        tasks.cancel_scope.cancel()
