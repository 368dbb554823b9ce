"""How a node sends, how often, and where its memory ends."""

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from reliable_channel.sds.declared import check, number, share

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

    payload_bytes: int = number(100_000, "bytes", MIN_PAYLOAD_BYTES)
    """A longer payload is not sent: what is left goes an epoch later. Waku carries 150 KiB."""
    received_payload_bytes: int = number(4 * 1024 * 1024, "bytes", 1)
    """A longer payload is refused undecoded."""
    messages: int = number(10_000, "messages", 1)
    """Messages held whole, to be given away. Those that no peer waits for make room; where all are
    waited for, a new one is refused. Messages are passed on for as long as less than half of this,
    and of `message_bytes`, is waited for, so that others do not use up what own ones need."""
    message_bytes: int = number(64 * 1024 * 1024, "bytes", 1)
    """The same, in bytes of their bodies and unknown fields."""
    remembered_ids: int = number(100_000, "ids", 1)
    """Ids that are still known for duplicates when their message was forgotten; the oldest makes
    room, and would be a new message if it came again."""
    records_per_peer: int = number(10_000, "records", 1)
    """Offers and messages that wait for one peer; beyond, own ones are refused. Those of
    others, which are not passed on then, take up at most half of it."""
    requests_per_peer: int = number(1_000, "requests", 1)
    """Messages that are asked of one peer; further offers are left until it repeats them."""
    acks_per_peer: int = number(10_000, "acknowledgements", 1)
    """Acknowledgements that wait for the next payloads to a peer; beyond, none is given until the
    message or offer is repeated."""
    memberships: int = number(10_000, "peers", 1)
    """Peers in groups; one more is refused."""

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
    relay_delay: int = number(0, "epochs", 0)
    """Epochs that pass before that, time to learn which peers have the message. The reference has
    none."""
    epoch_ms: int = number(300, "ms", 1)
    """A peer is sent at most one payload in an epoch. As in status-go."""
    first_interval: int = number(10, "epochs", 1)
    """Epochs until a record is sent again the first time: longer than a round trip over Waku."""
    longest_interval: int = number(640, "epochs", 1)
    """The interval doubles up to this bound, and then goes back to the first."""
    jitter: float = share(0.25)
    """The greatest part of an interval that is added to it by chance, so that what was lost
    together is not repeated together for ever."""
    max_send_count: int | None = number(None, "times", 1)
    """After so many times a record is given up, with an event; None: never. The status fork has
    14."""
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
