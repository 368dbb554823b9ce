"""`reliable-channel bot doctor`: where a bot stands in its communities, by what Store has.

Nothing is written, neither to the network nor to the bot's state, so the bot may run meanwhile.
"""

from collections.abc import Iterable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from enum import Enum
from typing import Final

from waku import WakuClient

from ..chats import Community
from ..community_encryption import is_hidden
from ..community_payloads import CommunityDescription
from ..community_rules import why_closed
from ..direct.sessions import MemorySessionStore
from ..group_keys import TABLES, GroupKeys
from ..keys import PrivateKey
from ..outcomes import Received
from ..pipeline import NS_PER_MS, Opener, Outcome
from .link import Link, Node

SEARCHED_MS: Final = 30 * 86_400_000
"""How far back descriptions are searched: what Status' nodes keep."""


class Place(Enum):
    """Where a bot stands in a community."""

    MEMBER = "member"
    """The description lists the bot."""
    NOT_A_MEMBER = "not a member"
    """It does not: clients drop what the bot says there."""
    CLOSED = "closed"
    """It does not, and no request would help."""
    UNKNOWN = "unknown"
    """Store has no description."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What was found about one community."""

    community: Community
    place: Place
    advice: str
    """What to do, or an empty text."""

    def to_dict(self) -> dict[str, str]:
        """The same for programs."""
        return {
            "community": self.community.id,
            "place": self.place.value,
            "advice": self.advice,
        }

    def __str__(self) -> str:
        advice = f"; {self.advice}" if self.advice else ""
        return f"{self.community}: {self.place.value}{advice}"


async def examine(
    node: WakuClient | Node,
    key: PrivateKey,
    communities: Iterable[Community],
    shards: Sequence[str],
    now_ms: int,
) -> list[Finding]:
    """Where a bot stands in each community, by the latest description in Store.

    Args:
        node: what is asked; the caller closes it.
        key: the bot's; encrypted members are readable for members.
        communities: the bot's.
        shards: pubsub topics where descriptions are searched.
        now_ms: milliseconds since 1970.

    Raises:
        WakuError: no Store answers.
    """
    return [_judged(one, key, await _latest(node, key, one, shards, now_ms)) for one in communities]


async def _latest(
    node: WakuClient | Node,
    key: PrivateKey,
    community: Community,
    shards: Sequence[str],
    now_ms: int,
) -> CommunityDescription | None:
    topic = community.description_topic
    keys = GroupKeys(key, [community], MemorySessionStore(TABLES), is_owner=lambda *_: False)
    opener = Opener([topic], groups=keys)
    link = Link(node, shards, [topic.content_topic])
    start_ns, end_ns = (now_ms - SEARCHED_MS) * NS_PER_MS, (now_ms + 60_000) * NS_PER_MS
    latest: CommunityDescription | None = None
    for shard in shards:
        pages = link.stored(shard, [topic.content_topic], start_ns, end_ns)
        async with aclosing(pages):
            async for page in pages:
                opened = (o for one in page for o in opener.receive(one.message, now_ms))
                for found in (_of(community, outcome) for outcome in opened):
                    if found is not None and (latest is None or found.clock >= latest.clock):
                        latest = found
    return latest


def _of(community: Community, outcome: Outcome) -> CommunityDescription | None:
    """A description that the community's key signed."""
    if not isinstance(outcome, Received) or outcome.signer != community.public_key:
        return None
    return outcome.payload if isinstance(outcome.payload, CommunityDescription) else None


def _judged(
    community: Community, key: PrivateKey, description: CommunityDescription | None
) -> Finding:
    me = key.public_key
    if description is None:
        advice = "Store has no description of 30 days; ask the owner, and check node and shards"
        return Finding(community, Place.UNKNOWN, advice)
    if me.hex in description.members:
        return Finding(community, Place.MEMBER, "")
    if why := why_closed(description, me):
        return Finding(community, Place.CLOSED, f"the bot cannot join: {why}")
    advice = "clients drop what it says; run the bot, which asks to join, or ask the owner"
    if is_hidden(description):
        advice = f"its members are encrypted, and not for this bot; {advice}"
    return Finding(community, Place.NOT_A_MEMBER, advice)
