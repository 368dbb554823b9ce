"""The transport of a plugin under guard."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any, Final

from .guard import Contract, Guard, instance
from .transport.base import (
    HASH_BYTES,
    Batch,
    Envelope,
    NodeHealth,
    Received,
    StoreUnavailable,
    Transport,
    TransportError,
    handed_over,
    has_store,
    nodes_changed,
    nodes_of,
    renew,
)


def _are_received(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(message, Received) for message in value)


def _is_batch(value: object) -> bool:
    return isinstance(value, Batch) and _are_received(list(value.messages))


def _is_envelope(value: object) -> bool:
    if not isinstance(value, Envelope):
        return False
    return isinstance(value.message_hash, bytes) and len(value.message_hash) == HASH_BYTES


BATCH: Final = Contract(_is_batch, "a Batch of Received")
ENVELOPE: Final = Contract(_is_envelope, f"an Envelope with a message_hash of {HASH_BYTES} bytes")
RECEIVED: Final = Contract(_are_received, "a list of Received")
ANYTHING: Final = Contract(lambda value: True, "anything")
_FAILS: Final = (TransportError,)


class GuardedTransport:
    """A plugin's transport, of which every method keeps the contract or raises `PluginError`.

    A `publish` or `by_hash` that hangs is cancelled and counts as one that failed.
    """

    def __init__(self, inner: Transport, guard: Guard) -> None:
        self.url = str(getattr(inner, "url", guard.owner))
        self._inner = inner
        self._guard = guard
        self.open = self._coroutine("open", inner.open)
        self.aclose = self._coroutine("aclose", inner.aclose)
        self.receive = self._coroutine("receive", inner.receive, BATCH)
        self.publish = self._coroutine("publish", inner.publish, hung=TransportError)
        self.by_hash = self._coroutine("by_hash", inner.by_hash, RECEIVED, hung=StoreUnavailable)
        self.envelope = guard.function(_of("envelope"), inner.envelope, ENVELOPE, _FAILS)

    def _coroutine(
        self,
        method: str,
        function: Any,
        contract: Contract = ANYTHING,
        hung: type[TransportError] | None = None,
    ) -> Any:
        return self._guard.coroutine(_of(method), function, contract, _FAILS, hung=hung)

    @property
    def has_store(self) -> bool:
        """Whether the plugin's transport has one."""
        return has_store(self._inner)

    @property
    def mislabelled(self) -> int:
        """As the plugin's transport has it."""
        return int(getattr(self._inner, "mislabelled", 0))

    async def by_time(self, start_ns: int, end_ns: int) -> AsyncGenerator[list[Received], None]:
        """Fetch by time."""
        guard, what = self._guard, _of("by_time")
        with guard.watching(what, _FAILS):
            found = self._inner.by_time(start_ns, end_ns)
        async with aclosing(guard.checked(what, found, instance(AsyncGenerator))) as pages:
            while True:
                with guard.watching(what, _FAILS):
                    page = await anext(pages, None)
                if page is None:
                    return
                yield guard.checked(what, page, RECEIVED)

    def renew(self) -> None:
        """Subscribe again, if the plugin's transport can."""
        with self._guard.watching(_of("renew"), _FAILS):
            renew(self._inner)

    async def handed_over(self) -> None:
        """Wait for peers to fetch what was published, if the plugin's transport serves them."""
        with self._guard.watching(_of("handed_over"), _FAILS):
            await handed_over(self._inner)

    def nodes(self) -> tuple[NodeHealth, ...]:
        """State of each node, if the plugin's transport reports it."""
        with self._guard.watching(_of("nodes"), _FAILS):
            return nodes_of(self._inner)

    async def nodes_changed(self) -> None:
        """Wait until a node's state changes."""
        with self._guard.watching(_of("nodes_changed"), _FAILS):
            await nodes_changed(self._inner)


def _of(method: str) -> str:
    return f"{method} of the transport"
