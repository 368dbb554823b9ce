"""Log and wire messages of one life, as columns.

Ids, sources and outcomes are numbers of an `Ids`.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from .wire import Array, Whole

NOT_GIVEN: Final = -(2**63)


class Log(NamedTuple):
    """Messages that entered the log."""

    line: Whole
    at_ms: Whole
    message_id: Whole
    sender: Whole
    lamport_timestamp: Whole
    position: Whole
    evicted: Whole
    first_segment: Whole
    """Number of the first segment (-1 for messages of others)."""
    content_sha256: Array
    message_hash: Array
    """Message hashes as rows of 32 bytes (zeros for own messages)."""


class Wire(NamedTuple):
    """Received and sent messages. `Messages` has their contents."""

    line: Whole
    at_ms: Whole
    is_in: Array
    source: Whole
    outcome: Whole
    """Outcomes (-1 for sent messages)."""
    timestamp_ns: Whole
    message_hash: Array
