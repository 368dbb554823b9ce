"""Rows of the table about recovery, with repair requests, late joins, restarts and exchanges."""

import sys
from typing import Final

from .bench import Broken, Harness, NotApplicable
from .peer import Peer
from .row import advised, required

REPAIR: Final = "SDS-R guide, "
OURS: Final = f"{sys.executable} -m reliable_channel peer"


def _requests(bench: Harness, message_id: str) -> int:
    return sum(
        message_id in [entry.message_id for entry in each.repair_request]
        for each in bench.network.by("peer")
    )


@required(
    "repair requests",
    REPAIR + "When SENDING a Message",
    "Take up to 3 eligible entries with lowest T_req values. Populate repair_request field with "
    "these HistoryEntries.",
)
async def missing_messages_are_requested(bench: Harness) -> None:
    """The peer requests a missing message once T_req has passed."""
    peer = await bench.peer()
    missing = bench.message("a", b"one").message_id
    bench.say("a", b"two", history=[missing])
    await bench.expect(
        peer, lambda: _requests(bench, missing) > 0, f"{missing} must be requested from others"
    )


@advised(
    "repair requests",
    REPAIR + "Original sender offline",
    "The protocol uses clever timing (…) to ensure typically only one request and one response per "
    "missing message. (SDS-R is silent about requests that are lost.)",
)
async def lost_requests_are_repeated(bench: Harness) -> None:
    """The peer repeats a repair request that brings no answer (D18)."""
    peer = await bench.peer()
    missing = bench.message("a", b"one").message_id
    bench.say("a", b"two", history=[missing])
    await bench.expect(
        peer,
        lambda: _requests(bench, missing) > 1,
        lambda: f"{missing} was requested {_requests(bench, missing)} times, and is still missing",
    )


@required(
    "repair answers",
    REPAIR + "Incoming Repair Request Buffer Sweep",
    "broadcast(message)  # Rebroadcast the full original message",
)
async def requests_are_answered(bench: Harness) -> None:
    """The peer answers a participant's request for the message of a third participant."""
    peer = await bench.peer()
    wanted = bench.say("a", b"wanted")
    await bench.expect(peer, lambda: b"wanted" in peer.payloads(), "`wanted` must be delivered")
    bench.say("b", requests=[bench.entry(wanted, "a")])
    await bench.expect(
        peer,
        lambda: wanted in [each.message_id for each in bench.network.by("peer")],
        f"{wanted} must be broadcast again for `b`",
    )
    original = next(each.data for each in bench.network.wire if _is(each.message, wanted))
    if any(each.data != original for each in bench.network.wire if _is(each.message, wanted)):
        raise Broken(
            "the repaired message differs from the original message; every byte must be equal"
        )


@advised(
    "loss",
    "LIP 109, Periodic Incoming Buffer Sweep",
    "If a message's causal dependencies have failed to be met after a predetermined amount of "
    "time, the participant MAY mark them as **irretrievably lost**.",
)
async def giving_up_loses_nothing_else(bench: Harness) -> None:
    """A message whose dependency was given up is delivered in any case (D03)."""
    peer = await bench.peer(flags=("--timeout-for-lost-messages-ms", "1500"))
    one = bench.message("a", b"one")
    bench.say("a", b"two", history=[one.message_id])

    def lost() -> bool:
        return bool(peer.named("message_lost", message_id=one.message_id))

    if not await peer.until(lost, bench.setting.beats):
        raise NotApplicable(
            "the peer never declares a message lost, although it runs with "
            "`--timeout-for-lost-messages-ms` 1500"
        )
    bench.network.publish(bench.profile.codec.encode(one))
    two = next(each.data for each in bench.network.wire if each.message and each.message.causal_ids)
    bench.network.publish(two)
    await bench.expect(
        peer,
        lambda: {b"one", b"two"} <= set(peer.payloads()),
        lambda: f"`one` and `two` must be delivered in the end; it has {peer.payloads()}",
    )


@advised(
    "late join",
    "LIP 109, Abstract",
    "all nodes in the group eventually reflect in their own logs the same entries in the same "
    "order.",
)
async def latecomer_gets_what_was_before(bench: Harness) -> None:
    """A new peer gets ten messages from before its start, which Store and a participant have."""
    address = await bench.node("peer")
    history = [bench.message("a", f"message {n}".encode()) for n in range(10)]
    data = {each.message_id: bench.profile.codec.encode(each) for each in history}
    for each in history:
        bench.network.publish(data[each.message_id])
    peer = await bench.start(bench.setting.command, "peer", address)
    bench.say("a", b"now", history=[each.message_id for each in history])
    answered = set[str]()

    def complete() -> bool:
        for each in bench.network.by("peer"):
            for entry in each.repair_request:
                if entry.message_id in data and entry.message_id not in answered:
                    answered.add(entry.message_id)
                    bench.network.publish(data[entry.message_id])
        return len(set(peer.payloads()) & {each.content for each in history}) == 10

    await bench.expect(
        peer, complete, lambda: f"all ten must be delivered; it has {len(peer.payloads())}"
    )


@advised(
    "restart",
    "LIP 173, SdsConfig",
    "SDS state MUST be persisted; it MUST provide every function needed to save/load SDS state per "
    "channel.",
)
async def restart_goes_on(bench: Harness) -> None:
    """A restarted peer sends unacknowledged messages, with a later clock, and delivers no message
    again."""
    address = await bench.node("peer")
    state = ("--state", f"sqlite:///{bench.fresh_folder()}/peer.db")
    first = await bench.start(bench.setting.command, "peer", address, state)
    bench.say("a", b"before")
    await bench.expect(first, lambda: b"before" in first.payloads(), "it must be delivered")
    sent = await first.send(b"unacknowledged")
    await bench.expect(
        first, lambda: sent in [m.message_id for m in bench.network.by("peer")], "it must go out"
    )
    await first.kill()
    published = len(bench.network.by("peer"))
    second = await bench.start(bench.setting.command, "peer", address, state)
    await bench.expect(
        second,
        lambda: sent in [m.message_id for m in bench.network.by("peer")[published:]],
        f"{sent} was not acknowledged, and must be broadcast again after a restart",
    )
    later = await second.send(b"after")
    await bench.expect(
        second, lambda: later in [m.message_id for m in bench.network.by("peer")], "it must go out"
    )
    stamps = {m.message_id: m.lamport_timestamp or 0 for m in bench.network.by("peer")}
    if stamps[later] <= stamps[sent]:
        raise Broken(
            f"the Lamport timestamp of the peer went back after a restart, from {stamps[sent]} to "
            f"{stamps[later]}"
        )
    if b"before" in second.payloads():
        raise Broken("a message that was delivered before the restart was delivered again")


@advised(
    "segmentation",
    "LIP 243, Segmentation",
    "A message that is larger than a segment is split, and MUST be delivered whole or not at all.",
)
async def long_payloads_arrive_whole(bench: Harness) -> None:
    """A payload of 300 kB from the peer arrives at this SDK, once and unchanged."""
    flags = ("--segmentation", "nim-segmentation")
    peer, ours = await bench.peer(flags=flags), await _ours(bench, flags=flags)
    payload = bytes(range(256)) * 1_200
    try:
        await peer.send(payload)
    except RuntimeError as error:
        raise NotApplicable(
            f"the peer does not accept a payload of 300 kB: {str(error)[:200]}"
        ) from error
    await bench.expect(
        ours, lambda: payload in ours.payloads(), "300 kB must arrive at ours, whole"
    )


@required(
    "loss",
    "LIP 109, Abstract",
    "all nodes in the group eventually reflect in their own logs the same entries in the same "
    "order.",
)
async def equal_logs_with_ours(bench: Harness) -> None:
    """The peer and this SDK send ten messages each with 25 % loss, and have equal logs."""
    await _exchange(bench, await bench.peer(), await _ours(bench))


@required(
    "loss",
    "LIP 109, Abstract",
    "all nodes in the group eventually reflect in their own logs the same entries in the same "
    "order.",
)
async def equal_logs_with_itself(bench: Harness) -> None:
    """Two instances of the peer send ten messages each with 25 % loss, and have equal logs."""
    await _exchange(bench, await bench.peer(), await bench.peer("other"))


async def _exchange(bench: Harness, peer: Peer, other: Peer) -> None:
    carried = 0

    def keep(sender: str, receiver: str) -> bool:
        nonlocal carried
        carried += 1
        return carried % 4 != 0

    bench.network.keep = keep
    for number in range(10):
        await peer.send(f"peer {number}".encode())
        await other.send(f"{other.name} {number}".encode())
    expected = {f"{name} {n}".encode() for name in ("peer", other.name) for n in range(10)}
    for each in (peer, other):
        wanted = {text for text in expected if not text.startswith(each.name.encode() + b" ")}
        await bench.expect(
            each,
            lambda each=each, wanted=wanted: wanted <= set(each.payloads()),  # type: ignore[misc]
            lambda each=each: (  # type: ignore[misc]
                f"{each.name} must deliver all ten; it has {len(set(each.payloads()))}"
            ),
        )
    logs = await _logs(peer, other)
    for _ in range(bench.setting.beats):
        if logs[0] == logs[1]:
            break
        await peer.until(lambda: False, beats=1)
        logs = await _logs(peer, other)
    else:
        lacking = [len(set(one) - set(another)) for one, another in (logs, logs[::-1])]
        same = [each for each in logs[0] if each in logs[1]]
        order = "the same" if same == [each for each in logs[1] if each in logs[0]] else "another"
        raise Broken(
            f"the logs must be equal: {peer.name} has {lacking[0]} messages that {other.name} "
            f"lacks, {lacking[1]} messages are missing the other way, and the {len(same)} common "
            f"messages are in {order} order"
        )
    for each in (peer, other):
        if len(each.payloads()) != len(set(each.payloads())):
            raise Broken(f"{each.name} delivered a message twice")


async def _logs(*peers: Peer) -> list[list[str]]:
    return [[str(entry["message_id"]) for entry in await each.log()] for each in peers]


async def _ours(bench: Harness, flags: tuple[str, ...] = ()) -> Peer:
    """A participant of this SDK."""
    return await bench.start(OURS, "ours", await bench.node("ours"), flags)


def _is(message: object, message_id: str) -> bool:
    return getattr(message, "message_id", None) == message_id and bool(
        getattr(message, "content", None)
    )


ROWS = (
    missing_messages_are_requested,
    lost_requests_are_repeated,
    requests_are_answered,
    giving_up_loses_nothing_else,
    latecomer_gets_what_was_before,
    restart_goes_on,
    long_payloads_arrive_whole,
    equal_logs_with_ours,
    equal_logs_with_itself,
)
