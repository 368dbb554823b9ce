"""A community that a bot runs: its control node, as the bot's functions use it.

What changes is on disk when a method returns; the description goes out at once after that, several
changes of one function in one description, and every day again.
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
    """A community that this bot runs."""

    # -- what it is --------------------------------------------------------------------------------

    @property
    def is_active(self) -> bool:
        """True if this bot is the control node now: the community exists, and is not run
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

    # -- what it shows -----------------------------------------------------------------------------

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

    # -- who is in it ------------------------------------------------------------------------------

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
        self._remove(user, kicked(user))

    async def ban(self, user: PublicKey, *, delete_messages: bool = False) -> None:
        """Remove a user and refuse later requests; clients may delete all that the user wrote.

        Raises:
            NotControlNode: the community is not run here.
            ValueError: an owner.
            StateError: it cannot be written.
        """
        self._remove(user, banned(user, delete_messages=delete_messages))

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
        self._reporter.log("took_over", community=self.community.id)
