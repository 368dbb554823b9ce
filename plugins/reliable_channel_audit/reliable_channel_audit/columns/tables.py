"""Message log and wire messages in a participant's journal, as columns.

Columns of ids, sources and outcomes contain numbers from an `Ids`.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from .wire import Array, Whole

NOT_GIVEN: Final = -(2**63)


class Log(NamedTuple):
    """Messages that entered the participant's log, as columns."""

    line: Whole
    at_ms: Whole
    message_id: Whole
    sender: Whole
    lamport_timestamp: Whole
    position: Whole
    evicted: Whole
    first_segment: Whole
    """Number of the first segment's id (-1 for other participants' messages)."""
    content_sha256: Array
    message_hash: Array
    """Message hashes as rows of 32 bytes (zeros for the participant's own messages)."""


class Wire(NamedTuple):
    """Received and sent messages in a participant's journal, as columns. The contents of received
    and sent messages are in `Messages`."""

    line: Whole
    at_ms: Whole
    is_in: Array
    source: Whole
    outcome: Whole
    """Number of each message's outcome (-1 for sent messages)."""
    timestamp_ns: Whole
    message_hash: Array
