"""From Waku messages to what happened in the bot's chats, each once, in the order of the clocks."""

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from ..community_payloads import CommunityRequestToJoin, CommunityRequestToLeave
from ..conversation import Applied, Conversation
from ..keys import PrivateKey
from ..outcomes import Ignored, Received, RefusalReason, Refused
from ..payloads import ChatPayload
from ..pipeline import Opener
from ..sds import SdsArrival
from ..topics import Topic
from .link import Fetched
from .session import Session

_ORDINARY = (RefusalReason.REPEATED, RefusalReason.UNKNOWN_TOPIC)
"""What a healthy chat brings all the time."""


@dataclass(frozen=True, slots=True)
class Heard:
    """Something that happened."""

    received: Received
    applied: Applied
    clock_ms: int
    """When, by the author's signed clock; by the Waku message where that is no time."""
    is_live: bool
    """Whether it just arrived, rather than from Store."""


class Inbox:
    """Opens, reads and orders; what is refused is counted and logged."""

    def __init__(
        self, session: Session, topics: Sequence[Topic], private_keys: Sequence[PrivateKey]
    ) -> None:
        self._session = session
        self._sds: list[SdsArrival] = []
        self._opener = Opener(topics, private_keys=private_keys, on_sds=self._sds.append)
        self.on_sds: Callable[[SdsArrival, bytes], None] = lambda sds, message_hash: None
        """Given each SDS message with the hash of the Waku message that brought it."""
        self.conversation = Conversation(is_privileged=session.is_privileged)

    @property
    def content_topics(self) -> tuple[str, ...]:
        """What to ask the node for."""
        return self._opener.content_topics

    def take(self, messages: Sequence[Fetched], *, is_live: bool) -> list[Heard]:
        """What some messages bring, ordered by clock; of the same clock by message id."""
        now_ms = self._session.now_ms()
        received: list[Received] = []
        for one in messages:
            for outcome in self._opener.receive(one.message, now_ms):
                if isinstance(outcome, Refused):
                    self._refused(outcome)
                elif isinstance(outcome, Ignored):
                    self._session.watch.count("ignored", outcome.payload_type.name)
                else:
                    received.append(outcome)
            for sds in self._sds:
                self.on_sds(sds, one.message_hash)
            self._sds.clear()
        due_ms = self._opener.next_deadline_ms()
        if due_ms is not None and due_ms <= now_ms:
            for refused in self._opener.on_deadline(now_ms):
                self._refused(refused)
        return self.apply(received, is_live=is_live)

    def apply(self, received: Iterable[Received], *, is_live: bool) -> list[Heard]:
        """What some payloads change, in the same order."""
        now_ms = self._session.now_ms()
        in_order = sorted(received, key=lambda one: (clock_ms(one), one.message_id))
        return [heard for one in in_order if (heard := self._apply(one, now_ms, is_live))]

    def _apply(self, received: Received, now_ms: int, is_live: bool) -> Heard | None:
        outcome = self.conversation.apply(received, now_ms)
        if isinstance(outcome, Refused):
            self._refused(outcome)
            return None
        if not isinstance(outcome, Applied):
            return None  # an edit of what is not here: it counts when that comes
        for refused in outcome.refused:
            self._refused(refused)
        payload = received.payload
        if isinstance(payload, ChatPayload):
            self._session.memory.clock(payload.chat_id).observe(payload.clock)
        self._session.learn(received)
        return Heard(received, outcome, clock_ms(received), is_live)

    def _refused(self, refused: Refused) -> None:
        self._session.watch.count("refused", refused.reason.value)
        if refused.reason not in _ORDINARY:
            self._session.watch.log(
                "refused",
                logging.DEBUG,
                reason=refused.reason.value,
                detail=refused.detail,
                signer=refused.signer and refused.signer.hex,
            )


def clock_ms(received: Received) -> int:
    """The clock that the author signed, in milliseconds; the Waku timestamp where it is no time."""
    payload = received.payload
    if isinstance(payload, ChatPayload):
        return payload.clock
    if isinstance(payload, CommunityRequestToJoin | CommunityRequestToLeave):
        return payload.clock * 1000
    return received.timestamp_ms
