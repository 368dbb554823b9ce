"""Bots around an embedded node that loses what they publish and what they read, in virtual time."""

import asyncio
from collections.abc import Callable, MutableMapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

import anyio
import httpx

from reliable_channel.spi import MemoryStateStore, StateStore
from reliable_channel_status import Community, PrivateKey
from reliable_channel_status.bot import (
    BotContext,
    BotMemory,
    BotOptions,
    LoopLimits,
    Message,
    RateLimit,
    StatusBot,
)
from status_tests.world import COMMUNITY, GENERAL, NOW_MS
from tests.asgi import serve
from tests.virtual_time import VirtualLoop
from waku import WakuClient
from waku._asgi import App, Receive, Scope, Send
from waku.node import EmbeddedNode, NodeOptions
from waku.node.options import HashQueries

EVERY_S = 20
LOSS = 0.3
MANY = RateLimit(calls=1000, per_ms=1000)


class LosingNode:
    """Says that a message was published, or that nothing has come, as often as it is told."""

    def __init__(self, node: App, random: Random, loss: float) -> None:
        self._node = node
        self._random = random
        self._loss = loss

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, and lose it or what it brought."""
        can_be_lost = scope["path"].startswith("/relay/v1/messages")
        if not can_be_lost or self._random.random() >= self._loss:
            return await self._node(scope, receive, send)
        if reads := scope["method"] == "GET":
            await self._node(scope, receive, _discard)
        await serve(httpx.Response(200, text="[]" if reads else "OK"), send)


async def _discard(_message: MutableMapping[str, Any]) -> None:
    """Take what is sent."""


@dataclass
class Member:
    """A bot that says numbers and notes what others say."""

    name: str
    options: BotOptions
    says: int
    heard: list[str] = field(default_factory=list)
    said: list[str] = field(default_factory=list)
    stores: dict[Community, StateStore] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.key = PrivateKey(self.name.encode().ljust(32, b"."))
        self.memory = MemoryStateStore()
        self.bot = StatusBot(
            node="http://node", community=COMMUNITY, channels=[GENERAL], options=self.options
        )

        @self.bot.on_message
        async def note(message: Message) -> None:
            self.heard.append(message.text)

        @self.bot.every(seconds=EVERY_S)
        async def speak() -> None:
            if len(self.said) < self.says:
                self.said.append(f"{self.name} {len(self.said)}")
                await self.bot.channel(GENERAL).send(self.said[-1])

    def store_of(self, community: Community) -> StateStore:
        """Where its channel keeps its state."""
        return self.stores.setdefault(community, MemoryStateStore())


def options_of(reliability: Any, **values: Any) -> BotOptions:
    """Options of a bot that says much."""
    return BotOptions(
        reliability=reliability,
        poll_ms=8_000,
        user_limit=MANY,
        channel_limit=MANY,
        loops=LoopLimits(turns=10_000),
        **values,
    )


def converse(
    members: Sequence[Member],
    *,
    seed: int,
    minutes: int,
    store: bool,
    hash_queries: HashQueries = "answer",
) -> None:
    """Let members talk over a node that loses three messages of ten, and then be quiet a while."""

    async def main() -> None:
        def now_ms() -> int:
            return NOW_MS + round(asyncio.get_running_loop().time() * 1000)

        options = NodeOptions(
            cluster_id=16,
            shards=(32, 64),
            static_sharding=True,
            store=store,
            hash_queries=hash_queries,
            client_idle_s=1e9,
            now_ns=lambda: now_ms() * 1_000_000,
        )
        async with EmbeddedNode(options) as node, anyio.create_task_group() as tasks:
            for number, member in enumerate(members):
                losing = LosingNode(node.app, Random(f"{seed} {number}"), LOSS)
                tasks.start_soon(_serve, member, losing, now_ms)
            await anyio.sleep(60 * minutes)
            tasks.cancel_scope.cancel()

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.run(main())


async def _serve(member: Member, losing: LosingNode, now_ms: Callable[[], int]) -> None:
    memory = BotMemory(member.memory, member.key.public_key, now_ms())
    async with WakuClient("http://node", app=losing) as client:
        await member.bot.serve(
            BotContext(
                key=member.key,
                memory=memory,
                client=client,
                now_ms=now_ms,
                open_store=member.store_of,
            )
        )
