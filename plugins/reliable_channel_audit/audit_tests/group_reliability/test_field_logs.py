"""Lines of nodes in the forms in which the field has them."""

import gzip
import json
from pathlib import Path

import pytest

from reliable_channel_audit.facts import Delivery
from reliable_channel_audit.group_reliability.field_logs import (
    ENTERED,
    RECEIVED,
    STATUS,
    WAKU,
    FieldLogs,
    Sighting,
    seen_in,
)

from .samples import KnownRun, relay_lines, write_dump, write_files

HASH = "0x17cfd30767acac9b86c18333ba918abef93cc23f65b6c98c845c682584f92583"
AT_US = 1_763_643_976_019_361


# The lines are those of 10ksim's own tests and comments, character by character.
@pytest.mark.parametrize(
    ("text", "seen"),
    [
        (
            (
                f"received relay message my_peer_id=16U*GiNg1a msg_hash={HASH} "
                "from_peer_id=16U*wJXtuH receivedTime=1763643976019361536"
            ),
            Sighting("16U*GiNg1a", HASH, AT_US, RECEIVED, None, WAKU),
        ),
        (
            (
                '{"lvl":"DBG","ts":"2026-07-16 15:10:00.145+00:00","msg":"received relay message",'
                '"topics":"waku relay","tid":7,"file":"protocol.nim:221","my_peer_id":"16U*S6zwhq",'
                f'"msg_hash":"{HASH}","msg_id":"b9cfa467b62a...67128d31aecc",'
                '"from_peer_id":"16U*74x9yd","topic":"/waku/2/rs/0/0",'
                '"contentTopic":"/my-app/1/dst/proto","receivedTime":1763643976019361536,'
                '"payloadSizeBytes":1000.0}'
            ),
            Sighting("16U*S6zwhq", HASH, AT_US, RECEIVED, None, WAKU),
        ),
        (
            (
                "NTC 2025-11-20 13:50:35.376+00:00 handling lightpush request "
                'topics="waku lightpush legacy" tid=7 file=protocol.nim:48 peer_id=12D*YCde2H '
                "requestId=46e649c7-f0db-409c-afed-c34f17e2ff7b pubsubTopic=/waku/2/rs/2/0 "
                f"msg_hash={HASH} receivedTime=1763643976019361536"
            ),
            Sighting("", HASH, AT_US, ENTERED, None, WAKU),
        ),
        (
            (
                "NTC 2025-11-20 13:06:16.015+00:00 handling lightpush request "
                'topics="waku lightpush" tid=7 file=protocol.nim:79 my_peer_id=16U*GiNg1a '
                "peer_id=16U*wJXtuH requestId=db01d1a6519de2145f10 "
                f'pubsubTopic="some(\\"/waku/2/rs/2/0\\")" msg_hash={HASH} '
                "receivedTime=1763643976019361536"
            ),
            Sighting("16U*GiNg1a", HASH, AT_US, ENTERED, None, WAKU),
        ),
        (
            (
                f"publishWithConn my_peer_id=16U*a peer_id=16U*b msg_hash={HASH} "
                "sentTime=1763643976019361536"
            ),
            Sighting("16U*a", HASH, AT_US, ENTERED, None, WAKU),
        ),
        (
            (
                "2025-11-20 13:06:16,019 - INFO - Received valid message: {'type': 'messages.new', "
                "'event': {'chats': [{'name': \"it's\"}], 'messages': [{'id': '0xab', "
                "'from': '0x04', 'chatId': '0x02', 'timestamp': 1763643976000}]}}"
            ),
            Sighting("", "0xab", 1_763_643_976_019_000, RECEIVED, 1_763_643_976_000_000, STATUS),
        ),
    ],
)
def test_a_line_of_the_field(text: str, seen: Sighting) -> None:
    assert list(seen_in(text, {})) == [seen]


def test_a_line_whose_fields_the_collector_took_out() -> None:
    fields = {"msg_hash": HASH, "my_peer_id": "16U*a", "receivedTime": "1763643976019361536"}
    expected = Sighting("16U*a", HASH, AT_US, RECEIVED, None, WAKU)
    assert list(seen_in("received relay message", fields)) == [expected]


def test_other_lines_show_nothing() -> None:
    assert not list(seen_in("INF Node started peerId=16U*a", {}))
    assert not list(seen_in("Received message of type identify", {}))


def test_files_and_dumps_show_the_same(tmp_path: Path) -> None:
    run = KnownRun(nodes=4, messages=10)
    write_files(tmp_path / "files", run, relay_lines(run))
    write_dump(tmp_path / "dump.json", run, relay_lines(run, as_json=True))
    files = sorted((tmp_path / "files").iterdir())
    packed = tmp_path / "nodes-0-0.log.gz"
    packed.write_bytes(gzip.compress(files.pop(0).read_bytes()))
    logs = FieldLogs()
    by_file = [each for path in [packed, *files] for each in logs.sightings(path)]
    assert sorted(by_file) == sorted(logs.sightings(tmp_path / "dump.json"))
    assert not logs.unreadable
    assert {each.group for each in by_file} == {"0"}


@pytest.mark.parametrize(
    "pod", [{"kubernetes.pod_name": "nodes-3-0"}, {"kubernetes": {"pod_name": "nodes-3-0"}}]
)
def test_a_pod_is_named_flat_or_in_an_object(tmp_path: Path, pod: dict[str, object]) -> None:
    text = f"received relay message my_peer_id=16U*G msg_hash={HASH} receivedTime={AT_US}000"
    (tmp_path / "dump.json").write_text(json.dumps({"_msg": text, **pod}) + "\n")
    logs = FieldLogs()
    logs.read(tmp_path / "dump.json")
    assert logs.nodes == {("3", "nodes-3-0")}


def test_one_file_of_several_nodes_has_them_by_their_peer_ids(tmp_path: Path) -> None:
    run = KnownRun(nodes=3, messages=4)
    texts = [text for _, _, text in sorted(relay_lines(run))]
    (path := tmp_path / "all.log").write_text("\n".join(texts))
    nodes = {each.node for each in FieldLogs().sightings(path)}
    assert nodes == {run.peer(node) for node in range(3)}


def test_damaged_lines_are_counted_and_the_rest_is_read(tmp_path: Path) -> None:
    good = f"received relay message my_peer_id=a msg_hash={HASH} receivedTime=1763643976019361536"
    path = tmp_path / "a.log"
    torn = "received relay message my_peer_id=a msg_hash=0x17"
    signal = "x - INFO - Received valid message: {'event': {'messages': [1"
    dump = json.dumps({"_msg": 7})[:-1]
    path.write_bytes("\n".join([torn, good, signal, dump]).encode() + b"\n\xff\xfe\n" + b"[" * 900)
    logs = FieldLogs()
    assert [each.message for each in logs.sightings(path)] == [HASH]
    assert logs.unreadable == 2


def test_the_sender_of_a_message_had_not_received_it_before(tmp_path: Path) -> None:
    """Lines stand in any order, and a relay sends on what it received."""
    head, now_us = f"relay message my_peer_id={{}} msg_hash={HASH}", AT_US * 1000
    texts = [
        "sent " + head.format("b") + f" sentTime={now_us + 3_000_000}",
        "received " + head.format("b") + f" receivedTime={now_us + 2_000_000}",
        "received " + head.format("a") + f" receivedTime={now_us + 5_000_000}",
        "sent " + head.format("a") + f" sentTime={now_us}",
    ]
    for begin, sender in ((0, "a"), (1, "")):
        logs = FieldLogs()
        path = tmp_path / f"{begin}.txt"
        path.write_text("\n".join(texts[: 4 - begin]))
        logs.read(path)
        had = {each.participant_id: each for each in logs.facts() if isinstance(each, Delivery)}
        assert had.keys() == {"a", "b"}
        assert {each.sender_id for each in had.values()} == {sender}
        assert [name for name, each in had.items() if each.first_segment_id] == [sender][
            : not begin
        ]
        assert had["b"].at_ms == AT_US // 1000 + 2


def test_of_a_sender_without_a_log_the_time_is_known(tmp_path: Path) -> None:
    text = "INFO - Received valid message: {'event': {'messages': [{'id': '7', 'timestamp': 5}]}}"
    (path := tmp_path / "a.log").write_text(f"1970-01-01 00:00:09,000 - {text}")
    logs = FieldLogs()
    logs.read(path)
    had = [each for each in logs.facts() if isinstance(each, Delivery)]
    assert [(each.participant_id, each.at_ms) for each in had] == [("a", 9_000), ("", 5)]
