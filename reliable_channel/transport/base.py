"""The transport contract: broadcast without promises, and a store of what was broadcast.

A transport may lose, repeat, delay and reorder; the channel above makes up for it.
"""

from collections.abc import AsyncGenerator, Sequence
from enum import Enum
from typing import Final, Protocol, runtime_checkable

import anyio

from ..diagnostics import NodeHealth as NodeHealth
from ..sds.errors import ReliableChannelError
from ..sds.fast_dataclass import value

HASH_BYTES: Final = 32


class TransportError(ReliableChannelError):
    """The transport could not do what it was asked; `retryable` says whether the same may work
    later."""

    def __init__(self, message: str, *, retryable: bool = True) -> None:
        super().__init__(message)
        self.retryable = retryable


class StoreUnavailable(TransportError):
    """Nothing that keeps messages can be asked at the moment; sending and receiving may go on."""


class Source(Enum):
    """How a message came."""

    LIVE = "live"
    STORE = "store"


@value
class Envelope:
    """Bytes ready to be broadcast, with the hash under which the transport will know them."""

    payload: bytes
    timestamp_ns: int
    ephemeral: bool
    message_hash: bytes
    """32 bytes: the retrieval hint that others are given. `publish` may correct it."""
    meta: bytes = b""
    """Beside the payload, at most 64 bytes; part of the hash."""
    urgent: bool = True
    """True if it goes before others that wait for the same node, as content does."""


@value
class Received:
    """Bytes that a participant has broadcast."""

    payload: bytes
    message_hash: bytes
    timestamp_ns: int
    """The sender's clock."""
    source: Source
    meta: bytes = b""


@value
class Batch:
    """What arrived since the last look."""

    messages: Sequence[Received]
    gap: str = ""
    """Why messages may be missing before these, such as an overflowed cache; empty where nothing
    hints at it."""


@runtime_checkable
class Transport(Protocol):
    """One content topic of one network. Used by several tasks for sending and by one for each of
    receiving and asking Store. Derive it from `BaseTransport`, which has the methods that only some
    networks need.

    `open` and `aclose` are called by one task, which closes last what it opened first: a transport
    may hold a task group in between.
    """

    @property
    def has_store(self) -> bool:
        """False if the network keeps no messages: then Store is never asked, and what is missing is
        asked of other participants alone."""
        ...

    async def open(self) -> None:
        """Connect and subscribe.

        Raises:
            TransportError: not now (`retryable`), or never with these settings.
        """
        ...

    async def aclose(self) -> None:
        """Unsubscribe and release everything; closing twice does nothing."""
        ...

    def envelope(
        self, payload: bytes, *, timestamp_ns: int, ephemeral: bool, meta: bytes = b""
    ) -> Envelope:
        """Wrap bytes for dispatch. Does no I/O."""
        ...

    async def publish(self, envelope: Envelope) -> Envelope | None:
        """Broadcast.

        Returns:
            None; or, where the network itself stamps messages, what was broadcast, with the hash
            and time that it has now.

        Raises:
            TransportError: it may not have been broadcast.
        """
        ...

    async def receive(self) -> Batch:
        """Wait for what arrives; an empty batch is a sign of life.

        After `aclose` it raises, or returns an empty batch. Messages that a Store returned have
        `source=Source.STORE`, in `by_hash` and `by_time`, and all others `Source.LIVE`.

        Raises:
            TransportError: the subscription is broken; `receive` again mends it where it can.
        """
        ...

    async def by_hash(self, hashes: Sequence[bytes]) -> list[Received]:
        """Fetch stored messages by their hashes; what is not stored is left out.

        Raises:
            StoreUnavailable: no store answers.
        """
        ...

    def by_time(self, start_ns: int, end_ns: int) -> AsyncGenerator[list[Received], None]:
        """Fetch stored messages of the content topic by time, both ends included, oldest first, in
        pages.

        Raises:
            StoreUnavailable: no store answers.
        """
        ...

    def renew(self) -> None:
        """Subscribe again at the next look: the subscription seems dead."""
        ...

    async def handed_over(self) -> None:
        """Wait, a second or two at most, for others to fetch what was published last, if they fetch
        it from this transport."""
        ...

    def nodes(self) -> tuple[NodeHealth, ...]:
        """How each node does."""
        ...

    async def nodes_changed(self) -> None:
        """Wait until a node's state changes."""
        ...


class BaseTransport:
    """The methods of a `Transport` that only some networks need, with what holds for the others."""

    @property
    def has_store(self) -> bool:
        """True: the network keeps messages, be its Store away at the moment."""
        return True

    def renew(self) -> None:
        """Do nothing: a subscription never seems dead."""

    async def handed_over(self) -> None:
        """Return at once: a published message needs this transport no longer."""

    def nodes(self) -> tuple[NodeHealth, ...]:
        """Report no node."""
        return ()

    async def nodes_changed(self) -> None:
        """Wait for ever, as there is no node."""
        await anyio.sleep_forever()
