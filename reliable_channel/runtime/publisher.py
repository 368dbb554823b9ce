"""Publisher that passes messages from the engine to the transport, with retries during an
outage."""

from collections.abc import Callable
from dataclasses import replace
from weakref import WeakKeyDictionary

import anyio
from anyio.abc import TaskGroup

from ..engine.backoff import Backoff
from ..engine.outbox import CONCURRENCY, FRESH_NS, Item
from ..sds.events import OutgoingKind
from ..transport.base import Envelope, TransportError
from .budget_file import BudgetFile
from .stages import Frame, StageError, Stages
from .task_context import TaskContext


class Publisher:
    """Tasks that publish the messages of a channel. The first task of `run` starts further tasks,
    up to `CONCURRENCY`."""

    def __init__(
        self,
        wiring: TaskContext,
        stages: Stages,
        *,
        wall_ns: Callable[[], int],
        budget_file: BudgetFile | None,
    ) -> None:
        self._wiring = wiring
        self._driver = wiring.driver
        self._engine = wiring.driver.engine
        self._transport = wiring.transport
        self._health = wiring.health
        self._stages = stages
        self._wall_ns = wall_ns
        self._budget_file = budget_file
        self._running = 1
        self._attempted: WeakKeyDictionary[Item, Envelope] = WeakKeyDictionary()

    async def run(self, tasks: TaskGroup) -> None:
        """Publish messages until cancelled. Further tasks start in the task group `tasks`."""
        driver, engine, to_send = self._driver, self._engine, self._driver.to_send
        backoff: Backoff | None = None
        while True:
            item = engine.take(driver.now_ns() // 1_000_000) if engine.outbox.queued else None
            if item is None:
                if driver.drained.waiting:
                    driver.drained.notify()
                await to_send.wait(None if engine.limit is None else self._epoch_left_s())
                continue
            if engine.has_news:
                driver.finish()
            envelope: Envelope | None = None
            try:
                if engine.limit is not None:
                    await self._save_budget()
                if engine.outbox.queued or not to_send.waiting:
                    self._wake_another(tasks)
                envelope = await self._envelope(item)
                published = await self._transport.publish(envelope) or envelope
            except StageError as error:
                self._refuse(item, str(error))
            except TransportError as error:
                if not error.retryable:
                    self._refuse(item, str(error))
                    continue
                self._health.failed("send", str(error))
                engine.counters.publish_failures += 1
                self._keep(item, envelope, tasks)
                backoff = backoff or self._wiring.backoff()
                await anyio.sleep(backoff.next_s())
            except BaseException:
                engine.outbox.put_back(item)  # cancelled: it may not have gone out
                raise
            else:
                backoff = None
                if self._health.failing:
                    self._health.succeeded("send")
                if (journal := driver.journal) is not None:
                    outgoing = item.outgoing
                    journal.went(outgoing.data, published, outgoing.kind.value, driver.now_ms())
                driver.turn(engine.dispatched, item, published.message_hash, published.timestamp_ns)

    def _wake_another(self, tasks: TaskGroup) -> None:
        """See that there is a task for what waits, or comes meanwhile."""
        to_send = self._driver.to_send
        if not to_send.waiting and self._running < CONCURRENCY:
            self._running += 1
            tasks.start_soon(self.run, tasks, name="reliable_channel.publisher")
        elif self._engine.outbox.queued:
            to_send.notify_one()

    def _epoch_left_s(self) -> float | None:
        """Return the time (s) until the next epoch, or None if no message waits for it."""
        now_ms = self._driver.now_ms()
        if (goes_at_ms := self._engine.sends_at_ms(now_ms)) is None:
            return None
        self._driver.finish()
        return max(0, goes_at_ms - now_ms) / 1000

    async def _save_budget(self) -> None:
        """See that what is spent outlives the process before the message goes."""
        assert self._engine.limit is not None
        if self._budget_file is not None:
            self._budget_file.save(self._engine.limit.spent(self._driver.now_ms()))
        if self._wiring.writer is not None:
            self._driver.finish()
            await self._wiring.writer.written()

    def _refuse(self, item: Item, reason: str) -> None:
        self._engine.outbox.done(item)
        self._driver.turn(self._engine.refused, item.outgoing, reason)

    def _keep(self, item: Item, envelope: Envelope | None, tasks: TaskGroup) -> None:
        """See that a message that the node did not take goes again, where it is to."""
        if self._engine.failed(item, self._driver.now_ms()):
            if envelope is not None and item.outgoing.kind is not OutgoingKind.SYNC:
                self._attempted[item] = envelope
            self._wake_another(tasks)
        else:
            self._driver.drained.notify()

    async def _envelope(self, item: Item) -> Envelope:
        attempted = self._attempted.pop(item, None) if self._attempted else None
        if attempted is not None and self._wall_ns() - attempted.timestamp_ns < FRESH_NS:
            return attempted
        outgoing = item.outgoing
        payload, meta = outgoing.data, b""
        if self._stages.change_anything:
            payload, meta = await self._stages.outward(Frame(payload))
        is_content = outgoing.kind is OutgoingKind.CONTENT
        envelope = self._transport.envelope(
            payload,
            timestamp_ns=item.stamp_ns(self._wall_ns()),
            ephemeral=not is_content and outgoing.kind.is_of_the_moment,
            meta=meta,
        )
        return envelope if is_content else replace(envelope, urgent=False)
