"""What is known of a message that js-waku misses: for `defects.py` to explain, and for people to
read in CI's output, which is all that is left of a run."""

from collections.abc import Collection, Mapping
from typing import Final

from .defects import Missed, Request
from .peers import JsPeer, JsState, Peer
from .stage import Stage

DESCRIBED: Final = 3
"""Messages that nothing explains, with all that is known of them."""


def missed_by(
    stage: Stage, peer: JsPeer, state: JsState, message_id: str, *, was_emitted: bool
) -> Missed:
    """What `peer` went through with a message that it has not got."""
    sender = _sender(stage, message_id)
    return Missed(
        sender_kind="js" if isinstance(sender, JsPeer) else "ours",
        accepted_at=stage.accepted_at[message_id],
        began_at=stage.began_at[peer.name],
        lives=peer.lives,
        has_store=stage.network.has_store,
        was_emitted=was_emitted,
        waits=message_id in state.waiting,
        is_sought=message_id in state.sought,
        request=_request(stage, peer, message_id),
        attacked_at=stage.attacked_at,
    )


def what_it_misses(
    stage: Stage,
    peer: JsPeer,
    logged: int,
    missed: Mapping[str, Missed],
    unexplained: Collection[str],
) -> str:
    """The text of a failed verdict on js-waku."""
    all_of_them, unclear = (
        sorted(ids, key=lambda i: stage.accepted_at[i]) for ids in (missed, unexplained)
    )
    ends = f"from {stage.names(all_of_them[:1])} to {stage.names(all_of_them[-1:])}"
    parts = [
        f"{peer.name} misses {len(missed)} of {len(stage.accepted)} messages, {ends}",
        f"{sum(each.waits for each in missed.values())} of these came, and wait for others",
        f"its log has {logged}",
    ]
    if stood := stage.stillness.get(peer.name):
        parts.append(f"it has stood still for {stood.for_s:.0f} s")
    parts.append(f"no defect explains {len(unclear)}: {stage.names(unclear)}")
    parts += [f"{stage.names([i])}: {missed[i]}" for i in unclear[:DESCRIBED]]
    return "; ".join(parts) + f" // {peer.cause()}"


def _request(stage: Stage, peer: JsPeer, message_id: str) -> Request:
    at_ms = peer.requested_at_ms(message_id)
    if at_ms is None:
        return "none"
    if _was_broadcast_after(at_ms, _sender(stage, message_id), "sending_message", message_id):
        return "answered"
    if any(_was_broadcast_after(at_ms, o, "repair_sent", message_id) for o in stage.ours):
        return "answered"
    reached = any(
        event["sender_id"] == peer.name and message_id in event["message_ids"]
        for other in stage.ours
        for event in other.emitted("repair_request_received")
    )
    return "ignored" if reached else "lost"


def _was_broadcast_after(at_ms: int, peer: Peer, event: str, message_id: str) -> bool:
    return any(e["message_id"] == message_id and e["at_ms"] >= at_ms for e in peer.emitted(event))


def _sender(stage: Stage, message_id: str) -> Peer:
    return next(peer for peer in stage.peers if message_id in peer.accepted)
