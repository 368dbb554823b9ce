"""A community that a bot runs: its control node, as the bot's functions use it.

What changes is on disk when a method returns; the description goes out at once after that, several
changes of one function in one description, and every day again.
"""

import logging
from collections.abc import Callable, Iterable
from typing import Final, Literal
from uuid import uuid4

import anyio

from ..application import wrap
from ..chats import Community, partitioned_topic
from ..community_edits import (
    CommunityProfile,
    Edit,
    banned,
    described,
    encrypted,
    kicked,
    muted,
    private,
    public,
    unbanned,
    with_category,
    with_channel,
    with_role,
    without_category,
    without_channel,
)
from ..community_encryption import is_hidden
from ..community_payloads import (
    CommunityDescription,
    CommunityEncryptionKeysRequest,
    CommunityRequestToJoin,
    CommunityRequestToLeave,
)
from ..control_node import ControlNode, JoinRefusal, RefusedRequest, Request, Superseded
from ..enums import Role
from ..invite_links import InviteLink
from ..keys import PrivateKey, PublicKey
from ..outcomes import Received
from ..pipeline import NS_PER_MS, Outgoing, Sealer
from .control_memory import ControlMemory
from .memory import OutboxFull
from .owned_keys import OwnedKeys
from .watching import Watch

ADVERTISE_MS: Final = 86_400_000
"""As often as status-go publishes a description in which nothing changed."""
ACCEPTED_AT_ONCE: Final = 20
"""Users that are let in by one description, where all are let in."""
TICK_S: Final = 0.5
"""Between two descriptions at least, so that a flood of requests makes no flood of descriptions."""

Taken = Literal["request", "notice"]
"""What a request to join is to the bot's functions: to decide upon, or to know of."""


class OwnedCommunity:
    """A community that this bot runs.

    Args:
        memory: of the control node.
        key: of the community.
        owner: the bot, which is the community's owner and first member.
        sealer: signs and encrypts for the community.
        send: keeps and publishes what is encrypted, once for a name; on all shards or on the first.
        changed: is given each description that counts from now on.
        keys: of the community's encrypted groups.
        watch: logs what happens.
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
        keys: OwnedKeys,
        watch: Watch,
        now_ms: Callable[[], int],
    ) -> None:
        self._memory = memory
        self._keys = keys
        self._key = key
        self._owner = owner
        self._sealer = sealer
        self._send = send
        self._on_change = changed
        self._watch = watch
        self._now_ms = now_ms
        self._is_late = False
        """Whether the node took less than was due."""
        self.community: Final = Community(key.public_key)
        self.news = anyio.Event()
        """Set when something is to be sent; the task that waited puts a new one here."""
        if (description := self._node.description) is not None and self._node.is_active:
            changed(description)

    # -- what it is -------------------------------------------------------------------------------

    @property
    def is_active(self) -> bool:
        """Whether this bot is the control node now: the community exists, and is not run
        elsewhere."""
        return self._node.is_active

    @property
    def description(self) -> CommunityDescription | None:
        """The community as it is; None before `found`."""
        return self._node.description

    @property
    def requests(self) -> tuple[Request, ...]:
        """Requests to join that wait for `accept` or `decline`, the oldest first."""
        return self._node.pending

    @property
    def members(self) -> tuple[PublicKey, ...]:
        """The members, the bot too."""
        description = self._node.description
        keys = () if description is None else description.members
        return tuple(PublicKey.parse(key) for key in keys)

    @property
    def invite_link(self) -> str:
        """What to hand to people: `https://status.app/c/…`."""
        return InviteLink.of(self.community, self._node.description).text

    # -- what it shows ----------------------------------------------------------------------------

    async def found(self, profile: CommunityProfile) -> None:
        """Bring the community into being.

        Raises:
            NotControlNode: it exists already.
            ValueError: clients would refuse it.
            StateError: it cannot be written.
        """
        self._adopt(self._node.found(profile, self._owner, self._now_ms()))

    async def describe(self, profile: CommunityProfile) -> None:
        """Show another name, text or image; images that are not given stay.

        Raises:
            NotControlNode: the community is not run here.
            ValueError: clients would refuse it.
            StateError: it cannot be written.
        """
        self._change(described(profile))

    async def add_channel(
        self,
        name: str,
        description: str = "",
        *,
        emoji: str = "",
        color: str = "",
        category: str = "",
        channel: str | None = None,
    ) -> str:
        """Add a channel, or change that of a uuid; return the uuid.

        Raises:
            NotControlNode: the community is not run here.
            ValueError: no name, or one that is taken; no such category; `channel` is no uuid.
            StateError: it cannot be written.
        """
        uuid = str(uuid4()) if channel is None else channel
        self.community.channel_id(uuid)
        self._change(
            with_channel(uuid, name, description, emoji=emoji, color=color, category=category)
        )
        return uuid

    async def remove_channel(self, channel: str) -> None:
        """Remove a channel by its uuid.

        Raises:
            NotControlNode, ValueError, StateError: as `add_channel`.
        """
        self._change(without_channel(channel))

    async def add_category(self, name: str, *, category: str | None = None) -> str:
        """Add a category, or name that of a uuid anew; return the uuid.

        Raises:
            NotControlNode, ValueError, StateError: as `add_channel`.
        """
        uuid = str(uuid4()) if category is None else category
        self._change(with_category(uuid, name))
        return uuid

    async def remove_category(self, category: str) -> None:
        """Remove a category by its uuid; its channels stay.

        Raises:
            NotControlNode, ValueError, StateError: as `add_channel`.
        """
        self._change(without_category(category))

    async def encrypt(self, *, is_encrypted: bool = True) -> None:
        """Encrypt the community for its members, or have it in the clear again.

        Members, channels and what is said there are readable for members alone from the next
        description on; what was published before stays as it is.

        Raises:
            NotControlNode: the community is not run here.
            StateError: it cannot be written.
        """
        self._change(encrypted(str(uuid4()), is_encrypted=is_encrypted))

    async def make_private(self, channel: str, members: Iterable[PublicKey]) -> None:
        """Let some members alone read and write a channel; the bot is always one of them. Give
        other members to let others in and out.

        Raises:
            NotControlNode: the community is not run here.
            ValueError: no such channel, or not a member.
            StateError: it cannot be written.
        """
        chosen = frozenset([*members, self._owner])
        self._change(private(channel, self.community.channel_id(channel), chosen, str(uuid4())))

    async def make_public(self, channel: str) -> None:
        """Let all members read and write a channel that was private.

        Raises:
            NotControlNode, ValueError, StateError: as `make_private`.
        """
        self._change(public(channel, self.community.channel_id(channel)))

    # -- who is in it -----------------------------------------------------------------------------

    async def accept(self, *users: PublicKey) -> None:
        """Let users in that asked: a description lists them, and each is answered.

        Raises:
            NotControlNode: the community is not run here.
            ValueError: one has no request that waits.
            StateError: it cannot be written.
        """
        self._adopt(self._node.accept(users, self._now_ms()))

    async def decline(self, user: PublicKey) -> None:
        """Answer that a user is not let in.

        Raises:
            NotControlNode, ValueError, StateError: as `accept`.
        """
        self._node.decline(user)
        self._memory.save()
        self.news.set()

    def decide(self, user: PublicKey, *, accepted: bool) -> None:
        """Accept or decline, unless that was decided before, as by a function that runs again.

        Raises:
            NotControlNode, ValueError, StateError: as `accept`.
        """
        wanted = "accepted" if accepted else "declined"
        if any(r.user == user and r.state == wanted for r in self._node.requests):
            return
        if accepted:
            self._adopt(self._node.accept((user,), self._now_ms()))
        else:
            self._node.decline(user)
            self._memory.save()
            self.news.set()

    async def kick(self, user: PublicKey) -> None:
        """Remove a member; the user may ask again.

        Raises:
            NotControlNode: the community is not run here.
            ValueError: no member, or an owner.
            StateError: it cannot be written.
        """
        self._change(kicked(user))

    async def ban(self, user: PublicKey, *, delete_messages: bool = False) -> None:
        """Remove a user and refuse later requests; clients may delete all that the user wrote.

        Raises:
            NotControlNode: the community is not run here.
            ValueError: an owner.
            StateError: it cannot be written.
        """
        self._change(banned(user, delete_messages=delete_messages))

    async def unban(self, user: PublicKey) -> None:
        """Let a user ask again.

        Raises:
            NotControlNode: the community is not run here.
            ValueError: the user is not banned.
            StateError: it cannot be written.
        """
        self._change(unbanned(user))

    async def set_role(self, user: PublicKey, role: Role) -> None:
        """Make a member a moderator (`ROLE_ADMIN`), or no more (`ROLE_NONE`).

        Raises:
            NotControlNode: the community is not run here.
            ValueError: no member, or an owner.
            StateError: it cannot be written.
        """
        self._change(with_role(user, role))

    async def mute(self, user: PublicKey, *, is_muted: bool = True) -> None:
        """Let a member read and not write, or write again.

        Raises:
            NotControlNode: the community is not run here.
            ValueError: no member.
            StateError: it cannot be written.
        """
        self._change(muted(user, is_muted=is_muted))

    async def take_over(self) -> None:
        """Run a community that was run elsewhere, as it was published there last. Stop the other
        control node first: the newer description counts.

        Raises:
            NotControlNode: no description from elsewhere was heard, or it wants tokens, or is
                encrypted with keys that are not here.
            StateError: it cannot be written.
        """
        self._adopt(self._node.take_over(self._owner, self._now_ms()))
        self._watch.log("took_over", community=self.community.id)

    # -- what the bot's run does ------------------------------------------------------------------

    def take(self, received: Received) -> Taken | None:
        """Take what arrived for the community's key, or of it."""
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
                self._refused(asked, received.signer)
                return None if self._node.is_active else "notice"
            self._memory.save()
            self.news.set()
            return "notice" if self._node.lets_in_by_itself else "request"
        return None

    def tick(self) -> None:
        """Let users in where all are let in, send answers, and publish what is due.

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
            self._watch.log("publish_failed", logging.WARNING, why=str(error))

    @property
    def is_due(self) -> bool:
        """Whether something waits for the next tick."""
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
        self._memory.save()
        self._memory.published(description.clock, now_ms)

    def _asked_for_keys(self, user: PublicKey) -> None:
        """Send a member keys again."""
        description = self._node.description
        if not self._node.is_active or description is None or user.hex not in description.members:
            self._watch.count("requests_refused", JoinRefusal.INVALID.value)
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
                self._watch.log(
                    "another_control_node",
                    logging.ERROR,
                    community=self.community.id,
                    clock=description.clock,
                )
        elif seen is Superseded.OUTDATED:
            self._watch.count("descriptions_outdated")

    def _refused(self, refused: RefusedRequest, user: PublicKey) -> None:
        self._watch.count("requests_refused", refused.reason.value)
        self._watch.log(
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

    def _adopt(self, description: CommunityDescription) -> None:
        """Write the description, and have it published."""
        self._memory.save()
        self._on_change(description)
        self.news.set()
