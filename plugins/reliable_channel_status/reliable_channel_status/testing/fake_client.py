"""Scripted client of a member in a test, which shows and refuses messages as a real client does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol

from waku import PubsubTopic, WakuMessage

from ..community.group_keys import TABLES, GroupKeys
from ..community.rules import (
    CANNOT_DELETE,
    NOT_AUTHORIZED,
    OUTDATED_CLOCK,
    is_privileged,
    why_invalid,
    why_not_heard,
)
from ..wire.chats import Community, partitioned_topic
from ..wire.community_payloads import CommunityDescription, CommunityUserKicked
from ..wire.conversation import Applied, Conversation, everybody
from ..wire.direct.correspondence import Correspondence
from ..wire.direct.session_store import MemorySessionStore
from ..wire.keys import PrivateKey, PublicKey
from ..wire.opening import Opener
from ..wire.outcomes import MessageId, Received, RefusalReason, Refused
from ..wire.payloads import ChatMessage, ChatPayload
from ..wire.sealing import WakuVersion
from ..wire.topics import Topic

NO_SIGNATURE: Final = "failed to get signature"
"""Log text of a Status client of 2024 for any `version` except 1."""
NO_DESCRIPTION: Final = "community not found"


class Network(Protocol):
    """Parts of the test that a scripted client needs, which are the time and a way to publish."""

    def now_ms(self) -> int:
        """Return the current virtual time (ms since 1970)."""

    def next_clock(self) -> int:
        """Return the logical clock for a user's next action."""

    def publish(self, message: WakuMessage) -> None:
        """Publish a message on the bot's shard."""


class FakeClient:
    """Scripted client of a community's member.

    The client shows messages of members and drops all others, with reasons in `refused`.

    Args:
        tester: the test.
        community: that it is in.
        topics: those on which members write.
        shards: where it listens; clients before 2.40 to 64 too, those from 2.42 on to 32 alone.
        versions: of Waku messages that it reads: 1 alone in 2024, 0 and 1 from 2.38 on.
        key: of the member: it takes group keys, and reads encrypted channels. None reads along
            without keys.
    """

    def __init__(
        self,
        tester: Network,
        community: Community,
        topics: Sequence[Topic],
        *,
        shards: Sequence[PubsubTopic],
        versions: Sequence[WakuVersion | None] = (1,),
        key: PrivateKey | None = None,
    ) -> None:
        self.community = community
        self.refused: list[str] = []
        """Why something was dropped, as the client logs it."""
        self.kicks = 0
        """Notices of the owner that this member was removed."""
        self._description: CommunityDescription | None = None
        self._tester = tester
        self._shards = {str(shard) for shard in shards}
        self._versions = tuple(versions)
        self.group_keys: GroupKeys | None = None
        """What the member may read."""
        self._opener = Opener(topics) if key is None else self._member(key, topics)
        self._seen: set[bytes] = set()
        self._conversation = Conversation(
            is_privileged=lambda user, _: self._is_privileged(user), may_pin=everybody
        )
        self._messages: dict[MessageId, ChatMessage] = {}

    @property
    def description(self) -> CommunityDescription | None:
        """Community as the client knows it, or None."""
        return self._description

    @property
    def shown(self) -> list[ChatMessage]:
        """Messages of members that the client shows, without deleted messages."""
        states = ((self._conversation.message(one), said) for one, said in self._messages.items())
        return [said for state, said in states if state is None or not state.is_deleted]

    @property
    def texts(self) -> list[str]:
        """Texts of the messages that the client shows."""
        return [message.text for message in self.shown]

    @property
    def pinned(self) -> list[str]:
        """Texts of the messages that are pinned."""
        states = ((self._conversation.message(one), said) for one, said in self._messages.items())
        return [said.text for now, said in states if now and now.is_pinned and not now.is_deleted]

    def hear(self, message: WakuMessage, shard: str) -> None:
        """Receive a message that a node relayed."""
        if shard not in self._shards or message.content_topic not in self._opener.content_topics:
            return
        if message.version not in self._versions:
            self.refused.append(NO_SIGNATURE)
            return
        opened = self._opener.receive(message, self._tester.now_ms())
        for outcome in (*opened, *self._opener.waited()):
            if isinstance(outcome, Received):
                self.receive(outcome)
                if self.group_keys is not None and outcome.waiting_id is not None:
                    self.group_keys.done(outcome.waiting_id)
            elif isinstance(outcome, Refused) and outcome.reason is not RefusalReason.NOT_FOR_US:
                self.refused.append(outcome.reason.value)

    def _member(self, key: PrivateKey, topics: Sequence[Topic]) -> Opener:
        self.group_keys = GroupKeys(
            key, [self.community], MemorySessionStore(TABLES), is_owner=lambda *_: True
        )
        return Opener(
            [*topics, partitioned_topic(key.public_key)],
            private_keys=[key],
            direct=Correspondence(key),
            groups=self.group_keys,
        )

    def receive(self, received: Received) -> None:
        """Handle a decrypted payload, unless it was handled before."""
        if received.signed.fingerprint not in self._seen:
            self._seen.add(received.signed.fingerprint)
            self._take(received)

    def _take(self, received: Received) -> None:
        if isinstance(received.payload, CommunityDescription):
            self._describe(received.payload, received.signer)
        elif isinstance(received.payload, CommunityUserKicked):
            self.kicks += received.signer == self.community.public_key
        elif isinstance(received.payload, ChatPayload):
            self._show(received, received.payload)

    def _describe(self, description: CommunityDescription, signer: PublicKey) -> None:
        latest = self._description
        if signer != self.community.public_key:
            self.refused.append(NOT_AUTHORIZED)
        elif (why := why_invalid(description)) is not None:
            self.refused.append(why)
        elif latest is not None and description.clock < latest.clock:
            self.refused.append(OUTDATED_CLOCK)
        else:
            self._description = description

    def _show(self, received: Received, payload: ChatPayload) -> None:
        description = self.description
        if description is None:
            self.refused.append(NO_DESCRIPTION)
            return
        why = why_not_heard(description, self.community, received.signer, payload)
        if why is not None:
            self.refused.append(why)
            return
        outcome = self._conversation.apply(received, self._tester.now_ms())
        if isinstance(outcome, Refused):
            is_deletion = outcome.reason is RefusalReason.NOT_ALLOWED
            self.refused.append(CANNOT_DELETE if is_deletion else outcome.reason.value)
        elif isinstance(outcome, Applied) and isinstance(payload, ChatMessage):
            self._messages[received.message_id] = payload

    def _is_privileged(self, user: PublicKey) -> bool:
        return self.description is not None and is_privileged(self.description, user)
