"""The golden vectors hold, and a vector that is wrong is noticed."""

import copy
import json
import re
import runpy
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from .kinds import CHECKS, run_file

DATA = Path(__file__).parent / "data"
FILES = sorted(
    file
    for file in DATA.rglob("*.json")
    if file.parent.name != "nwaku-rest"  # recorded requests: tests/waku/node replays them
)


@pytest.mark.conformance("SDS-BLOOM-5", "SDS-BLOOM-9")
@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_vectors(file: Path) -> None:
    results = list(run_file(file))
    assert results
    assert [result for result in results if result[1] is not None] == []


def _first(document: Any, wanted: Callable[[Any], bool]) -> Any:
    return next(case for case in document["cases"] if wanted(case))


def _flip_hex(text: str) -> str:
    return ("1" if text[0] == "0" else "0") + text[1:]


def _plant_bloom(d: Any) -> None:
    d["cases"][1]["lookups"][0]["result"] ^= True


def _plant_hashn(d: Any) -> None:
    d["cases"][0]["index"] += 1


def _plant_message_id(d: Any) -> None:
    d["cases"][0]["message_id"] = _flip_hex(d["cases"][0]["message_id"])


def _plant_repair(d: Any) -> None:
    d["cases"][0]["t_resp"] += 1


def _plant_decoded(d: Any) -> None:
    _first(d, lambda c: c["name"] == "content-one-dep")["decoded"]["lamport_timestamp"] = "7"


def _plant_fields(d: Any) -> None:
    _first(d, lambda c: c["name"] == "content-one-dep")["fields"]["channel_id"] = "other"


def _plant_step(change: Callable[[Any], None]) -> Callable[[Any], None]:
    def plant(d: Any) -> None:
        change(_first(d, lambda c: c["name"] == "pub-in-order")["steps"])

    return plant


def _lamport(steps: Any) -> None:
    steps[1]["state"]["lamport"] = "1"


def _history(steps: Any) -> None:
    steps[1]["state"]["history"] = []


def _outgoing(steps: Any) -> None:
    steps[1]["state"]["outgoing_buffer"] = []


def _sent(steps: Any) -> None:
    steps[1]["sent"] = []


def _delivered(steps: Any) -> None:
    for step in steps:
        step["events"] = [
            e for e in step.get("events", ()) if e["type"] != "sds:in:message-delivered"
        ]


PLANTED = [
    ("bloom", _plant_bloom),
    ("hashn", _plant_hashn),
    ("message_id", _plant_message_id),
    ("repair", _plant_repair),
    ("messages", _plant_decoded),
    ("messages", _plant_fields),
    ("scenarios", _plant_step(_lamport)),
    ("scenarios", _plant_step(_history)),
    ("scenarios", _plant_step(_outgoing)),
    ("scenarios", _plant_step(_sent)),
    ("scenarios", _plant_step(_delivered)),
]


def _set(path: str, value: object) -> Callable[[Any], None]:
    *steps, last = path.split(".")

    def plant(case: Any) -> None:
        for step in steps:
            case = case[int(step) if isinstance(case, list) else step]
        case[int(last) if isinstance(case, list) else last] = value

    return plant


PLANTED_NIM = [
    ("messages", 0, _set("hex", "0a026d311002220767656e6572616c2a0568656c6c6f3200")),
    ("messages", 2, _set("fields.causal_history.0.message_id", "other")),
    ("messages", 4, _set("fields.repair_request.1.sender_id", "other")),
    ("messages", 8, _set("hex", "0a036e656710ffffffffffffffff7f220767656e6572616c2a017a3200")),
    ("decode_cases", 0, _set("accepted", True)),
    ("decode_cases", 7, _set("fields.message_id", "a")),
    ("string_hashes", 3, _set("hash_u64_hex", "ccc3caacf8d810b4")),
    ("blooms", 1, _set("lookups.m4", True)),
    ("blooms", 1, _set("set_bits.0", 3)),
    ("blooms", 1, _set("hex", "0a10840240061000040c098402b900000000100a18904e20062864")),
    ("rolling_blooms", 0, _set("final_filter_hex", "0a10" + "00" * 16 + "100c18904e20072878")),
    ("repair_timers", 0, _set("rows.0.t_req_ms", 198_168)),
    ("repair_timers", 0, _set("rows.1.t_resp_ms", 235_945)),
    ("repair_timers", 0, _set("rows.2.in_response_group.5", True)),
    ("acks", 0, _set("outgoing_left", ["m1", "0xabc", "msg-é"])),
    ("acks", 3, _set("on_message_sent_order", ["m1"])),
    ("dependencies", 0, _set("steps.3.history", [])),
    ("dependencies", 2, _set("steps.2.hex", "0a0164100122017a2a00")),
]

PLANTED_MVDS = [
    ("message_ids", 0, _set("message.id", "00" * 32)),
    ("message_ids", 1, _set("message.timestamp_str", "7")),
    ("message_ids", 2, _set("wire", "")),
    ("payloads", 0, _set("is_valid", True)),
    ("payloads", 1, _set("wire", "cab80200")),
    ("payloads", 2, _set("offers", [])),
    ("decode", 0, _set("ok", False)),
    ("decode", 0, _set("payload.acks", [])),
    ("decode", 8, _set("reencoded", "0807")),
    ("decode", 11, _set("ok", True)),
]

PLANTED_STATUS = [
    ("status_payload", 0, _set("payload", "46")),
    ("status_payload", 0, _set("plain_len", 512)),
    ("status_payload", 1, _set("plain_head", "0101e8")),
    ("status_payload", 1, _set("signer_public_key", "04" + "11" * 64)),
    ("status_payload", 2, _set("symmetric", "00" * 300)),
    ("status_payload", 3, _set("ecies", "00" * 400)),
    ("status_payload", 48, _set("payload.len", 65531)),
    ("status_topics", 0, _set("content_topic", "/waku/1/0x9c22ff5e/rfc26")),
    ("status_topics", 1, _set("symmetric_key", "00" * 32)),
]

PLANTED_STATUS_REAL = [
    ("messages", 0, _set("messages.0.message_id", "0x" + "00" * 32)),
    ("messages", 0, _set("messages.0.author", "0x04" + "11" * 64)),
    ("messages", 0, _set("version", 2)),
    ("messages", 3, _set("messages.0.type", 31)),
    ("messages", 13, _set("opens_with.key_hex", "00" * 32)),
    ("messages", 16, _set("content_topic", "/waku/1/0x00000000/rfc26")),
    ("messages", 20, _set("protocol.kind", "public_message")),
    ("messages", 28, _set("payload_hex", "00" * 400)),
    ("messages", 36, _set("opens_with.private_key_hex", "11" * 32)),
]

PLANTED_SVS = [
    ("state_vectors", 1, _set("wire", "c917ca15070808066e6f64652d61d209d404677d52e9d60102")),
    ("state_vectors", 2, _set("order.0.seqs.0.seq", "11")),
    ("compare", 1, _set("a_outdated_to_b", False)),
    ("compare", 2, _set("merge", "c900")),
    ("data_names", 0, _set("spec_name_tlv", "0703080161")),
    ("data_names", 1, _set("svs_alo_name", "/other")),
    ("packets", 0, _set("nonce", "f6247646")),
    ("packets", 2, _set("key", "00")),
    ("packets", 3, _set("signature_value", "00")),
    ("decode", 1, _set("entries.0.seqs.0.seq", "3")),
    ("decode", 5, _set("ok", False)),
]


PLANTED_LIBP2P = [
    ("multiaddrs", 0, _set("expected", "047f00000106ea61")),
    ("peer_ids", 1, _set("expected.signature", "00" * 70)),
    ("peer_ids", 6, _set("expected.peer_id", "QmRAmdzWS5mEoXaxyJjwZ2iR7WCWnaNHNS8p6NwEGspJy8")),
    ("noise_cacophony", 0, _set("expected.handshake_hash", "00" * 32)),
    ("noise_cacophony", 1, _set("expected.messages.3.ciphertext", "00" * 31)),
    ("noise_libp2p_fixed", 1, _set("expected.transport.0.by_responder", "00" * 30)),
    ("noise_sessions", 4, _set("expected.remote_static", "00" * 32)),
    ("noise_sessions", 0, _set("input.muxers_in_noise_payload", False)),
    ("muxer_sessions", 0, _set("expected.events.1.2", "00")),
    ("muxer_sessions", 6, _set("expected.events.0.1", -3)),
    ("multistream", 0, _set("expected.answer_lines.1", "na")),
    ("multistream_raw", 2, _set("expected.dialogue.3.1", "00")),
    ("messages_identify", 0, _set("expected.agentVersion", "other")),
    ("messages_metadata", 0, _set("expected.shards", [0, 1])),
    ("messages_lightpush_2", 1, _set("expected.response.is_success", False)),
    ("messages_lightpush_3", 1, _set("expected.status_code", 420)),
    ("messages_filter_subscribe", 0, _set("expected.content_topics.1", "/other/1/x/proto")),
    ("messages_filter_push", 0, _set("expected.waku_message.payload", "00")),
    ("messages_store", 1, _set("expected.messages.0.message_hash", "00" * 32)),
    ("messages_store", 0, _set("expected.include_data", False)),
]


@pytest.mark.parametrize(("kind", "plant"), PLANTED)
def test_a_planted_error_is_found(kind: str, plant: Callable[[Any], None], tmp_path: Path) -> None:
    assert _differences("js-waku", kind, plant, tmp_path) == 1


@pytest.mark.parametrize(("section", "case", "plant"), PLANTED_NIM)
def test_a_planted_error_of_nim_is_found(
    section: str, case: int, plant: Callable[[Any], None], tmp_path: Path
) -> None:
    assert _differences("nim-sds", "nim_wire", lambda d: plant(d[section][case]), tmp_path) == 1


@pytest.mark.parametrize("channel_id", ["elsewhere", "é"])
def test_nim_vectors_of_any_channel_hold(channel_id: str, tmp_path: Path) -> None:
    def rename(document: Any) -> None:
        for section in ("acks", "dependencies"):
            document[section] = json.loads(
                re.sub(
                    f"22{len('general'):02x}{b'general'.hex()}",
                    f"22{len(channel_id.encode()):02x}{channel_id.encode().hex()}",
                    json.dumps(document[section]),
                )
            )

    assert _differences("nim-sds", "nim_wire", rename, tmp_path) == 0


@pytest.mark.parametrize(
    ("options", "differing"),
    [({}, 0), ({"limits_unknown_references": 1}, 1), ({"no_such_option": 1}, 7)],
)
def test_options_of_nim_vectors_are_those_of_the_file(
    options: dict[str, int], differing: int, tmp_path: Path
) -> None:
    found = _differences("nim-sds", "nim_wire", lambda d: d.update(options=options), tmp_path)
    assert found == differing


def test_options_of_a_nim_case_are_its_own(tmp_path: Path) -> None:
    def plant(document: Any) -> None:
        document["options"] = {"limits_unknown_references": 1}
        for case in document["dependencies"]:
            case["options"] = {"limits_unknown_references": 10}

    assert _differences("nim-sds", "nim_wire", plant, tmp_path) == 0


@pytest.mark.parametrize(("section", "case", "plant"), PLANTED_MVDS)
def test_a_planted_error_of_mvds_is_found(
    section: str, case: int, plant: Callable[[Any], None], tmp_path: Path
) -> None:
    assert _differences("mvds", "mvds", lambda d: plant(d[section][case]), tmp_path) == 1


@pytest.mark.parametrize(("kind", "case", "plant"), PLANTED_LIBP2P)
def test_a_planted_error_of_libp2p_is_found(
    kind: str, case: int, plant: Callable[[Any], None], tmp_path: Path
) -> None:
    assert _differences("libp2p", kind, lambda d: plant(d[case]), tmp_path) == 1


@pytest.mark.parametrize(("section", "case", "plant"), PLANTED_SVS)
def test_a_planted_error_of_svs_is_found(
    section: str, case: int, plant: Callable[[Any], None], tmp_path: Path
) -> None:
    assert _differences("svs", "svs", lambda d: plant(d[section][case]), tmp_path) == 1


@pytest.mark.parametrize(("kind", "case", "plant"), PLANTED_STATUS)
def test_a_planted_error_of_status_is_found(
    kind: str, case: int, plant: Callable[[Any], None], tmp_path: Path
) -> None:
    assert _differences("status", kind, lambda d: plant(d["cases"][case]), tmp_path) == 1


@pytest.mark.parametrize(("kind", "case", "plant"), PLANTED_STATUS_REAL)
def test_a_planted_error_of_status_clients_is_found(
    kind: str, case: int, plant: Callable[[Any], None], tmp_path: Path
) -> None:
    assert _differences("status-real", kind, lambda d: plant(d[case]), tmp_path) == 1


@pytest.mark.parametrize(
    ("name", "plant"),
    [
        (
            "client: DR, chat message 1",
            lambda c: _swap(c["protocol"]["entries"][0], "message_key_hex"),
        ),
        (
            "client: hash ratchet, community, chat message 1",
            lambda c: _swap(c["group_keys"][0], "key_hex"),
        ),
        (
            "client: hash ratchet, community, rekey in a description 1",
            lambda c: _swap(c, "key_id_hex"),
        ),
        (
            "client: DR+HR, keys for a member 1",
            lambda c: _swap(c["protocol"]["entries"][0]["hr"], "group_id"),
        ),
        ("community user kicked", lambda c: _swap(c["messages"][0], "message_id")),
    ],
)
def test_a_planted_error_of_a_ratchet_is_found(
    name: str, plant: Callable[[Any], None], tmp_path: Path
) -> None:
    def at_name(document: Any) -> None:
        plant(next(case for case in document if case["name"] == name))

    assert _differences("status-ratchet", "messages", at_name, tmp_path) == 1


def _swap(record: Any, name: str) -> None:
    record[name] = record[name][:-1] + ("0" if record[name][-1] != "0" else "1")


def test_a_planted_key_is_found(tmp_path: Path) -> None:
    def plant(document: Any) -> None:
        document["keys"]["alice"]["private_hex"] = "11" * 32
        document["communities"]["open"]["id"] = document["communities"]["request"]["id"]

    assert _differences("status-real", "keys", plant, tmp_path) == 2


def _differences(family: str, kind: str, plant: Callable[[Any], None], tmp_path: Path) -> int:
    document = copy.deepcopy(json.loads((DATA / family / f"{kind}.json").read_text()))
    plant(document)
    file = tmp_path / f"{kind}.json"
    file.write_text(json.dumps(document))
    return len([result for result in run_file(file) if result[1] is not None])


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"cases": 3}', '{"cases": [{}]}', '{"cases": []}']
)
@pytest.mark.parametrize("kind", sorted(CHECKS))
def test_an_unreadable_file_fails(kind: str, text: str, tmp_path: Path) -> None:
    file = tmp_path / f"{kind}.json"
    file.write_text(text)
    assert any(difference is not None for _, difference in run_file(file))


def test_the_command_counts_and_exits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "nonsense.json").write_text("{}")
    command = [sys.executable, "-m", "tests.vectors"]
    good = subprocess.run(
        [*command, str(DATA / "waku")], capture_output=True, text=True, check=False
    )
    assert good.returncode == 0
    assert good.stdout.splitlines()[-1].endswith("passed, 0 failed")
    monkeypatch.setattr(sys, "argv", ["vectors", str(tmp_path)])
    with pytest.raises(SystemExit) as end:
        runpy.run_module("tests.vectors", run_name="__main__")
    assert end.value.code == 1
    printed = capsys.readouterr().out
    assert printed.splitlines()[-1] == "0 passed, 1 failed"
    assert "unknown kind 'nonsense'" in printed
