"""Control node of a community that a bot runs, for the bot's functions. A change of the community
is on disk when its method returns. Each function's changes are published together in one
description, which is also published every day.
"""

from collections.abc import Iterable
from uuid import uuid4

from ..community.control_node import Request
from ..community.edits import (
    CommunityProfile,
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
from ..community.invite_links import InviteLink
from ..wire.community_payloads import (
    CommunityDescription,
)
from ..wire.enums import Role
from ..wire.keys import PublicKey
from .control_task import ControlTask


class OwnedCommunity(ControlTask):
    """Community that the bot runs with the community's key."""

    # -- what it is --------------------------------------------------------------------------------

    @property
    def is_active(self) -> bool:
        """True if the community exists and this bot is its control node now."""
        return self._node.is_active

    @property
    def description(self) -> CommunityDescription | None:
        """Present description of the community (None before `found` created it)."""
        return self._node.description

    @property
    def requests(self) -> tuple[Request, ...]:
        """Requests to join that wait for `accept` or `decline`, the oldest first."""
        return self._node.pending

    @property
    def members(self) -> tuple[PublicKey, ...]:
        """Members of the community, including the bot."""
        description = self._node.description
        keys = () if description is None else description.members
        return tuple(PublicKey.parse(key) for key in keys)

    @property
    def invite_link(self) -> str:
        """Invite link of the community for people, `https://status.app/c/…`."""
        return InviteLink.of(self.community, self._node.description).text

    # -- what it shows -----------------------------------------------------------------------------

    async def found(self, profile: CommunityProfile) -> None:
        """Create the community with a name, a text and images.

        Raises:
            NotControlNode: it exists already.
            ValueError: clients would refuse it.
            StateError: it cannot be written.
        """
        self._adopt(self._node.found(profile, self._owner, self._now_ms()))

    async def describe(self, profile: CommunityProfile) -> None:
        """Change the name, the text or the images of the community. Images that the new profile
        omits stay.

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
        """Add a channel, or change the channel with the given uuid, and return the uuid.

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
        """Add a category, or rename the category with the given uuid, and return the uuid.

        Raises:
            NotControlNode, ValueError, StateError: as `add_channel`.
        """
        uuid = str(uuid4()) if category is None else category
        self._change(with_category(uuid, name))
        return uuid

    async def remove_category(self, category: str) -> None:
        """Remove a category of channels by its uuid. The channels of a removed category stay.

        Raises:
            NotControlNode, ValueError, StateError: as `add_channel`.
        """
        self._change(without_category(category))

    async def encrypt(self, *, is_encrypted: bool = True) -> None:
        """Encrypt the community for its members, or end the encryption.

        After the next description, only members can read the members, channels and messages.
        Messages from before the change are still readable by all users.

        Raises:
            NotControlNode: the community is not run here.
            StateError: it cannot be written.
        """
        self._change(encrypted(str(uuid4()), is_encrypted=is_encrypted))

    async def make_private(self, channel: str, members: Iterable[PublicKey]) -> None:
        """Restrict a channel to the bot and the given members. A second call of `make_private`
        replaces the members of the channel.

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

    # -- who is in it ------------------------------------------------------------------------------

    async def accept(self, *users: PublicKey) -> None:
        """Admit users that requested to join. The next description lists the admitted users, and
        each of them gets an answer.

        Raises:
            NotControlNode: the community is not run here.
            ValueError: one has no request that waits.
            StateError: it cannot be written.
        """
        self._adopt(self._node.accept(users, self._now_ms()))

    async def decline(self, user: PublicKey) -> None:
        """Answer a request to join that the user is not admitted.

        Raises:
            NotControlNode, ValueError, StateError: as `accept`.
        """
        self._node.decline(user)
        self._memory.save()
        self.news.set()

    def decide(self, user: PublicKey, *, accepted: bool) -> None:
        """Accept or decline a request to join, unless it was decided before, for example when a
        function runs again.

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
        """Remove a member from the community. A removed user may request to join again.

        Raises:
            NotControlNode: the community is not run here.
            ValueError: no member, or an owner.
            StateError: it cannot be written.
        """
        self._remove(user, kicked(user))

    async def ban(self, user: PublicKey, *, delete_messages: bool = False) -> None:
        """Remove a user from the community and refuse later requests to join. With
        `delete_messages`, clients may delete all messages of the user.

        Raises:
            NotControlNode: the community is not run here.
            ValueError: an owner.
            StateError: it cannot be written.
        """
        self._remove(user, banned(user, delete_messages=delete_messages))

    async def unban(self, user: PublicKey) -> None:
        """Let a banned user request to join again.

        Raises:
            NotControlNode: the community is not run here.
            ValueError: the user is not banned.
            StateError: it cannot be written.
        """
        self._change(unbanned(user))

    async def set_role(self, user: PublicKey, role: Role) -> None:
        """Make a member a moderator (`ROLE_ADMIN`), or take the role away (`ROLE_NONE`).

        Raises:
            NotControlNode: the community is not run here.
            ValueError: no member, or an owner.
            StateError: it cannot be written.
        """
        self._change(with_role(user, role))

    async def mute(self, user: PublicKey, *, is_muted: bool = True) -> None:
        """Restrict a member to reading, or allow writing again.

        Raises:
            NotControlNode: the community is not run here.
            ValueError: no member.
            StateError: it cannot be written.
        """
        self._change(muted(user, is_muted=is_muted))

    async def take_over(self) -> None:
        """Take over a community that another node ran, as last published. Stop the other control
        node first, because clients follow the newer description.

        Raises:
            NotControlNode: no description from elsewhere was heard, or it wants tokens, or is
                encrypted with keys that are not here.
            StateError: it cannot be written.
        """
        self._adopt(self._node.take_over(self._owner, self._now_ms()))
        self._reporter.log("took_over", community=self.community.id)
