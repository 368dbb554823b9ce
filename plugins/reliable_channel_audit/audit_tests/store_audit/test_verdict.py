"""What is found, the worst first, for persons and for programs."""

import json

from reliable_channel_audit.store_audit.verdict import READERS, SYNC_LAG, judged

from .stores import crafted, sync, verdict_of


def test_the_worst_comes_first_and_all_of_it_is_json() -> None:
    messages = [
        crafted("a", "alice", 0),
        crafted("b", "bob", 1, refers_to=["a", "gone"]),
        crafted("a", "mallory", 2, content=b"forged"),
        crafted("z", "zoe", 3, refers_to=["b"]),
        sync("alice", 60, asks_for=["gone"]),
    ]
    verdict = verdict_of(messages)
    assert [each.trouble for each in verdict.findings] == ["gap", "altered"]
    values = json.loads(json.dumps(verdict.to_dict()))
    (channel,) = values["channels"]
    assert channel["gaps"][0]["requests"] == 1
    assert channel["repair_requests"] == 1
    assert {each["sender_id"] for each in channel["senders"]} == {"alice", "bob", "mallory", "zoe"}
    assert not any(name.startswith("_") for each in channel["senders"] for name in each)


def test_what_syncs_would_show_is_unknown_where_none_is_stored() -> None:
    said = [crafted("a", "alice", 0), crafted("b", "bob", 900, refers_to=["a"])]
    tally = verdict_of(said).tally
    (silent,) = judged(tally, silent_ms=60_000).findings
    assert silent.detail.endswith("; it may read, as none of its syncs is stored")
    whys = {each.what: each.why for each in verdict_of(said).unknown}
    assert whys[SYNC_LAG].startswith("syncs of 0 of 2 senders are stored")
    assert READERS in whys
    whys = {each.what: each.why for each in verdict_of([*said, sync("alice", 901)]).unknown}
    assert whys[SYNC_LAG].startswith("syncs of 1 of 2 senders are stored")
    every = verdict_of([*said, sync("alice", 901), sync("bob", 902)]).unknown
    assert SYNC_LAG not in {each.what for each in every}
