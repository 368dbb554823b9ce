"""Chats of a bot, with their topics, in communities and in public."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from .chats import Community, Derivation, partitioned_topic
from .enums import MessageType
from .keys import UNCOMPRESSED_BYTES, PublicKey
from .topics import Topic

MAX_FOLLOWED: Final = 200
"""Maximum number of a description's channels that the bot follows. Deriving the key of each channel
takes some hundredths of a second, once."""


@dataclass(frozen=True, slots=True)
class Room:
    """Chat that the bot reads and writes."""

    chat_id: str
    topic: Topic
    """Topic on which the bot writes in the chat."""
    message_type: MessageType
    community: Community | None = None
    """Community that the chat belongs to. For a public chat and a one-to-one chat, `community` is
    None."""
    peer: PublicKey | None = None
    """Other user of a one-to-one chat."""

    @property
    def name(self) -> str:
        """Uuid of a channel, or name of a public chat."""
        return self.chat_id.removeprefix(str(self.community)) if self.community else self.chat_id


class Rooms:
    """Chats of a bot, by chat id.

    If a community was joined without naming channels, the bot takes part in all of its channels.
    """

    def __init__(self) -> None:
        self._rooms: dict[str, Room] = {}
        self._whole: dict[Community, Derivation] = {}
        self._topics: dict[Topic, None] = {}
        self._listed: dict[Community, tuple[Topic, ...]] = {}
        self.communities: dict[Community, None] = {}
        self.groups: dict[str, Room] = {}
        """The private groups that the bot is in, while it runs."""
        self.has_direct = False
        """True if the bot reads and writes direct messages."""

    def join(
        self, community: Community, channels: Iterable[str] | None, derivation: Derivation
    ) -> None:
        """Take part in the named channels of a community, or in all if `channels` is None.

        Raises:
            ValueError: a channel that is not a uuid, no channels, or all of a community of which
                each has a separate topic.
        """
        if channels is None:
            if derivation == "per-channel":
                raise ValueError(
                    "derivation='per-channel' needs the names of the channels; give `channels`"
                )
            self._whole[community] = derivation
        else:
            rooms = [_room(community, channel, derivation) for channel in channels]
            if not rooms:
                raise ValueError(
                    "`channels` is empty; name at least one channel, or give None for all channels"
                )
            for room in rooms:
                self._rooms[room.chat_id] = room
                # Clients differ in which of the two they write on (docs/status.md).
                self._topics[Topic(room.chat_id)] = None
        self.communities[community] = None
        self._topics[community.universal_topic] = None
        self._topics[community.description_topic] = None

    def join_public(self, name: str) -> None:
        """Take part in a public chat of Status, given by its name.

        Raises:
            ValueError: the name is empty.
        """
        if not name:
            raise ValueError("the name of the public chat is empty; give a name")
        self._rooms[name] = Room(name, Topic(name), MessageType.PUBLIC_GROUP)
        self._topics[Topic(name)] = None

    def follow(self, community: Community, channels: Iterable[str]) -> None:
        """Listen to the channels in a description, if the bot joined the whole community. Clients
        of 2024 write on a topic for each channel."""
        if community in self._whole:
            uuids = sorted(channels)[:MAX_FOLLOWED]
            self._listed[community] = tuple(Topic(f"{community.id}{uuid}") for uuid in uuids)

    @property
    def topics(self) -> tuple[Topic, ...]:
        listed = (topic for topics in self._listed.values() for topic in topics)
        return tuple(dict.fromkeys((*self._topics, *listed)))

    def find(self, chat_id: str) -> Room | None:
        """Return the chat with an id, or None if the bot is not in the chat."""
        if room := self._rooms.get(chat_id) or self.groups.get(chat_id):
            return room
        if self.has_direct and (peer := _peer(chat_id)) is not None:
            return direct_room(peer)
        for community, derivation in self._whole.items():
            if community.owns(chat_id):
                return _room(community, chat_id, derivation)
        return None

    def named(self, channel: str) -> Room:
        """Return the only chat with an id, a uuid or a name.

        Raises:
            ValueError: none, or several communities have such a channel.
        """
        ids = [channel, *(community.id + channel for community in self.communities)]
        found = [room for chat_id in ids if (room := self.find(chat_id))]
        if len(found) != 1:
            raise ValueError(
                f"{len(found)} chats of this bot have the name {channel[:150]!r}; the name must "
                "fit exactly one chat"
            )
        return found[0]

    def __iter__(self) -> Iterator[Room]:
        return iter(self._rooms.values())


def direct_room(peer: PublicKey) -> Room:
    """Return the one-to-one chat with a user, whose id is the user's key."""
    return Room(peer.hex, partitioned_topic(peer), MessageType.ONE_TO_ONE, peer=peer)


def _peer(chat_id: str) -> PublicKey | None:
    if len(chat_id) != 2 + 2 * UNCOMPRESSED_BYTES or not chat_id.startswith("0x04"):
        return None
    try:
        return PublicKey.parse(chat_id)
    except ValueError:
        return None


def _room(community: Community, channel: str, derivation: Derivation) -> Room:
    return Room(
        community.channel_id(channel),
        community.channel_topic(channel, derivation),
        MessageType.COMMUNITY_CHAT,
        community,
    )
