"""The options of a node, from those of its channel."""

from typing import TYPE_CHECKING, Final

from ..options import MIN_PAYLOAD_BYTES, Limits, NodeOptions
from .wire import ENVELOPE_ROOM_BYTES

if TYPE_CHECKING:
    from reliable_channel.spi import SdsOptions

EPOCH_MS: Final = 300
INTERVAL_GROWTH: Final = 64
"""The longest interval, as a multiple of the first one: 30 s grow to 32 minutes."""
MAX_PEERS: Final = 64
"""`limits.participants` is used if it is less. Every participant repeats everything to all peers
that do not acknowledge it. So this protocol is for small groups, and strangers must not cost
more."""
FRESH_MS: Final = 60_000
"""An "I am here" from Store that is older than this is not answered."""


def node_options(options: "SdsOptions") -> NodeOptions:
    """Return the options of the node inside a channel.

    Raises:
        ValueError: `max_message_bytes` leaves no room for a payload.
    """
    payload_bytes = options.max_message_bytes - ENVELOPE_ROOM_BYTES
    if payload_bytes < MIN_PAYLOAD_BYTES:
        raise ValueError(
            f"max_message_bytes is {options.max_message_bytes}; with sync='mvds' it is at least "
            f"{MIN_PAYLOAD_BYTES + ENVELOPE_ROOM_BYTES}"
        )
    first_interval = max(1, -(-options.retry_interval_ms // EPOCH_MS))
    held = max(Limits().messages, 2 * options.limits.outgoing_messages)
    return NodeOptions(
        epoch_ms=EPOCH_MS,
        relay_delay=first_interval,
        first_interval=first_interval,
        longest_interval=first_interval * INTERVAL_GROWTH,
        max_send_count=1 + options.max_retry_attempts,
        limits=Limits(payload_bytes=payload_bytes, messages=held, records_per_peer=held),
    )
