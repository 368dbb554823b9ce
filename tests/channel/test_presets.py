"""Each preset with what an application combines it with: payloads of all sizes, and restarts."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final, get_args

import pytest

from reliable_channel import ReliableChannel
from reliable_channel.options import PresetName
from reliable_channel.transport import MemoryNetwork

from .world import CHANNEL_ID, listening, now_ns

pytestmark = pytest.mark.anyio

SIZES: Final = (10, 2_000, 3_000, 3_000, 20_000, 2_100, 60_000, 10)
"""Bytes of each payload: what is kept and cut differs from some 2 kB on."""
COMBINED: Final[dict[str, dict[str, Any]]] = {
    "alone": {},
    "segments": {"segmentation": "lip-243-v0.1", "segment_size_bytes": 1_000},
    "nim segments": {"segmentation": "nim-segmentation", "segment_size_bytes": 4_000},
    "bounded": {"repair": {"cache_bytes": 10_000}, "limits": {"log_entries": 8}},
    "nim": {"wire_profile": "nim"},
}


@pytest.mark.parametrize("anyio_backend", ["asyncio"], indirect=True)
@pytest.mark.parametrize("combined", COMBINED)
@pytest.mark.parametrize("preset", get_args(PresetName))
async def test_payloads_of_all_sizes_arrive_before_and_after_restarts(
    preset: PresetName, combined: str, tmp_path: Path
) -> None:
    network, payloads = MemoryNetwork(), []

    def channel(name: str) -> ReliableChannel:
        return ReliableChannel(
            transport=network.transport(),
            channel_id=CHANNEL_ID,
            sender_id=name,
            state=f"sqlite:///{tmp_path / name}.db",
            preset=preset,
            now_ns=now_ns,
            **COMBINED[combined],
        )

    async with listening(channel("bob")) as bob:
        for life in range(2):
            async with channel("alice") as alice:
                for number, size in enumerate(SIZES):
                    payload = f"{life} {number} ".encode().ljust(size, b".")
                    await alice.send(payload)
                    payloads.append(payload)
                await bob.until(lambda: len(bob.contents) == len(payloads))
        assert bob.contents == payloads
