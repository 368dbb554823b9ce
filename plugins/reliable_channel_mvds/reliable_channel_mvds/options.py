"""The way in which a node sends, its pace, and the limits of its memory."""

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import Annotated, Final

from reliable_channel.sds.declared import SHARE, Bound, Doc, Unit, check

Random = Callable[[], float]
"""Returns floats in [0, 1)."""

MIN_PAYLOAD_BYTES: Final = 1_024
"""The room for a few ids and a short message."""


class Mode(Enum):
    """The ways in which messages reach a peer."""

    BATCH = "batch"
    """Send the message at once, and again until it is acknowledged. This mode needs fewer round
    trips."""
    INTERACTIVE = "interactive"
    """Send an offer first, and the message when it is requested. This mode needs fewer bytes where
    the peer may have the message."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of memory. Each one says what happens when it is reached.

    Raises:
        ValueError: a value is not allowed. The text names it and the allowed values.
    """

    payload_bytes: Annotated[
        int,
        Bound(MIN_PAYLOAD_BYTES),
        Doc("A longer payload is not sent. Its rest is sent an epoch later. Waku carries 150 KiB."),
    ] = 100_000
    received_payload_bytes: Annotated[
        int, Bound(1), Doc("A longer payload is refused undecoded.")
    ] = 4 * 1024 * 1024
    messages: Annotated[
        int,
        Bound(1),
        Unit("messages"),
        Doc("""The messages that are held whole, to be sent to others. Messages that no peer waits
        for make room. Where peers wait for all of them, a new message is refused. Messages of
        others are passed on only while peers wait for less than half of this limit and of
        `message_bytes`. So there is room for own messages."""),
    ] = 10_000
    message_bytes: Annotated[
        int, Bound(1), Doc("The same limit in bytes of bodies and unknown fields.")
    ] = 64 * 1024 * 1024
    remembered_ids: Annotated[
        int,
        Bound(1),
        Doc("""The ids of forgotten messages that are kept to recognize duplicates. The oldest makes
        room. If its message arrived again, it would count as new."""),
    ] = 100_000
    records_per_peer: Annotated[
        int,
        Bound(1),
        Unit("records"),
        Doc("""The offers and messages that may wait for one peer. Beyond it own messages are
        refused. Messages of others take up at most half of it, and are not passed on beyond
        that."""),
    ] = 10_000
    requests_per_peer: Annotated[
        int,
        Bound(1),
        Unit("requests"),
        Doc("""The messages that may be requested from one peer at a time. Further offers are
        ignored until the peer repeats them."""),
    ] = 1_000
    acks_per_peer: Annotated[
        int,
        Bound(1),
        Unit("acknowledgements"),
        Doc("""The acknowledgements that may wait for the next payloads to a peer. Beyond it none is
        given until the message or offer is repeated."""),
    ] = 10_000
    memberships: Annotated[
        int, Bound(1), Unit("peers"), Doc("The number of peers in groups. One more is refused.")
    ] = 10_000

    def __post_init__(self) -> None:
        check(self)


@dataclass(frozen=True, slots=True)
class NodeOptions:
    """The options of a node.

    Raises:
        ValueError: a value is not allowed. The text names it and the allowed values.
    """

    mode: Mode = Mode.BATCH
    """The mode of own messages that do not name one."""
    relay: Mode | None = Mode.INTERACTIVE
    """The way in which received messages are sent to the other peers of the group. None means not
    at all. The reference offers them in either mode, because most peers will have them."""
    relay_delay: Annotated[
        int,
        Bound(0),
        Unit("epochs"),
        Doc("""The epochs that pass before messages are passed on, so that the node can learn which
        peers have them. The reference waits for none."""),
    ] = 0
    epoch_ms: Annotated[
        int,
        Bound(1),
        Doc("""The length of an epoch, in which a peer is sent at most one payload.
        The default is that of status-go."""),
    ] = 300
    first_interval: Annotated[
        int,
        Bound(1),
        Unit("epochs"),
        Doc("""The epochs until a record is sent again for the first time. Use more than a round
        trip over Waku takes."""),
    ] = 10
    longest_interval: Annotated[
        int,
        Bound(1),
        Unit("epochs"),
        Doc("The interval doubles up to this bound, and then starts again with the first."),
    ] = 640
    jitter: Annotated[
        float,
        SHARE,
        Doc("""The greatest part of an interval that is added to it at random. So messages that were
        lost together are not repeated together for ever."""),
    ] = 0.25
    max_send_count: Annotated[
        int | None,
        Bound(1),
        Unit("times"),
        Doc("""The number of times after which a record is given up, with an event. None means
        never. The status fork has 14."""),
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

        Retransmission: SHOULD be exponentially increased until reaching an upper bound where it
        then goes back.
        """
        doublings = (self.longest_interval // self.first_interval).bit_length()
        interval = self.first_interval << (send_count - 1) % doublings
        return interval + int(interval * self.jitter * random())

    @property
    def longest_wait(self) -> int:
        """No record waits for more epochs than this."""
        return self.longest_interval + int(self.longest_interval * self.jitter) + 1
