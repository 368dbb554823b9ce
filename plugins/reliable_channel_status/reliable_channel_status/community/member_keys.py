"""Group keys of a community that a bot runs, from creation to distribution and replacement.

When a member leaves a group, the group's key is replaced. The next description and the next
messages are encrypted with the new key. New members also get the earlier keys, so that they can
read the history, as in status-go.
"""

from collections.abc import Callable, Iterator
from typing import Final

from ..wire.chats import Community
from ..wire.community_payloads import CommunityDescription
from ..wire.direct.dh import ANY_DEVICE
from ..wire.direct.session_store import DurableStore
from ..wire.hash_ratchet import GroupKey, seal_for_members
from ..wire.keys import PrivateKey, PublicKey
from ..wire.outcomes import SignedPayload
from ..wire.recent import Recent
from ..wire.status_pb2 import ProtocolMessage
from .encryption import groups_of, hide, is_encrypted
from .group_keys import GroupKeys

REKEY_MS: Final = 48 * 3600 * 1000
"""Age at which a group key is always replaced (`RekeyInterval` of status-go)."""
ASKED_AGAIN_MS: Final = 60_000
"""Minimum time between two answers to a member that requests keys."""
MAX_ASKED: Final = 10_000
HOLDERS: Final = "group_holders"

SendKeys = Callable[[str, PublicKey, bytes, tuple[GroupKey, ...]], None]
"""Function that sends keys of a group to a member, once for each name."""


class MemberKeys:
    """Record of the group keys that each member has, kept across restarts.

    Args:
        keys: of the bot, which is a member as well.
        key: of the community.
        me: the bot.
        store: keeps which member has which key.
        send: sends keys to a member.
    """

    def __init__(
        self,
        keys: GroupKeys,
        key: PrivateKey,
        me: PublicKey,
        store: DurableStore,
        send: SendKeys,
    ) -> None:
        self._keys = keys
        self._key = key
        self._me = me
        self._community = Community(key.public_key)
        self._store = store
        self._send = send
        self._asked: Recent[PublicKey, int] = Recent(MAX_ASKED)
        self._lacking: set[PublicKey] = set()
        """Members that asked for keys and are to be sent them."""
        self._holders: dict[bytes, dict[PublicKey, int]] = {}
        """Of each group, with the timestamp of the latest key that each was sent."""
        for name, value in store.rows(HOLDERS):
            group, user = name.split(" ")
            users = self._holders.setdefault(bytes.fromhex(group), {})
            users[PublicKey(bytes.fromhex(user))] = int(value)

    def is_due(self, description: CommunityDescription, now_ms: int) -> bool:
        """Return True if a group key must be replaced, or a member lacks keys."""
        return any(
            self._is_over(group, members, now_ms) or next(self._owed(group, members), None)
            for group, members in groups_of(description, self._community).items()
        )

    def renew(self, description: CommunityDescription, now_ms: int) -> bool:
        """Replace old group keys, and keys of groups that members left. `renew` returns True if the
        community's key was replaced, which the next description announces."""
        is_new = False
        for group, members in groups_of(description, self._community).items():
            if self._is_over(group, members, now_ms):
                is_new |= group == self._key.public_key.compressed
                self._replace(group, members, now_ms)
        self._store.write()
        return is_new

    def send(self, description: CommunityDescription, now_ms: int) -> None:
        """Send missing keys to members, after the description that lists the members.

        Raises:
            OutboxFull: too much waits for the node; what was sent is kept.
        """
        for group, members in groups_of(description, self._community).items():
            current = self._keys.current(group)
            assert current is not None  # `renew` made it
            for user in list(self._owed(group, members)):
                known = self._holders.get(group, {})
                keys = (current,) if user in known else self._keys.keys_of(group)
                for_all = group == self._community.public_key.compressed
                if not for_all or keys != (current,) or user in self._lacking:
                    self._send(f"keys {group.hex()} {user.hex} {now_ms}", user, group, keys)
                self._lacking.discard(user)  # a description brings the only key to all
                self._hold(group, user, current.timestamp_ms)
        self._store.write()

    def hide(self, description: CommunityDescription) -> CommunityDescription:
        """Return the description for publication, with its private parts encrypted."""
        return hide(description, self._community, self._keys.encrypt_part)

    def with_key(
        self, description: CommunityDescription, signed: SignedPayload, installation_id: str = ""
    ) -> bytes | None:
        """Return the `ProtocolMessage` with a description and its key for all members, or None if
        unencrypted."""
        group = self._community.public_key.compressed
        if not is_encrypted(description):
            return None
        current = self._keys.current(group)
        assert current is not None  # `renew` made it
        members = groups_of(description, self._community)[group]
        message = ProtocolMessage(installation_id=installation_id)
        encrypted = message.encrypted_message[ANY_DEVICE]
        encrypted.payload = signed.data
        encrypted.hr_header.group_id = group
        encrypted.hr_header.keys.rekey_group.CopyFrom(
            seal_for_members(current, self._key, sorted(members, key=lambda one: one.compressed))
        )
        return message.SerializeToString()

    def asked(self, user: PublicKey, now_ms: int) -> bool:
        """Note that a member requested missing keys. If the member requested keys a moment ago,
        `asked` returns False."""
        if now_ms - self._asked.get(user, -ASKED_AGAIN_MS) < ASKED_AGAIN_MS:
            return False
        self._asked.renew(user, now_ms)
        self._lacking.add(user)
        groups = [group for group, holders in self._holders.items() if user in holders]
        for group in groups:
            self._drop(group, user)
        return bool(groups)

    def _is_over(self, group: bytes, members: frozenset[PublicKey], now_ms: int) -> bool:
        """Return True if a group needs another key."""
        current = self._keys.current(group)
        if current is None or now_ms - current.timestamp_ms >= REKEY_MS:
            return True
        return not self._holders.get(group, {}).keys() <= members

    def _owed(self, group: bytes, members: frozenset[PublicKey]) -> Iterator[PublicKey]:
        """Members that are to be sent keys. The community's new keys come with its description."""
        current, known = self._keys.current(group), self._holders.get(group, {})
        for_all = group == self._community.public_key.compressed
        for user in members:
            if user == self._me:
                continue
            if user not in known or (
                not for_all and current is not None and known[user] < current.timestamp_ms
            ):
                yield user

    def _replace(self, group: bytes, members: frozenset[PublicKey], now_ms: int) -> None:
        self._keys.generate(group, now_ms)
        for user in self._holders.get(group, {}).keys() - members:
            self._drop(group, user)

    def _hold(self, group: bytes, user: PublicKey, timestamp_ms: int) -> None:
        self._holders.setdefault(group, {})[user] = timestamp_ms
        self._store.put(HOLDERS, _row(group, user), b"%d" % timestamp_ms)

    def _drop(self, group: bytes, user: PublicKey) -> None:
        del self._holders[group][user]
        self._store.delete(HOLDERS, _row(group, user))


def _row(group: bytes, user: PublicKey) -> str:
    return f"{group.hex()} {user.compressed.hex()}"
