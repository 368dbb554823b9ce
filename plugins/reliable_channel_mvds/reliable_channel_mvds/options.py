"""Options of an MVDS node, for its modes, its timing, and the limits of its memory."""

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import Annotated, Final

from reliable_channel.sds.declared import SHARE, Bound, Doc, Unit, check

Random = Callable[[], float]
"""Function that returns floats in [0, 1)."""

MIN_PAYLOAD_BYTES: Final = 1_024
"""Minimum size of a payload, which holds a few ids and a short message."""


class Mode(Enum):
    """Way in which messages reach a peer."""

    BATCH = "batch"
    """Mode in which a message is sent at once, and again until it is acknowledged. The batch mode
    needs fewer round trips."""
    INTERACTIVE = "interactive"
    """Mode in which a message is offered first, and sent when the peer requests it. The interactive
    mode needs fewer bytes if the peer may already have the message."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of a node's memory. The text of each limit says what happens at the limit.

    Raises:
        ValueError: a value is not allowed. The text names it and the allowed values.
    """

    payload_bytes: Annotated[
        int,
        Bound(MIN_PAYLOAD_BYTES),
        Doc(
            "Maximum size of a payload that is sent. The rest of a longer payload is sent in "
            "the next epoch. Waku messages may have 150 KiB."
        ),
    ] = 100_000
    received_payload_bytes: Annotated[
        int,
        Bound(1),
        Doc("Maximum size of a received payload, beyond which the payload is refused undecoded."),
    ] = 4 * 1024 * 1024
    messages: Annotated[
        int,
        Bound(1),
        Unit("messages"),
        Doc("""Maximum number of messages that are held whole, to be sent to peers. At the limit,
            messages for which no peer waits make room. If peers wait for all held messages, a new
            message is refused. Messages of others are forwarded only while peers wait for less than
            half of the maximum. Half of the limit is kept for the node's own messages."""),
    ] = 10_000
    message_bytes: Annotated[
        int,
        Bound(1),
        Doc("Maximum size of the held messages, in bytes of bodies and unknown fields."),
    ] = 64 * 1024 * 1024
    remembered_ids: Annotated[
        int,
        Bound(1),
        Doc("""Maximum number of ids of forgotten messages, which are kept to recognize duplicates.
            Beyond the maximum, the oldest id is forgotten. If the message with a forgotten id
            arrives again, it counts as new."""),
    ] = 100_000
    records_per_peer: Annotated[
        int,
        Bound(1),
        Unit("records"),
        Doc("""Maximum number of offers and messages that may wait for one peer. Beyond the maximum,
            the node's own messages are refused. Messages of others may use at most half of the
            maximum, and are not forwarded beyond this half."""),
    ] = 10_000
    requests_per_peer: Annotated[
        int,
        Bound(1),
        Unit("requests"),
        Doc("""Maximum number of messages that are requested from one peer at a time. Further offers
            are ignored until the peer repeats them."""),
    ] = 1_000
    acks_per_peer: Annotated[
        int,
        Bound(1),
        Unit("acknowledgements"),
        Doc("""Maximum number of acknowledgements that wait for the next payloads to a peer. Beyond
            the maximum, a message is acknowledged only when the peer repeats it."""),
    ] = 10_000
    memberships: Annotated[
        int,
        Bound(1),
        Unit("peers"),
        Doc(
            "Maximum number of memberships of peers in groups. "
            "Beyond the maximum, a further peer is refused."
        ),
    ] = 10_000

    def __post_init__(self) -> None:
        check(self)


@dataclass(frozen=True, slots=True)
class NodeOptions:
    """Options of an MVDS node.

    Raises:
        ValueError: a value is not allowed. The text names it and the allowed values.
    """

    mode: Mode = Mode.BATCH
    """Mode of own messages, unless the call of `append` names a mode."""
    relay: Mode | None = Mode.INTERACTIVE
    """Mode in which received messages are forwarded to the other peers of the group. If `relay` is
    None, received messages are not forwarded. The reference implementation always offers messages
    first, because most peers have them."""
    relay_delay: Annotated[
        int,
        Bound(0),
        Unit("epochs"),
        Doc("""Number of epochs before a message is forwarded, so that the node learns which peers
            have it. The reference implementation forwards messages without a delay."""),
    ] = 0
    epoch_ms: Annotated[
        int,
        Bound(1),
        Doc("""Length of an epoch, in which each peer is sent at most one payload. The default
            length of an epoch is that of status-go."""),
    ] = 300
    first_interval: Annotated[
        int,
        Bound(1),
        Unit("epochs"),
        Doc("""Number of epochs until a record is sent again for the first time. The first interval
            should be longer than a round trip over Waku."""),
    ] = 10
    longest_interval: Annotated[
        int,
        Bound(1),
        Unit("epochs"),
        Doc(
            "Maximum interval, to which intervals double before they start again with the "
            "first interval."
        ),
    ] = 640
    jitter: Annotated[
        float,
        SHARE,
        Doc("""Maximum share of an interval that is added to it at random. Without jitter, messages
            that were lost together would always be repeated together."""),
    ] = 0.25
    max_send_count: Annotated[
        int | None,
        Bound(1),
        Unit("times"),
        Doc("""Maximum number of times that a record is sent before it is given up, with an event.
            If the maximum is None, no record is given up. The status fork gives up a record after
            14 times."""),
    ] = None
    limits: Limits = field(default_factory=Limits)

    def __post_init__(self) -> None:
        check(self)
        if self.first_interval > self.longest_interval:
            raise ValueError(
                f"`first_interval` must be at most `longest_interval`, {self.longest_interval} "
                f"(got {self.first_interval})"
            )

    def interval(self, send_count: int, random: Random) -> int:
        """Return the number of epochs to wait after a record was sent for the `send_count`-th time.

        The specification says that the interval SHOULD grow exponentially up to a bound and then go
        back.
        """
        doublings = (self.longest_interval // self.first_interval).bit_length()
        interval = self.first_interval << (send_count - 1) % doublings
        return interval + int(interval * self.jitter * random())

    @property
    def longest_wait(self) -> int:
        """Maximum number of epochs for which a record waits."""
        return self.longest_interval + int(self.longest_interval * self.jitter) + 1
