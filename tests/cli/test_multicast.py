"""Processes in one multicast group: no node, no Store, and a fifth of what arrives is lost."""

from tests.multicast_groups import group_url

from .processes import payload, peers
from .test_commands import QUICK

REPAIR = [
    *("--repair-t-min-ms", "100"),
    *("--repair-t-max-ms", "800"),
    *("--repair-sweep-interval-ms", "100"),
]
NAMES = ("alice", "bob", "carol")
MESSAGES = 15


def flags(url: str, sender: str, seed: int) -> list[str]:
    lossy = ["--drop-incoming", "0.2", "--seed", str(seed)]
    channel = ["--node", url, "--channel-id", "lan", "--sender-id", sender]
    return [*channel, *QUICK, *REPAIR, *lossy]


def test_three_peers_of_a_group_find_each_other_and_end_with_one_log() -> None:
    url = group_url()
    with peers(*(flags(url, name, seed) for seed, name in enumerate(NAMES))) as found:
        for peer in found:
            peer.event("ready")
        for number in range(MESSAGES):
            for peer, name in zip(found, NAMES, strict=True):
                peer.send(f"{name} {number}", ref=number)
        for peer, name in zip(found, NAMES, strict=True):
            for other in NAMES:
                for number in range(MESSAGES if other != name else 0):
                    peer.event("message_received", payload=payload(f"{other} {number}"))
        logs = [peer.ask("log", "end") for peer in found]
        assert len(logs[0]["entries"]) == len(NAMES) * MESSAGES
        assert logs[0]["entries"] == logs[1]["entries"] == logs[2]["entries"]
        for peer in found:
            assert peer.ask("statistics", "end")["dropped_incoming"] > 0
            events = {told["event"] for told in peer.told}
            assert not events & {"transport_degraded", "message_lost", "message_rejected"}
        assert any(told["event"] == "repair_sent" for peer in found for told in peer.told)
