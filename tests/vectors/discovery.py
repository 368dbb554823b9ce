"""Node records made by go-waku, and trees in the DNS made by go-ethereum."""

from typing import Any

from waku.discovery import Capability, NodeRecord, TreeWalk
from waku.libp2p import InvalidInput

from .case import first_difference
from .libp2p import listed


def node_record(case: Any) -> str | None:
    expected = case["expected"]
    try:
        record = NodeRecord.parse(case["input"])
    except InvalidInput as error:
        if "error" in expected:
            return None if expected["error"] in str(error) else f"another reason: {error}"
        return f"refused: {error}"
    capabilities = record.capabilities or Capability(0)
    served = {
        "relay": Capability.RELAY in capabilities,
        "store": Capability.STORE in capabilities,
        "filter": Capability.FILTER in capabilities,
        "lightpush": Capability.LIGHT_PUSH in capabilities,
    }
    return first_difference(
        [
            ("sequence", record.sequence, expected.get("sequence")),
            ("peer id", str(record.peer_id), expected["peer_id"]),
            ("multiaddresses", [str(a) for a in record.addresses], expected["multiaddrs"]),
            ("capabilities", served, expected["capabilities"]),
            ("cluster", record.cluster_id, expected["cluster"]),
            ("shards", sorted(record.shards), expected["shards"]),
            ("text", record.text, case["input"]),
        ]
    )


def tree(case: Any) -> str | None:
    given, expected = case["input"], case["expected"]
    walk = TreeWalk(given["url"])
    while (name := walk.next_name()) is not None:
        if (text := given["zone"].get(name)) is None:
            walk.fail(name, "does not exist")
        else:
            walk.receive(name, [text])
    if "error" in expected:
        problems = " ".join(walk.problems)
        return first_difference(
            [
                ("problem", expected["error"] in problems, True),
                ("nodes", len(walk.records), 0),
            ]
        )
    return first_difference(
        [
            ("nodes", sorted(r.text for r in walk.records), sorted(expected["enrs"])),
            ("sequence", walk.sequence, expected["sequence"]),
            ("problems", walk.problems, []),
        ]
    )


CHECKS = {"enrs": listed(node_record), "enrtree": listed(tree)}
