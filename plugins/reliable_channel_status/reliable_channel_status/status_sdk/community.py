"""`Community` and `Channel`: a community that the bot is in, or runs."""

from collections.abc import Iterator
from typing import Any

from ..bot import NotAMember, OwnedCommunity
from ..chats import Community as BotCommunity
from ..community_payloads import CommunityDescription
from ..keys import PublicKey
from .account import Account
from .models import CommunityRequest, Event


class Community:
    """A community under the names of `status_sdk.Community`. What changes it needs a bot that runs
    it (`community_key_file`), since there is no status-go that could be its owner.

    Args:
        account: logged in.
        community_id: its id, or its key.
        url: an invite link, in its place.

    Raises:
        ValueError: it is not a community, or the bot was not made with it.
    """

    def __init__(
        self, account: Account, community_id: str | None = None, url: str | None = None
    ) -> None:
        self.account = account
        self._community = BotCommunity.parse(community_id or url or "")
        account.call(account.bot.standing, self._community)

    @property
    def id(self) -> str:
        """Its id, `0x…`."""
        return self._community.id

    @property
    def name(self) -> str:
        """Its name, as its owner describes it."""
        return self._description.identity.display_name if self._description.identity else ""

    @property
    def is_member(self) -> bool:
        """Whether the bot is a member."""
        return self.account.call(self.account.bot.standing, self._community) == "member"

    has_joined = is_member

    @property
    def channels(self) -> list[dict[str, Any]]:
        """Its channels: `id`, `name`, `description`."""
        return [
            {
                "id": f"{self.id}{uuid}",
                "name": chat.identity.display_name if chat.identity else "",
                "description": chat.identity.description if chat.identity else "",
            }
            for uuid, chat in self._description.chats.items()
        ]

    def get_members(self) -> dict[str, dict[str, Any]]:
        """Its members, by public key."""
        names = {key: PublicKey.parse(key) for key in self._description.members}
        call, name_of = self.account.call, self.account.bot.name_of
        return {
            key: {"public_key": key, "display_name": call(name_of, user)}
            for key, user in names.items()
        }

    def __getitem__(self, channel_name: str) -> "Channel":
        for one in self.channels:
            if one["name"] == channel_name:
                return Channel(self.account, one["id"], channel_name)
        raise KeyError(f"there is no channel {channel_name!r}")

    def __len__(self) -> int:
        return len(self._description.members)

    def leave(self) -> None:
        """Leave it."""
        self.account.wait(self.account.bot.leave, self._community)

    # -- what its owner may -----------------------------------------------------------------------

    def listen_requests(self) -> Iterator[CommunityRequest]:
        """Requests to join, from now on."""
        events = self.account.listen_events()
        return (
            payload
            for event, payload in events
            if event is Event.COMMUNITY_REQUEST and isinstance(payload, CommunityRequest)
        )

    def accept(self, pending_request_id: str) -> None:
        """Let a user in."""
        self.account.wait(self._owned.accept, PublicKey.parse(pending_request_id))

    def decline(self, pending_request_id: str) -> None:
        """Answer that a user is not let in."""
        self.account.wait(self._owned.decline, PublicKey.parse(pending_request_id))

    def kick(self, public_keys: str | list[str]) -> None:
        """Remove members."""
        for key in _keys(public_keys):
            self.account.wait(self._owned.kick, key)

    def ban(self, public_keys: str | list[str], delete_messages: bool = False) -> None:
        """Remove users and refuse later requests."""
        for key in _keys(public_keys):
            self.account.wait(self._owned.ban, key, delete_messages=delete_messages)

    def unban(self, public_keys: str | list[str]) -> None:
        """Let users ask again."""
        for key in _keys(public_keys):
            self.account.wait(self._owned.unban, key)

    def create_channel(
        self, name: str, description: str, emoji: str | None = None, colour: str | None = None
    ) -> "Channel":
        """Add a channel."""
        uuid = self.account.wait(
            self._owned.add_channel, name, description, emoji=emoji or "", color=colour or ""
        )
        return Channel(self.account, f"{self.id}{uuid}", name)

    def delete_channel(self, channel_name: str) -> None:
        """Remove a channel."""
        uuid = self[channel_name].id.removeprefix(self.id)
        self.account.wait(self._owned.remove_channel, uuid)

    @property
    def _owned(self) -> OwnedCommunity:
        owned = self.account.call(lambda: self.account.bot.owned)
        if owned.community != self._community:
            raise ValueError(f"the bot does not run {self.id}; give its key as community_key_file=")
        return owned

    @property
    def _description(self) -> CommunityDescription:
        found = self.account.call(self.account.bot.description, self._community)
        if found is None:
            raise NotAMember(f"no description of {self.id} was heard yet")
        return found


class Channel:
    """A channel under the names of `status_sdk.Channel`."""

    def __init__(self, account: Account, id: str, name: str) -> None:
        self.account = account
        self.id = id
        self.name = name

    def send_message(self, message: str, reply_to_message_id: str | None = None) -> str:
        """Write in it."""
        return self.account.send_message(self.id, message, reply_to_message_id)

    def send_image(
        self,
        file_paths: str | list[str],
        message: str | None = None,
        reply_to_message_id: str | None = None,
    ) -> str:
        """Send images into it."""
        return self.account.send_image(self.id, file_paths, message, reply_to_message_id)

    def send_bridged_message(self, message: str, **more: str) -> str:
        """Bring a message from another network into it, as `Account.send_bridged_message`."""
        return self.account.send_bridged_message(self.id, message, **more)

    def send_emoji_reaction(self, message_id: str, emoji_shortname: str) -> None:
        """React to a message in it."""
        self.account.send_emoji_reaction(message_id, emoji_shortname, self.id)

    def delete_message(self, id: str) -> bool:
        """Delete a message in it."""
        return self.account.delete_message(id, self.id)


def _keys(public_keys: str | list[str]) -> list[PublicKey]:
    given = [public_keys] if isinstance(public_keys, str) else public_keys
    return [PublicKey.parse(key) for key in given]
