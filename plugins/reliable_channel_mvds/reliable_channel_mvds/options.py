"""How a node sends, how often, and where its memory ends."""

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from enum import Enum
from typing import Final

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
        ValueError: a limit below 1, or a payload too small for anything.
    """

    payload_bytes: int = 100_000
    """A longer payload is not sent: what is left goes an epoch later. Waku carries 150 KiB."""
    received_payload_bytes: int = 4 * 1024 * 1024
    """A longer payload is refused undecoded."""
    messages: int = 10_000
    """Messages held whole, to be given away. Those that no peer waits for make room; where all are
    waited for, a new one is refused. Messages are passed on for as long as less than half of this,
    and of `message_bytes`, is waited for, so that others do not use up what own ones need."""
    message_bytes: int = 64 * 1024 * 1024
    """The same, in bytes of their bodies and unknown fields."""
    remembered_ids: int = 100_000
    """Ids that are still known for duplicates when their message was forgotten; the oldest makes
    room, and would be a new message if it came again."""
    records_per_peer: int = 10_000
    """Offers and messages that wait for one peer; beyond, own ones are refused. Those of
    others, which are not passed on then, take up at most half of it."""
    requests_per_peer: int = 1_000
    """Messages that are asked of one peer; further offers are left until it repeats them."""
    acks_per_peer: int = 10_000
    """Acknowledgements that wait for the next payloads to a peer; beyond, none is given until the
    message or offer is repeated."""
    memberships: int = 10_000
    """Peers in groups; one more is refused."""

    def __post_init__(self) -> None:
        for limit in fields(self):
            if getattr(self, limit.name) < 1:
                raise ValueError(f"{limit.name} is {getattr(self, limit.name)}; it is at least 1")
        if self.payload_bytes < MIN_PAYLOAD_BYTES:
            raise ValueError(
                f"payload_bytes is {self.payload_bytes}; it is at least {MIN_PAYLOAD_BYTES}"
            )


@dataclass(frozen=True, slots=True)
class NodeOptions:
    """The options of a node.

    Raises:
        ValueError: a value outside what its field allows.
    """

    mode: Mode = Mode.BATCH
    """For own messages that do not say otherwise."""
    relay: Mode | None = Mode.INTERACTIVE
    """How received messages are given to the other peers of the group; None: not at all. The
    reference offers them in either mode, for most peers will have them."""
    relay_delay: int = 0
    """Epochs that pass before that, time to learn which peers have the message. The reference has
    none."""
    epoch_ms: int = 300
    """A peer is sent at most one payload in an epoch. As in status-go."""
    first_interval: int = 10
    """Epochs until a record is sent again the first time: longer than a round trip over Waku."""
    longest_interval: int = 640
    """The interval doubles up to this bound, and then goes back to the first."""
    jitter: float = 0.25
    """The greatest part of an interval that is added to it by chance, so that what was lost
    together is not repeated together for ever."""
    max_send_count: int | None = None
    """After so many times a record is given up, with an event; None: never. The status fork has
    14."""
    limits: Limits = field(default_factory=Limits)

    def __post_init__(self) -> None:
        if self.epoch_ms < 1:
            raise ValueError(f"epoch_ms is {self.epoch_ms}; it is at least 1")
        if self.relay_delay < 0:
            raise ValueError(f"relay_delay is {self.relay_delay}; it is at least 0")
        if not 1 <= self.first_interval <= self.longest_interval:
            raise ValueError(
                f"first_interval is {self.first_interval}; it is 1 to longest_interval, "
                f"{self.longest_interval}"
            )
        if not 0 <= self.jitter <= 1:
            raise ValueError(f"jitter is {self.jitter}; it is 0 to 1")
        if self.max_send_count is not None and self.max_send_count < 1:
            raise ValueError(f"max_send_count is {self.max_send_count}; it is at least 1 or None")

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
