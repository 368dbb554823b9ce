"""`BotTester` runs a bot, an embedded node and scripted users in virtual time, for tests of bots.

    def test_ping() -> None:
        with BotTester(bot) as tester:
            assert tester.user("Alice").asks("!ping") == "pong"

Keys, envelopes, the node's REST API and the bot's loops are all real. Only the time is virtual, so
an hour passes at once. The test does not use the bot's own key, state or node.
"""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import replace
from typing import Any, Final, Self, TypeVar

import anyio

from reliable_channel.spi import MemoryStateStore, StateStore
from waku import PubsubTopic, WakuClient, WakuMessage, message_hash
from waku.node import EmbeddedNode, NodeOptions

from ..bot.bot import StatusBot
from ..bot.link import NS_PER_MS
from ..bot.memory import BotMemory
from ..bot.outbox import BotContext
from ..wire.application import wrap
from ..wire.chats import Community
from ..wire.community_payloads import CommunityTokenPermission
from ..wire.direct import Correspondence, MemorySessionStore
from ..wire.enums import Access
from ..wire.keys import PrivateKey, PublicKey
from ..wire.opening import Opener
from ..wire.outcomes import MessageId, Received
from ..wire.payloads import ChatMessage, Payload
from ..wire.rooms import Room
from ..wire.sds import SdsWrapper
from ..wire.sealing import Outgoing, Sealer, WakuVersion
from ..wire.topics import AUTO_SHARD, CLUSTER_ID, DEFAULT_SHARD, NON_PROTECTED_SHARD
from .fake_client import FakeClient
from .fake_direct import FakeDirect, StatusGoSessions
from .fake_owner import FakeOwner
from .fake_user import SETTLE_S, FakeUser, key_of
from .unanswered import Mark, runs, why_unanswered
from .virtual_time import VirtualTimeLoop, ended, over

START_MS: Final = 1_700_000_000_000
IDLE_S: Final = 60.0
"""Minimum virtual time between two reads of the node without a publication."""
FOR_EVER_S: Final = 1e9
CHANNEL: Final = "00000000-0000-4000-8000-000000000001"
"""Channel in which users write if the bot is in all channels."""

T = TypeVar("T")


class BotTester:
    """Context of a bot under test. `BotTester` is used in a `with` statement.

    Args:
        bot: as its author made it; it must not run yet.
        community_key: the owner's, for bots that let people in.
        now_ms: when the test begins.
        node: options of the node, to be changed by tests that want a poor one.
        store: what the bot remembers in, for tests that want it to fail.
    """

    def __init__(
        self,
        bot: StatusBot,
        *,
        community_key: PrivateKey | None = None,
        now_ms: int = START_MS,
        node: NodeOptions | None = None,
        store: StateStore | None = None,
    ) -> None:
        self.bot = bot
        self.key = key_of("the bot")
        self._community_key = community_key
        self._start_ms = now_ms
        self._store = store or MemoryStateStore()
        self._control_store = MemoryStateStore()
        self._channel_stores: dict[Community, StateStore] = {}
        self._wrappers: dict[Community, SdsWrapper] = {}
        self._runner = asyncio.Runner(loop_factory=VirtualTimeLoop)
        self._loop = self._runner.get_loop()
        if community_key is not None:
            own = Community(community_key.public_key)
            if own not in bot.rooms.communities:
                bot.join(own)
        options = node or NodeOptions(cache_capacity=100_000, client_idle_s=FOR_EVER_S)
        shards = tuple(dict.fromkeys((bot.options.shard, *bot.options.also_listen, AUTO_SHARD)))
        self.node = EmbeddedNode(
            replace(
                options,
                cluster_id=CLUSTER_ID,
                shards=tuple(one.shard for one in shards),
                static_sharding=True,
                now_ns=lambda: self.now_ms() * 1_000_000,
            )
        )
        self._shard = str(bot.options.shard)
        self._shards = [str(one) for one in shards]
        self._clients: list[FakeClient] = []
        self._others: dict[StatusBot, asyncio.Task[None]] = {}
        self._directs: dict[tuple[PublicKey, str], FakeDirect] = {}
        self._client = self.node_client()
        self._opener = Opener(
            bot.rooms.topics,
            on_sds=lambda sds: self._wrapper(Community.parse(sds.channel_id)).heard(sds),
        )
        self._task: asyncio.Task[None] | None = None
        self._memory: BotMemory | None = None
        self._news = asyncio.Event()
        self._closing = asyncio.Event()
        self._clock = 0
        self._hashes: set[bytes] = set()
        self._ids: set[MessageId] = set()
        self.heard: list[Received] = []
        """All that was said, by users and bot, in the order in which the node relayed it."""
        self.relayed: list[WakuMessage] = []
        """The same as it was on the wire, with what no other user can decrypt."""

    # -- time -------------------------------------------------------------------------------------

    def now_ms(self) -> int:
        """Return the current virtual time (ms since 1970)."""
        return self._start_ms + round(self._loop.time() * 1000)

    def wait(self, seconds: float = SETTLE_S) -> None:
        """Let some virtual time pass.

        Raises:
            Exception: what ended the bot.
        """
        self._do(asyncio.sleep(seconds))
        for one in self._directs.values():
            if one.answer():
                self._do(asyncio.sleep(SETTLE_S))

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Wait for an action of the running bot, such as `bot.leave(…)`, and for its effects."""
        result = self._do(coroutine)
        self.wait()
        return result

    # -- the bot ----------------------------------------------------------------------------------

    def __enter__(self) -> Self:
        self._node_task = self._loop.create_task(self._run_node())
        self._runner.run(self._client.relay_subscribe(self._shards))
        self.start()
        return self

    def __exit__(self, exc_type: type[BaseException] | None, *_: object) -> None:
        try:
            for bot, task in self._others.items():
                bot.stop()
                self._runner.run((ended if exc_type is None else over)(task))
            (self.stop if exc_type is None else self.crash)()
            self._runner.run(self._client.aclose())
            self._closing.set()
            self._runner.run(ended(self._node_task))
        finally:
            self._runner.close()

    def start(self) -> None:
        """Start the bot with the memory of its earlier runs."""
        self._memory = BotMemory(self._store, self.key.public_key, self.now_ms())
        self._task = self._loop.create_task(
            self._serve(
                self.bot,
                self.key,
                self._memory,
                pause=self._pause,
                community_key=self._community_key,
                open_store=lambda of: self._channel_stores.setdefault(of, MemoryStateStore()),
                open_control_store=lambda: self._control_store,
            )
        )
        self.wait()

    def stop(self) -> None:
        """Stop the bot in good order. If the bot does not run, `stop` does nothing."""
        self.bot.stop()
        self._news.set()
        self._end(ended)

    def crash(self) -> None:
        """End the bot at once, as a crash does. After a crash, the memory that the bot wrote
        stays."""
        if self._task is not None:
            self._task.cancel()
        self._end(over)

    def _end(self, waited: Callable[["asyncio.Task[None]"], Coroutine[Any, Any, None]]) -> None:
        task, self._task = self._task, None
        if task is not None and self._memory is not None:
            self._runner.run(waited(task))
            self._memory.close()

    def forget(self) -> None:
        """Let the stopped bot start without memory at its next start."""
        self.restore(MemoryStateStore())
        self._channel_stores = {}

    def restore(self, store: StateStore) -> None:
        """Let the stopped bot start with another state at its next start."""
        self._store = store

    @property
    def public_key(self) -> PublicKey:
        return self.key.public_key

    def node_client(self) -> WakuClient:
        """Return a client of the bot's node, which the caller must close."""
        return WakuClient("http://node", app=self.node.app)

    def starts(self, bot: StatusBot, name: str) -> PublicKey:
        """Start a second bot at the same node, which runs until the test ends. `starts` returns the
        public key of the second bot."""
        key = key_of(name)
        memory = BotMemory(MemoryStateStore(), key.public_key, self.now_ms())
        self._others[bot] = self._loop.create_task(self._serve(bot, key, memory))
        self._news.set()  # the first bot looks as often as this one from now on
        self.wait()
        return key.public_key

    # -- users ------------------------------------------------------------------------------------

    def user(self, name: str, key: PrivateKey | None = None) -> FakeUser:
        """Return a scripted user in the bot's chats. Each call with the same name returns the same
        user."""
        return FakeUser(self, name, key or key_of(name))

    def direct(self, name: str, key: PrivateKey | None = None, *, device: str = "") -> FakeDirect:
        """Return a user's direct messages with the bot, from one device. Each call with the same
        name returns the same user.

        Args:
            name: of the user.
            key: of the user; None for one that follows from the name.
            device: its installation id: it publishes bundles and speaks the double ratchet. Empty
                for a device without bundles.
        """
        key = key or key_of(name)
        if (key.public_key, device) not in self._directs:
            sessions = StatusGoSessions(key, device, MemorySessionStore()) if device else None
            layer = Correspondence(key, sessions=sessions, now_ms=self.now_ms)
            self._directs[key.public_key, device] = FakeDirect(self, name, key, layer)
        return self._directs[key.public_key, device]

    def owner(
        self,
        key: PrivateKey,
        *,
        access: Access = Access.AUTO_ACCEPT,
        shards: Sequence[PubsubTopic] = (DEFAULT_SHARD, NON_PROTECTED_SHARD),
        token_permissions: Sequence[CommunityTokenPermission] = (),
        identity: PrivateKey | None = None,
    ) -> FakeOwner:
        """Return the scripted owner of a community. The owner has the community's key, and accepts
        and refuses members as clients do."""
        community = Community(key.public_key)
        rooms = [room.name for room in self.bot.rooms if room.community == community]
        owner = FakeOwner(
            self,
            key,
            self.bot.rooms.topics,
            channels=rooms or [CHANNEL],
            access=access,
            shards=shards,
            token_permissions=token_permissions,
            identity=identity,
        )
        self._clients.append(owner)
        return owner

    def client(
        self,
        community: Community,
        *,
        shards: Sequence[PubsubTopic] = (DEFAULT_SHARD, NON_PROTECTED_SHARD),
        versions: Sequence[WakuVersion | None] = (1,),
        key: PrivateKey | None = None,
    ) -> FakeClient:
        """Return the scripted client of a member, which shows and refuses messages as real clients
        do. With the member's key, the client also reads encrypted channels."""
        topics = self.bot.rooms.topics
        client = FakeClient(self, community, topics, shards=shards, versions=versions, key=key)
        for message in self.relayed:  # as it would fetch them from Store
            client.hear(message, self._shard)
        self._clients.append(client)
        return client

    def publish(
        self, message: WakuMessage, *, shard: PubsubTopic | None = None, settle: bool = True
    ) -> None:
        """Publish any Waku message, by default on the shard where the bot writes."""
        self._do(self._client.relay_publish(str(shard or self._shard), message))
        self._news.set()
        if settle:
            self.wait()

    def said(self, channel: str | None = None) -> list[ChatMessage]:
        """Return the messages that the bot has written, in one channel or in all."""
        room = None if channel is None else self.bot.rooms.named(channel)
        return [
            received.payload
            for received in self.heard
            if received.signer == self.public_key
            and isinstance(received.payload, ChatMessage)
            and room in (None, self.bot.rooms.find(received.payload.chat_id))
        ]

    def answers(self, message_id: MessageId) -> list[str]:
        """Return the bot's answers to a message."""
        return [message.text for message in self.said() if message.response_to == message_id]

    def mark(self) -> Mark:
        """Return the present moment of the test, for `why_unanswered`."""
        reporter = self.bot.reporter
        return Mark(reporter.logged, runs(reporter), len(self.heard))

    def why_unanswered(self, text: str, since: Mark) -> str:
        """Return the reason why the bot did not answer a message that was written after a
        moment."""
        if self._task is None:
            return "the bot does not run; call tester.start()"
        return why_unanswered(text, since, self.bot, self.public_key, self.heard)

    def room(self, channel: str | None = None) -> Room:
        """Return the chat of the bot with the given name, or the bot's first chat."""
        if channel is not None:
            return self.bot.rooms.named(channel)
        return next(iter(self.bot.rooms), None) or self.bot.rooms.named(CHANNEL)

    def next_clock(self) -> int:
        """Return the logical clock for a user's next action."""
        self._clock = max(self.now_ms(), self._clock + 1)
        return self._clock

    def seal(self, payload: Payload, room: Room, key: PrivateKey) -> Outgoing:
        """Return the Waku payload with a user's message in a chat, inside SDS if the bot uses
        SDS."""
        now_ms, sealer = self.now_ms(), Sealer(key)
        if room.community is None or self.bot.options.reliability == "plain":
            return sealer.seal(payload, room.topic, now_ms)
        signed = wrap(payload, key)
        data = self._wrapper(room.community).wrap(signed.data, now_ms)
        return Outgoing(signed, sealer.seal_sds(data, room.topic, now_ms * NS_PER_MS))

    # -- inside -----------------------------------------------------------------------------------

    def _wrapper(self, community: Community) -> SdsWrapper:
        return self._wrappers.setdefault(community, SdsWrapper(community.id))

    async def _run_node(self) -> None:
        async with self.node:
            await self._closing.wait()

    async def _serve(self, bot: StatusBot, key: PrivateKey, memory: BotMemory, **more: Any) -> None:
        async with self.node_client() as client:
            await bot.serve(
                BotContext(key=key, memory=memory, client=client, now_ms=self.now_ms, **more)
            )

    async def _pause(self, seconds: float) -> None:
        """Look again after the next publication, or when Store is due; before that there is
        nothing to see."""
        if self._others:
            await anyio.sleep(seconds)
            return
        with anyio.move_on_after(max(IDLE_S, self.bot.options.confirm_ms / 1000)):
            await self._news.wait()
        self._news.clear()

    def _do(self, coroutine: Coroutine[Any, Any, T]) -> T:
        result = self._runner.run(coroutine)
        for shard in self._shards if self._clients else (self._shard,):
            for message in self._runner.run(self._client.relay_messages(shard)):
                digest = message_hash(shard, message)
                if digest not in self._hashes:  # nodes of a network relay it once
                    self._hashes.add(digest)
                    self._hear(message, shard)
        if self._task is not None and self._task.done():
            self._task.result()
        for task in self._others.values():
            if task.done():
                task.result()
        return result

    def _hear(self, message: WakuMessage, shard: str) -> None:
        if shard == self._shard:
            self.relayed.append(message)
            for outcome in self._opener.receive(message, self.now_ms()):
                # What is published again is the same to clients.
                if isinstance(outcome, Received) and outcome.message_id not in self._ids:
                    self._ids.add(outcome.message_id)
                    self.heard.append(outcome)
        for client in self._clients:
            client.hear(message, shard)
        for one in self._directs.values():
            one.hear(message)
