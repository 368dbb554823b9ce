"""Private groups of a bot, with the events of their members and the actions of the bot."""

import json
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Final, TypeAlias
from uuid import uuid4

from reliable_channel.spi import Table

from ..wire.direct.groups import (
    BadGroup,
    Group,
    MembershipEvent,
    MembershipEventType,
    read_event,
    sign_event,
)
from ..wire.enums import MessageType
from ..wire.keys import PrivateKey, PublicKey
from ..wire.outcomes import Received, RefusalReason, Refused
from ..wire.payloads import ChatMessage, ChatPayload, EmojiReaction, MembershipUpdateMessage
from ..wire.rooms import Room, Rooms
from ..wire.rules import MAX_CLOCK_AHEAD_MS
from ..wire.topics import Topic
from .memory import BotMemory

MAX_GROUPS: Final = 1_000
"""Maximum number of private groups that the bot remembers. Beyond the maximum, the bot refuses
further invitations."""
_GROUPS: Final = Table("direct_groups", (("chat_id", "TEXT"), ("events", "TEXT")))
Send: TypeAlias = Callable[[MembershipUpdateMessage, Iterable[PublicKey], str], None]


class Groups:
    """Private groups of a bot, stored on disk.

    Args:
        key: the bot's.
        memory: keeps the events.
        rooms: get a room for each group that the bot is in.
        now_ms: the time.
        send: sends an update to some users, once.
    """

    def __init__(
        self,
        key: PrivateKey,
        memory: BotMemory,
        rooms: Rooms,
        now_ms: Callable[[], int],
        send: Send,
    ) -> None:
        self._key = key
        self._own = key.public_key
        self._memory = memory
        self._rooms = rooms
        self._now_ms = now_ms
        self._send = send
        self._groups: dict[str, Group] = {}
        for chat_id, events in memory.rows(_GROUPS):
            read = [read_event(chat_id, bytes.fromhex(event)) for event in json.loads(events)]
            self._know(Group.of(chat_id, read))

    def of(self, chat_id: str) -> Group:
        """Return the private group with a chat id.

        Raises:
            ValueError: the bot was never in such a group.
        """
        if chat_id not in self._groups:
            raise ValueError(f"the bot is not a member of group {chat_id[:150]!r}")
        return self._groups[chat_id]

    @property
    def current(self) -> tuple[Group, ...]:
        """Private groups that the bot is in now."""
        return tuple(one for one in self._groups.values() if self._own in one.members)

    def observe(self, received: Received, update: MembershipUpdateMessage) -> Received | Refused:
        """Apply a membership update of a private group. `observe` returns the message inside the
        update, or the update itself if it contains none."""
        before = self._groups.get(update.chat_id)
        try:
            group = self._updated(update, before)
        except BadGroup as error:
            return _refused(received, RefusalReason.BAD_GROUP, str(error))
        if before is None and self._own not in group.ever_members:
            return _refused(received, RefusalReason.UNKNOWN_GROUP, "the bot was never a member")
        if before is None and len(self._groups) >= MAX_GROUPS:
            return _refused(received, RefusalReason.UNKNOWN_GROUP, f"{MAX_GROUPS} groups are known")
        if received.signer not in group.ever_members:
            return _refused(received, RefusalReason.NOT_ALLOWED, "not a member of the group")
        if before is None or len(group.events) > len(before.events):
            self._keep(group)
        carried = update.message or update.emoji_reaction
        if carried is None:
            return received
        if received.signer not in group.members or self._own not in group.members:
            return _refused(received, RefusalReason.NOT_ALLOWED, "not a member of the group")
        is_its = carried.chat_id == group.chat_id
        if not is_its or carried.message_type is not MessageType.PRIVATE_GROUP:
            return _refused(received, RefusalReason.WRONG_CHAT, f"for {carried.chat_id[:150]!r}")
        return replace(received, signed=replace(received.signed, payload=carried))

    def forbids(self, received: Received) -> Refused | None:
        """Return the reason why a payload without the group's membership events is refused, or
        None."""
        payload = received.payload
        assert isinstance(payload, ChatPayload)
        group = self._groups.get(payload.chat_id)
        if group is None:
            detail = f"{payload.chat_id[:150]!r}"
            return _refused(received, RefusalReason.UNKNOWN_GROUP, detail)
        if received.signer not in group.members or self._own not in group.members:
            return _refused(received, RefusalReason.NOT_ALLOWED, "not a member of the group")
        return None

    def _updated(self, update: MembershipUpdateMessage, before: Group | None) -> Group:
        events = [read_event(update.chat_id, data) for data in update.events]
        latest_ms = self._now_ms() + MAX_CLOCK_AHEAD_MS
        if any(event.clock > latest_ms for event in events):
            raise BadGroup("an event of the group has a time in the future")
        if before is None:
            return Group.of(update.chat_id, events)
        known = {event.data for event in before.events}
        if all(event.data in known for event in events):
            return before
        return Group.of(update.chat_id, (*before.events, *events))

    # -- what the bot does ------------------------------------------------------------------------

    def create(self, name: str, members: Iterable[PublicKey]) -> Group:
        """Create a private group and add users to it.

        Raises:
            ValueError: too many members, or no name.
        """
        if not name:
            raise ValueError("the name of the group is empty; give a name")
        chat_id, clock = f"{uuid4()}-{self._own.hex}", self._now_ms()
        created = MembershipEventType.CHAT_CREATED
        events = [sign_event(self._key, chat_id, created, clock, name=name)]
        if others := [one for one in dict.fromkeys(members) if one != self._own]:
            added = MembershipEventType.MEMBERS_ADDED
            events.append(sign_event(self._key, chat_id, added, clock + 1, members=others))
        group = Group.of(chat_id, events)
        self._publish(group, group.members)
        return group

    def change(
        self,
        chat_id: str,
        event_type: MembershipEventType,
        *,
        members: Iterable[PublicKey] = (),
        name: str = "",
    ) -> Group:
        """Create a membership event, and send it to the group's members, removed members included.

        Raises:
            ValueError: the bot is not in the group, or may not do this.
        """
        before = self.of(chat_id)
        clock = max(self._now_ms(), before.clock + 1)
        event = sign_event(self._key, chat_id, event_type, clock, members=members, name=name)
        group = Group.of(chat_id, (*before.events, event))
        self._publish(group, before.members | group.members)
        return group

    def _publish(self, group: Group, members: Iterable[PublicKey]) -> None:
        self._keep(group)
        update = MembershipUpdateMessage(chat_id=group.chat_id, events=_data(group.events))
        others = [one for one in members if one != self._own]
        self._send(update, others, f"group {group.chat_id} {group.clock} {len(group.events)}")

    def carrying(self, room: Room, payload: ChatMessage | EmojiReaction) -> MembershipUpdateMessage:
        """Return a message of the group together with its membership events, as clients send it."""
        events = _data(self.of(room.chat_id).events)
        if isinstance(payload, ChatMessage):
            return MembershipUpdateMessage(chat_id=room.chat_id, events=events, message=payload)
        return MembershipUpdateMessage(chat_id=room.chat_id, events=events, emoji_reaction=payload)

    def others(self, chat_id: str) -> list[PublicKey]:
        """Return the members of a group except the bot, in a fixed order."""
        return sorted(self.of(chat_id).members - {self._own}, key=lambda key: key.compressed)

    def _keep(self, group: Group) -> None:
        self._know(group)
        events = json.dumps([event.data.hex() for event in group.events])
        self._memory.put(_GROUPS, group.chat_id, events)
        self._memory.write()

    def _know(self, group: Group) -> None:
        self._groups[group.chat_id] = group
        self._rooms.groups.pop(group.chat_id, None)
        if self._own in group.members:
            room = Room(group.chat_id, Topic(group.chat_id), MessageType.PRIVATE_GROUP)
            self._rooms.groups[group.chat_id] = room


def _data(events: Iterable[MembershipEvent]) -> tuple[bytes, ...]:
    return tuple(event.data for event in events)


def _refused(received: Received, reason: RefusalReason, detail: str) -> Refused:
    return Refused(reason, detail, received.signer, received.message_id)
