"""The transport of a plugin under guard."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine
from contextlib import aclosing
from functools import wraps
from typing import Any, Final, ParamSpec, TypeVar

import anyio

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

P = ParamSpec("P")
T = TypeVar("T")
HANGS_S: Final = 60.0
"""A call that exceeds this is treated as hung and cancelled, so another transport or a retry can
proceed."""


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
PUBLISHED: Final = Contract(
    lambda value: value is None or _is_envelope(value), f"None, or {ENVELOPE.must_be}"
)
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
        self.open = _coroutine(guard, "open", inner.open, ANYTHING)
        self.aclose = _coroutine(guard, "aclose", inner.aclose, ANYTHING)
        self.receive = _coroutine(guard, "receive", inner.receive, BATCH)
        publish = _coroutine(guard, "publish", inner.publish, PUBLISHED)
        by_hash = _coroutine(guard, "by_hash", inner.by_hash, RECEIVED)
        self.publish = _bounded(guard, "publish", publish, TransportError)
        self.by_hash = _bounded(guard, "by_hash", by_hash, StoreUnavailable)
        self.envelope = guard.function(_of("envelope"), inner.envelope, ENVELOPE, _FAILS)

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


def _coroutine(
    guard: Guard, method: str, function: Callable[P, Awaitable[T]], contract: Contract
) -> Callable[P, Coroutine[Any, Any, T]]:
    """The method under guard.

    No cancel scope around it: a transport may open a task group in `open` and close it in `aclose`,
    and scopes must nest.
    """
    what = _of(method)

    @wraps(function, assigned=(), updated=())
    async def guarded(*arguments: P.args, **keywords: P.kwargs) -> T:
        with guard.watching(what, _FAILS):
            return guard.checked(what, await function(*arguments, **keywords), contract)

    return guarded


def _bounded(
    guard: Guard, method: str, function: Callable[P, Awaitable[T]], hung: type[TransportError]
) -> Callable[P, Coroutine[Any, Any, T]]:
    """The guarded method, cancelled after `HANGS_S`; then it raises `hung`."""

    @wraps(function, assigned=(), updated=())
    async def bounded(*arguments: P.args, **keywords: P.kwargs) -> T:
        with anyio.move_on_after(HANGS_S):
            return await function(*arguments, **keywords)
        raise hung(f"{guard.owner}: {_of(method)} did not return in {HANGS_S:g} s")

    return bounded
