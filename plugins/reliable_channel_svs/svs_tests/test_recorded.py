"""Every shape that was recorded from ndnd, and every truncation of it, at a state machine and as
packets: what is wrong is named, and changes nothing."""

import json
from pathlib import Path
from typing import Any

import pytest

from reliable_channel_svs import (
    IgnoredReason,
    Name,
    StateVector,
    SvsOptions,
    SvsProtocol,
    TlvError,
    VectorIgnored,
)
from reliable_channel_svs.ndn.lp import unwrap, wrap
from reliable_channel_svs.packet import decode_data, decode_interest

VECTORS: dict[str, Any] = json.loads(
    (Path(__file__).parents[3] / "tests/vectors/data/svs/svs.json").read_text("utf-8")
)
FAR_AHEAD = SvsOptions(max_bootstrap_ahead_s=2**64)
VECTOR_CASES = [
    pytest.param(bytes.fromhex(case["wire"]), id=str(case["case"]))
    for case in VECTORS["decode"] + VECTORS["state_vectors"]
]
PACKETS = [
    pytest.param(bytes.fromhex(case[kind]), kind, id=f"{case['case']} {kind}")
    for case in VECTORS["packets"]
    for kind in ("data", "interest")
]


def _decoded(wire: bytes) -> StateVector | None:
    try:
        return StateVector.decode(wire)
    except TlvError as error:
        assert str(error)
        return None


@pytest.mark.parametrize("wire", VECTOR_CASES)
def test_a_state_machine_takes_a_whole_vector_and_names_any_other(wire: bytes) -> None:
    known = StateVector({Name.parse("/known"): {5: 7}})
    for end in range(len(wire) + 1):
        core = SvsProtocol(
            Name.parse("/me"), now_ms=0, random=lambda: 0.5, vector=known, options=FAR_AHEAD
        )
        core.receive(wire[:end], 10)
        ignored = [event for event in core.events() if isinstance(event, VectorIgnored)]
        incoming = _decoded(wire[:end])
        if incoming is None:
            [event] = ignored
            assert event.reason is IgnoredReason.MALFORMED and event.detail
            assert core.vector == known
        else:
            assert not ignored
            merged = known.copy()
            merged.merge(incoming)
            assert core.vector == merged


@pytest.mark.parametrize("wire", VECTOR_CASES)
def test_a_truncated_vector_is_none(wire: bytes) -> None:
    """But for what ends where the vector does, with something else behind it cut off."""
    whole = _decoded(wire)
    for end in range(len(wire)):
        part = _decoded(wire[:end])
        if part is not None and whole is not None:
            assert part == whole


@pytest.mark.parametrize(("wire", "kind"), PACKETS)
def test_a_truncated_packet_is_none(wire: bytes, kind: str) -> None:
    decode = decode_data if kind == "data" else decode_interest
    decode(wire)
    for end in range(len(wire)):
        with pytest.raises(TlvError, match=r"."):
            decode(wire[:end])
        with pytest.raises(TlvError, match=r"."):
            decode(unwrap(wrap(wire[:end], b"token")).packet)
