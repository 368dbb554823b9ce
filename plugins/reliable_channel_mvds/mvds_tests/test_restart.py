"""A node that begins again with what was recorded goes on where it was."""

from dataclasses import replace
from pathlib import Path

import pytest

from mvds_tests.world import GROUP, START_MS, World
from reliable_channel.spi import Identity, Recorder, SqliteStateStore
from reliable_channel_mvds import (
    LimitReached,
    Limits,
    Message,
    Mode,
    MvdsNode,
    NodeOptions,
    Payload,
    PeerId,
    RecordType,
)
from reliable_channel_mvds.wire import SEED

A, B = PeerId(b"a"), PeerId(b"b")
OPTIONS = NodeOptions(epoch_ms=100, first_interval=8, longest_interval=64, jitter=0)


def _snapshot(node: MvdsNode) -> object:
    records = {(r.type, r.peer_id, r.message_id, r.send_count) for r in node.records()}
    statistics = node.statistics()
    return records, statistics.messages, statistics.message_bytes, node.peers(GROUP)


def _filled(recorder: Recorder, options: NodeOptions = OPTIONS) -> MvdsNode:
    node = MvdsNode(A, now_ms=START_MS, random=lambda: 0.5, options=options, recorder=recorder)
    node.add_peer(GROUP, B)
    node.append(GROUP, b"given", START_MS)
    node.append(GROUP, b"offered", START_MS, mode=Mode.INTERACTIVE)
    theirs = Payload(
        offers=(Message(GROUP, 0, b"asked for").id,),
        messages=(Message(GROUP, 1, b"held", unknown_fields=b"\xa2\xf7\x02\x01x"),),
    )
    node.receive(B, SEED.encode(theirs), START_MS)
    node.on_deadline(START_MS + 100)
    return node


def test_nothing_is_lost_in_a_state_file(tmp_path: Path) -> None:
    node = _filled(Recorder())
    store = SqliteStateStore(tmp_path / "state.sqlite")
    identity = Identity("channel", "a", "spec")
    store.open(identity)
    store.write(node.changes())
    store.close()
    again = MvdsNode(A, now_ms=START_MS, random=lambda: 0.5, options=OPTIONS)
    again.restore(store.open(identity).tables, START_MS + 100)
    store.close()
    assert _snapshot(again) == _snapshot(node)
    assert {record.type for record in again.records()} == set(RecordType)
    held = Message(GROUP, 1, b"held", unknown_fields=b"\xa2\xf7\x02\x01x")
    assert again.get(held.id) == held
    assert again.next_deadline_ms() == node.next_deadline_ms() == START_MS + 9 * 100


@pytest.mark.parametrize(
    ("jump_ms", "due_ms"),
    [(-3_600_000, 81 * 100), (3_600_000, 100)],
    ids=["the clock went back", "it was away for long"],
)
def test_records_are_due_within_the_longest_interval(jump_ms: int, due_ms: int) -> None:
    options = replace(OPTIONS, jitter=0.25)
    world = World("a", "b", options=options)
    world.append("a", b"hello")
    world.now_ms += jump_ms
    world.restart("a")
    deadline_ms = world.nodes["a"].next_deadline_ms() or 0
    assert 0 < deadline_ms - world.now_ms <= due_ms
    world.run()
    assert world.bodies("b") == [b"hello"]


def test_duplicates_are_told_after_a_restart() -> None:
    limits = Limits(messages=2, remembered_ids=2)
    world = World("a", "b", options=replace(OPTIONS, limits=limits))
    payloads = [
        SEED.encode(Payload(messages=(Message(GROUP, number, b"x"),))) for number in range(4)
    ]
    for data in payloads:
        world.receive("a", "b", data)
    for _ in range(2):
        world.restart("a")
        for data in payloads:
            world.receive("a", "b", data)
    assert world.bodies("a") == [b"x"] * 4
    assert sum(isinstance(event, LimitReached) for event in world.events["a"]) == 2
    # The oldest id is the first to be forgotten, after a restart too.
    world.receive("a", "b", SEED.encode(Payload(messages=(Message(GROUP, 9, b"y"),))))
    world.receive("a", "b", payloads[1])
    assert world.bodies("a") == [b"x"] * 4 + [b"y"]
    world.receive("a", "b", payloads[0])
    assert world.bodies("a") == [b"x"] * 4 + [b"y", b"x"]


def test_a_node_without_recorder_records_nothing() -> None:
    node = MvdsNode(A, now_ms=START_MS, random=lambda: 0.5)
    node.add_peer(GROUP, B)
    node.append(GROUP, b"hello", START_MS)
    assert not node.changes()
