"""Transport interface: broadcast without promises, and a store of broadcast messages.

A transport may lose, repeat, delay and reorder messages. The channel above it makes up for that.
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
    """The transport could not execute a call. `retryable` is True if the same call may work
    later."""

    def __init__(self, message: str, *, retryable: bool = True) -> None:
        super().__init__(message)
        self.retryable = retryable


class StoreUnavailable(TransportError):
    """No Store can be queried at the moment. Sending and receiving may continue."""


class Source(Enum):
    """Path by which a message arrived."""

    LIVE = "live"
    STORE = "store"


@value
class Envelope:
    """Bytes ready to be broadcast, with the hash that they will have on the transport."""

    payload: bytes
    timestamp_ns: int
    ephemeral: bool
    message_hash: bytes
    """32-byte hash that others receive as the retrieval hint. `publish` may correct it."""
    meta: bytes = b""
    """Clear bytes besides the payload, at most 64. They are part of the hash."""
    urgent: bool = True
    """True if it goes before other messages that wait for the same node, as content does."""


@value
class Received:
    """Bytes that a participant has broadcast."""

    payload: bytes
    message_hash: bytes
    timestamp_ns: int
    """Time by the sender's clock."""
    source: Source
    meta: bytes = b""


@value
class Batch:
    """Messages that arrived since the last call."""

    messages: Sequence[Received]
    gap: str = ""
    """Reason why messages may be missing before these, such as an overflowed cache. Empty if
    nothing suggests it."""


@runtime_checkable
class Transport(Protocol):
    """Transport of one content topic in one network. Several tasks may send, one receives, and one
    queries Store. Derive it from `BaseTransport`, which has the methods that only some networks
    need.

    One task calls `open` and `aclose`, and closes last what it opened first. A transport may
    therefore keep a task group open in between.
    """

    @property
    def has_store(self) -> bool:
        """False if the network keeps no messages. Store is then never queried, and only other
        participants can repair."""
        ...

    async def open(self) -> None:
        """Connect to the network and subscribe.

        Raises:
            TransportError: not now (`retryable`), or never with these settings.
        """
        ...

    async def aclose(self) -> None:
        """Unsubscribe and release everything. A second call does nothing."""
        ...

    def envelope(
        self, payload: bytes, *, timestamp_ns: int, ephemeral: bool, meta: bytes = b""
    ) -> Envelope:
        """Wrap bytes for dispatch, without I/O."""
        ...

    async def publish(self, envelope: Envelope) -> Envelope | None:
        """Broadcast an envelope to all participants.

        Returns:
            None; or, where the network itself stamps messages, what was broadcast, with the hash
            and time that it has now.

        Raises:
            TransportError: it may not have been broadcast.
        """
        ...

    async def receive(self) -> Batch:
        """Wait for messages. An empty batch is a sign of life.

        After `aclose` it raises, or returns an empty batch. Messages of a Store have
        `source=Source.STORE` (in `by_hash` and `by_time`), and all others `Source.LIVE`.

        Raises:
            TransportError: the subscription is broken; `receive` again mends it where it can.
        """
        ...

    async def by_hash(self, hashes: Sequence[bytes]) -> list[Received]:
        """Fetch stored messages by their hashes. Missing messages are left out.

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
        """Subscribe again at the next opportunity, because the subscription seems dead."""
        ...

    async def handed_over(self) -> None:
        """Wait a second or two at most, while others fetch the last published messages from this
        transport."""
        ...

    def nodes(self) -> tuple[NodeHealth, ...]:
        """Return the state of each node."""
        ...

    async def nodes_changed(self) -> None:
        """Wait until a node's state changes."""
        ...


class BaseTransport:
    """Methods of a `Transport` that only some networks need, with the behaviour of the others."""

    @property
    def has_store(self) -> bool:
        """True, because the network keeps messages, even if its Store is away at the moment."""
        return True

    def renew(self) -> None:
        """Do nothing, because a subscription never seems dead."""

    async def handed_over(self) -> None:
        """Return at once, because a published message no longer needs this transport."""

    def nodes(self) -> tuple[NodeHealth, ...]:
        """Report no node, because the network has no nodes."""
        return ()

    async def nodes_changed(self) -> None:
        """Wait until cancelled, because there is no node."""
        await anyio.sleep_forever()
