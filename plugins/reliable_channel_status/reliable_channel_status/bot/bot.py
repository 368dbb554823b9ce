"""`StatusBot`: what a bot's author holds.

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
import time
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import anyio

from reliable_channel.spi import MemoryStateStore, SqliteStateStore, StateError, StateStore

from ..chats import Community
from ..direct.groups import Group, MembershipEventType
from ..key_file import PASSPHRASE_VARIABLE, read_key
from ..keys import PublicKey
from ..outcomes import MessageId
from .handlers import DIRECT, Kind
from .happenings import CURRENT_TURN, Channel, Turn
from .membership import Standing
from .memory import BotMemory
from .metrics import served
from .options import BotOptions
from .owned import OwnedCommunity
from .rooms import Rooms
from .router import Function, NotRunning, Router
from .running import Running
from .session import Session, Surroundings
from .settings import bot_settings
from .watching import Watch, write_to_stderr
from .way import Way

BESIDE_THE_KEY: Final = "beside the key"


class StatusBot(Router):
    """A bot in Status communities and public chats.

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
            (docs/discovery.md).
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
        super().__init__()
        self.options = options or BotOptions()
        self.watch = Watch()
        """Counts, and what is logged."""
        shards = (self.options.shard, *self.options.also_listen)
        self._way = Way(node, network, shards, ssl_context)
        self._key_file = Path(key_file)
        self._state = self._key_file.with_suffix(".db") if state == BESIDE_THE_KEY else state
        self._community_key_file = community_key_file and Path(community_key_file)
        self._moderators = tuple(
            key if isinstance(key, PublicKey) else PublicKey.parse(key) for key in moderators
        )
        self.rooms = Rooms()
        """Where the bot is."""
        self._session: Session | None = None
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
        """A bot with arguments and options from a TOML file and the environment, see `settings`.

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
        """Take part in another community, too; in all its channels if none are named.

        Raises:
            ValueError: it is not a community, or a channel is not a uuid.
        """
        if isinstance(community, str):
            community = Community.parse(community)
        self.rooms.join(community, channels, self.options.derivation)

    def join_public(self, name: str) -> None:
        """Be in a public chat.

        Raises:
            ValueError: the name is empty.
        """
        self.rooms.join_public(name)

    # -- what to do -------------------------------------------------------------------------------

    @property
    def bot(self) -> "StatusBot":
        """The bot itself."""
        return self

    def include(self, router: Router) -> None:
        """Take over all functions of a router, which takes no further ones then. Its error handlers
        are asked before the bot's.

        Raises:
            ValueError: a name is taken, or it was included before.
        """
        super().include(router)
        self.rooms.has_direct |= any(kind in DIRECT for kind in self.handlers.events)

    def _on(self, kind: Kind, function: Function) -> Function:
        self.rooms.has_direct |= kind in DIRECT
        return super()._on(kind, function)

    # -- while it runs ----------------------------------------------------------------------------

    @property
    def public_key(self) -> PublicKey:
        """The bot's public key.

        Raises:
            NotRunning: before `run`.
        """
        return self._now().public_key

    def channel(self, name: str) -> Channel:
        """A chat to write in: by id, a channel's uuid, or a public chat's name.

        Raises:
            NotRunning: before `run`.
            ValueError: the bot is not there, or several communities have such a channel.
        """
        session = self._now()
        turn = CURRENT_TURN.get(None)
        if turn is None or turn.session is not session:  # in a program with tasks of its own
            turn = Turn(session, f"elsewhere {uuid4()}")
        return Channel(session.rooms.named(name), turn)

    def direct(self, user: str | PublicKey) -> Channel:
        """The one-to-one chat with a user. There is no forward secrecy: a private key that
        leaks, however late, opens all that its owner was sent.

        Raises:
            NotRunning: before `run`.
            ValueError: no public key, or the bot has no function for direct messages.
        """
        return self.channel(_key(user).hex)

    @property
    def contacts(self) -> tuple[PublicKey, ...]:
        """The users that are contacts of the bot.

        Raises:
            NotRunning: before `run`.
            ValueError: the bot has no function for direct messages.
        """
        return self._now().contacts()

    async def request_contact(self, user: str | PublicKey, text: str) -> MessageId:
        """Ask a user to be a contact; clients show the text with the request.

        Raises:
            NotRunning: before `run`.
            ValueError: no public key, no text, or the bot has no function for direct messages.
            OutboxFull: the node has been away for too long.
        """
        return self._now().request_contact(_key(user), text)

    async def remove_contact(self, user: str | PublicKey) -> None:
        """End a contact, or take a request back.

        Raises:
            NotRunning: before `run`.
            ValueError: no public key, or the bot has no function for direct messages.
            OutboxFull: the node has been away for too long.
        """
        self._now().remove_contact(_key(user))

    @property
    def groups(self) -> tuple[Group, ...]:
        """The private groups that the bot is in; `channel(group.chat_id)` writes in one.

        Raises:
            NotRunning: before `run`.
            ValueError: the bot has no function for direct messages or groups.
        """
        return self._now().private_groups.current

    async def create_group(self, name: str, members: Iterable[str | PublicKey]) -> Group:
        """Create a private group and add users.

        Raises:
            NotRunning: before `run`.
            ValueError: no name, no public key, too many members, or the bot has no function for
                direct messages or groups.
            OutboxFull: the node has been away for too long.
        """
        return self._now().private_groups.create(name, [_key(one) for one in members])

    async def change_group(
        self,
        chat_id: str,
        *,
        add: Iterable[str | PublicKey] = (),
        remove: str | PublicKey | None = None,
        name: str | None = None,
    ) -> Group:
        """Add users to a private group, remove one, or give it another name; for admins.

        Raises:
            NotRunning: before `run`.
            ValueError: the bot is not in the group or not an admin, or no public key.
            OutboxFull: the node has been away for too long.
        """
        groups, added = self._now().private_groups, [_key(one) for one in add]
        if added:
            groups.change(chat_id, MembershipEventType.MEMBERS_ADDED, members=added)
        if remove is not None:
            removed = MembershipEventType.MEMBER_REMOVED
            groups.change(chat_id, removed, members=[_key(remove)])
        if name is not None:
            groups.change(chat_id, MembershipEventType.NAME_CHANGED, name=name)
        return groups.of(chat_id)

    async def leave_group(self, chat_id: str) -> None:
        """Be in a private group no more.

        Raises:
            NotRunning: before `run`.
            ValueError: the bot is not in the group.
            OutboxFull: the node has been away for too long.
        """
        session = self._now()
        removed = MembershipEventType.MEMBER_REMOVED
        session.private_groups.change(chat_id, removed, members=[session.public_key])

    def standing(self, community: str | Community) -> Standing:
        """Where the bot stands in a community, such as `member` or `requested`.

        Raises:
            NotRunning: before `run`.
            ValueError: it is not a community of the bot's.
        """
        return self._now().memberships.standing(self._own(community))

    async def request_to_join(self, community: str | Community) -> None:
        """Ask again to be let in, such as after being rejected or having left.

        Raises:
            NotRunning: before `run`.
            ValueError: it is not a community of the bot's.
            OutboxFull: the node has been away for too long.
            CannotJoin: no request would help; the text names what the bot lacks, such as tokens.
        """
        session, own = self._now(), self._own(community)
        session.memberships.check_open(own)
        session.request_to_join(own)

    async def leave(self, community: str | Community) -> None:
        """Leave a community. The bot does not ask to join again, not even after a restart, until
        `request_to_join`.

        Raises:
            NotRunning: before `run`.
            ValueError: it is not a community of the bot's.
            OutboxFull: the node has been away for too long.
        """
        self._now().leave(self._own(community))

    def _own(self, community: str | Community) -> Community:
        if isinstance(community, str):
            community = Community.parse(community)
        if community not in self.rooms.communities:
            raise ValueError(f"the bot is not in {community}; call join() before it runs")
        return community

    @property
    def owned(self) -> OwnedCommunity:
        """The community that the bot runs: that of `community_key_file`.

        Raises:
            NotRunning: before `run`.
            ValueError: the bot has no community's key.
        """
        if (owned := self._now().owned) is None:
            raise ValueError("the bot has no community's key; give community_key_file=")
        return owned

    def name_of(self, user: PublicKey) -> str:
        """The latest name of a user; else the start of the key.

        Raises:
            NotRunning: before `run`.
        """
        return self._now().name_of(user)

    def is_acknowledged(self, message_id: MessageId) -> bool:
        """Whether another user is known to have a message of the bot's from this run: one to one,
        and in communities with `BotOptions(reliability="sds")`. Plain chat has no acknowledgements.

        Raises:
            NotRunning: before `run`.
        """
        return self._now().is_acknowledged(message_id)

    def note(self, name: str) -> Any:
        """What `keep` keeps under a name, or None.

        Raises:
            NotRunning: before `run`.
        """
        return self._now().memory.note(name)

    def keep(self, name: str, value: Any) -> None:
        """Keep anything that JSON can hold over a restart; None deletes it.

        Raises:
            NotRunning: before `run`.
            TypeError: JSON cannot hold it.
        """
        self._now().memory.keep(name, value)

    @property
    def is_busy(self) -> bool:
        """Whether the bot runs and one of its functions has not ended yet."""
        return self._running is not None and self._running.is_busy

    def _now(self) -> Session:
        if self._session is None:
            raise NotRunning("the bot is not running; do this in a handler, a task or a schedule")
        return self._session

    # -- running ----------------------------------------------------------------------------------

    def run(self) -> None:
        """Run until SIGINT or SIGTERM; log JSON lines to standard error, unless logging is set up.

        Raises:
            KeyFileError: no key, or not this passphrase.
            StateError: the state is in use, damaged, or of another bot.
        """
        write_to_stderr()
        anyio.run(self._run)

    async def _run(self) -> None:
        key = read_key(self._key_file, os.environ.get(PASSPHRASE_VARIABLE))
        owner_file = self._community_key_file
        memory = BotMemory(self._store(), key.public_key, _now_ms())
        try:
            # Signals are taken from here on, before anybody is told that the bot runs.
            with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
                async with (
                    self._way.opened() as (client, pause),
                    anyio.create_task_group() as tasks,
                ):
                    surroundings = Surroundings(
                        key=key,
                        memory=memory,
                        client=client,
                        pause=pause,
                        now_ms=_now_ms,
                        community_key=read_key(owner_file) if owner_file else None,
                        open_store=self._store_of,
                        open_control_store=self._control_store,
                    )
                    tasks.start_soon(self._stop_at, signals)
                    await self.serve(surroundings)
                    tasks.cancel_scope.cancel()
        finally:
            memory.close()

    async def serve(self, surroundings: Surroundings) -> None:
        """Run in given surroundings until `stop`; for tests, and for programs with a loop of their
        own.

        Raises:
            StateError: what must not be forgotten cannot be written.
            NotAMember: with `BotOptions(needs_membership=True)`, a community will not take the bot.
        """
        if surroundings.community_key is not None:
            own = Community(surroundings.community_key.public_key)
            if own not in self.rooms.communities:
                self.join(own)
        if not self.rooms.topics and not self.rooms.has_direct:
            raise ValueError("the bot is in no chat; give community=, or call join()")
        self._session = Session(
            surroundings, self.rooms, self.options, self._moderators, self.watch
        )
        try:
            self._running = Running(self._session, surroundings, self.handlers, self.options)
            with served(self.watch, self.options.metrics_port):
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
        """Stop in good order: no new events, functions end, messages go out."""
        if self._running is not None:
            self._running.stop()

    async def _stop_at(self, signals: AsyncIterator[signal.Signals]) -> None:
        async for number in signals:
            self.watch.log("bot_stopping", logging.INFO, signal=number.name)
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


def _key(user: str | PublicKey) -> PublicKey:
    return user if isinstance(user, PublicKey) else PublicKey.parse(user)
