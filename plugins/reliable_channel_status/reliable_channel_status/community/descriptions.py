"""Descriptions of a bot's communities, with their moderators and members.

Clients and bots drop messages of users that the known description does not list as members. A
message that arrives before the description that lists its author waits for the description.
"""

from collections.abc import Iterable
from typing import Final

from ..wire.chats import Community
from ..wire.community_payloads import CommunityDescription
from ..wire.enums import Role
from ..wire.keys import PublicKey
from ..wire.outcomes import Received, RefusalReason, Refused
from ..wire.payloads import ChatPayload
from ..wire.recent import Recent
from ..wire.rooms import Rooms
from .encryption import is_hidden
from .rules import is_privileged, why_not_heard

WAITING: Final = 1_000
"""Maximum number of messages of unknown users that wait for a description. Beyond the maximum, the
oldest waiting message is evicted."""


class Descriptions:
    """Latest description of each community of the bot.

    Args:
        rooms: where the bot is.
        public_key: the bot; its own words are not judged.
    """

    def __init__(self, rooms: Rooms, public_key: PublicKey) -> None:
        self._rooms = rooms
        self._me = public_key
        self._latest: dict[Community, CommunityDescription] = {}
        self._waiting: Recent[bytes, Received] = Recent(WAITING)

    def of(self, community: Community) -> CommunityDescription | None:
        """Return the latest description of a community, or None."""
        return self._latest.get(community)

    def learn(self, community: Community, description: CommunityDescription) -> bool:
        """Note a description that the community's key signed. For an older description, `learn`
        returns False. A description with the same clock is read again, because a new key may
        decrypt more of it."""
        latest = self._latest.get(community)
        if community not in self._rooms.communities:
            return False
        if is_hidden(description):
            return False  # of its members nothing is known
        if latest is not None and description.clock < latest.clock:
            return False
        if description == latest:
            return False
        self._latest[community] = description
        self._rooms.follow(community, description.chats)
        return True

    def leads(self, user: PublicKey, community: Community | None) -> bool:
        """Return True if a user may pin messages, and delete messages of others."""
        if community is None:
            return False
        latest = self._latest.get(community)
        if user == community.public_key:
            return True
        return latest is not None and is_privileged(latest, user)

    def lists(self, user: PublicKey, community: Community) -> bool:
        """Return True if the latest description lists a user as a member."""
        latest = self._latest.get(community)
        return latest is not None and user.hex in latest.members

    def owns(self, user: PublicKey, community: Community) -> bool:
        """Return True if the latest description lists a user as an owner."""
        latest = self._latest.get(community)
        member = None if latest is None else latest.members.get(user.hex)
        return member is not None and Role.ROLE_OWNER in member.roles

    def judge(self, received: Received) -> Refused | None:
        """Return the reason why clients drop a received message, or None."""
        payload = received.payload
        if not isinstance(payload, ChatPayload) or received.signer == self._me:
            return None
        room = self._rooms.find(payload.chat_id)
        community = None if room is None else room.community
        latest = None if community is None else self._latest.get(community)
        if community is None or latest is None:
            return None
        why = why_not_heard(latest, community, received.signer, payload)
        if why is None:
            return None
        self._waiting.renew(received.signed.fingerprint, received)
        detail = f"{type(payload).__name__}: {why}"
        return Refused(RefusalReason.NOT_A_MEMBER, detail, received.signer, received.message_id)

    def let_in(self, community: Community) -> Iterable[Received]:
        """Return the messages of new members that waited for a new description of a community."""
        members = self._latest[community].members
        for fingerprint, waiting in list(self._waiting.items()):
            payload, member = waiting.payload, members.get(waiting.signer.hex)
            assert isinstance(payload, ChatPayload)
            if member is None or not payload.chat_id.startswith(community.id):
                continue
            if payload.clock >= member.last_update_clock * 1000:
                del self._waiting[fingerprint]
                yield waiting
