"""`StatusTestKit`: a bot, an embedded node and scripted users in virtual time, for authors of bots.

    def test_ping() -> None:
        with StatusTestKit(bot) as kit:
            assert kit.user("Alice").asks("!ping") == "pong"

Everything runs: keys, envelopes, the node's REST API, the bot's loops. Only time is virtual, so an
hour passes at once, and the bot's own key, state and node are left alone.
"""

import asyncio
from collections import Counter
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from types import TracebackType
from typing import Any, Final, Self, TypeVar

import anyio
import httpx

from reliable_channel.spi import MemoryStateStore, StateStore
from waku import PubsubTopic, WakuClient, WakuMessage, message_hash
from waku.node import EmbeddedNode, NodeOptions

from ..application import wrap
from ..chats import Community
from ..community_payloads import CommunityTokenPermission
from ..direct import Correspondence, MemorySessionStore, Sessions
from ..enums import Access, Reaction
from ..keys import PrivateKey, PublicKey
from ..membership import join_request
from ..outcomes import MessageId, Received
from ..payloads import ChatMessage, Payload
from ..pipeline import Opener, Outgoing, Sealer, WakuVersion
from ..sds import SdsArrival, SdsWrapper
from ..topics import CLUSTER_ID, DEFAULT_SHARD, NON_PROTECTED_SHARD
from . import sayings
from .bot import StatusBot
from .kit_client import KitClient
from .kit_direct import KitDirect
from .kit_owner import KitOwner
from .link import NS_PER_MS
from .memory import BotMemory
from .missing import why_unanswered
from .rooms import Room
from .sayings import Make
from .session import Surroundings
from .virtual_time import VirtualTimeLoop
from .watching import Watch

START_MS: Final = 1_700_000_000_000
SETTLE_S: Final = 1.0
"""Virtual time that passes after what a user does: the bot has reacted by then."""
ANSWER_S: Final = 60.0
IDLE_S: Final = 60.0
FOR_EVER_S: Final = 1e9
CHANNEL: Final = "00000000-0000-4000-8000-000000000001"
"""Where users write if the bot is in all channels."""

T = TypeVar("T")


def key_of(name: str) -> PrivateKey:
    """The key of a user in a test: the same for the same name, and not secret."""
    return PrivateKey(sha256(f"StatusTestKit {name}".encode()).digest())


@dataclass(frozen=True, slots=True)
class Mark:
    """A moment of a test."""

    logged: int
    ran: Counter[str]
    heard: int


def _runs(watch: Watch) -> Counter[str]:
    """How often each function ended."""
    return Counter({of: n for (name, of), n in watch.counts.items() if name == "handlers_run"})


class StatusTestKit:
    """The surroundings of a bot under test. Use it in `with`.

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
        shards = tuple(dict.fromkeys((bot.options.shard, *bot.options.also_listen)))
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
        self._clients: list[KitClient] = []
        self._others: dict[StatusBot, asyncio.Task[None]] = {}
        self._directs: dict[tuple[PublicKey, str], KitDirect] = {}
        self._client = self._new_client()
        self._opener = Opener(bot.rooms.topics, on_sds=self._heard_sds)
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
        """The time, in milliseconds since 1970."""
        return self._start_ms + round(self._loop.time() * 1000)

    def wait(self, seconds: float = SETTLE_S) -> None:
        """Let time pass.

        Raises:
            Exception: what ended the bot.
        """
        self._do(asyncio.sleep(seconds))
        for one in self._directs.values():
            if one.answer():
                self._do(asyncio.sleep(SETTLE_S))

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Await something of the running bot, such as `bot.leave(…)`; what follows has happened
        when this returns."""
        result = self._do(coroutine)
        self.wait()
        return result

    # -- the bot ----------------------------------------------------------------------------------

    def __enter__(self) -> Self:
        self._node_task = self._loop.create_task(self._run_node())
        self._runner.run(self._client.relay_subscribe(self._shards))
        self.start()
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            for bot, task in self._others.items():
                bot.stop()
                self._runner.run((_ended if exc_type is None else _over)(task))
            if exc_type is None:
                self.stop()
            else:
                self.crash()
            self._runner.run(self._client.aclose())
            self._closing.set()
            self._runner.run(_ended(self._node_task))
        finally:
            self._runner.close()

    def start(self) -> None:
        """Start the bot, with what it remembers from before."""
        self._memory = BotMemory(self._store, self.key.public_key, self.now_ms())
        self._task = self._loop.create_task(self._serve(self._memory))
        self.wait()

    def stop(self) -> None:
        """Stop the bot in good order; nothing happens if it does not run."""
        if self._task is not None:
            self.bot.stop()
            self._news.set()
            task, self._task = self._task, None
            self._runner.run(_ended(task))
            self._close_memory()

    def crash(self) -> None:
        """End the bot at once; it remembers what was written."""
        if self._task is not None:
            task, self._task = self._task, None
            task.cancel()
            self._runner.run(_over(task))
            self._close_memory()

    def forget(self) -> None:
        """Let the bot, which does not run now, start from nothing the next time."""
        self._store = MemoryStateStore()
        self._channel_stores = {}

    @property
    def public_key(self) -> PublicKey:
        """The bot's public key."""
        return self.key.public_key

    def starts(self, bot: StatusBot, name: str) -> PublicKey:
        """Start a second bot at the same node, which runs until the test ends; return its key."""
        key = key_of(name)
        memory = BotMemory(MemoryStateStore(), key.public_key, self.now_ms())
        self._others[bot] = self._loop.create_task(self._serve_other(bot, key, memory))
        self._news.set()  # the first bot looks as often as this one from now on
        self.wait()
        return key.public_key

    # -- users ------------------------------------------------------------------------------------

    def user(self, name: str, key: PrivateKey | None = None) -> "KitUser":
        """A user in the chats; the same name is the same person."""
        return KitUser(self, name, key or key_of(name))

    def direct(
        self,
        name: str,
        key: PrivateKey | None = None,
        *,
        device: str = "",
    ) -> KitDirect:
        """A user's direct messages with the bot, by one device; the same name is the same person.

        Args:
            name: of the user.
            key: of the user; None for one that follows from the name.
            device: its installation id: it publishes bundles and speaks the double ratchet. Empty
                for a device without bundles.
        """
        key = key or key_of(name)
        if (key.public_key, device) not in self._directs:
            sessions = Sessions(key, device, MemorySessionStore()) if device else None
            layer = Correspondence(key, sessions=sessions, now_ms=self.now_ms)
            self._directs[key.public_key, device] = KitDirect(self, name, key, layer)
        return self._directs[key.public_key, device]

    def owner(
        self,
        key: PrivateKey,
        *,
        access: Access = Access.AUTO_ACCEPT,
        shards: Sequence[PubsubTopic] = (DEFAULT_SHARD, NON_PROTECTED_SHARD),
        token_permissions: Sequence[CommunityTokenPermission] = (),
        identity: PrivateKey | None = None,
    ) -> KitOwner:
        """The owner of a community: has its key, and accepts and refuses members as clients do."""
        community = Community(key.public_key)
        rooms = [room.name for room in self.bot.rooms if room.community == community]
        owner = KitOwner(
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
    ) -> KitClient:
        """The client of a member, which shows and refuses what it reads as real clients do; with
        the member's key it reads encrypted channels, too."""
        topics = self.bot.rooms.topics
        client = KitClient(self, community, topics, shards=shards, versions=versions, key=key)
        for message in self.relayed:  # as it would fetch them from Store
            client.hear(message, self._shard)
        self._clients.append(client)
        return client

    def publish(
        self, message: WakuMessage, *, shard: PubsubTopic | None = None, settle: bool = True
    ) -> None:
        """Publish any Waku message: where the bot writes, or on another shard."""
        self._do(self._client.relay_publish(str(shard or self._shard), message))
        self._news.set()
        if settle:
            self.wait()

    def said(self, channel: str | None = None) -> list[ChatMessage]:
        """The messages of the bot so far, of one channel or of all."""
        room = None if channel is None else self.bot.rooms.named(channel)
        return [
            received.payload
            for received in self.heard
            if received.signer == self.public_key
            and isinstance(received.payload, ChatMessage)
            and room in (None, self.bot.rooms.find(received.payload.chat_id))
        ]

    def answers(self, message_id: MessageId) -> list[str]:
        """What the bot answered to a message."""
        return [message.text for message in self.said() if message.response_to == message_id]

    def mark(self) -> "Mark":
        """A moment, for `why_unanswered`."""
        watch = self.bot.watch
        return Mark(watch.logged, _runs(watch), len(self.heard))

    def why_unanswered(self, text: str, since: "Mark") -> str:
        """Why the bot did not answer a message that was written after a moment."""
        if self._task is None:
            return "the bot does not run; call kit.start()"
        watch = self.bot.watch
        return why_unanswered(
            text,
            bot=self.public_key,
            handlers=self.bot.handlers,
            options=self.bot.options,
            logged=watch.since(since.logged),
            ran=_runs(watch) - since.ran,
            said=[
                received.payload
                for received in self.heard[since.heard :]
                if received.signer == self.public_key
            ],
            is_pending=self.bot.is_busy,
        )

    def room(self, channel: str | None = None) -> Room:
        """A chat of the bot: the first one, unless it is named."""
        if channel is not None:
            return self.bot.rooms.named(channel)
        return next(iter(self.bot.rooms), None) or self.bot.rooms.named(CHANNEL)

    def next_clock(self) -> int:
        """The clock of what a user does now."""
        self._clock = max(self.now_ms(), self._clock + 1)
        return self._clock

    def seal(self, payload: Payload, room: Room, key: PrivateKey) -> Outgoing:
        """What a user publishes in a chat: inside SDS, where the bot speaks so."""
        now_ms, sealer = self.now_ms(), Sealer(key)
        if room.community is None or self.bot.options.reliability == "plain":
            return sealer.seal(payload, room.topic, now_ms)
        signed = wrap(payload, key)
        data = self._wrapper(room.community).wrap(signed.data, now_ms)
        return Outgoing(signed, sealer.seal_sds(data, room.topic, now_ms * NS_PER_MS))

    # -- inside -----------------------------------------------------------------------------------

    def _wrapper(self, community: Community) -> SdsWrapper:
        return self._wrappers.setdefault(community, SdsWrapper(community.id))

    def _heard_sds(self, sds: SdsArrival) -> None:
        self._wrapper(Community.parse(sds.channel_id)).heard(sds)

    def _store_of(self, community: Community) -> StateStore:
        return self._channel_stores.setdefault(community, MemoryStateStore())

    def _close_memory(self) -> None:
        if self._memory is not None:
            self._memory.close()

    async def _run_node(self) -> None:
        async with self.node:
            await self._closing.wait()

    async def _serve(self, memory: BotMemory) -> None:
        async with self._new_client() as client:
            await self.bot.serve(
                Surroundings(
                    key=self.key,
                    memory=memory,
                    client=client,
                    now_ms=self.now_ms,
                    pause=self._pause,
                    community_key=self._community_key,
                    open_store=self._store_of,
                    open_control_store=lambda: self._control_store,
                )
            )

    async def _serve_other(self, bot: StatusBot, key: PrivateKey, memory: BotMemory) -> None:
        async with self._new_client() as client:
            await bot.serve(Surroundings(key=key, memory=memory, client=client, now_ms=self.now_ms))

    async def _pause(self, seconds: float) -> None:
        """Look again after the next publication; before that there is nothing to see."""
        if self._others:
            await anyio.sleep(seconds)
            return
        with anyio.move_on_after(IDLE_S):
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

    def _new_client(self) -> WakuClient:
        return WakuClient("http://node", transport=httpx.ASGITransport(app=self.node.app))


class KitUser:
    """A user in a test."""

    def __init__(self, kit: StatusTestKit, name: str, key: PrivateKey) -> None:
        self.name = name
        self.key = key
        self._kit = kit
        self._sealer = Sealer(key)

    @property
    def public_key(self) -> PublicKey:
        """The user's public key."""
        return self.key.public_key

    def says(
        self, text: str, *, channel: str | None = None, to: str = "", settle: bool = True
    ) -> MessageId:
        """Write a message, as an answer to another or on its own; return its id."""
        room = self._kit.room(channel)
        return self.does(sayings.message(room, text, response_to=to), room, settle=settle)

    def asks(self, text: str, *, channel: str | None = None, to: str = "") -> str:
        """Write a message and return the text of the bot's answer.

        Raises:
            AssertionError: there is none within a minute of virtual time; it says why.
        """
        since = self._kit.mark()
        message_id = self.says(text, channel=channel, to=to)
        for _ in range(round(ANSWER_S / SETTLE_S)):
            if answers := self._kit.answers(message_id):
                return answers[0]
            self._kit.wait()
        why = self._kit.why_unanswered(text, since)
        raise AssertionError(f"the bot did not answer {text!r} of {self.name}: {why}")

    def edits(self, message_id: str, text: str, *, channel: str | None = None) -> None:
        """Give a message another text."""
        room = self._kit.room(channel)
        self.does(sayings.edit(room, message_id, text), room)

    def deletes(self, message_id: str, *, channel: str | None = None) -> None:
        """Delete a message."""
        room = self._kit.room(channel)
        self.does(sayings.deletion(room, message_id), room)

    def reacts(
        self,
        message_id: str,
        reaction: Reaction,
        *,
        retracted: bool = False,
        channel: str | None = None,
    ) -> None:
        """React to a message, or take that back."""
        room = self._kit.room(channel)
        self.does(sayings.reaction(room, message_id, reaction, retracted), room)

    def does(self, make: Make, room: Room, *, settle: bool = True) -> MessageId:
        """Publish any payload of a chat; return its id."""
        now_ms = self._kit.now_ms()
        payload: Payload = make(self._kit.next_clock(), now_ms)
        if isinstance(payload, ChatMessage):
            payload = replace(payload, display_name=self.name)
        outgoing = self._kit.seal(payload, room, self.key)
        for message in outgoing.messages:
            self._kit.publish(message, settle=False)
        if settle:
            self._kit.wait()
        return outgoing.message_id

    @property
    def direct(self) -> KitDirect:
        """The user's direct messages with the bot."""
        return self._kit.direct(self.name, self.key)

    def requests_to_join(self, community: Community) -> None:
        """Ask to be let in."""
        now_ms = self._kit.now_ms()
        request = join_request(self.key, community, now_ms, display_name=self.name)
        topic = community.requests_topic
        sealed = self._sealer.seal(request, topic, now_ms, receiver=community.public_key)
        self._kit.publish(sealed.messages[0])


async def _over(task: "asyncio.Task[None]") -> None:
    """Wait for the end of a task, also one that fails."""
    await asyncio.wait([task])
    if not task.cancelled():
        task.exception()


async def _ended(task: "asyncio.Task[None]") -> None:
    try:
        await task
    except asyncio.CancelledError:
        return
