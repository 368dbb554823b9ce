"""A plugin's transport, as a channel uses it."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Final

import anyio

from .._contracts.plugin_code import Async, Owner, P, T
from ..transport import base
from ..transport.addresses import masked_address, masked_text
from ..transport.base import Received

HANGS_S: Final = 60.0
"""Time after which a call is cancelled, so that another node or a retry can proceed (s)."""


class _TransportOwner(Owner):
    """Owner of a transport: its errors are shown without the tokens in addresses."""

    def add_note(self, error: Exception) -> None:
        """Name the owner in an error, and mask the error of a transport."""
        super().add_note(error)
        if isinstance(error, base.TransportError):
            error.args = (masked_text(str(error)),)


class PluginTransport:
    """A plugin's transport whose errors name the plugin.

    A `publish` or `by_hash` that hangs is cancelled and counts as failed. No other call has a time
    limit. `receive` may wait for hours. A transport may also hold a cancel scope from `open` to
    `aclose`, or from page to page. Such a scope would not nest in the scope of a limit.
    """

    def __init__(self, inner: base.Transport, owner: Owner) -> None:
        self.url = masked_address(str(getattr(inner, "url", owner.note)))
        self._inner = inner
        self._owner = owner = _TransportOwner(owner.note)
        self.open = owner.coroutine(inner.open)
        self.aclose = owner.coroutine(inner.aclose)
        self.envelope = owner.function(inner.envelope)
        self.publish = owner.coroutine(self._limited("publish", inner.publish))
        self.receive = owner.coroutine(inner.receive)
        self.by_hash = owner.coroutine(self._limited("by_hash", inner.by_hash))
        self.renew = owner.function(inner.renew)
        self.handed_over = owner.coroutine(inner.handed_over)
        self.nodes = owner.function(inner.nodes)
        self.nodes_changed = owner.coroutine(inner.nodes_changed)

    @property
    def has_store(self) -> bool:
        """True if the plugin's transport has a Store."""
        return self._inner.has_store

    @property
    def mislabelled(self) -> int:
        """Number of messages from Store that were not asked for, as the plugin counts them."""
        return int(getattr(self._inner, "mislabelled", 0))

    async def by_time(self, start_ns: int, end_ns: int) -> AsyncGenerator[list[Received], None]:
        """Fetch stored messages by time."""
        try:
            async with aclosing(self._inner.by_time(start_ns, end_ns)) as pages:
                async for page in pages:
                    yield page
        except Exception as error:
            self._owner.add_note(error)
            raise

    def _limited(self, method: str, function: Async[P, T]) -> Async[P, T]:
        hung = base.StoreUnavailable if method == "by_hash" else base.TransportError

        async def limited(*arguments: P.args, **keywords: P.kwargs) -> T:
            with anyio.move_on_after(HANGS_S):
                return await function(*arguments, **keywords)
            raise hung(f"{self._owner.note}: {method} did not return in {HANGS_S:g} s")

        return limited
