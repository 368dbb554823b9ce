"""`GroupChat`: a private group."""

from typing import Any

from ..direct.groups import Group
from .account import Account


class GroupChat:
    """A private group under the names of `status_sdk.GroupChat`.

    Args:
        account: logged in.
        chat_id: of a group that the bot is in; None for one that `create` makes.
    """

    def __init__(self, account: Account, chat_id: str | None = None) -> None:
        self.account = account
        self._id = chat_id

    def create(self, public_keys: str | list[str], name: str) -> None:
        """Create it."""
        keys = [public_keys] if isinstance(public_keys, str) else public_keys
        self._id = self.account.wait(self.account.bot.create_group, name, keys).chat_id

    @property
    def id(self) -> str:
        """Its id.

        Raises:
            ValueError: it does not exist.
        """
        if self._id is None:
            raise ValueError("give chat_id=, or call create()")
        return self._id

    @property
    def name(self) -> str:
        """Its name."""
        return self._group.name

    @name.setter
    def name(self, name: str) -> None:
        self.account.wait(self.account.bot.change_group, self.id, name=name)

    @property
    def members(self) -> dict[str, dict[str, Any]]:
        """Its members, by public key."""
        group = self._group
        return {
            user.hex: {"public_key": user.hex, "admin": user in group.admins}
            for user in group.members
        }

    @property
    def is_admin(self) -> bool:
        """Whether the bot is an admin."""
        return self.account.call(lambda: self.account.bot.public_key) in self._group.admins

    def add(self, public_keys: str | list[str]) -> None:
        """Add users."""
        keys = [public_keys] if isinstance(public_keys, str) else public_keys
        self.account.wait(self.account.bot.change_group, self.id, add=keys)

    def remove(self, public_keys: str | list[str]) -> None:
        """Remove members."""
        for key in [public_keys] if isinstance(public_keys, str) else public_keys:
            self.account.wait(self.account.bot.change_group, self.id, remove=key)

    def leave(self) -> None:
        """Leave it."""
        self.account.wait(self.account.bot.leave_group, self.id)

    def send_message(self, message: str, reply_to_message_id: str | None = None) -> str:
        """Write in it."""
        return self.account.send_message(self.id, message, reply_to_message_id)

    def delete_message(self, id: str) -> bool:
        """Delete a message in it."""
        return self.account.delete_message(id, self.id)

    @property
    def _group(self) -> Group:
        groups = {
            group.chat_id: group for group in self.account.call(lambda: self.account.bot.groups)
        }
        return groups[self.id]
