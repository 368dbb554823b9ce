"""What a received message refers to, and whether that is more than is worth looking for."""

from collections.abc import Sequence

from .log import MessageLog
from .message import HistoryEntry, Message
from .options import Limits
from .wire.codec import MAX_ID_BYTES


def unknown_references(message: Message, log: MessageLog) -> list[HistoryEntry]:
    """The references to messages that were never in the log: mostly none."""
    in_memory, ids = log.entries, message.causal_ids
    # Nearly always; a loop in Python over 200 ids would be a fifth of what a message costs.
    if all(map(in_memory.__contains__, ids)):
        return []
    absent = [i for i, message_id in enumerate(ids) if message_id not in in_memory]
    return [message.causal_history[i] for i in absent if not log.is_settled(ids[i])]


def excess(
    unknown: Sequence[HistoryEntry], requests: Sequence[HistoryEntry], limits: Limits
) -> str:
    """What a message has too much of; empty where it has not.

    References to what is known cost nothing and are not counted.
    """
    if len(unknown) > limits.unknown_references:
        return f"{len(unknown)} unknown references; at most {limits.unknown_references} are taken"
    if len(requests) > limits.repair_requests:
        return f"it asks for {len(requests)} messages; at most {limits.repair_requests} at once"
    if any(map(_is_too_long, unknown)) or any(map(_is_too_long, requests)):
        return f"it refers to ids or hints of more than {MAX_ID_BYTES} characters"
    return ""


def _is_too_long(entry: HistoryEntry) -> bool:
    """Whether it refers to a message that would be refused for its id."""
    return (
        len(entry.message_id) > MAX_ID_BYTES
        or len(entry.sender_id or "") > MAX_ID_BYTES
        or len(entry.retrieval_hint or b"") > MAX_ID_BYTES
    )
