"""Options of an MVDS node, derived from the options of its channel."""

from typing import TYPE_CHECKING, Final

from ..options import MIN_PAYLOAD_BYTES, Limits, NodeOptions
from .wire import ENVELOPE_ROOM_BYTES

if TYPE_CHECKING:
    from reliable_channel.spi import SdsOptions

EPOCH_MS: Final = 300
INTERVAL_GROWTH: Final = 64
"""Ratio of the longest to the first interval of repetitions, which grow from 30 s to 32 minutes."""
MAX_PEERS: Final = 64
"""Maximum number of peers, unless `limits.participants` is less. Every participant repeats every
message to all peers that do not acknowledge the message. MVDS is therefore for small groups, and
unknown participants must not add much traffic."""
FRESH_MS: Final = 60_000
"""Maximum age of an "I am here" message from Store that is answered."""


def node_options(options: "SdsOptions") -> NodeOptions:
    """Return the options of the node inside a channel.

    Raises:
        ValueError: `max_message_bytes` leaves no room for a payload.
    """
    payload_bytes = options.max_message_bytes - ENVELOPE_ROOM_BYTES
    if payload_bytes < MIN_PAYLOAD_BYTES:
        raise ValueError(
            f"`max_message_bytes` is {options.max_message_bytes}; sync='mvds' needs at least "
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
