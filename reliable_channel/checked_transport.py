"""A plugin's transport, held to the contract: whatever it does beside is told with its name."""

from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing, contextmanager
from typing import Any, Final

import anyio

from .errors import PluginError
from .plugin_calls import told
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

_PASSES: Final = (TransportError, PluginError)
HANGS_S: Final = 60.0
"""What takes so long will not end: then another transport, or a later attempt, has its turn."""


class CheckedTransport:
    """The transport of a plugin.

    Every method raises what the contract says, or `PluginError`: the plugin raised something else,
    or returned what it may not. A `publish` or `by_hash` that hangs is given up as one that fails.
    """

    def __init__(self, inner: Transport, plugin: str) -> None:
        self.url = str(getattr(inner, "url", f"plugin {plugin}"))
        self._inner = inner
        self._plugin = plugin

    @property
    def has_store(self) -> bool:
        """Whether the plugin's transport has one."""
        return has_store(self._inner)

    @property
    def mislabelled(self) -> int:
        """As the plugin's transport has it."""
        return int(getattr(self._inner, "mislabelled", 0))

    async def open(self) -> None:
        """Open the plugin's transport."""
        with self._blamed("open"):
            await self._inner.open()

    async def aclose(self) -> None:
        """Close the plugin's transport."""
        with self._blamed("aclose"):
            await self._inner.aclose()

    def envelope(
        self, payload: bytes, *, timestamp_ns: int, ephemeral: bool, meta: bytes = b""
    ) -> Envelope:
        """Wrap bytes."""
        with self._blamed("envelope") as blame:
            envelope = self._inner.envelope(
                payload, timestamp_ns=timestamp_ns, ephemeral=ephemeral, meta=meta
            )
            blame.unless(envelope, Envelope)
            blame.unless(envelope.message_hash, bytes)
            if len(envelope.message_hash) != HASH_BYTES:
                raise blame.error(
                    f"a message hash of {len(envelope.message_hash)} bytes; allowed are 32"
                )
        return envelope

    async def publish(self, envelope: Envelope) -> None:
        """Broadcast."""
        with self._blamed("publish"), self._ending("publish", TransportError):
            await self._inner.publish(envelope)

    async def receive(self) -> Batch:
        """Wait for what arrives."""
        with self._blamed("receive") as blame:
            batch = await self._inner.receive()
            blame.unless(batch, Batch)
            for message in batch.messages:
                blame.unless(message, Received)
        return batch

    async def by_hash(self, hashes: Sequence[bytes]) -> list[Received]:
        """Fetch by hash."""
        with self._blamed("by_hash") as blame:
            with self._ending("by_hash", StoreUnavailable):
                found = await self._inner.by_hash(hashes)
            blame.unless(found, list)
            for message in found:
                blame.unless(message, Received)
        return found

    async def by_time(self, start_ns: int, end_ns: int) -> AsyncGenerator[list[Received], None]:
        """Fetch by time."""
        with self._blamed("by_time") as blame:
            found = self._inner.by_time(start_ns, end_ns)
            blame.unless(found, AsyncGenerator)
        async with aclosing(found) as pages:
            while True:
                with self._blamed("by_time") as blame:
                    page = await anext(pages, None)
                    if page is None:
                        return
                    blame.unless(page, list)
                    for message in page:
                        blame.unless(message, Received)
                yield page

    def renew(self) -> None:
        """Subscribe again, where the plugin's transport can."""
        with self._blamed("renew"):
            renew(self._inner)

    async def handed_over(self) -> None:
        """Wait for others to fetch what was published, where the plugin's transport must."""
        with self._blamed("handed_over"):
            await handed_over(self._inner)

    def nodes(self) -> tuple[NodeHealth, ...]:
        """How each node does, where the plugin's transport tells."""
        with self._blamed("nodes"):
            return nodes_of(self._inner)

    async def nodes_changed(self) -> None:
        """Wait until a node's state changes."""
        with self._blamed("nodes_changed"):
            await nodes_changed(self._inner)

    @contextmanager
    def _ending(self, method: str, error: type[TransportError]) -> Iterator[None]:
        """Give a method up that hangs."""
        with anyio.move_on_after(HANGS_S) as scope:
            yield
        if scope.cancelled_caught:
            raise error(f"plugin {self._plugin!r} did not return from {method} in {HANGS_S:g} s")

    def _blamed(self, method: str) -> "_Blamed":
        return _Blamed(f"the transport of plugin {self._plugin!r}", method)


class _Blamed:
    """Turns what a method may not raise into a `PluginError`."""

    def __init__(self, whose: str, method: str) -> None:
        self._whose = whose
        self._method = method

    def unless(self, value: Any, kind: type) -> None:
        """Raise unless a value is of a kind."""
        if not isinstance(value, kind):
            raise self.error(f"{told(value)}; allowed is {kind.__name__}")

    def error(self, returned: str) -> PluginError:
        """What to raise for a return that is none."""
        return PluginError(f"{self._whose} returned from {self._method} {returned}")

    def __enter__(self) -> "_Blamed":
        return self

    def __exit__(self, kind: object, raised: BaseException | None, traceback: object) -> None:
        if isinstance(raised, Exception) and not isinstance(raised, _PASSES):
            raise PluginError(f"{self._whose} failed in {self._method}: {raised!r}") from raised
