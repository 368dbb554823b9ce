"""`StatusBot`, the object with which an author writes a bot.

bot = StatusBot(node="http://127.0.0.1:8645", key_file="bot.key", community="0x02dcec…",
                channels=["1dc14fd8-…"])

@bot.command("ping")
async def ping(message: ChatMessage) -> str:
    return "pong"
bot.run()
"""

import logging
import os
import signal
import ssl
import sys
import time
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import anyio

from reliable_channel.spi import MemoryStateStore, SqliteStateStore, StateError, StateStore

from ..key_file import PASSPHRASE_VARIABLE, read_key
from ..wire.chats import Community
from ..wire.keys import PublicKey
from .actions import BotActions
from .handlers import DIRECT, Kind
from .membership import MembershipFinding, examine
from .memory import BotMemory
from .options import BotOptions, bot_settings
from .outbox import BotContext
from .reporting import Reporter, served, write_to_stderr
from .router import Function, Router
from .running import Running
from .session import Session
from .waku_access import WakuAccess

BESIDE_THE_KEY: Final = "beside the key"


class StatusBot(Router, BotActions):
    """Bot in Status communities and public chats.

    Args:
        node: the REST address of an nwaku or go-waku node of cluster 16, or of an embedded one; or
            addresses of service peers, one or several, so that you need not run a node:
            `/dns4/…/wss/p2p/16Uiu2…`, `enrtree://…` (`reliable-channel-status[libp2p]`). None for
            those of `network`.
        key_file: the bot's identity; `reliable-channel bot key` makes one. A passphrase is taken
            from `RELIABLE_CHANNEL_BOT_PASSPHRASE`.
        community: id or key of a community, see `Community.parse`; `join` adds others.
        channels: uuids of its channels; None for all.
        state: file that remembers over a restart what was answered; None remembers nothing. With
            SDS there is one beside it for each community.
        moderators: public keys of moderators, beside the community's own.
        community_key_file: key of a community that the bot runs (`owned`); a state file beside it
            keeps the community. `reliable-channel bot key` makes one.
        options: see `BotOptions`.
        network: named network of service peers, such as `status.prod`, or a TOML file
            (docs/light-client.md).
        ssl_context: trusted certificates for `https` and `wss`; None for the system's.

    Raises:
        ValueError: a malformed address, community, channel, key or network.
    """

    def __init__(
        self,
        *,
        node: str | Sequence[str] | None = None,
        key_file: str | Path = "bot.key",
        community: str | Community | None = None,
        channels: Iterable[str] | None = None,
        state: str | Path | None = BESIDE_THE_KEY,
        moderators: Iterable[str | PublicKey] = (),
        community_key_file: str | Path | None = None,
        options: BotOptions | None = None,
        network: str | None = None,
        ssl_context: ssl.SSLContext | None = None,
    ) -> None:
        Router.__init__(self)
        BotActions.__init__(self)
        self.options = options or BotOptions()
        self.reporter = Reporter()
        """Counts, and what is logged."""
        shards = (self.options.shard, *self.options.also_listen)
        self._access = WakuAccess(node, network, shards, ssl_context)
        self._key_file = Path(key_file)
        self._state = self._key_file.with_suffix(".db") if state == BESIDE_THE_KEY else state
        self._community_key_file = community_key_file and Path(community_key_file)
        self._moderators = tuple(
            key if isinstance(key, PublicKey) else PublicKey.parse(key) for key in moderators
        )
        self._running: Running | None = None
        if community is not None:
            self.join(community, channels)

    @classmethod
    def configured(
        cls,
        file: str | Path | None = None,
        *,
        options: BotOptions | None = None,
        **arguments: Any,
    ) -> "StatusBot":
        """Return a bot with arguments and options from a TOML file and the environment.

        Args:
            file: with a table `[bot]`; None for the file that `RELIABLE_CHANNEL_CONFIG` names.
            options: for those that neither file nor environment give.
            arguments: of `StatusBot`; they override file and environment.

        Raises:
            ValueError: as `StatusBot`, a value of the wrong kind, or an unknown name in the file.
            OSError: the file cannot be read.
        """
        given, chosen = bot_settings(file)
        return cls(options=replace(options or BotOptions(), **chosen), **{**given, **arguments})

    # -- where ------------------------------------------------------------------------------------

    def join(self, community: str | Community, channels: Iterable[str] | None = None) -> None:
        """Take part in one more community, by default in all its channels.

        Raises:
            ValueError: it is not a community, or a channel is not a uuid.
        """
        if isinstance(community, str):
            community = Community.parse(community)
        self.rooms.join(community, channels, self.options.derivation)

    def join_public(self, name: str) -> None:
        """Take part in a public chat of Status, given by its name.

        Raises:
            ValueError: the name is empty.
        """
        self.rooms.join_public(name)

    # -- what to do -------------------------------------------------------------------------------

    @property
    def bot(self) -> "StatusBot":
        return self

    def include(self, router: Router) -> None:
        """Include all functions of a router, after which the router accepts no more functions. A
        router's error handlers are called before the bot's error handlers.

        Raises:
            ValueError: a name is taken, or it was included before.
        """
        super().include(router)
        self.rooms.has_direct |= any(kind in DIRECT for kind in self.handlers.events)

    def _on(self, kind: Kind, function: Function) -> Function:
        self.rooms.has_direct |= kind in DIRECT
        return super()._on(kind, function)

    @property
    def is_busy(self) -> bool:
        """True while the bot runs and at least one of its functions has not ended."""
        return self._running is not None and self._running.is_busy

    async def examine(self) -> list[MembershipFinding]:
        """Return findings about the bot's membership in its communities, from the descriptions in
        Store. `examine` also works while the bot does not run.

        Raises:
            KeyFileError: no key, or not this passphrase.
            WakuError: the node is away, or no Store answers.
        """
        key = read_key(self._key_file, os.environ.get(PASSPHRASE_VARIABLE))
        shards = [str(one) for one in (self.options.shard, *self.options.also_listen)]
        async with self._access.opened() as (client, _):
            return await examine(client, key, self.rooms.communities, shards, _now_ms())

    # -- running ----------------------------------------------------------------------------------

    def run(self) -> None:
        """Run the bot until SIGINT or SIGTERM. The bot logs JSON lines to standard error, unless
        the program has set up logging.

        Raises:
            KeyFileError: no key, or not this passphrase.
            StateError: the state is in use, damaged, or of another bot.
            NotImplementedError: event loops of Windows take no signals; use `run_async` there.
        """
        if sys.platform == "win32":
            raise NotImplementedError(
                "`run` needs POSIX signals, which event loops on Windows do not support; call "
                "`anyio.run(bot.run_async)`, and end the program with Ctrl-C"
            )
        write_to_stderr()
        anyio.run(self._run)

    async def _run(self) -> None:
        failed: Exception | None = None
        # Signals are taken from here on, before anybody is told that the bot runs.
        with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._stop_at, signals)
                try:
                    await self.run_async()
                except Exception as error:
                    failed = error  # raised below as it is, and not in a group
                tasks.cancel_scope.cancel()
        if failed is not None:
            raise failed

    async def run_async(self) -> None:
        """Run the bot in the caller's event loop until `stop`. The caller of `run_async` handles
        signals itself.

        Raises:
            KeyFileError, StateError: as `run`.
            NotAMember: as `serve`.
        """
        key = read_key(self._key_file, os.environ.get(PASSPHRASE_VARIABLE))
        owner_file = self._community_key_file
        memory = BotMemory(self._store(), key.public_key, _now_ms())
        try:
            async with self._access.opened() as (client, pause):
                await self.serve(
                    BotContext(
                        key=key,
                        memory=memory,
                        client=client,
                        pause=pause,
                        now_ms=_now_ms,
                        community_key=read_key(owner_file) if owner_file else None,
                        open_store=self._store_of,
                        open_control_store=self._control_store,
                    )
                )
        finally:
            memory.close()

    async def serve(self, context: BotContext) -> None:
        """Run the bot in a given context until `stop`, for tests and for programs with an event
        loop.

        Raises:
            StateError: what must not be forgotten cannot be written.
            NotAMember: with `BotOptions(needs_membership=True)`, a community will not take the bot.
        """
        if context.community_key is not None:
            own = Community(context.community_key.public_key)
            if own not in self.rooms.communities:
                self.join(own)
        if not self.rooms.topics and not self.rooms.has_direct:
            raise ValueError("the bot is in no chat; give `community`, or call join()")
        self._session = Session(context, self.rooms, self.options, self._moderators, self.reporter)
        try:
            self._running = Running(self._session, context, self.handlers, self.options)
            with served(self.reporter, self.options.metrics_port):
                await self._running.run()
            if self._running.given_up is not None:
                raise self._running.given_up
        except ExceptionGroup as group:
            if (error := _first_state_error(group)) is None:
                raise
            raise error from group
        finally:
            self._session.close()
            self._session = self._running = None

    def stop(self) -> None:
        """Stop the bot after its running functions have ended and its messages are sent."""
        if self._running is not None:
            self._running.stop()

    async def _stop_at(self, signals: AsyncIterator[signal.Signals]) -> None:
        async for number in signals:
            self.reporter.log("bot_stopping", logging.INFO, signal=number.name)
            self.stop()

    def _store(self) -> StateStore:
        return MemoryStateStore() if self._state is None else SqliteStateStore(Path(self._state))

    def _control_store(self) -> StateStore:
        """Where the control node of the bot's community keeps what it must not forget."""
        if self._state is None or not self._community_key_file:
            return MemoryStateStore()
        return SqliteStateStore(self._community_key_file.with_suffix(".control.db"))

    def _store_of(self, community: Community) -> StateStore:
        """Where the SDS channel of a community keeps what it must not forget."""
        if self._state is None:
            return MemoryStateStore()
        file = Path(self._state)
        return SqliteStateStore(file.with_name(f"{file.stem}.{community.id}{file.suffix}"))


def _first_state_error(group: ExceptionGroup) -> StateError | None:
    for error in group.exceptions:
        if isinstance(error, StateError):
            return error
        if isinstance(error, ExceptionGroup) and (found := _first_state_error(error)):
            return found
    return None


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
