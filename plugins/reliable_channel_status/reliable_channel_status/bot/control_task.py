"""Control node of a community that a bot runs, as a task of the bot."""

import logging
from collections.abc import Callable
from typing import Final, Literal

import anyio

from ..community.control_memory import ControlMemory
from ..community.control_node import ControlNode, JoinRefusal, RefusedRequest, Superseded
from ..community.edits import (
    Edit,
)
from ..community.encryption import is_encrypted, is_hidden
from ..community.member_keys import MemberKeys
from ..wire.application import wrap
from ..wire.chats import Community, partitioned_topic
from ..wire.community_payloads import (
    CommunityDescription,
    CommunityEncryptionKeysRequest,
    CommunityRequestToJoin,
    CommunityRequestToLeave,
    CommunityUserKicked,
)
from ..wire.keys import PrivateKey, PublicKey
from ..wire.outcomes import Received
from ..wire.sealing import NS_PER_MS, Outgoing, Sealer
from .memory import OutboxFull
from .reporting import Reporter

ADVERTISE_MS: Final = 86_400_000
"""Interval at which an unchanged description is published again, as in status-go."""
ACCEPTED_AT_ONCE: Final = 20
"""Maximum number of users that one description admits, if the community admits all users."""
TICK_S: Final = 0.5
"""Minimum time between two descriptions, so that many requests do not cause many descriptions."""

Taken = Literal["request", "notice"]
"""Effect of a request to join, which the bot's functions either decide or are only informed about.
"""


class ControlTask:
    """Handles the messages for a community that the bot runs, and publishes due messages.

    Args:
        memory: of the control node.
        key: of the community.
        owner: the bot, which is the community's owner and first member.
        sealer: signs and encrypts for the community.
        send: keeps and publishes what is encrypted, once for a name; on all shards or on the first.
        changed: is given each description that counts from now on.
        keys: of the community's encrypted groups.
        reporter: logs what happens.
        now_ms: milliseconds since 1970.
    """

    def __init__(
        self,
        memory: ControlMemory,
        key: PrivateKey,
        owner: PublicKey,
        sealer: Sealer,
        send: Callable[[str, Outgoing, bool], None],
        changed: Callable[[CommunityDescription], None],
        keys: MemberKeys,
        reporter: Reporter,
        now_ms: Callable[[], int],
    ) -> None:
        self._memory = memory
        self._keys = keys
        self._key = key
        self._owner = owner
        self._sealer = sealer
        self._send = send
        self._on_change = changed
        self._reporter = reporter
        self._now_ms = now_ms
        self._is_late = False
        """True if the node took less than was due."""
        self.community: Final = Community(key.public_key)
        self.news = anyio.Event()
        """Set when something is to be sent; the task that waited puts a new one here."""
        if (description := self._node.description) is not None and self._node.is_active:
            changed(description)

    def take(self, received: Received, *, is_live: bool = True) -> Taken | None:
        """Handle a message, live or from Store, that is addressed to the community's key or signed
        by it."""
        payload, now_ms = received.payload, self._now_ms()
        if isinstance(payload, CommunityDescription) and received.signer == self._key.public_key:
            self._observe(payload)
            return None
        if not received.is_private:
            return None
        if isinstance(payload, CommunityEncryptionKeysRequest):
            self._asked_for_keys(received.signer)
            return None
        if isinstance(payload, CommunityRequestToLeave):
            left = self._node.leave(payload, received.signer, now_ms)
            if isinstance(left, CommunityDescription):
                self._adopt(left)
            else:
                self._refused(left, received.signer)
        elif isinstance(payload, CommunityRequestToJoin):
            asked = self._node.ask(payload, received.signer, now_ms)
            if isinstance(asked, RefusedRequest):
                if is_live or asked.reason is not JoinRefusal.REPLAYED:  # Store has old ones
                    self._refused(asked, received.signer)
                return None if self._node.is_active else "notice"
            self._memory.save()
            self.news.set()
            return "notice" if self._node.lets_in_by_itself else "request"
        return None

    def tick(self) -> None:
        """Admit users if the community admits all, send answers, and publish the description if it
        is due.

        Raises:
            StateError: what was decided cannot be written.
        """
        node, now_ms = self._node, self._now_ms()
        if not node.is_active:
            return
        if node.lets_in_by_itself and (waiting := node.pending[:ACCEPTED_AT_ONCE]):
            self._adopt(node.accept(tuple(request.user for request in waiting), now_ms))
        description = node.description
        assert description is not None  # it is active
        is_new = description.clock > self._memory.published_clock
        is_late = now_ms >= self._memory.published_ms + ADVERTISE_MS
        self._is_late = False
        try:
            is_owed = self._keys.is_due(description, now_ms)
            if is_owed:
                is_new |= self._keys.renew(description, now_ms)
            if is_new or is_late or any(node.unanswered()):
                self._publish(description, now_ms)
            if is_owed:
                self._keys.send(description, now_ms)
        except OutboxFull as error:  # the next tick is another chance
            self._is_late = True
            self._reporter.log("publish_failed", logging.WARNING, why=str(error))

    @property
    def is_due(self) -> bool:
        """True if work waits for the next tick."""
        node = self._node
        return node.is_active and (self._is_late or self._lets_in)

    @property
    def _lets_in(self) -> bool:
        return self._node.lets_in_by_itself and bool(self._node.pending)

    def _publish(self, description: CommunityDescription, now_ms: int) -> None:
        topic = self.community.description_topic
        signed = wrap(self._keys.hide(description), self._key)
        if (with_key := self._keys.with_key(description, signed)) is None:
            sealed = self._sealer.seal_signed(signed, topic, now_ms)
        else:
            messages = self._sealer.seal_protocol(with_key, topic, now_ms * NS_PER_MS)
            sealed = Outgoing(signed, messages)
        self._send(f"description {description.clock} {now_ms}", sealed, False)
        for request in self._node.unanswered():
            topic = partitioned_topic(request.user)
            answer = wrap(self._node.answer(request, signed.data), self._key)
            sealed = self._sealer.seal_signed(answer, topic, now_ms, receiver=request.user)
            self._send(f"answer {request.user.hex} {request.clock}", sealed, True)
            self._node.answered(request)
        self._tell_removed(description, now_ms)
        self._memory.save()
        self._memory.published(description.clock, now_ms)

    def _tell_removed(self, description: CommunityDescription, now_ms: int) -> None:
        """Notify removed members of an encrypted community: the description without them is
        encrypted with a key that they do not get."""
        community_id = self.community.public_key.compressed
        for user, clock in list(self._memory.removed.items()):
            if is_encrypted(description) and user.hex not in description.members:
                kick = CommunityUserKicked(clock=clock + 1, community_id=community_id)
                topic, signed = partitioned_topic(user), wrap(kick, self._key)
                sealed = self._sealer.seal_signed(signed, topic, now_ms, receiver=user)
                self._send(f"kicked {user.hex} {clock}", sealed, True)
            self._memory.told(user)

    def _asked_for_keys(self, user: PublicKey) -> None:
        """Send a member keys again."""
        description = self._node.description
        if not self._node.is_active or description is None or user.hex not in description.members:
            self._reporter.count("requests_refused", JoinRefusal.INVALID.value)
        elif self._keys.asked(user, self._now_ms()):
            self.news.set()

    def _observe(self, description: CommunityDescription) -> None:
        own = self._node.description
        if own is not None and is_hidden(description) and description.clock <= own.clock:
            return  # the own one, after the bot's state was lost: its keys are gone
        was_active = self._node.is_active
        seen = self._node.observe(description)
        if seen is Superseded.NEWER:
            self._memory.save()
            self._on_change(description)
            if was_active:
                self._reporter.log(
                    "another_control_node",
                    logging.ERROR,
                    community=self.community.id,
                    clock=description.clock,
                )
        elif seen is Superseded.OUTDATED:
            self._reporter.count("descriptions_outdated")

    def _refused(self, refused: RefusedRequest, user: PublicKey) -> None:
        self._reporter.count("requests_refused", refused.reason.value)
        self._reporter.log(
            "request_refused",
            logging.DEBUG,
            reason=refused.reason.value,
            detail=refused.detail,
            user=user.hex,
        )

    @property
    def _node(self) -> ControlNode:
        return self._memory.node

    def _change(self, edit: Edit) -> None:
        self._adopt(self._node.change(edit, self._now_ms()))

    def _remove(self, user: PublicKey, edit: Edit) -> None:
        """Change the community so that a user is no member, and have a member notified."""
        before = self._node.description
        after = self._node.change(edit, self._now_ms())
        if before is not None and user.hex in before.members:
            self._memory.remove(user, after.clock)
        self._adopt(after)

    def _adopt(self, description: CommunityDescription) -> None:
        """Write the description, and have it published."""
        self._memory.save()
        self._on_change(description)
        self.news.set()
