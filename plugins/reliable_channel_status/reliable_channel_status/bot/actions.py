"""Actions of a running bot, such as writing, notes, contacts, groups, joining and leaving."""

from collections.abc import Iterable
from typing import Any
from uuid import uuid4

from reliable_channel import ReliableChannelError

from ..wire.chats import Community
from ..wire.community_payloads import CommunityDescription
from ..wire.direct.groups import Group, MembershipEventType
from ..wire.keys import PublicKey
from ..wire.outcomes import MessageId
from ..wire.rooms import Rooms
from .events import CURRENT_TURN, Channel, Turn
from .membership import Standing
from .owned import OwnedCommunity
from .session import Session


class NotRunning(ReliableChannelError, RuntimeError):
    """Error of an action that needs a running bot."""


class BotActions:
    """Actions of a bot that its functions may call."""

    def __init__(self) -> None:
        self.rooms = Rooms()
        """Where the bot is."""
        self._session: Session | None = None

    def now_ms(self) -> int:
        """Return the current time of the bot's clock (ms since 1970), which is virtual in
        `BotTester`.

        Raises:
            NotRunning: before `run`.
        """
        return self._now().now_ms()

    @property
    def public_key(self) -> PublicKey:
        """The bot's public key.

        Raises:
            NotRunning: before `run`.
        """
        return self._now().public_key

    def channel(self, name: str) -> Channel:
        """Return a chat by its chat id, by a channel's uuid, or by a public chat's name.

        Raises:
            NotRunning: before `run`.
            ValueError: the bot is not there, or several communities have such a channel.
        """
        session = self._now()
        turn = CURRENT_TURN.get(None)
        if turn is None or turn.session is not session:  # in a program with tasks of its own
            turn = Turn(session, f"elsewhere {uuid4()}")
        return Channel(session.rooms.named(name), turn)

    def direct(self, user: str | PublicKey) -> Channel:
        """Return the one-to-one chat with a user. In one-to-one chats, a leaked private key opens
        all earlier messages (no forward secrecy).

        Raises:
            NotRunning: before `run`.
            ValueError: no public key, or the bot has no function for direct messages.
        """
        return self.channel(_key(user).hex)

    @property
    def contacts(self) -> tuple[PublicKey, ...]:
        """Users that are the bot's contacts in Status.

        Raises:
            NotRunning: before `run`.
            ValueError: the bot has no function for direct messages.
        """
        return self._now().contacts()

    async def request_contact(self, user: str | PublicKey, text: str) -> MessageId:
        """Ask a user to become a contact of the bot. Clients show the text together with the
        contact request.

        Raises:
            NotRunning: before `run`.
            ValueError: no public key, no text, or the bot has no function for direct messages.
            OutboxFull: the node has been away for too long.
        """
        return self._now().request_contact(_key(user), text)

    async def remove_contact(self, user: str | PublicKey) -> None:
        """End a contact with a user, or withdraw the bot's contact request.

        Raises:
            NotRunning: before `run`.
            ValueError: no public key, or the bot has no function for direct messages.
            OutboxFull: the node has been away for too long.
        """
        self._now().remove_contact(_key(user))

    @property
    def groups(self) -> tuple[Group, ...]:
        """Private groups that the bot is in. `channel(group.chat_id)` returns the chat of a group,
        for writing.

        Raises:
            NotRunning: before `run`.
            ValueError: the bot has no function for direct messages or groups.
        """
        return self._now().private_groups.current

    async def create_group(self, name: str, members: Iterable[str | PublicKey]) -> Group:
        """Create a private group and add users.

        Raises:
            NotRunning: before `run`.
            ValueError: no name, no public key, too many members, or the bot has no function for
                direct messages or groups.
            OutboxFull: the node has been away for too long.
        """
        return self._now().private_groups.create(name, [_key(one) for one in members])

    async def change_group(
        self,
        chat_id: str,
        *,
        add: Iterable[str | PublicKey] = (),
        remove: str | PublicKey | None = None,
        name: str | None = None,
    ) -> Group:
        """Add users to a private group, remove a user, or rename the group. Only admins of the
        group may change it.

        Raises:
            NotRunning: before `run`.
            ValueError: the bot is not in the group or not an admin, or no public key.
            OutboxFull: the node has been away for too long.
        """
        groups, added = self._now().private_groups, [_key(one) for one in add]
        if added:
            groups.change(chat_id, MembershipEventType.MEMBERS_ADDED, members=added)
        if remove is not None:
            removed = MembershipEventType.MEMBER_REMOVED
            groups.change(chat_id, removed, members=[_key(remove)])
        if name is not None:
            groups.change(chat_id, MembershipEventType.NAME_CHANGED, name=name)
        return groups.of(chat_id)

    async def leave_group(self, chat_id: str) -> None:
        """Leave a private group.

        Raises:
            NotRunning: before `run`.
            ValueError: the bot is not in the group.
            OutboxFull: the node has been away for too long.
        """
        session = self._now()
        removed = MembershipEventType.MEMBER_REMOVED
        session.private_groups.change(chat_id, removed, members=[session.public_key])

    def standing(self, community: str | Community) -> Standing:
        """Return the membership of the bot in a community, such as `member` or `requested`.

        Raises:
            NotRunning: before `run`.
            ValueError: it is not a community of the bot's.
        """
        return self._now().memberships.standing(self._own(community))

    async def request_to_join(self, community: str | Community) -> None:
        """Request membership again, for example after a rejection or after leaving.

        Raises:
            NotRunning: before `run`.
            ValueError: it is not a community of the bot's.
            OutboxFull: the node has been away for too long.
            CannotJoin: no request would help; the text names what the bot lacks, such as tokens.
        """
        session, own = self._now(), self._own(community)
        session.memberships.check_open(own)
        session.request_to_join(own)

    async def leave(self, community: str | Community) -> None:
        """Leave a community. After leaving, the bot asks to join again only if `request_to_join` is
        called, even after a restart.

        Raises:
            NotRunning: before `run`.
            ValueError: it is not a community of the bot's.
            OutboxFull: the node has been away for too long.
        """
        self._now().leave(self._own(community))

    def _own(self, community: str | Community) -> Community:
        if isinstance(community, str):
            community = Community.parse(community)
        if community not in self.rooms.communities:
            raise ValueError(
                f"the bot is not a member of {community}; call join() before the bot runs"
            )
        return community

    def description(self, community: str | Community) -> CommunityDescription | None:
        """Return the latest description of a community, with its channels and members (None if no
        description came yet).

        Raises:
            NotRunning: before `run`.
            ValueError: it is not a community of the bot's.
        """
        return self._now().descriptions.of(self._own(community))

    @property
    def owned(self) -> OwnedCommunity:
        """Community that the bot runs with the key in `community_key_file`.

        Raises:
            NotRunning: before `run`.
            ValueError: the bot has no community's key.
        """
        if (owned := self._now().owned) is None:
            raise ValueError(
                "the bot does not have the key of a community; give `community_key_file`"
            )
        return owned

    def name_of(self, user: PublicKey) -> str:
        """Return the latest display name of a user, or the start of the user's key.

        Raises:
            NotRunning: before `run`.
        """
        return self._now().name_of(user)

    def is_acknowledged(self, message_id: MessageId) -> bool:
        """Return True if another user is known to have received a message that the bot sent in this
        run. Acknowledgements exist for direct messages, and in communities with
        `BotOptions(reliability="sds")`. Plain chat has no acknowledgements.

        Raises:
            NotRunning: before `run`.
        """
        return self._now().is_acknowledged(message_id)

    def note(self, name: str) -> Any:
        """Return the value that `keep` stored under a name, or None if there is no such value.

        Raises:
            NotRunning: before `run`.
        """
        return self._now().memory.note(name)

    def keep(self, name: str, value: Any) -> None:
        """Store a JSON value under a name, across restarts. The value None deletes the stored
        value.

        Raises:
            NotRunning: before `run`.
            TypeError: JSON cannot hold it.
        """
        self._now().memory.keep(name, value)

    def _now(self) -> Session:
        if self._session is None:
            raise NotRunning(
                "the bot is not running; call this method in a handler, a task or a schedule"
            )
        return self._session


def _key(user: str | PublicKey) -> PublicKey:
    return user if isinstance(user, PublicKey) else PublicKey.parse(user)
