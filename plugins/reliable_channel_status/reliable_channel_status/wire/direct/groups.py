"""Private groups (55/STATUS-1TO1), which result from signed membership events.

The event's author signs the group's id and the event, so any member may forward events. The module
has no I/O and no clock.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Final

from .. import status_pb2
from ..codec import parsed
from ..enums import OpenEnum
from ..keys import SIGNATURE_BYTES, PrivateKey, PublicKey, recover

MAX_EVENTS: Final = 500
"""Maximum number of events of a private group. Membership updates beyond the maximum are
refused."""
MAX_MEMBERS: Final = 100
MAX_NAME_LENGTH: Final = 100
MAX_EVENT_BYTES: Final = 150 * 1024
"""Maximum size of a membership event, which may carry an image."""


class MembershipEventType(OpenEnum):
    """Kind of a membership event in a private group."""

    UNKNOWN = 0
    CHAT_CREATED = 1
    NAME_CHANGED = 2
    MEMBERS_ADDED = 3
    MEMBER_JOINED = 4
    MEMBER_REMOVED = 5
    ADMINS_ADDED = 6
    ADMIN_REMOVED = 7
    COLOR_CHANGED = 8
    IMAGE_CHANGED = 9


class BadGroup(ValueError):
    """Error that membership events do not form a valid group. The text of the error gives the
    reason."""


@dataclass(frozen=True, slots=True)
class MembershipEvent:
    """Membership event of a private group, with its author."""

    type: MembershipEventType
    clock: int
    author: PublicKey
    members: tuple[PublicKey, ...]
    name: str
    color: str
    data: bytes = field(repr=False)
    """Encoded event with its signature, kept unchanged for forwarding."""


def sign_event(
    key: PrivateKey,
    chat_id: str,
    event_type: MembershipEventType,
    clock: int,
    *,
    members: Iterable[PublicKey] = (),
    name: str = "",
    color: str = "",
) -> MembershipEvent:
    """Return a membership event that the key's owner signed. The clock of an event is in
    milliseconds.

    Raises:
        ValueError: a text that is not Unicode, or a clock out of range.
    """
    encoded = status_pb2.MembershipUpdateEvent(
        clock=clock,
        members=[member.hex for member in members],
        name=name,
        type=event_type,
        color=color,
    ).SerializeToString()
    return read_event(chat_id, key.sign(chat_id.encode() + encoded) + encoded)


def read_event(chat_id: str, data: bytes) -> MembershipEvent:
    """Return a membership event of a group, with the author from its signature.

    Raises:
        BadGroup: it is not an event.
    """
    if not SIGNATURE_BYTES < len(data) <= MAX_EVENT_BYTES:
        raise BadGroup(f"the event of a group has {len(data)} bytes, too few or too many")
    signature, encoded = data[:SIGNATURE_BYTES], data[SIGNATURE_BYTES:]
    raw = status_pb2.MembershipUpdateEvent()
    if not parsed(raw, encoded) or len(raw.members) > MAX_MEMBERS:
        raise BadGroup("the event of a group cannot be read")
    author = recover(chat_id.encode() + encoded, signature)
    if author is None:
        raise BadGroup("the signature of a group's event belongs to no key")
    try:
        members = tuple(map(PublicKey.parse, raw.members))
    except ValueError as error:
        raise BadGroup(f"the event of a group names a member that is not a key: {error}") from None
    kind = MembershipEventType(raw.type)
    return MembershipEvent(kind, raw.clock, author, members, raw.name, raw.color, data)


@dataclass(frozen=True, slots=True)
class Group:
    """Private group that results from its membership events."""

    chat_id: str
    """Id of the group, which is a uuid, a hyphen and the creator's public key in hex."""
    name: str = ""
    color: str = ""
    members: frozenset[PublicKey] = frozenset()
    admins: frozenset[PublicKey] = frozenset()
    joined: frozenset[PublicKey] = frozenset()
    """Members that have announced that they joined."""
    ever_members: frozenset[PublicKey] = field(default=frozenset(), repr=False)
    events: tuple[MembershipEvent, ...] = field(default=(), repr=False)

    @classmethod
    def of(cls, chat_id: str, events: Iterable[MembershipEvent]) -> "Group":
        """Return the group that results from events, which may be repeated and in any order.

        Raises:
            BadGroup: an event that its author may not write, too many, or not of this group.
        """
        different = {event.data: event for event in events}
        if not 0 < len(different) <= MAX_EVENTS:
            raise BadGroup(f"the group has {len(different)} events; 1 to {MAX_EVENTS} are allowed")
        # Of the same clock those that let in come before those that need a member.
        in_order = sorted(different.values(), key=lambda one: (one.clock, one.type, one.data))
        group = cls(chat_id)
        for event in in_order:
            group = group._after(event)
        return group

    @property
    def creator(self) -> PublicKey:
        """Author of the group's first event."""
        return self.events[0].author

    @property
    def clock(self) -> int:
        """Highest clock of the group's events."""
        return self.events[-1].clock

    def _after(self, event: MembershipEvent) -> "Group":
        author, of = event.author, frozenset(event.members)
        if why := self._forbids(event, of):
            raise BadGroup(f"{event.type.name} by {author!r}: {why}")
        group = replace(self, events=(*self.events, event))
        match event.type:
            case MembershipEventType.CHAT_CREATED:
                first = frozenset([author])
                everybody = replace(group, members=first, admins=first, joined=first)
                return replace(everybody, name=event.name, color=event.color, ever_members=first)
            case MembershipEventType.NAME_CHANGED:
                return replace(group, name=event.name)
            case MembershipEventType.COLOR_CHANGED:
                return replace(group, color=event.color)
            case MembershipEventType.MEMBERS_ADDED:
                ever = self.ever_members | of
                return replace(group, members=self.members | of, ever_members=ever)
            case MembershipEventType.MEMBER_JOINED:
                return replace(group, joined=self.joined | {author})
            case MembershipEventType.MEMBER_REMOVED:
                left = replace(group, members=self.members - of, joined=self.joined - of)
                return replace(left, admins=self.admins - of)
            case MembershipEventType.ADMINS_ADDED:
                return replace(group, admins=self.admins | of)
            case MembershipEventType.ADMIN_REMOVED:
                return replace(group, admins=self.admins - of)
        return group

    def _forbids(self, event: MembershipEvent, of: frozenset[PublicKey]) -> str | None:
        """Why an event must not come now (`validateEvent` of status-go), or None."""
        author, is_admin = event.author, event.author in self.admins
        match event.type:
            case MembershipEventType.CHAT_CREATED:
                if self.events:
                    return "the group was created before"
                # DIVERGES: status-go compares the end of the id alone.
                if not self.chat_id.endswith(f"-{author.hex}"):
                    return "the group's id names another creator"
                return None if len(event.name) <= MAX_NAME_LENGTH else "its name is too long"
            case _ if not self.events:
                return "the group was not created before"
            case MembershipEventType.MEMBER_JOINED:
                return None if author in self.members else "not a member"
            case MembershipEventType.MEMBER_REMOVED:
                if len(of) != 1:
                    return f"removes {len(of)} members"
                is_own = of == {author}
                return None if is_own or (is_admin and not of & self.admins) else "not allowed"
            case MembershipEventType.ADMIN_REMOVED:
                return None if is_admin and of == {author} else "not allowed"
            case _ if not is_admin:
                return "not an admin"
            case MembershipEventType.NAME_CHANGED:
                return None if 0 < len(event.name) <= MAX_NAME_LENGTH else "no name, or too long"
            case MembershipEventType.MEMBERS_ADDED:
                count = len(self.members | of)
                return None if count <= MAX_MEMBERS else f"more than {MAX_MEMBERS} members"
            case MembershipEventType.ADMINS_ADDED:
                return None if of <= self.members else "not members"
            case MembershipEventType.COLOR_CHANGED | MembershipEventType.IMAGE_CHANGED:
                return None
        return "an unknown event"
