"""Transport over several nodes at once. If a node fails, another node replaces it (LIP 172, P2P
reliability).

A message goes to `redundancy` nodes, all nodes are read, and Stores are queried in turn. A failing
node is skipped for a time that grows from 1 s (LIP 172, light push).
"""

from collections import deque
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, aclosing
from dataclasses import dataclass
from typing import Final

import anyio

from .._notifier import Notifier
from ..sds.ids import RecentSet
from .addresses import masked_address
from .base import (
    BaseTransport,
    Batch,
    Envelope,
    NodeHealth,
    Received,
    StoreUnavailable,
    Transport,
    TransportError,
)
from .pool_node import Node

REDUNDANCY: Final = 2
RETRY_S: Final = 1.0
SEEN_LIMIT: Final = 20_000
"""Number of remembered message hashes, by which a second copy is dropped."""
HANDOVER_S: Final = 5.0
"""Longest wait at closing until others have fetched the published messages (s)."""
GRACE_S: Final = 1.0
"""Time limit for further nodes to accept a message that one node has accepted (s)."""
QUEUED_BATCHES: Final = 32
"""Maximum number of batches that wait for a slow reader. If more batches wait, the caches of the
nodes fill, and the nodes report it."""


@dataclass(frozen=True, slots=True)
class _Gap:
    """Messages that one node may have missed, and another one may have brought."""

    node: Node
    reason: str
    since_s: float
    at_s: float


class PoolTransport(BaseTransport):
    """Transport of one content topic through several nodes. One task must call both `open` and
    `aclose`.

    A gap of one node does not matter if another node reads without a gap from before until after
    it. A gap is not reported before the later read of the other node. If the other node fails too,
    the gap of the first node is reported.

    Args:
        transports: a way through each node; the pool opens and closes them.
        redundancy: how many nodes a message goes to.
        retry_s: how long a node that failed is passed over at first.
        wait_for_node: open although no node answers, and go on trying; `receive` and `publish`
            raise until one does.

    Raises:
        ValueError: no node, or a redundancy below 1.
    """

    def __init__(
        self,
        transports: Sequence[Transport],
        *,
        redundancy: int = REDUNDANCY,
        retry_s: float = RETRY_S,
        wait_for_node: bool = False,
    ) -> None:
        if not transports:
            raise ValueError("`transports` is empty; a pool needs at least one node")
        if redundancy < 1:
            raise ValueError(f"`redundancy` must be a number of at least 1 (got {redundancy})")
        names = [
            masked_address(str(getattr(transport, "url", ""))) or f"node {number}"
            for number, transport in enumerate(transports)
        ]
        nth = [names[: number + 1].count(name) for number, name in enumerate(names)]
        self._changed = Notifier()
        self._nodes = [  # addresses that differ in their tokens alone are numbered
            Node(f"{name} ({n})" if n > 1 else name, transport, self._changed.notify)
            for name, n, transport in zip(names, nth, transports, strict=True)
        ]
        self.envelope: Final = transports[0].envelope
        """Wraps bytes, the same for every node."""
        self._only = self._nodes[0] if len(self._nodes) == 1 else None
        self._redundancy = redundancy
        self._retry_s = retry_s
        self._wait_for_node = wait_for_node
        self._hopeless: set[Node] = set()
        """Nodes that will refuse the same settings again."""
        self._seen = RecentSet[bytes](SEEN_LIMIT)
        self._gaps: list[_Gap] = []
        self._exit: AsyncExitStack | None = None
        self._tried = Notifier()
        self._arrived: deque[Batch | TransportError] = deque()
        self._came = Notifier()
        self._fetched = Notifier()

    @property
    def has_store(self) -> bool:
        """True if at least one node belongs to a network with a Store."""
        return any(node.transport.has_store for node in self._nodes)

    async def open(self) -> None:
        """Connect to all nodes of the pool. If one node answers, the call succeeds, and the other
        nodes are tried in the background. With `wait_for_node` no node needs to answer, unless all
        nodes refuse permanently."""
        if self._exit is not None:
            return
        async with AsyncExitStack() as stack:
            self._arrived.clear()
            tasks = await stack.enter_async_context(anyio.create_task_group())
            stack.callback(tasks.cancel_scope.cancel)
            self._hopeless.clear()
            for node in self._nodes:
                node.begin()
                tasks.start_soon(self._listen, node, name="reliable_channel.pool")
            while not any(node.open for node in self._nodes):
                if all(node.receive.failures for node in self._nodes):
                    break
                await self._tried.wait()
            waits = self._wait_for_node and len(self._hopeless) < len(self._nodes)
            if waits or any(node.open for node in self._nodes):
                self._exit = stack.pop_all()
                return
        raise TransportError(f"none of the nodes can be used: {self._errors('receive')}")

    async def aclose(self) -> None:
        """Stop reading, and close the transport of every node."""
        stack, self._exit = self._exit, None
        self._came.notify()
        if stack is None:
            return
        async with stack:
            with anyio.move_on_after(HANDOVER_S):
                async with anyio.create_task_group() as tasks:
                    for node in self._nodes:
                        if node.listens:
                            tasks.start_soon(node.transport.handed_over)
            # Not cancelled as a whole, so that each closes in peace.
            for node in self._nodes:
                node.listening.cancel()
            for node in self._nodes:
                if node.open:
                    await node.closed.wait()

    async def publish(self, envelope: Envelope) -> Envelope | None:
        """Send a message to as many nodes as the option `redundancy` demands. If a node fails, the
        next node replaces it at once. If one node accepts the message, the call succeeds. Skipped
        nodes are used only if no other node accepts the message. If nodes set timestamps, the first
        answer determines the message hash."""
        if (only := self._only) is not None and only.open:
            return await self._publish_at(only, envelope)
        able = [node for node in self._nodes if node.open]
        if not able:
            raise TransportError(f"no node is connected: {self._errors('receive')}")
        if len(able) == 1:
            return await self._publish_at(able[0], envelope)
        now_s = anyio.current_time()
        passed_over = [node for node in able if node.is_passed_over("send", now_s)]
        errors: list[TransportError] = []
        for nodes in ([node for node in able if node not in passed_over], passed_over):
            if published := await self._hand_over(envelope, deque(nodes), errors):
                return published[0]
        retryable = any(error.retryable for error in errors)
        raise TransportError("; ".join(map(str, errors)), retryable=retryable)

    async def _publish_at(self, node: Node, envelope: Envelope) -> Envelope | None:
        try:
            published = await node.transport.publish(envelope)
        except TransportError as error:
            if error.retryable:
                node.send.failed(error, self._retry_s)
            raise
        if node.send.failures:
            node.send.succeeded()
        return published

    async def _hand_over(
        self, envelope: Envelope, waiting: deque[Node], errors: list[TransportError]
    ) -> list[Envelope | None]:
        """Return what nodes that took a message made of it."""
        taken: list[Envelope | None] = []

        async def one() -> None:
            while waiting:
                node = waiting.popleft()
                try:
                    published = await self._publish_at(node, envelope)
                except TransportError as error:
                    errors.append(error)
                except anyio.get_cancelled_exc_class():
                    if taken:
                        slow = TimeoutError(f"no answer {GRACE_S:g} s after another node's")
                        node.send.failed(slow, self._retry_s)
                    raise
                else:
                    taken.append(published)
                    tasks.cancel_scope.deadline = anyio.current_time() + GRACE_S
                    return

        async with anyio.create_task_group() as tasks:
            for _ in range(min(self._redundancy, len(waiting))):
                tasks.start_soon(one)
        return taken

    async def receive(self) -> Batch:
        """Wait for messages of any node, each message once."""
        while not self._arrived:
            if self._exit is None:
                raise TransportError("the pool is not open")
            if (only := self._only) is not None and only.open:
                if only.receive.failures:
                    await anyio.sleep_until(only.receive.retry_at_s)
                try:
                    batch = await only.transport.receive()
                except TransportError as error:
                    only.receive.failed(error, self._retry_s)
                    raise TransportError(f"no node answers: {error}") from error
                if batch.gap or only.receive.failures:
                    return self._of_single(only, batch)
                return batch
            await self._came.wait()
        arrived = self._arrived.popleft()
        self._fetched.notify()
        if isinstance(arrived, TransportError):
            raise arrived
        return Batch([m for m in arrived.messages if self._seen.add(m.message_hash)], arrived.gap)

    async def by_hash(self, hashes: Sequence[bytes]) -> list[Received]:
        """Query the nodes in turn, each for the messages that earlier nodes lacked."""
        wanted, found = set(hashes), []
        answered, refusals = not wanted, []
        for node in self._in_turn():
            if not wanted or (answered and not node.answers):
                break
            try:
                messages = await node.transport.by_hash([h for h in hashes if h in wanted])
            except StoreUnavailable as error:
                if error.retryable:  # else it refuses hashes, and may answer queries by time
                    node.store.failed(error, self._retry_s)
                refusals.append(f"{node.address}: {error}")
                continue
            node.store.succeeded()
            answered = True
            for message in messages:
                if message.message_hash in wanted:
                    wanted.discard(message.message_hash)
                    found.append(message)
        if not answered:
            raise StoreUnavailable("; ".join(refusals) or self._errors("store"))
        return found

    async def by_time(self, start_ns: int, end_ns: int) -> AsyncGenerator[list[Received], None]:
        """Query one node, and the next node if it fails or returns unrequested messages. After the
        change to the next node, some messages are returned twice."""
        answered = False
        for node in self._in_turn():
            if answered and not node.answers:
                break
            mislabelled = node.mislabelled
            try:
                async with aclosing(node.transport.by_time(start_ns, end_ns)) as pages:
                    async for page in pages:
                        yield page
            except StoreUnavailable as error:
                node.store.failed(error, self._retry_s)
                continue
            node.store.succeeded()
            answered = True
            if node.mislabelled == mislabelled:
                return
        if not answered:
            raise StoreUnavailable(self._errors("store"))

    def renew(self) -> None:
        """Renew the subscription at every node."""
        for node in self._nodes:
            node.transport.renew()

    def nodes(self) -> tuple[NodeHealth, ...]:
        """Return the state of each node."""
        return tuple(node.health() for node in self._nodes)

    async def nodes_changed(self) -> None:
        """Wait until the state of a node changes."""
        await self._changed.wait()

    async def _listen(self, node: Node) -> None:
        """Open one node's transport, read it until the end is requested, and close it.

        No scope may begin around the opening and end before the closing: a transport may hold a
        task group in between.
        """
        try:
            while not node.open:
                try:
                    await node.transport.open()
                except TransportError as error:
                    if not error.retryable:
                        self._hopeless.add(node)
                    await self._failed(node, error)
                    await anyio.sleep_until(node.receive.retry_at_s)
                else:
                    node.open = True
            with node.listening:
                await self._brought(node, Batch([]))
                if self._only is not None:
                    await anyio.sleep_forever()  # `receive` looks itself
                while True:
                    await self._look(node)
        finally:
            node.open = False
            await node.transport.aclose()
            node.closed.set()

    async def _look(self, node: Node) -> None:
        """Look what a node brings; one that failed is left alone for a while before."""
        if node.receive.failures:
            await anyio.sleep_until(node.receive.retry_at_s)
        try:
            batch = await node.transport.receive()
        except TransportError as error:
            await self._failed(node, error)
        else:
            await self._brought(node, batch)

    def _of_single(self, node: Node, batch: Batch) -> Batch:
        """Name the only node in a gap: no other can have brought what it missed."""
        gap = batch.gap
        if node.receive.failures:
            gap = gap or f"the node was away: {node.receive.error}"
            node.looked()
        return Batch(batch.messages, f"{node.address}: {gap}")

    async def _failed(self, node: Node, error: TransportError) -> None:
        """Note that a node does not answer, and report it where no other does."""
        node.covered_since_s = None
        node.receive.failed(error, self._retry_s)
        self._tried.notify()
        if gap := self._decided_gaps():
            await self._arrives(Batch([], gap))
        if self._exit is not None and not any(node.listens for node in self._nodes):
            await self._arrives(TransportError(f"no node answers: {error}"))

    async def _arrives(self, arrived: Batch | TransportError) -> None:
        """Queue what `receive` returns or raises, once there is room."""
        while len(self._arrived) >= QUEUED_BATCHES:
            await self._fetched.wait()
        self._arrived.append(arrived)
        self._came.notify()

    async def _brought(self, node: Node, batch: Batch) -> None:
        """Hand on what a node brought."""
        self._looked(node, batch.gap)
        self._tried.notify()
        await self._arrives(Batch(batch.messages, self._decided_gaps()))

    def _looked(self, node: Node, gap: str) -> None:
        """Note a look that worked."""
        now_s = anyio.current_time()
        first = not node.last_look_s
        if node.receive.failures and not first:
            gap = gap or f"the node was away: {node.receive.error}"
        if gap:
            reason = f"{node.address}: {gap}"
            self._gaps.append(_Gap(node, reason, since_s=node.last_look_s, at_s=now_s))
        if gap or node.covered_since_s is None:
            node.covered_since_s = now_s
        node.last_look_s = now_s
        node.looked()

    def _decided_gaps(self) -> str:
        """Decide on what gaps can be decided on; return the reasons of those to report."""
        undecided, reported = [], []
        for gap in self._gaps:
            others = [
                node.last_look_s
                for node in self._nodes
                if node is not gap.node
                and node.covered_since_s is not None
                and node.covered_since_s <= gap.since_s
            ]
            if not others:
                reported.append(gap.reason)
            elif max(others) <= gap.at_s:
                undecided.append(gap)
        self._gaps = undecided
        return "; ".join(reported)

    def _in_turn(self) -> list[Node]:
        """The nodes in the order in which to ask their Stores: last those that are passed over."""
        now_s = anyio.current_time()
        able = [node for node in self._nodes if node.transport.has_store]
        return sorted(able, key=lambda node: node.is_passed_over("store", now_s))

    def _errors(self, service: str) -> str:
        return "; ".join(
            f"{node.address}: {getattr(node, service).error or 'not tried yet'}"
            for node in self._nodes
        )
