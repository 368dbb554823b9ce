"""Lower bound for a comparison's curves, which an SDS channel would reach if it knew losses in
advance.

Losses are independent, and the delay of a copy follows `Conditions`. For the lowest latency, all
copies that are needed are sent at once. For the fewest bytes, copies are sent in turn until all
have the message, plus an acknowledgement. A real channel knows no losses in advance, and cannot
reach both bounds together. A protocol without references, such as MVDS between two participants,
can need fewer bytes.
"""

from dataclasses import dataclass
from math import ceil, log
from typing import Final

from reliable_channel.sds import HistoryEntry, Message
from reliable_channel.sds.dialects import SpecCodec

from .comparison import COMMUNITY, Cell, channel_size
from .scenario import PUBLISH_MS, Conditions
from .trial import Terms
from .world import CHANNEL

SHARE: Final = 0.95
_NEGLIGIBLE: Final = 1e-9


@dataclass(frozen=True, slots=True)
class Floor:
    """Lower bounds for the cost of a message."""

    latency_p95_ms: float
    bytes_per_message: float
    """Minimum number of bytes for a message with two references and one acknowledgement."""


def floor_of(cell: Cell) -> Floor:
    """Return the lower bounds for a cell's group and network. For a community, the bounds are means
    over its messages."""
    others = [cell.participants - 1] * len(COMMUNITY)
    if cell.scenario == "community":
        others = [channel_size(cell.participants, number) - 1 for number in range(len(COMMUNITY))]
    content_bytes, sync_bytes = len(_message(references=2)), len(_message(references=1, sync=True))
    copies = sum(
        messages * expected_copies(count, cell.loss)
        for messages, count in zip(COMMUNITY, others, strict=True)
    ) / sum(COMMUNITY)
    return Floor(
        latency_ms(cell.loss), copies * content_bytes + sync_bytes / max(1 - cell.loss, 0.01)
    )


def latency_ms(loss: float, share: float = SHARE) -> float:
    """Return the time at which a given share of the participants has a message. All needed copies
    are sent at once, and the first copy that arrives counts."""
    latency = Conditions().latency
    copies = max(1, ceil(log(1 - share) / log(loss))) if loss > 0 else 1
    # Each copy comes within a part u of the latest time with probability (1 - loss) * u.
    part = (1 - float((1 - share) ** (1 / copies))) / (1 - loss)
    return PUBLISH_MS + latency.min_ms + part * (latency.max_ms - latency.min_ms)


def expected_copies(others: int, loss: float) -> float:
    """Return the mean number of times that a message is sent until all others have it."""
    copies, still_missing = 0.0, 1.0
    lost = 1.0
    while still_missing > _NEGLIGIBLE:
        copies += still_missing
        lost *= loss
        still_missing = 1 - (1 - lost) ** others
    return copies


def _message(*, references: int, sync: bool = False) -> bytes:
    """As small as causal order and retrieval from Store allow."""
    message_id = "0" * 64
    history = [HistoryEntry(message_id, bytes(32), "p0")] * references
    content = None if sync else bytes(Terms().payload_bytes)
    return SpecCodec().encode(
        Message("p0", message_id, CHANNEL, 1_700_000_000_000, history, content=content)
    )
