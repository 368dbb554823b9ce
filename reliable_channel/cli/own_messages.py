"""State of the messages that a person typed in a chat, for ticks and for `/why`."""

from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from ..health import ChannelHealth
from .screen import Line

REMEMBERED: Final = 1_000
EXPLAINED: Final = 5
"""Number of newest messages that `/why` explains."""
QUIET_S: Final = 20
"""Typical time (s) until an acknowledgement in a quiet channel."""


@dataclass(slots=True)
class OwnMessage:
    text: str
    line: Line | None
    """Line of the message on the terminal, or None."""
    sent_at_ms: int
    state: str = "accepted"
    """State of the message, out of `accepted`, `published`, `acknowledged` and `failed`."""
    detail: str = ""


class OwnMessages:
    """Newest messages of the person, by message id."""

    def __init__(self) -> None:
        self._messages: OrderedDict[str, OwnMessage] = OrderedDict()
        self._early: dict[str, str] = {}
        """Ids that were published before the screen knew of them."""

    def sent(self, message_id: str, text: str, line: Line | None, now_ms: int) -> None:
        self._messages[message_id] = OwnMessage(text, line, now_ms)
        if len(self._messages) > REMEMBERED:
            self._messages.popitem(last=False)
        if self._early.pop(message_id, None):
            self.published(message_id)

    def published(self, message_id: str) -> None:
        """Mark a message as published, because a node accepted it."""
        if (own := self._messages.get(message_id)) is None:
            self._early = {message_id: "published"}
        elif own.state == "accepted":
            own.state = "published"

    def acknowledged(self, message_id: str, by: str) -> OwnMessage | None:
        """Mark a message as acknowledged, because a participant received it."""
        return self._ended(message_id, "acknowledged", by)

    def failed(self, message_id: str, reason: str) -> OwnMessage | None:
        """Mark a message as failed, because it is not sent any more."""
        return self._ended(message_id, "failed", reason)

    def why(self, health: ChannelHealth, now_ms: int) -> Iterator[str]:
        """Explain the state of the newest messages, and the parts of the channel that fail."""
        for own in list(self._messages.values())[-EXPLAINED:]:
            age_s = max(0, now_ms - own.sent_at_ms) // 1000
            match own.state:
                case "acknowledged":
                    yield f"“{own.text}”: {own.detail} has it"
                case "failed":
                    yield f"“{own.text}”: failed, {own.detail}"
                case "published":
                    late = "" if age_s > QUIET_S else f"; in a quiet channel that takes {QUIET_S} s"
                    yield f"“{own.text}”: published {age_s} s ago, not acknowledged yet{late}"
                case _:
                    yield f"“{own.text}”: typed {age_s} s ago, no node has taken it yet"
        if not self._messages:
            yield "you have sent nothing yet"
        yield from health.problems
        yield from health.warnings
        if health.missing:
            yield f"{health.missing} message(s) of others are known to exist and still searched"
        if health.ready and not health.warnings:
            yield "the channel can send and receive"

    def _ended(self, message_id: str, state: str, detail: str) -> OwnMessage | None:
        own = self._messages.get(message_id)
        if own is not None:
            own.state, own.detail = state, detail
        return own
