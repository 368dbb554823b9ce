"""Loops of a running bot, which read, publish, do periodic work, and stop in good order."""

import logging
from collections.abc import Sequence
from contextlib import aclosing
from functools import partial
from pathlib import Path
from typing import Final
from uuid import uuid4

import anyio
import anyio.lowlevel
from anyio.abc import TaskGroup

from reliable_channel.errors import ContentTooLong, OutgoingBufferFull
from waku import WakuClient
from waku.errors import BadRequest, WakuError

from ..wire.chats import partitioned_topic
from ..wire.payload_builders import fitting
from ..wire.topics import AUTO_SHARD, CLUSTER_ID
from .communities import Communities
from .confirming import Confirmer
from .control_task import TICK_S, ControlTask
from .direct import DirectDesk
from .dispatch import Dispatcher
from .events import Turn
from .failures import Failures, Isolation
from .handlers import Handlers, Job
from .inbox import Arrival, Inbox
from .link import NS_PER_MS, Fetched, Link
from .membership import NotAMember
from .memory import OutboxEntry, OutboxFull
from .options import BotOptions
from .outbox import BotContext
from .session import Session

MIN_WAIT_S: Final = 0.2
MAX_WAIT_S: Final = 30.0
"""Maximum pause between two attempts to reach the node. The pause doubles after each failed
attempt."""
MIN_PAUSE_S: Final = 0.01
"""Minimum time between two reads, even of a busy shard."""
HISTORY_RETRY_MS: Final = 60_000
"""Pause before Store is queried again after a failed query."""
HEARD_EVERY_MS: Final = 5_000
"""Interval at which the bot writes the time up to which everything has arrived."""
LOOKS: Final = 2
"""Number of Store queries for the same time range, because Store may store late."""
DESCRIPTIONS_MS: Final = 30 * 86_400_000
"""Time span of the search for a community's description, which is the retention of Status'
nodes."""
ADVERTISE_EVERY_S: Final = 3600.0
"""Interval at which the bot checks for a new day, to publish its contact code."""
MAX_PICTURE_BYTES: Final = 40_000
"""Maximum size of the bot's picture, because each client stores the picture of each user."""
SHORT_LOOKS: Final = 3
"""Number of checks in a row in which Store had more messages than the node's cache. After that many
checks, another program probably reads the same cache."""
ADVERTISE_CHECK_S: Final = 300.0
"""Interval at which the bot checks for a due description of its community."""
OVERLAP_MS: Final = 60_000
"""Margin around the time range of a Store query, because the clocks of nodes differ."""


class Running:
    def __init__(
        self, session: Session, context: BotContext, handlers: Handlers, options: BotOptions
    ) -> None:
        self._session = session
        self._options = options
        self._picture: bytes | None = None
        if options.image is not None:
            self._picture = fitting(Path(options.image).read_bytes(), MAX_PICTURE_BYTES)
        self._handlers = handlers
        topics = list(session.rooms.topics)
        topics.append(partitioned_topic(session.public_key))  # where owners answer requests to join
        keys = [context.key]
        if context.community_key is not None:
            keys.append(context.community_key)
            topics += [community.requests_topic for community in session.rooms.communities]
        self._inbox = Inbox(session, topics, keys)
        self._isolation = Isolation(session.reporter, options.handler_timeout_ms)
        self._failures = Failures(session.reporter)
        self._dispatcher = Dispatcher(session, self._inbox, handlers, options, self._isolation)
        shards = [str(shard) for shard in (options.shard, *options.also_listen)]
        if options.shard.cluster_id == CLUSTER_ID and isinstance(context.client, WakuClient):
            shards.append(str(AUTO_SHARD))  # service peers would be searched for one that has it
        self._link = Link(context.client, shards, self._inbox.content_topics)
        self._communities = Communities(
            session, self._link, options, context.key, context.open_store
        )
        self._inbox.on_sds = self._communities.arrived
        session.on_direct = self._inbox.said
        self._confirmer = Confirmer(session, self._link, options)
        self._pause = context.pause
        self._stopping = anyio.Event()
        self._is_ending = False
        self._has_history = False
        self._is_moving = False
        """True if something came on the shard to which clients may move."""
        self._short_looks = 0
        """How often in a row Store had what the node's cache did not bring."""
        self._asked_ms = 0
        self._history_due_ms: int | None = 0
        """When to ask Store, or None where nothing is known to be missing."""
        self.given_up: NotAMember | None = None
        """Why the run ended by itself."""
        self.started = anyio.Event()
        """Set once the node is there and the history read, as far as Store has it."""

    @property
    def is_busy(self) -> bool:
        """True if one of the bot's functions has not ended yet."""
        return self._dispatcher.is_busy

    def stop(self) -> None:
        """Accept no more events, so that the bot stops. For a limited time, running functions may
        end and messages may be sent."""
        self._stopping.set()

    async def run(self) -> None:
        """Run the bot's loops until `stop`.

        Raises:
            StateError: what must not be forgotten cannot be written.
        """
        async with self._communities.opened(), anyio.create_task_group() as confirming:
            confirming.start_soon(self._confirmer.run)
            confirming.start_soon(self._advertise)
            desk, shard = self._session.direct, str(self._options.shard)
            if desk is not None:
                confirming.start_soon(desk.run, self._link, shard)
            self._communities.recall(self._oldest_ms())
            await self._run()
            confirming.cancel_scope.cancel()
        if desk is not None:
            await self._say_goodbye(desk, shard)

    async def _advertise(self) -> None:
        """Publish the bot's name and picture, each day again."""
        await self.started.wait()
        while True:
            try:
                self._session.advertise(self._picture)
            except OutboxFull as error:  # the next hour is another chance
                self._session.reporter.log("publish_failed", logging.WARNING, why=str(error))
            await anyio.sleep(ADVERTISE_EVERY_S)

    async def _say_goodbye(self, desk: DirectDesk, shard: str) -> None:
        """Acknowledge what was handled last; otherwise the others send it once more."""
        with anyio.move_on_after(self._options.stop_timeout_ms / 1000):
            try:
                await desk.mail(self._link, shard)
            except WakuError as error:
                self._session.reporter.log("mail_failed", logging.WARNING, why=str(error))

    async def _run(self) -> None:
        session = self._session
        session.reporter.log("bot_started", user=session.public_key.hex)
        async with anyio.create_task_group() as publishing:
            publishing.start_soon(self._publish)
            async with anyio.create_task_group() as functions:
                async with anyio.create_task_group() as sources:
                    sources.start_soon(self._read, functions)
                    if session.owned is not None:
                        sources.start_soon(self._own, session.owned)
                    for job in self._handlers.jobs:
                        sources.start_soon(self._do, job)
                    await self._stopping.wait()
                    sources.cancel_scope.cancel()
                deadline = anyio.current_time() + self._options.stop_timeout_ms / 1000
                functions.cancel_scope.deadline = deadline
            if session.owned is not None and self.started.is_set():
                session.owned.tick()
            self._is_ending = True
            self._session.has_mail.set()
            publishing.cancel_scope.deadline = deadline
        if self.started.is_set():
            self._session.memory.heard_until(self._dispatcher.handled_until_ms)
        self._session.reporter.log("bot_stopped")

    # -- reading ----------------------------------------------------------------------------------

    async def _read(self, functions: TaskGroup) -> None:
        wait_s = MIN_WAIT_S
        while True:
            try:
                await self._look(functions)
            except WakuError as error:
                self._session.reporter.count("node_failures")
                self._session.reporter.log(
                    "node_away", logging.WARNING, why=str(error), wait_s=wait_s
                )
                self._history_due_ms = 0
                await anyio.sleep(wait_s)
                wait_s = min(2 * wait_s, MAX_WAIT_S)
            else:
                self.started.set()
                wait_s = MIN_WAIT_S
                if self._options.needs_membership and self.given_up is None:
                    self.given_up = self._session.memberships.given_up
                    if self.given_up is not None:
                        self.stop()
                # At most a quarter of the cache should fill from one look to the next.
                patience = max(0.0, 1 - 4 * self._link.fill)
                await self._pause(max(MIN_PAUSE_S, patience * self._options.poll_ms / 1000))

    async def _look(self, functions: TaskGroup) -> None:
        now_ms, memory = self._session.now_ms, self._session.memory
        for _ in self._inbox.follow():
            self._has_history, self._history_due_ms = False, 0
            await anyio.lowlevel.checkpoint()  # others work between two keys
        self._link.listen(self._inbox.content_topics)
        if not self._link.is_subscribed:
            await self._subscribe()
        await self._tell(self._inbox.apply(self._communities.kept(), is_live=False), functions)
        if self._is_history_due():
            await self._catch_up(functions)
        await self._take(await self._link.look(), functions, is_live=True)
        await self._take(self._communities.found(), functions, is_live=False)
        if self._link.fill >= 1 and self._history_due_ms is None:
            self._history_due_ms = now_ms() + HEARD_EVERY_MS
        until_ms = self._dispatcher.handled_until_ms
        if self._history_due_ms is None and until_ms - memory.heard_ms >= HEARD_EVERY_MS:
            memory.heard_until(until_ms)

    async def _subscribe(self) -> None:
        before = set(self._link.unserved)
        await self._link.subscribe()
        for shard, why in self._link.unserved.items():
            if shard not in before and shard != str(AUTO_SHARD):
                self._session.reporter.log(
                    "shard_not_served", logging.WARNING, shard=shard, why=why
                )

    def _oldest_ms(self) -> int:
        """From when on the bot reads, at its start."""
        oldest_ms = self._session.now_ms() - self._options.history_ms
        return min(oldest_ms, self._session.memory.answers_since_ms)

    def _is_history_due(self) -> bool:
        """Return True if Store must be queried: a message may be missing, or the last query
        was long
        ago."""
        due_ms = self._history_due_ms
        if due_ms is None and self._options.confirm_ms:
            due_ms = self._asked_ms + self._options.confirm_ms
        return due_ms is not None and self._session.now_ms() >= due_ms

    async def _catch_up(self, functions: TaskGroup) -> None:
        """Ask Store for what was missed; again later, if it does not answer."""
        now_ms = self._session.now_ms()
        if self._link.unserved:
            await self._subscribe()
        is_check, missed = self._history_due_ms is None and self._has_history, 0
        since_ms = min(self._session.memory.heard_ms, now_ms - LOOKS * self._options.confirm_ms)
        if not self._has_history:
            since_ms = self._oldest_ms()
        try:
            async for page in self._link.history(since_ms - OVERLAP_MS, now_ms + OVERLAP_MS):
                missed += len(page)
                await self._take(page, functions, is_live=False)
            if not self._has_history:
                await self._look_for_descriptions(functions, now_ms)
        except WakuError as error:
            self._session.reporter.log("history_unavailable", logging.WARNING, why=str(error))
            self._history_due_ms = now_ms + HISTORY_RETRY_MS
        else:
            self._has_history, self._history_due_ms, self._asked_ms = True, None, now_ms
            self._short_looks = self._short_looks + 1 if is_check and missed else 0
            if self._short_looks == SHORT_LOOKS:
                self._session.reporter.log("cache_lacks_messages", logging.WARNING, stored=missed)

    async def _look_for_descriptions(self, functions: TaskGroup, now_ms: int) -> None:
        """Ask Store for older descriptions of communities of which the history has none: owners
        publish them when something changes."""
        link, memberships = self._link, self._session.memberships
        for community in memberships.undescribed:
            topics = [community.description_topic.content_topic]
            start_ns = (now_ms - DESCRIPTIONS_MS) * NS_PER_MS
            end_ns = (now_ms + OVERLAP_MS) * NS_PER_MS
            for shard in map(str, (self._options.shard, *self._options.also_listen)):
                async with aclosing(link.stored(shard, topics, start_ns, end_ns)) as pages:
                    async for page in pages:
                        await self._take(link.new(page), functions, is_live=False)
        for community in memberships.undescribed:
            self._session.reporter.log(
                "description_not_found", logging.WARNING, community=community.id
            )

    async def _take(
        self, messages: Sequence[Fetched], functions: TaskGroup, *, is_live: bool
    ) -> None:
        self._session.reporter.counts["messages_read", ""] += len(messages)
        if not self._is_moving and any(one.shard == str(AUTO_SHARD) for one in messages):
            self._is_moving = True
            self._session.reporter.log("shard_in_use", logging.WARNING, shard=str(AUTO_SHARD))
        await self._tell(self._inbox.take(messages, is_live=is_live), functions)

    async def _tell(self, happened: Sequence[Arrival], functions: TaskGroup) -> None:
        for arrival in happened:
            await self._dispatcher.tell(arrival, functions)

    # -- publishing -------------------------------------------------------------------------------

    async def _publish(self) -> None:
        """Publish what was entry, in order, and again until the node takes it; at the end until
        nothing is left."""
        wait_s = MIN_WAIT_S
        memory = self._session.memory
        while True:
            entry = memory.next_unpublished()
            if entry is None and self._is_ending:
                return
            if entry is None:
                self._session.has_mail = anyio.Event()
                await self._session.has_mail.wait()
                continue
            try:
                await self._say(entry)
            except BadRequest as error:
                self._session.reporter.count("unpublishable")
                self._session.reporter.log("unpublishable", logging.ERROR, why=str(error))
                memory.published(entry)
            except (WakuError, OutgoingBufferFull) as error:
                self._session.reporter.log("publish_failed", logging.WARNING, why=str(error))
                await anyio.sleep(wait_s)
                wait_s = min(2 * wait_s, MAX_WAIT_S)
                continue
            wait_s = MIN_WAIT_S

    async def _say(self, entry: OutboxEntry) -> None:
        """Have something published, through its SDS channel where there is one.

        Raises:
            WakuError: the node did not take it.
            OutgoingBufferFull: the channel did not, because its messages are not acknowledged.
        """
        memory = self._session.memory
        if self._communities.takes(entry):
            try:
                await self._communities.send(entry)
            except ContentTooLong:
                pass
            else:
                memory.published(entry)  # from here on the channel keeps it
                return
        if not entry.is_sealed:
            memory.reroute(entry, str(self._options.shard), self._session.without_sds(entry))
        elif not self._link.is_on(entry.route):  # the bot was on another shard before its restart
            memory.reroute(entry, str(self._options.shard), entry.messages)
        for message in entry.messages:
            await self._link.publish(entry.route, message)
        memory.published(entry, to_confirm=self._confirmer.is_on)
        self._confirmer.wake()

    async def _own(self, owned: ControlTask) -> None:
        """Run the bot's community, once it is known what was published of it before."""
        await self.started.wait()
        while True:
            owned.news = anyio.Event()
            owned.tick()
            await anyio.sleep(TICK_S)
            if not owned.is_due:
                with anyio.move_on_after(ADVERTISE_CHECK_S):
                    await owned.news.wait()

    # -- jobs -------------------------------------------------------------------------------------

    async def _do(self, job: Job) -> None:
        """Do a job once for all, or again and again; one that fails is done again in its time."""
        await self.started.wait()
        call = partial(self._failures.guard, job.name, job.error_handlers, None, job.run)
        while True:
            turn = Turn(self._session, f"{job.name} {uuid4()}")
            is_repeated = job.every_s is not None
            await self._isolation.run(job.name, lambda _: call(), turn, limited=is_repeated)
            if job.every_s is None:
                return
            await anyio.sleep(job.every_s)
