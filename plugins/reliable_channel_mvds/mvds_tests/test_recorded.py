"""Every shape that was recorded from the reference, and every truncation of it, at a node: what is
wrong is named, what is whole counts, and nothing else changes."""

import json
from pathlib import Path
from random import Random
from typing import Any

import pytest

from mvds_tests.world import GROUP, START_MS
from reliable_channel_mvds import (
    PROFILES,
    SEED,
    CodecError,
    ElementsRejected,
    LimitReached,
    Message,
    MessageReceived,
    MvdsNode,
    Payload,
    PayloadRejected,
    PeerId,
)

A, B = PeerId(b"a"), PeerId(b"b")
VECTORS: dict[str, Any] = json.loads(
    (Path(__file__).parents[3] / "tests/vectors/data/mvds/mvds.json").read_text("utf-8")
)
CASES = [
    pytest.param(bytes.fromhex(case["wire"]), id=case["name"])
    for case in VECTORS["decode"] + VECTORS["payloads"]
]


def _decoded(data: bytes) -> Payload | None:
    try:
        return SEED.decode(data)
    except CodecError as error:
        assert str(error)
        return None


@pytest.mark.parametrize("wire", CASES)
def test_a_node_names_what_is_wrong_and_goes_on(wire: bytes) -> None:
    # The longest are cut here and there: each cut costs a node.
    cuts = range(0, len(wire) + 1, 1 + len(wire) // 400)
    for end in {*cuts, len(wire)}:
        node = MvdsNode(A, now_ms=START_MS, random=Random(7).random)
        node.add_peer(GROUP, B)
        node.receive(B, wire[:end], START_MS)
        events = list(node.events())
        payload = _decoded(wire[:end])
        if payload is None:
            [refused] = events
            assert isinstance(refused, PayloadRejected)
            assert refused.peer_id == B and f"{end} bytes are not an MVDS payload" in refused.detail
            assert node.next_deadline_ms() is None
        else:
            kinds = (MessageReceived, ElementsRejected, LimitReached)
            assert all(isinstance(event, kinds) for event in events)
            found = sum(map(len, (payload.acks, payload.offers, payload.requests)))
            assert len(events) <= found + 2 * len(payload.messages)
        after = Message(GROUP, START_MS // 1000, b"after")
        node.receive(B, SEED.encode(Payload(messages=(after,))), START_MS)
        assert MessageReceived(after.id, GROUP, after.timestamp, b"after", B) in node.events()


@pytest.mark.parametrize("wire", CASES)
def test_a_truncation_means_less_and_nothing_else(wire: bytes) -> None:
    whole = _decoded(wire)
    for end in range(len(wire)):
        for profile in PROFILES.values():
            try:
                profile.decode(wire[:end])
            except CodecError as error:
                assert str(error)
        part = _decoded(wire[:end])
        if part is None or whole is None:
            continue
        for field in ("acks", "offers", "requests", "messages"):
            few, all_of_them = getattr(part, field), getattr(whole, field)
            assert few == all_of_them[: len(few)], (field, end)
