"""`ReliableChannel`, the channel of an application (LIP 173, Reliable Channel API)."""

import logging
import os
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from functools import partial
from math import inf
from pathlib import Path
from random import Random
from secrets import randbits
from types import TracebackType
from typing import Any, Final, NoReturn, Self, Unpack

import anyio

from ._arguments import (
    checked_encryption,
    checked_id,
    checked_options,
    checked_path,
    checked_payload,
    checked_signing,
    checked_state,
    checked_transport,
)
from ._contracts.encryption import Encryption
from ._contracts.signing import Signing
from ._own_task import OwnTask
from ._plugins.loading import registry_with
from ._plugins.registry import Kind
from ._plugins.resolve import make_function, make_sync_core, make_transport, make_wire_profile
from ._resources import resources_named
from .conversation import Participant, Request, TypedChannel
from .conversation.codecs import PLAIN
from .conversation.conversation import Conversation
from .engine.rate_limit import Budget
from .engine.statistics import ChannelStatistics
from .engine.sync_core import Policies
from .errors import ChannelClosed, ChannelUnavailable, LeftOutOfOrder
from .events import AnyEvent
from .explanation import Explanation
from .health import ChannelHealth
from .options import ChannelOptions, OptionValues, PresetName
from .runtime import (
    BudgetFile,
    ChannelSetup,
    EventReader,
    Failures,
    Follower,
    Observers,
    OpenState,
    Runtime,
    SyncStatus,
    Unopened,
    chain,
    content_chain,
    open_state,
)
from .sds.message import LogEntry
from .sds.profile import PROFILES
from .state import Identity, StateStore
from .transport.addresses import checked_addresses, default_content_topic
from .transport.base import Transport, TransportError
from .transport.connect import embedded_transport, on_network
from .transport.lossy import LossyTransport
from .transport.pool import PoolTransport
from .transport.settings import WakuSettings

_log: Final = logging.getLogger("reliable_channel")
CLOSE_TIMEOUT_S: Final = 2.0
"""Time (s) in which the transport must accept the last messages when a channel closes."""


class ClosingLimit:
    """Time limit for the last messages of channels through the same nodes.

    After one channel has waited in vain, the next ones do not wait for nodes that are away.
    Otherwise a thousand channels would need half an hour to close.
    """

    def __init__(self) -> None:
        self._gave_up_s = -inf

    async def drain(self, runtime: Runtime) -> None:
        """Wait for the last messages of a channel, within the limit."""
        has_waited = anyio.current_time() - self._gave_up_s < CLOSE_TIMEOUT_S
        limit_s = 0.0 if has_waited and runtime.is_cut_off else CLOSE_TIMEOUT_S
        with anyio.move_on_after(limit_s, shield=True) as scope:
            await runtime.drained()
        if scope.cancelled_caught:
            self._gave_up_s = anyio.current_time()


_blocks: Final[dict[int, list["ReliableChannel"]]] = {}
"""Channels whose `async with` a task has entered, by the id of the task."""


class ReliableChannel(TypedChannel[bytes]):
    """Channel in which every participant ends up with the same messages in the same causal order.

        async with ReliableChannel(
            "http://127.0.0.1:8645", channel_id="general", sender_id="alice"
        ) as channel:
            await channel.send(b"hello")
            async for event in channel.events():
                ...

    Args:
        node: the address of a Waku node's REST API, or of several nodes that replace each other
            when one fails; or addresses of service peers over libp2p, without running a node:
            `/dns4/node.example/tcp/8000/wss/p2p/16Uiu2…`, `enrtree://…` (extra `[libp2p]`); or the
            URL of a node's messaging layer, `waku+messaging://host:port`, which is used by itself
            where a node serves neither relay nor filter; or the URL of another
            network: `udp+multicast://239.1.2.3:5007` for a LAN without any node,
            `memory://name` within a process, or a scheme that a plugin registers. If None, the
            channel shares an embedded node with the other channels of its event loop that have
            none: enough to try things out, but nothing leaves the process. A warning in the log
            repeats that.
        channel_id: the channel; equal for all participants.
        sender_id: this participant; must be unique in the channel.
        transport: another transport in place of a node.
        encryption: encrypts outgoing and decrypts incoming messages. Messages that fail to decrypt
            are ignored as not addressed to this channel. A text is a URL whose scheme a plugin
            registers.
        signing: signs outgoing messages, which proves their `sender_id`. Peers that do not know
            the field skip it.
        sync: the sync protocol: `sds`, or a name that a plugin registers.
        state: where the data that a restart needs is stored: `sqlite:///path` (relative; four
            slashes for an absolute path), or a store. `{channel_id}` and `{sender_id}` in the path
            are replaced by those of the channel; `?durability=power` survives a loss of power, too.
            If None, the channel starts from scratch each time.
        journal: a file to which every event and every message on the wire is appended as JSON
            lines. Parts of 64 MiB are packed beside it (`name.0001.jsonl.gz`).
        plugins: plugins of this channel, in addition to the installed ones (docs/plugins.md).
        now_ns: the clock, in nanoseconds since 1970.
        preset: options for a kind of group: `small-group`, `large-group`, `auto`, which tunes
            itself, or `documented`, the defaults of the Reliable Channel API (docs/choosing.md).
        options, **values: `ChannelOptions`, or single options by name, or both
            (docs/reference.md). A single option overrides the preset and `options`.

    Raises:
        ValueError: an option or id is out of range; the text names it and the range.
        PluginError: a plugin cannot be used.
    """

    def __init__(
        self,
        node: str | Sequence[str] | None = None,
        *,
        channel_id: str,
        sender_id: str,
        transport: Transport | None = None,
        encryption: Encryption | str | None = None,
        signing: Signing | None = None,
        sync: str = "sds",
        state: str | StateStore | None = None,
        journal: str | Path | None = None,
        plugins: Sequence[object] = (),
        now_ns: Callable[[], int] = time.time_ns,
        preset: PresetName = "documented",
        options: ChannelOptions | None = None,
        **values: Unpack[OptionValues],
    ) -> None:
        super().__init__(self._conversing, PLAIN)
        self.channel_id = checked_id("channel_id", channel_id)
        self.sender_id = checked_id("sender_id", sender_id)
        self._plugins = registry_with(plugins)
        given = self._made_options(checked_options(preset, options, values))
        self.content_topic = given.content_topic or default_content_topic(channel_id)
        self.seed = randbits(64) if given.seed is None else given.seed
        self._settings = WakuSettings(
            self.content_topic,
            given.pubsub_topic,
            given.cluster_id,
            given.num_shards,
            given.service,
            given.store_peer,
            redundancy=given.redundancy,
            ca_file=given.ca_file,
        )
        if given.network is not None:
            self._settings, entry = on_network(given.network, self._settings)
            given = given.on_network(self._settings.max_message_bytes)
            node = entry if node is None and transport is None else node
        self.options = given = given.resolved()
        self._settings.shard  # noqa: B018 - a malformed topic fails here, not at the first message
        self._nodes = checked_addresses(node)
        self._given_transport = checked_transport(transport)
        with resources_named(f"channel {channel_id!r} cannot be made"):
            self._transports = [] if transport is not None else self._make_transports()
        reached = [transport] if transport is not None else self._transports
        if reached and not any(each.has_store for each in reached):
            self.options = given.without_store()
        self._policies = Policies(
            make_function(self._plugins, Kind.RETRY_POLICY, given.retry_policy),
            make_function(self._plugins, Kind.REPAIR_POLICY, self.options.retrieval_strategy),
            None
            if given.id_function is None
            else make_function(self._plugins, Kind.ID_FUNCTION, given.id_function),
        )
        self._signing = checked_signing(signing, sender_id, required=given.require_signatures)
        encryption = checked_encryption(self._plugins, encryption, channel_id, sender_id)
        self._encryption = encryption
        inside = given.encrypts_contents_alone
        self._inner_encryption = encryption if inside else None
        marker = given.profile.marker if given.marker is None else given.marker
        self._stages = chain(
            None if inside else encryption, marker or None, marker_required=given.marker_required
        )
        budget_path = given.rate_limit.file
        self._budget_file = None if budget_path is None else BudgetFile(Path(budget_path))
        self._sync = sync
        self._journal_path = checked_path("journal", journal)
        self._preset: PresetName = preset
        self.invited_node: str | Sequence[str] | None = node
        """Addresses that `invite` names; those of its hub for a channel of one."""
        self._state = checked_state(self._plugins, state, channel_id, sender_id)
        self._now_ns = now_ns
        self._runtime: Runtime | None = None
        self._conversation: Conversation | None = None
        self._lossy: LossyTransport | None = None
        self._task: OwnTask[None] | None = None
        self._is_open = False
        self._process = os.getpid()
        self._block: anyio.CancelScope | None = None
        self._log_failures: Failures = {}
        """Shared by the channels of a hub, so that a node that is away is one warning."""
        self._closing_limit = ClosingLimit()
        """Time limit at closing, which the channels of a hub share."""
        self._ends_block = True
        """True if an error inside the channel cancels the block of `async with`."""

    @classmethod
    def from_config(cls, file: str | Path | None = None, **arguments: Any) -> Self:
        """Return a channel whose arguments come from the environment and a TOML file.

            async with ReliableChannel.from_config(channel_id="orders") as channel:
                ...

        A given argument overrides the environment (`RELIABLE_CHANNEL_SENDER_ID`), which overrides
        the table `[channel]` of the file. Without `file`, the variable `RELIABLE_CHANNEL_CONFIG`
        names the file. The file and the environment use the names of the arguments
        (docs/operations.md).

        Raises:
            SettingsError: a value is unusable, or the file cannot be read; the text names it.
            TypeError, PluginError: as the constructor.
        """
        from .config import settings_named, with_config

        with settings_named():
            return cls(**with_config(file, arguments))

    @classmethod
    def join(cls, invitation: str, *, sender_id: str, **arguments: Any) -> Self:
        """Return the channel that the text of an invitation describes.

            async with ReliableChannel.join(text, sender_id="bob") as channel:
                ...

        `arguments` are arguments of the constructor, and override the invitation. No part of the
        text is evaluated, and no file is opened because of it. An invitation chooses the network of
        this program, so accept it only from people you trust.

        Raises:
            ValueError: the text is not an invitation, or has a part that is unknown or refused. The
                error names the part. Or the channel is encrypted, and no key was given.
            PluginError: as the constructor.
        """
        from .config import nested
        from .conversation.invitation import joined

        return cls(**nested(joined(invitation, sender_id, arguments)))

    def invite(self, *, key: bool = False, node: str | Sequence[str] | None = None) -> str:
        """Return a text of one line with which other participants `join` this channel.

        The text contains the network or node addresses, the channel id, the content topic and the
        preset. The text also contains the options that must be equal for all participants.
        Credentials in node addresses are left out of the text.

        Args:
            key: add the encryption key. Then the text is a secret.
            node: addresses that others can reach, in place of this participant's.

        Raises:
            ValueError: an option is an object, which has no text; or the encryption does not give
                its key.
        """
        from .conversation.invitation import invitation

        return invitation(
            self.channel_id,
            self.content_topic,
            self.invited_node if node is None else node,
            self._preset,
            self.options,
            self._encryption,
            with_key=key,
        )

    def _made_options(self, options: ChannelOptions) -> ChannelOptions:
        """The options with the wire profile itself in place of the name of a plugin's.

        Raises:
            ValueError, PluginError: as the constructor.
        """
        profile = make_wire_profile(self._plugins, options.wire_profile)
        named = profile.name if PROFILES.get(profile.name) is profile else profile
        return replace(options, wire_profile=named)

    @property
    def has_node(self) -> bool:
        """True if the channel was given a node or a transport. Without a node or a transport, only
        channels of this process receive each other's messages."""
        return bool(self._nodes) or self._given_transport is not None

    async def open(self) -> None:
        """Connect to the network, subscribe and start the channel. The `async with` block calls
        `open`.

        Any task may open and close a channel, in any order with other channels, and inside a time
        limit.

        Raises:
            ChannelUnavailable: the node does not answer, or not as a Waku node does.
            StateError: the state cannot be used.
            ValueError: `journal` is a file of another format.
        """
        self._check_process()
        task = self._task
        if task is None:
            self._process = os.getpid()
            task = self._task = OwnTask(self._session(), self._failed)
            task.start()
        with resources_named(f"channel {self.channel_id!r} cannot be opened"):
            try:
                await task.entered()
            except BaseException:
                self._task = None
                await task.leave()
                raise

    @asynccontextmanager
    async def _session(self) -> AsyncIterator[None]:
        """From opening to closing, in the channel's own task."""
        async with AsyncExitStack() as stack:
            journal = None
            if self._journal_path is not None:
                from .runtime.journal import Journal

                journal = stack.enter_context(
                    Journal(
                        self._journal_path,
                        channel_id=self.channel_id,
                        sender_id=self.sender_id,
                        content_topic=self.content_topic,
                    )
                )
            state = await self._open_state(stack)
            transport = await self._connect(stack)
            runtime = Runtime(
                self._setup(),
                transport,
                state=state,
                journal=journal,
                observers=self._observers(),
            )
            stack.callback(runtime.close)
            conversation = Conversation(
                runtime, self.channel_id, self.sender_id, self.options, self._preset
            )
            stack.callback(conversation.close)
            runtime.begin()
            conversation.begin()
            stack.push_async_callback(runtime.flush)
            stack.push(self._note_failure)
            tasks = await stack.enter_async_context(anyio.create_task_group())
            stack.callback(tasks.cancel_scope.cancel)
            runtime.start(tasks)
            tasks.start_soon(conversation.presence.run, name="reliable_channel.presence")
            self._runtime, self._conversation = runtime, conversation
            self._is_open = True
            try:
                yield
            finally:
                if not tasks.cancel_scope.cancel_called:  # which a task that failed has done
                    await self._closing_limit.drain(runtime)
                self._is_open = False

    async def aclose(self) -> None:
        """Publish all accepted messages, then stop the channel. A second call of `aclose` does
        nothing.

        A message that the transport does not accept within 2 s becomes `send_failed`.

        Raises:
            Exception: the channel had ended with this error, such as one of a plugin's code.
        """
        task = self._task
        if task is None or self._is_of_parent:
            return
        try:
            await task.leave()
        finally:  # also where the caller is cancelled, because the channel is closed by then
            if self._task is task:
                self._task = None
        if task.failure is not None:
            raise task.failure

    async def __aenter__(self) -> Self:
        await self.open()
        if self._ends_block:
            self._block = anyio.CancelScope().__enter__()
            _blocks.setdefault(anyio.get_current_task().id, []).append(self)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._block is not None:
            task = anyio.get_current_task().id
            try:
                if _blocks.get(task, [None])[-1] is not self:  # trio would leave both
                    raise RuntimeError(
                        "this channel is not the innermost open `async with` block of the task"
                    )
                self._block.__exit__(kind, error, traceback)
            except RuntimeError as wrong:
                raise LeftOutOfOrder(
                    f"channel {self.channel_id!r} is left by another task than entered it, or "
                    "before a channel that was entered later; leave blocks in reverse order, or "
                    "use open() and aclose(), which any task may call in any order"
                ) from wrong
            self._block = None
            _blocks[task].pop()
            if not _blocks[task]:
                del _blocks[task]
        await self.aclose()

    def _note_failure(
        self, kind: type[BaseException] | None, error: BaseException | None, _: object
    ) -> None:
        """Let calls name the error at once, not only when all is closed."""
        if isinstance(error, Exception) and self._task is not None:
            self._task.failure = error

    def _failed(self, error: Exception) -> None:
        if self._block is None:
            _log.error("channel %r ended with an error", self.channel_id, exc_info=error)
        else:
            self._block.cancel()  # the end of the block raises the error

    def __enter__(self) -> NoReturn:
        raise TypeError(
            "a ReliableChannel needs `async with ReliableChannel(…)`; without async, write `with "
            "BlockingReliableChannel(…)`"
        )

    def __exit__(self, *exc_info: object) -> None:
        """Never called: `__enter__` raises."""

    async def cancel(self, request: Request) -> bool:
        """Stop publishing and retrying a request, and return True if it was pending.

        The event `send_failed` reports a cancelled request. A published message cannot be recalled.
        All messages of a request stay in the log, because later messages refer to them. A peer that
        requests a cancelled message receives the message.

        Raises:
            ChannelClosed: the channel is not open.
            TypeError: the request is not what `send` returned.
        """
        if not isinstance(request, Request):
            raise TypeError(f"`request` must be what `send` returned (got {request!r})")
        was_pending = await self._opened().cancel(request.message_ids)
        await anyio.lowlevel.checkpoint()
        return was_pending

    async def send_ephemeral(self, payload: bytes) -> str:
        """Send a message once without repair, such as "is typing", and return its id.

        Raises:
            EmptyContent, ContentTooLong, ChannelClosed: as `send`.
        """
        message_id = await self._opened().send_ephemeral(checked_payload(payload))
        await anyio.lowlevel.checkpoint()
        return message_id

    def events(self, *, confirm: bool = True) -> EventReader:
        """Iterate over events until the channel is closed.

            async with channel.events() as events:
                async for event in events:
                    ...

        The loop `async for event in channel.events()` needs no `async with` block. In an `async
        with` block, the reader is closed even if you leave the loop early. A reader that is kept
        but not read counts as slow.

        Each reader gets every event from this call on, after the events that no reader has read. A
        slow reader never stops the channel. A reader over `limits.events` events behind gets one
        `EventsMissed` with their number. After `EventsMissed`, the reader gets messages and reports
        from the log (at most the newest 100,000).

        In a channel with `state`, reading the next event confirms the previous event. Unconfirmed
        messages and reports are emitted again after a restart, messages as `redelivered`. A reader
        with `confirm=False` confirms no event, to watch only, or to call `confirm` later.

        Raises:
            ChannelClosed: the channel was never opened.
        """
        return self._used().events(confirm=confirm)

    def follow(self, *, last: int | None = None, own: bool = False) -> Follower:
        """Read the log, or its newest `last` entries, then live events, for example for a web page.

            async with channel.follow(last=100, own=True) as follower:
                for entry in follower.snapshot:
                    ...
                async for event in follower:
                    ...

        Each message is either in the snapshot or comes as an event, without a gap. With `own`, an
        own message is emitted as `MessageReceived` instead of `SendingMessage`. Without `own`, own
        messages are only in the snapshot. A follower confirms no events, and does not take events
        from readers of `events()`. A follower that is too slow gets `EventsMissed`, like every
        reader. After `EventsMissed`, call `follow` again.

        Raises:
            ChannelClosed: the channel was never opened.
        """
        return self._used().follow(last, own=own)

    async def confirm(self, event: AnyEvent) -> None:
        """Confirm that an event was handled, so that it is not emitted again after a restart.

        The call returns when the confirmation is on disk. Use `confirm` for events of
        `events(confirm=False)`. In a channel without `state`, the call does nothing.

        Raises:
            ChannelClosed: the channel is not open.
        """
        await self._opened().confirm(event)

    def explain(self, message_id: str) -> Explanation:
        """Return the history of a message and the reason for its delay. An unknown id raises no
        error.

            explained = channel.explain(event.message_id)  # of a MessageReceived
            if (explained.late_ms or 0) > 5_000:
                print(explained.sentence)

        The history lists how the message was missed, each request and query, and its arrival. The
        channel remembers the newest 1,000 messages since its opening.

        Raises:
            ChannelClosed: the channel was never opened.
        """
        return self._used().explain(message_id)

    def explain_budget(self) -> Budget:
        """Return the state of the rate limit, with the remaining budget, waiting messages and the
        epoch's end."""
        return self._used().explain_budget()

    @property
    def sync_status(self) -> SyncStatus:
        """Sync status of this participant, which tells how complete its log is."""
        return self._used().sync_status.current()

    def sync_status_changes(self) -> AsyncIterator[SyncStatus]:
        """Iterate over the current sync status and its changes, until the channel is closed."""
        return self._used().sync_status.changes()

    def log(self, *, last: int | None = None) -> Sequence[LogEntry]:
        """Return the channel's log, or its newest `last` entries, in log order.

        The log contains own and delivered messages by Lamport timestamp, then message id. The
        segments of a long payload are separate entries, as on the wire. A log on disk is read into
        memory as a whole. In Jupyter, the log is shown as a table.
        """
        return self._used().log(last)

    def log_digest(self) -> str:
        """Return the hex sha256 of the log, which is equal for participants with the same
        messages."""
        return self._used().engine.core.log.digest()

    def statistics(self) -> ChannelStatistics:
        """Return the current counters and the sizes of the buffers."""
        return self._used().statistics()

    def participants(self) -> tuple[Participant, ...]:
        """Return the other participants that were heard, most recently heard first.

        The result cannot contain participants that have sent no message since the channel was
        opened. A participant that only reads is heard by its sync messages. The channel remembers
        the newest 1,000 participants.

        Raises:
            ChannelClosed: the channel is not open.
        """
        return self._conversing().presence.participants()

    def health(self) -> ChannelHealth:
        """Return the health of the channel at this moment, with reasons. The call never raises an
        error.

        `reliable_channel.health_server.serve_health` serves the health to probes.
        """
        if not self._is_open or self._runtime is None or self._is_of_parent:
            problem = self._problem() or "the channel is not open"
            return ChannelHealth(self.channel_id, self.sender_id, False, False, (problem,))
        return self._runtime.health()

    @property
    def dropped_incoming(self) -> int:
        """Number of messages that were dropped because of the option `drop_incoming`."""
        return self._lossy.dropped if self._lossy else 0

    def cut_off(self, cut_off: bool) -> None:
        """Disconnect this participant from the network, or connect it again, for tests."""
        self._opened()
        if self._lossy is None:
            raise ValueError(
                "cut_off needs a channel made with `drop_incoming`, such as drop_incoming=0"
            )
        self._lossy.cut_off = cut_off

    async def _open_state(self, stack: AsyncExitStack) -> OpenState | None:
        """Open the state, if there is any.

        Raises:
            StateError: it cannot be used.
        """
        if self._state is None:
            return None
        dialect = self.options.profile.name if self._sync == "sds" else self._sync
        identity = Identity(self.channel_id, self.sender_id, dialect)
        return await stack.enter_async_context(open_state(self._state, identity))

    async def _connect(self, stack: AsyncExitStack) -> Transport:
        transport = self._given_transport
        if transport is None:
            transports, self._transports = self._transports or self._make_transports(), []
            if not transports:
                transports = [await embedded_transport(self._settings, stack)]
            # One node is a pool too: the pool tracks its health.
            transport = PoolTransport(
                transports,
                redundancy=self.options.redundancy,
                wait_for_node=self.options.wait_for_node,
            )
        if self.options.drop_incoming is not None:
            transport = self._lossy = LossyTransport(
                transport, drop_incoming=self.options.drop_incoming, seed=self.seed
            )
        stack.push_async_callback(transport.aclose)
        try:
            await transport.open()
        except TransportError as error:
            raise ChannelUnavailable(
                f"channel {self.channel_id!r} cannot be opened: {error}"
            ) from error
        return transport

    def _make_transports(self) -> list[Transport]:
        """A transport for each URL.

        Raises:
            ValueError, PluginError: as `make_transport`.
        """
        return [
            make_transport(self._plugins, url, self.channel_id, self.sender_id, self._settings)
            for url in self._nodes
        ]

    def _setup(self) -> ChannelSetup:
        return ChannelSetup(
            channel_id=self.channel_id,
            sender_id=self.sender_id,
            content_topic=self.content_topic,
            # The seed that was drawn stands in the journal, so that a run can be repeated.
            options=replace(self.options, seed=self.seed),
            make_core=partial(make_sync_core, self._plugins, self._sync),
            random=Random(self.seed),
            stages=self._stages,
            contents=content_chain(self._inner_encryption),
            policies=self._policies,
            unopened=self._unopened(),
            signing=self._signing,
            budget_file=self._budget_file,
            log_failures=self._log_failures,
            now_ns=self._now_ns,
        )

    def _unopened(self) -> Unopened | None:
        if self._encryption is None:
            return None
        return Unopened(
            self._encryption,
            self.options.profile.codec,
            contents_alone=self._inner_encryption is not None,
            is_shared=self.content_topic != default_content_topic(self.channel_id),
        )

    def _observers(self) -> Observers | None:
        observers = [(one.plugin, one.call()) for one in self._plugins.registered(Kind.OBSERVER)]
        if not observers:
            return None
        return Observers(observers, self.channel_id, self.sender_id, self.health)

    def _conversing(self) -> Conversation:
        """The conversation of an open channel."""
        conversation = self._conversation
        if not self._is_open or conversation is None or self._process != os.getpid():
            self._used()
            problem = self._problem()
            failure = None if self._task is None else self._task.failure
            raise ChannelClosed(problem or f"channel {self.channel_id!r} is closed") from failure
        return conversation

    def _opened(self) -> Runtime:
        """The runtime of an open channel."""
        return self._conversing().runtime

    def _used(self) -> Runtime:
        """The runtime, which can still be read after the channel was closed."""
        self._check_process()
        if self._runtime is None:
            raise ChannelClosed(
                f"channel {self.channel_id!r} was not opened: use it inside `async with`"
            )
        return self._runtime

    @property
    def _is_of_parent(self) -> bool:
        """True if this process was forked from the one in which the channel was opened."""
        return self._task is not None and self._process != os.getpid()

    def _check_process(self) -> None:
        if self._is_of_parent:
            raise ChannelClosed(self._problem())

    def _problem(self) -> str:
        """Why the channel cannot be used; empty if it was not opened, or is closed."""
        if self._is_of_parent:
            return (
                f"channel {self.channel_id!r} belongs to process {self._process}, from which this "
                "one was forked; make another channel in this process"
            )
        failure = None if self._task is None else self._task.failure
        return f"channel {self.channel_id!r} ended with an error: {failure!r}" if failure else ""
