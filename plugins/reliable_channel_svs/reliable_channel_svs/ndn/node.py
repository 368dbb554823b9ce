"""Member of a group on NDN, with the state machine, a forwarder, and the publications."""

import os
import random
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack
from types import TracebackType
from typing import Self

import anyio
from anyio.abc import TaskGroup

from ..errors import ForwarderError, InvalidName, SignatureRefused, TlvError
from ..events import EventsDropped, IgnoredReason, PublicationsKnown, VectorIgnored
from ..name import SEGMENT, VERSION, Name, component_number, number_component
from ..naming import Naming
from ..packet import GONE, Data, Interest, decode_data, make_data
from ..protocol import Publication, SvsProtocol
from ..signing import DigestSigner, DigestTrust, Signer, Trust
from .events import (
    ForwarderConnected,
    ForwarderLost,
    NodeEvent,
    PacketRefused,
    PublicationEvicted,
)
from .face import Face
from .fetching import Fetcher, Gone, Outcome, Place
from .link import Address, connect
from .management import register_route, set_multicast
from .options import NodeOptions
from .store import PublicationStore

SYNC_LIFETIME_MS = 1_000
"""Lifetime of a Sync Interest, 1 second as in §2 (ms)."""
MAX_GROUP_BYTES = 256
"""Maximum encoded length of a group's name, which occurs twice in each Sync Interest."""


class SvsNode:
    """Node that takes part in a group through a forwarder (`unix:///run/nfd/nfd.sock`, `tcp://…`,
    `udp://…`).

    `SvsNode` is an async context manager. `events()` yields the publications of other members.
    While its forwarder is away, the node waits. The node's own publications are kept in memory.
    After a restart, the node has a new bootstrap time, and old publications cannot be fetched any
    more.

    Raises:
        InvalidName: the group or the name is no name, or is too long.
        ValueError: the forwarder's address is invalid.
    """

    def __init__(
        self,
        forwarder: str,
        *,
        group: str,
        name: str,
        signer: Signer | None = None,
        trust: Trust | None = None,
        options: NodeOptions | None = None,
        random: Callable[[], float] = random.random,
        now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    ) -> None:
        self._forwarder, self._now_ms = Address.parse(forwarder), now_ms
        self._options = options = options or NodeOptions()
        self._signer = signer or DigestSigner()
        self._trust = trust or DigestTrust()
        self.naming = Naming(Name.parse(group), options.naming)
        self.name = Name.parse(name)
        if (size := len(self.naming.group.encode())) > MAX_GROUP_BYTES:
            raise InvalidName(
                f"the name of the group has {size} bytes; at most {MAX_GROUP_BYTES} are allowed"
            )
        self.core = SvsProtocol(self.name, now_ms=now_ms(), random=random, options=options.svs)
        """Open to read."""
        self._store = PublicationStore(
            self.name, self.naming, self._signer, options, self.core.bootstrap_time
        )
        self.content_limit_bytes = self._store.content_limit_bytes
        """How long a publication may be."""
        self._stack = AsyncExitStack()
        self._dropped = 0
        self._newest: Name | None = None
        self._asked_for_newest = anyio.Event()
        self._face: Face | None = None
        self._connected = anyio.Event()
        self._wake = anyio.Event()

    async def __aenter__(self) -> Self:
        self._tell_stream, self._events = anyio.create_memory_object_stream[NodeEvent](
            self._options.backlog
        )
        self._tasks: TaskGroup = await self._stack.enter_async_context(anyio.create_task_group())
        self._fetcher = Fetcher(self._tasks, self._fetch, self._deliver, self._options)
        self._tasks.start_soon(self._stay_connected)
        self._tasks.start_soon(self._keep_time)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool | None:
        self._tasks.cancel_scope.cancel()
        suppressed = await self._stack.__aexit__(kind, error, traceback)
        self._tell_stream.close()
        self._events.close()
        return suppressed

    async def publish(self, content: bytes) -> Publication:
        """Publish a message to the group. Other members fetch the message when they hear of it.

        Raises:
            ValueError: the message is too long for a packet, or for `segments` packets.
            SequenceExhausted: the last number of this bootstrap time is taken.
        """
        [publication] = await self.publish_all([content])
        return publication

    async def publish_all(self, contents: Sequence[bytes]) -> list[Publication]:
        """Publish several messages with consecutive numbers, which one state vector announces.

        Raises:
            ValueError, SequenceExhausted: as `publish`.
        """
        longest, limit = max(map(len, contents)), self.content_limit_bytes
        if longest > limit:
            raise ValueError(f"the publication has {longest} bytes; at most {limit} are possible")
        publications = []
        for content in contents:
            publications.append(self.core.publish(self._now_ms()))
            for evicted in self._store.add(publications[-1], content):
                self._tell(PublicationEvicted(evicted.bootstrap_time, evicted.seq))
        newest = publications[-1]
        self._newest = self.naming.publication(self.name, newest.bootstrap_time, newest.seq)
        self._asked_for_newest = anyio.Event()
        self._wake.set()
        await anyio.lowlevel.checkpoint()
        return publications

    async def wait_asked(self) -> None:
        """Wait until a member has requested the newest publication, if there is a publication."""
        if self._newest is not None:
            await self._asked_for_newest.wait()

    def rebootstrap(self) -> None:
        """Number further publications from 1 under a new bootstrap time (§3)."""
        self.core.rebootstrap(self._now_ms())

    def forget(self, publication: Publication) -> None:
        """Stop keeping an own publication for other members."""
        self._store.forget(publication)

    async def events(self) -> AsyncIterator[NodeEvent]:
        """Yield events, including publications of other members, until the node is closed."""
        try:
            async for event in self._events:
                yield event
        except anyio.ClosedResourceError:
            return

    async def next_events(self) -> list[NodeEvent]:
        """Wait for events and return all of them, or none once the node is closed."""
        try:
            events = [await self._events.receive()]
            while self._events.statistics().current_buffer_used:
                events.append(self._events.receive_nowait())
        except (anyio.ClosedResourceError, anyio.EndOfStream):
            return []
        return events

    @property
    def is_connected(self) -> bool:
        """True if the forwarder is connected and has registered this node's prefixes."""
        return self._connected.is_set()

    async def wait_connected(self) -> None:
        """Wait until the forwarder is connected and has registered this node's prefixes."""
        await self._connected.wait()

    # -- the forwarder -----------------------------------------------------------------------------

    async def _stay_connected(self) -> None:
        pause_ms = self._options.reconnect_min_ms
        while True:
            try:
                await self._connect_once()
            except ForwarderError as error:
                self._face = None
                if self._connected.is_set():  # else fetches already wait for it
                    pause_ms = self._options.reconnect_min_ms
                    self._connected = anyio.Event()
                self._tell(ForwarderLost(str(error)))
            await anyio.sleep(pause_ms / 1000)
            pause_ms = min(2 * pause_ms, self._options.reconnect_max_ms)

    async def _connect_once(self) -> None:
        """Connect, and stay until the link is lost.

        Raises:
            ForwarderError: it is.
        """
        link = await connect(self._forwarder)
        face = Face(link, self._on_interest, lambda reason: self._tell(PacketRefused(reason)))
        lost: list[ForwarderError] = []

        async def listen(tasks: TaskGroup) -> None:
            try:
                await face.run()
            except ForwarderError as error:
                lost.append(error)
                tasks.cancel_scope.cancel()

        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(listen, tasks)
                try:
                    await self._register(face)
                except ForwarderError as error:
                    lost.append(error)
                    tasks.cancel_scope.cancel()
                else:
                    self._on_connected(face)
        finally:
            with anyio.CancelScope(shield=True):
                await link.aclose()
        if lost:
            raise lost[0]

    async def _register(self, face: Face) -> None:
        for prefix in (self.naming.route, self.naming.publications_of(self.name)):
            await face.command(register_route(prefix, os.urandom(8), self._now_ms()))
        if self._options.set_strategy:
            command = set_multicast(self.naming.route, os.urandom(8), self._now_ms())
            await face.command(command)

    def _on_connected(self, face: Face) -> None:
        self._face = face
        self._connected.set()
        self._tell(ForwarderConnected())
        self.core.announce(self._now_ms())
        self._wake.set()

    # -- time, and what the state machine has to say -----------------------------------------------

    async def _keep_time(self) -> None:
        while True:
            await self._send_vectors()
            self._take_events()
            wait_ms = self.core.next_deadline_ms() - self._now_ms()
            with anyio.move_on_after(max(wait_ms, 0) / 1000):
                await self._wake.wait()
            self._wake = anyio.Event()
            self.core.on_deadline(self._now_ms())

    async def _send_vectors(self) -> None:
        if self._face is None:
            return  # announced when it is back
        for vector in self.core.outgoing():
            data = make_data(self.naming.sync, vector, self._signer)
            interest = Interest(self.naming.sync, os.urandom(4), SYNC_LIFETIME_MS, parameters=data)
            try:
                await self._face.send(interest.encode())
            except ForwarderError:
                return  # the reader notices too, and announces when the forwarder is back

    def _take_events(self) -> None:
        for event in self.core.events():
            if isinstance(event, PublicationsKnown):
                if event.name != self.name or event.bootstrap_time != self.core.bootstrap_time:
                    self._fetcher.want(event)
            else:
                self._tell(event)

    # -- Interests of others -----------------------------------------------------------------------

    def _on_interest(self, interest: Interest) -> bytes | None:
        if interest.name.starts_with(self.naming.sync):
            self._on_sync_interest(interest)
            return None  # §4.3: Sync Interests are not acknowledged
        if self._newest is not None and interest.name.starts_with(self._newest):
            self._asked_for_newest.set()
        return self._store.answer(interest)

    def _on_sync_interest(self, interest: Interest) -> None:
        try:
            data = decode_data(interest.parameters or b"")
            self._check_vector(data)
        except TlvError as error:
            self._tell(VectorIgnored(IgnoredReason.MALFORMED, str(error)))
        except SignatureRefused as error:
            self._tell(PacketRefused(str(error)))
        else:
            self.core.receive(data.content, self._now_ms())
            self._wake.set()

    def _check_vector(self, data: Data) -> None:
        """Any name below the group with a version will do: ndnd v1.5.3 has microseconds for one,
        and SvsALO the sender's name. A publication, or what was said in another group, will not."""
        components = data.name.components
        if (
            not components
            or not data.name.starts_with(self.naming.group)
            or component_number(components[-1], VERSION) is None
            or self.naming.parse_publication(data.name) is not None
        ):
            raise SignatureRefused(
                f"{data.name} is not the name of a state vector of group {self.naming.group}"
            )
        data.check(self._trust)

    # -- publications of others --------------------------------------------------------------------

    async def _fetch(self, place: Place) -> bytes:
        """The content of a publication, with its signatures checked."""
        name = self.naming.publication(*place)
        if self.naming.scheme == "spec":
            return (await self._ask(name)).content
        first = await self._ask(name.append(number_component(SEGMENT, 0)))
        last = first.final_block and component_number(first.final_block, SEGMENT)
        if (last := last or 0) >= self._options.segments:
            raise TlvError(
                f"{name} has {last + 1} segments; at most {self._options.segments} are accepted"
            )
        content = first.content
        for number in range(1, last + 1):
            content += (await self._ask(name.append(number_component(SEGMENT, number)))).content
        return content

    async def _ask(self, name: Name) -> Data:
        await self._connected.wait()
        if self._face is None:
            raise ForwarderError("the forwarder is not connected")
        interest = Interest(name, os.urandom(4), self._options.interest_lifetime_ms)
        data = await self._face.express(interest)
        try:
            data.check(self._trust)
        except SignatureRefused as error:
            self._tell(PacketRefused(str(error)))
            raise
        if data.content_type == GONE:
            raise Gone(f"{name}: the publisher has deleted the publication")
        return data

    async def _deliver(self, outcome: Outcome) -> None:
        await self._tell_stream.send(outcome)

    def _tell(self, event: NodeEvent) -> None:
        try:
            if self._dropped:
                self._tell_stream.send_nowait(EventsDropped(self._dropped))
                self._dropped = 0
            self._tell_stream.send_nowait(event)
        except anyio.WouldBlock:
            self._dropped += 1
