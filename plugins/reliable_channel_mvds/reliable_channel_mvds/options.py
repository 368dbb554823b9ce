"""How a node sends, how often, and where its memory ends."""

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import Annotated, Final

from reliable_channel.sds.declared import SHARE, Bound, Doc, Unit, check

Random = Callable[[], float]
"""Gives floats in [0, 1)."""

MIN_PAYLOAD_BYTES: Final = 1_024
"""Room for a few ids and a short message."""


class Mode(Enum):
    """How messages reach a peer."""

    BATCH = "batch"
    """The message at once, again and again until it is acknowledged: fewer round trips."""
    INTERACTIVE = "interactive"
    """An offer first, the message when it is requested: fewer bytes where the peer may have it."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Where memory ends; each limit says what happens there.

    Raises:
        ValueError: a value that is not allowed; the text names it and what is.
    """

    payload_bytes: Annotated[
        int,
        Bound(MIN_PAYLOAD_BYTES),
        Doc(
            "A longer payload is not sent: what is left goes an epoch later. Waku carries 150 KiB."
        ),
    ] = 100_000
    received_payload_bytes: Annotated[
        int, Bound(1), Doc("A longer payload is refused undecoded.")
    ] = 4 * 1024 * 1024
    messages: Annotated[
        int,
        Bound(1),
        Unit("messages"),
        Doc("""Messages held whole, to be given away. Those that no peer waits for make room;
        where all are waited for, a new one is refused. Messages are passed on for as long as
        less than half of this, and of `message_bytes`, is waited for, so that others do not
        use up what own ones need."""),
    ] = 10_000
    message_bytes: Annotated[
        int, Bound(1), Doc("The same, in bytes of their bodies and unknown fields.")
    ] = 64 * 1024 * 1024
    remembered_ids: Annotated[
        int,
        Bound(1),
        Doc("""Ids that are still known for duplicates when their message was forgotten; the
        oldest makes room, and would be a new message if it came again."""),
    ] = 100_000
    records_per_peer: Annotated[
        int,
        Bound(1),
        Unit("records"),
        Doc("""Offers and messages that wait for one peer; beyond, own ones are refused. Those
        of others, which are not passed on then, take up at most half of it."""),
    ] = 10_000
    requests_per_peer: Annotated[
        int,
        Bound(1),
        Unit("requests"),
        Doc("Messages that are asked of one peer; further offers are left until it repeats them."),
    ] = 1_000
    acks_per_peer: Annotated[
        int,
        Bound(1),
        Unit("acknowledgements"),
        Doc("""Acknowledgements that wait for the next payloads to a peer; beyond, none is
        given until the message or offer is repeated."""),
    ] = 10_000
    memberships: Annotated[
        int, Bound(1), Unit("peers"), Doc("Peers in groups; one more is refused.")
    ] = 10_000

    def __post_init__(self) -> None:
        check(self)


@dataclass(frozen=True, slots=True)
class NodeOptions:
    """The options of a node.

    Raises:
        ValueError: a value that is not allowed; the text names it and what is.
    """

    mode: Mode = Mode.BATCH
    """For own messages that do not say otherwise."""
    relay: Mode | None = Mode.INTERACTIVE
    """How received messages are given to the other peers of the group; None: not at all. The
    reference offers them in either mode, for most peers will have them."""
    relay_delay: Annotated[
        int,
        Bound(0),
        Unit("epochs"),
        Doc("""Epochs that pass before that, time to learn which peers have the message. The
        reference has none."""),
    ] = 0
    epoch_ms: Annotated[
        int, Bound(1), Doc("A peer is sent at most one payload in an epoch. As in status-go.")
    ] = 300
    first_interval: Annotated[
        int,
        Bound(1),
        Unit("epochs"),
        Doc("""Epochs until a record is sent again the first time: longer than a round trip
        over Waku."""),
    ] = 10
    longest_interval: Annotated[
        int,
        Bound(1),
        Unit("epochs"),
        Doc("The interval doubles up to this bound, and then goes back to the first."),
    ] = 640
    jitter: Annotated[
        float,
        SHARE,
        Doc("""The greatest part of an interval that is added to it by chance, so that what was
        lost together is not repeated together for ever."""),
    ] = 0.25
    max_send_count: Annotated[
        int | None,
        Bound(1),
        Unit("times"),
        Doc("""After so many times a record is given up, with an event; None: never. The status
        fork has 14."""),
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
        """How many epochs to wait after a record was sent for the `send_count`-th time.

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
