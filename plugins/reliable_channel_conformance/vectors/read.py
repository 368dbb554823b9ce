"""Example for other projects, in which `python read.py v1` reads all test vectors and checks
their hashes."""

import hashlib
import json
import sys
from pathlib import Path
from typing import Any


def cases(folder: str, kind: str) -> list[dict[str, Any]]:
    """Return the cases in a file of test vectors."""
    document = json.loads(Path(folder, f"{kind}.json").read_text(encoding="utf-8"))
    assert (document["format"], document["version"]) == ("reliable-channel-vectors", 1)
    return list(document["cases"])


def filter_bytes(value: dict[str, Any] | None) -> bytes:
    """Return the bytes of a bloom filter, in big-endian 64-bit words with bit i in word i // 64."""
    if value is None:
        return b""
    data = bytearray((b"\xff" if value.get("all_ones") else b"\0") * value["bytes"])
    for bit in value.get("bits", ()):
        data[bit // 64 * 8 + 7 - bit % 64 // 8] |= 1 << bit % 8
    return bytes(data)


def wire_bytes(value: dict[str, Any]) -> bytes:
    """Return the bytes of a message that is encoded in a vector."""
    before, after = bytes.fromhex(value["before"]), bytes.fromhex(value["after"])
    data = before + filter_bytes(value["bloom_filter"]) + after
    assert len(data) == value["bytes"]
    return data


def main(folder: str) -> None:
    for case in cases(folder, "waku_message_hashes"):
        text = case["pubsub_topic"].encode() + bytes.fromhex(case["payload"])
        text += case["content_topic"].encode() + bytes.fromhex(case["meta"])
        text += int(case["timestamp_ns"]).to_bytes(8, "big", signed=True)
        assert hashlib.sha256(text).hexdigest() == case["hash"]
    messages = [wire_bytes(case["wire"]) for case in cases(folder, "sds_messages")]
    steps = [step for trace in cases(folder, "traces") for step in trace["steps"]]
    moved = [wire_bytes(each["wire"]) for step in steps for each in step["sent"]]
    print(f"{len(messages)} messages, {len(steps)} steps of traces that sent {len(moved)}")


if __name__ == "__main__":
    main(sys.argv[1])
