"""Transport interface, to broadcast messages without guarantees and to query a Store.

A transport may lose, repeat, delay and reorder messages. The channel that uses a transport repairs
these faults.
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
    """The transport could not execute a call. `retryable` is True if the same call may succeed
    later."""

    def __init__(self, message: str, *, retryable: bool = True) -> None:
        super().__init__(message)
        self.retryable = retryable


class StoreUnavailable(TransportError):
    """No Store can be queried now. Sending and receiving may continue."""


class Source(Enum):
    """Path by which a message arrived."""

    LIVE = "live"
    STORE = "store"


@value
class Envelope:
    """Bytes ready to be broadcast, with the hash that identifies them on the transport."""

    payload: bytes
    timestamp_ns: int
    ephemeral: bool
    message_hash: bytes
    """Hash (32 bytes) that other participants receive as the retrieval hint. If the transport
    changes the hash, `publish` returns the changed envelope."""
    meta: bytes = b""
    """Unencrypted bytes that are sent with the payload, at most 64. The message hash also covers
    these bytes."""
    urgent: bool = True
    """True if the message is sent before others that wait for the same node, as content is."""


@value
class Received:
    """Message that a participant has broadcast, as it arrived."""

    payload: bytes
    message_hash: bytes
    timestamp_ns: int
    """Time of sending by the sender's clock (ns)."""
    source: Source
    meta: bytes = b""


@value
class Batch:
    """Messages that arrived since the last call of `receive`."""

    messages: Sequence[Received]
    gap: str = ""
    """Reason why messages before this batch may be missing, such as an overflowed cache. The text
    is empty if no message seems to be missing."""


@runtime_checkable
class Transport(Protocol):
    """Transport of one content topic in one network. Several tasks may send, one task receives, and
    one task queries Store. Derive a transport from `BaseTransport`, which has the methods that only
    some networks need.

    One task calls `open` and `aclose`, and closes transports in the reverse order. A transport may
    therefore keep a task group open between the two calls.
    """

    @property
    def has_store(self) -> bool:
        """True if the network keeps messages in a Store. If False, the Store is never queried, and
        only other participants can repair."""
        ...

    async def open(self) -> None:
        """Connect to the network and subscribe.

        Raises:
            TransportError: not now (`retryable`), or never with these settings.
        """
        ...

    async def aclose(self) -> None:
        """Unsubscribe and release all resources. A second call of `aclose` does nothing."""
        ...

    def envelope(
        self, payload: bytes, *, timestamp_ns: int, ephemeral: bool, meta: bytes = b""
    ) -> Envelope:
        """Make an envelope for bytes, without I/O."""
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
        """Wait for messages of the content topic. An empty batch shows that the transport is
        working.

        After `aclose` the method raises an error, or returns an empty batch. Messages from
        `by_hash` and `by_time` have the source `Source.STORE`, all others `Source.LIVE`.

        Raises:
            TransportError: the subscription is broken; `receive` again mends it where it can.
        """
        ...

    async def by_hash(self, hashes: Sequence[bytes]) -> list[Received]:
        """Fetch stored messages by their hashes. Messages that the Store does not have are left
        out.

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
        """Subscribe again at the next opportunity, because the subscription seems to have ended."""
        ...

    async def handed_over(self) -> None:
        """Wait at most two seconds, while others fetch the last published messages from this
        transport."""
        ...

    def nodes(self) -> tuple[NodeHealth, ...]:
        """Return the state of each node."""
        ...

    async def nodes_changed(self) -> None:
        """Wait until the state of a node changes."""
        ...


class BaseTransport:
    """Default methods of a `Transport` that only some networks need to replace."""

    @property
    def has_store(self) -> bool:
        """True, because most networks keep messages, even if their Store is away now."""
        return True

    def renew(self) -> None:
        """Do nothing, because the subscription of this transport never ends silently."""

    async def handed_over(self) -> None:
        """Return at once, because a published message no longer needs this transport."""

    def nodes(self) -> tuple[NodeHealth, ...]:
        """Return no node, because the network has no nodes."""
        return ()

    async def nodes_changed(self) -> None:
        """Wait until cancelled, because the network has no nodes."""
        await anyio.sleep_forever()
