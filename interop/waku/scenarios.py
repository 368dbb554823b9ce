"""The scenarios of the matrix. Each is a few sentences; what holds at the end of every one of them
is in `verdict.py`."""

import re
from collections import Counter
from threading import Thread
from time import sleep
from typing import Final

from .attack import attack
from .cells import Scenario
from .defects import FORGETS_ITSELF, LATE_JOIN, POISONED, WRONG_HINT
from .peers import JsPeer, OurPeer
from .stage import GUARD_S, Stage

SHARE: Final = 0.3
PARTITION_S: Final = 60
TOO_LONG: Final = 200_000
"""Bytes that no node relays."""
SIZE_RETRIES: Final = 4
"""Of js-waku, for each message."""
REPAIR_PATIENCE_S: Final = 90
"""js-waku asks for three messages at a time, in sync messages that are up to 15 s apart."""
WITH_JS: Final = ("ours-js", "js-ours", "two-of-each")
WITH_STORE: Final = ("store", "embedded", "python")
WITHOUT_LEAF: Final = ("relay", "light", "native")
"""A leaf's Store begins with the leaf; what plays hostile members is a go-waku gateway."""


def conversation(stage: Stage) -> None:
    """200 messages each way; each side sees by its own events that the other has them."""
    stage.open_all()
    stage.speak(200 * 2 // len(stage.peers))
    stage.converge(300)
    stage.acknowledged_by_all()


def ours_recovers_from_store(stage: Stage) -> None:
    """Our side misses 30 %, and gets it from Store: by hint, and where the hints are wrong, as
    js-waku's are, by topic and time."""
    stage.open_all(ours={"drop_incoming": SHARE})
    misser = stage.ours[0]
    stage.speak(200, *stage.others(misser))
    stage.speak(5, misser)
    stage.converge()
    assert misser.statistics()["dropped_incoming"] > 200 * SHARE / 2
    assert misser.statistics()["transport"]["retrieved"] > 0
    if stage.cell.node == "store" and stage.cell.service != "leaf":  # which has a Store of its own
        found = {way: _found_by_us(stage, way) for way in ("hash", "time")}
        others_are_ours = not any(isinstance(p, JsPeer) for p in stage.others(misser))
        assert found["hash" if others_are_ours else "time"] > 0, found


def js_recovers_from_store(stage: Stage) -> None:
    """js-waku misses 30 % of what we say, and gets it from Store with our hints: we answer no
    repair requests here and send nothing twice."""
    stage.open_all(
        ours={"retrieval_strategy": "store-only", "retry_interval_ms": 600_000},
        js={"drop_incoming": SHARE},
    )
    stage.speak(100, *stage.ours)
    for misser in stage.js:
        assert misser.command("statistics")["dropped_incoming"] > 0
        misser.command("stop_dropping")
    stage.speak(3, *stage.ours)
    stage.converge()
    if stage.cell.node == "store":
        assert sum(e["found"] for e in _store_queries(stage, "hash", js=True)) > 0
    assert all(misser.found_in_store() for misser in stage.js)


def js_recovers_by_repair(stage: Stage) -> None:
    """js-waku misses 30 % of what we say where there is no Store: we answer its repair requests.
    It answers none, ever."""
    stage.open_all(ours={"retry_interval_ms": 600_000}, js={"drop_incoming": SHARE})
    stage.speak(20, *stage.ours)
    for misser in stage.js:
        assert misser.command("statistics")["dropped_incoming"] > 0
        misser.command("stop_dropping")
    stage.speak(3, *stage.ours, pace_s=2)
    stage.converge(300, js_patience_s=REPAIR_PATIENCE_S)
    assert any(peer.emitted("repair_sent") for peer in stage.ours)
    for misser in stage.js:
        repaired = len(misser.log()) - len(misser.accepted)
        stage.notes.append(f"{misser.name} holds {repaired} of {len(stage.accepted)} messages")
        assert repaired > 0


def auto_beside_js(stage: Stage) -> None:
    """Our side tunes itself and misses 30 %: js-waku delivers its messages, which carry full
    filters, and each side sees by its own events that the other has its messages."""
    stage.open_all(ours={"preset": "auto", "drop_incoming": SHARE})
    stage.speak(50)
    stage.converge(300)
    stage.acknowledged_by_all()
    for peer in stage.ours:
        assert peer.statistics()["dropped_incoming"] > 0


def late_joiner(stage: Stage) -> None:
    """500 messages are said before the second one comes."""
    first = stage.open(ours={"retry_interval_ms": 30_000}, js={"retryIntervalMs": 30_000})
    stage.speak(500, first)  # to nobody, so that no acknowledgement ends the retries
    sleep(2)
    stage.open_all()
    stage.speak(5, first)
    stage.speak(5)
    stage.converge(300, js_patience_s=REPAIR_PATIENCE_S)


def partition(stage: Stage) -> None:
    """The second one is cut off for 60 s in which both sides go on; then the logs are equal."""
    stage.open_all()
    stage.speak(10)
    stage.converge()
    stage.second.link.faults.cut()
    stage.speak(20)
    sleep(PARTITION_S)
    stage.second.link.faults.heal()
    stage.speak(5)
    stage.converge(300)


def node_is_killed(stage: Stage) -> None:
    """The node is killed, all go on without it, and it comes back; then once more."""
    stage.open_all()
    stage.speak(20)
    for _ in range(2):
        stage.network.node.kill()
        stage.speak(10)
        sleep(5)
        stage.network.node.restart()
        stage.speak(10)
        stage.converge(240)


def we_are_killed(stage: Stage) -> None:
    """Our process is killed in the middle of it and resumes from SQLite, twice."""
    stage.open_all()
    stage.speak(20)
    ours = stage.ours[0]
    for _ in range(2):
        stage.speak(20)
        ours.kill()
        stage.speak(20, *stage.others(ours))
        stage.restart(ours)
        stage.speak(5)
    stage.converge()
    assert ours.lives == 3


def js_is_restarted(stage: Stage) -> None:
    """js-waku is killed and comes back without memory; the others go on meanwhile."""
    stage.open_all()
    stage.speak(20)
    stage.converge()
    js = stage.js[0]
    js.kill()
    stage.speak(20, *stage.others(js))
    stage.restart(js)
    stage.speak(20)
    stage.converge()


def bursts(stage: Stage) -> None:
    """1,000 messages through stock go-waku, which takes one light push a second from each and
    keeps 30 messages for a filter reader: ours send in bursts, js-waku is paced by hand."""
    stage.open_all()
    by_js = 76
    each = (1_000 - by_js * len(stage.js)) // len(stage.ours)
    paced = Thread(target=stage.speak, args=[by_js, *stage.js], kwargs={"pace_s": 4.0})
    paced.start()
    bursts_of_each = 4
    for _ in range(bursts_of_each):
        stage.speak(each // bursts_of_each, *stage.ours, pace_s=0)
        sleep(20)
    paced.join()
    assert len(stage.accepted) >= 1_000 - bursts_of_each * len(stage.ours)
    stage.converge(900, js_patience_s=REPAIR_PATIENCE_S)


def size_limits(stage: Stage) -> None:
    """The longest message passes; a longer one is refused with a clear error, by either kind. A
    message that only the node refuses is sent for js-waku: ours wait for it, declare it lost, and
    go on."""
    stage.open_all(
        ours={"timeout_for_lost_messages_ms": 20_000}, js={"maxRetryAttempts": SIZE_RETRIES}
    )
    stage.speak(5)
    for speaker in stage.ours:
        _send_longest(stage, speaker)
    for js in stage.js:
        stage.send(js, b"\x02" * 90_000 + js.name.encode())
    stage.converge()
    for js in stage.js:
        # Before the other: without a node, as after a refusal, js-waku gives no error for it. With
        # a name: equal contents are one message to js-waku, and each would acknowledge the other's.
        longest = b"\x03" * 1_500_000 + js.name.encode()
        stage.forgotten.add(stage.send(js, longest))
        refused = js.wait_for(lambda e: e["event"] == "send_failed", GUARD_S, "error for 1.5 MB")
        assert js.accepted[refused["message_id"]] == longest
        stage.forgotten.add(stage.send(js, b"\x03" * TOO_LONG + js.name.encode()))
    for js in stage.js:
        _gives_up(js, stage.forgotten & set(js.accepted))
    stage.speak(5)
    stage.converge()
    for js in stage.js:
        stage.notes.append(
            f"{js.name} gave an error for 1.5 MB, and none for 200 kB, which the node refused"
        )


def _gives_up(js: JsPeer, message_ids: set[str]) -> None:
    """Wait for js-waku's last attempt to send these. Each refusal makes it do without its only node
    for 10 s, and all messages are tried again after the same 15 s: those that were said 1 to 11 s
    after a refused one would fall into these 10 s each time, and never be sent."""
    attempts = SIZE_RETRIES + 1

    def tried() -> bool:
        sent = Counter(event["message_id"] for event in js.emitted("sending_message"))
        return all(sent[message_id] >= attempts for message_id in message_ids)

    js.wait_until(tried, GUARD_S, f"{attempts} attempts to send what is too long")


def segments(stage: Stage) -> None:
    """Where all cut long payloads into segments, ten times the limit passes."""
    stage.open_all()
    for speaker in stage.peers:
        stage.send(speaker, b"\x04" * 1_500_000 + speaker.name.encode())
    for peer in stage.peers:
        long = {p for other in stage.others(peer) for p in other.accepted.values()}
        peer.wait_until(lambda p=peer, x=long: p.holds(x), GUARD_S, "long payloads")  # type: ignore[misc]


def _send_longest(stage: Stage, speaker: OurPeer) -> None:
    """As long as its refusal of a longer one says. What others say meanwhile makes its causal
    history longer, and leaves less: then it says so again."""
    size = TOO_LONG
    while True:
        try:
            stage.send(speaker, b"\x01" * (size - len(speaker.name)) + speaker.name.encode())
            break
        except ValueError as error:
            assert "max_message_bytes" in str(error)
            leaves = int(re.search(r"leaves (\d+) for content", str(error))[1])  # type: ignore[index]
            assert leaves < size, str(error)
            size = leaves
    assert size < TOO_LONG, f"{TOO_LONG} bytes were accepted"


def _store_queries(stage: Stage, way: str, *, js: bool) -> list[dict[str, int]]:
    emitted = stage.network.node.emitted("store_query")
    return [event for event in emitted if event["by"] == way and event["js"] is js]


def _found_by_us(stage: Stage, way: str) -> int:
    return sum(event["found"] for event in _store_queries(stage, way, js=False))


SCENARIOS: Final = (
    Scenario("1", "200 messages each way, acknowledged", conversation),
    Scenario(
        "2",
        "this SDK misses 30 % of the messages and gets them from Store",
        ours_recovers_from_store,
        nodes=WITH_STORE,
    ),
    Scenario(
        *("3a", "js-waku misses 30 % of the messages and gets them from Store by our hints"),
        js_recovers_from_store,
        nodes=("store", "python"),
        peers=WITH_JS,
    ),
    Scenario(
        *("3b", "js-waku misses 30 % of the messages and gets them by our SDS-R answers"),
        js_recovers_by_repair,
        nodes=("stock",),
        peers=WITH_JS,
    ),
    Scenario(
        *("4", "late joiner after 500 messages", late_joiner),
        nodes=WITH_STORE,
        services=WITHOUT_LEAF,
        js_may_miss=(LATE_JOIN,),
    ),
    Scenario("5", "partition of 60 s", partition, js_may_miss=(WRONG_HINT,)),
    Scenario(
        *("6a", "node killed and restarted with its Store", node_is_killed),
        nodes=WITH_STORE,
        js_may_miss=(WRONG_HINT,),
    ),
    Scenario(
        *("6b", "node killed and restarted without its Store", node_is_killed),
        js_may_miss=(WRONG_HINT,),
        node_forgets=True,
    ),
    Scenario("7", "this SDK is killed and resumes from SQLite", we_are_killed),
    Scenario(
        *("8", "js-waku restarted without memory", js_is_restarted),
        peers=WITH_JS,
        js_may_miss=(FORGETS_ITSELF,),
    ),
    Scenario("9", "1,000 messages through go-waku's default rate limits", bursts, nodes=("stock",)),
    Scenario("10", "messages at the size limit and above", size_limits),
    Scenario(
        *("10s", "messages of ten times the size limit, in segments", segments),
        nodes=WITH_STORE,
        peers=("ours-ours",),
        is_segmented=True,
        options={"segmentation": "lip-243-v0.1"},
    ),
    Scenario(
        *("11", "hostile members on the wire", attack),
        services=WITHOUT_LEAF,
        js_may_miss=(POISONED,),
    ),
    Scenario(
        *("12", "this SDK with `auto` misses 30 % of the messages", auto_beside_js),
        nodes=WITH_STORE,
        services=WITHOUT_LEAF,
        peers=WITH_JS,
    ),
)
