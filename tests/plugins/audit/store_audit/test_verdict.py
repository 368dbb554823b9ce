"""What is found, the worst first, for persons and for programs."""

import json

from .stores import START_MS, crafted, sync, verdict_of


def test_the_worst_comes_first_and_all_of_it_is_json() -> None:
    messages = [
        crafted("a", "alice", 0),
        crafted("b", "bob", 1, refers_to=["a", "gone"]),
        crafted("a", "mallory", 2, content=b"forged"),
        crafted("z", "zoe", 3, lamport_ms=START_MS + 7_200_000, refers_to=["b"]),
        sync("alice", 60, asks_for=["gone"]),
    ]
    verdict = verdict_of(messages)
    assert [each.trouble for each in verdict.findings] == ["gap", "altered", "lamport"]
    values = json.loads(json.dumps(verdict.to_dict()))
    (channel,) = values["channels"]
    assert channel["gaps"][0]["requests"] == 1
    assert channel["repair_requests"] == 1
    assert {each["sender_id"] for each in channel["senders"]} == {"alice", "bob", "mallory", "zoe"}
    assert not any(name.startswith("_") for each in channel["senders"] for name in each)
