"""The log and the wire of one life, as columns.

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
    """-1 of messages of others."""
    content_sha256: Array
    message_hash: Array
    """Rows of 32 bytes; zeros of own ones."""


class Wire(NamedTuple):
    """Messages that came or went; what stands in them is in `Messages`."""

    line: Whole
    at_ms: Whole
    is_in: Array
    source: Whole
    outcome: Whole
    """-1 of what went."""
    timestamp_ns: Whole
    message_hash: Array
