"""Judge of one core's buffers, each of which must keep its limit."""

from collections.abc import Callable
from typing import Final

from reliable_channel.sds import SdsProtocol

from .ledger import Fail

KEPT: Final = "buffers keep their limits"


class BufferLimits:
    """Buffers of a core, with their limits. `full` is called with the names of buffers that are
    full."""

    def __init__(self, core: SdsProtocol, full: Callable[[str], None], fail: Fail) -> None:
        self._core, self._full, self._fail = core, full, fail
        limits, repair = core.options.limits, core.options.repair
        incoming = core.incoming_buffer
        self._gauges = (
            ("the log", core.log, limits.log_entries),
            ("the outgoing buffer", core.outgoing_buffer, limits.outgoing_messages),
            ("the incoming buffer", incoming.parked, limits.incoming_messages),
            ("the table of missing messages", incoming.missing, limits.missing_entries),
            ("the table of lost messages", incoming.lost, limits.missing_entries),
            ("the table of participants", core.participants, limits.participants),
            ("the buffer of repair requests", core.repair_requests, repair.buffer_size),
            ("the buffer of repair responses", core.repair_responses, repair.buffer_size),
            ("the bloom filter", core.bloom_filter, core.options.bloom.capacity),
        )

    def check(self) -> None:
        """Check that no buffer has more entries than its limit."""
        for name, held, limit in self._gauges:
            if (count := len(held)) < limit:
                continue
            if count == limit:
                self._full(name)
            else:
                self._fail(KEPT, "", f"{name} holds {count} > {limit}")

    def check_sizes(self) -> None:
        """Check that no buffer has more bytes than its limit."""
        core, limits = self._core, self._core.options.limits
        cached, most = core.statistics().repair_cache_bytes, core.options.repair.cache_bytes
        if cached > most:
            self._fail(KEPT, "", f"repair cache {cached}")
        held = core.incoming_buffer.size_bytes
        sums = sum(parked.size_bytes for parked in core.incoming_buffer.parked.values())
        if not held == sums <= limits.incoming_bytes:
            self._fail(KEPT, "", f"incoming {held} bytes, {sums} in all")
