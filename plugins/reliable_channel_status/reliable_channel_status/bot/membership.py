"""Membership of a bot in its communities, because clients show only messages of members.

Only the owner's description with the highest clock counts, and it lists all members. A bot that is
not listed requests to join, and waits for a description that lists it.
"""

import logging
from collections.abc import Callable, Iterable, Sequence
from contextlib import aclosing
from dataclasses import asdict, dataclass
from enum import Enum
from typing import Final, Literal, TypeAlias

from reliable_channel.errors import ReliableChannelError
from waku import WakuClient

from ..community.encryption import is_hidden
from ..community.group_keys import TABLES, GroupKeys
from ..community.rules import why_closed
from ..wire.chats import Community
from ..wire.community_payloads import CommunityDescription, CommunityRequestToJoinResponse
from ..wire.direct.session_store import MemorySessionStore
from ..wire.keys import PrivateKey, PublicKey
from ..wire.opening import Opener, Outcome
from ..wire.outcomes import Received
from ..wire.sealing import NS_PER_MS
from .link import Link, Node
from .memory import BotMemory, OutboxFull
from .reporting import Reporter

Standing: TypeAlias = Literal[
    "unknown", "not_a_member", "requested", "member", "rejected", "kicked", "left", "closed"
]
"""Membership of a bot in a community, as a word. `unknown` means that no description was read, and
`closed` that members need tokens, for example."""

Change: TypeAlias = Literal["joined", "rejected", "kicked", "not_a_member"]
"""Change of the bot's membership that a payload causes."""

REQUEST_AGAIN_MS: Final = 7 * 86_400_000
"""Time after which owners' clients forget a request to join, which is a week."""


_CAN_SPEAK: Final = ("unknown", "member")
_FINAL: Final = ("rejected", "kicked", "closed")


class NotAMember(ReliableChannelError, RuntimeError):
    """Error that the bot is not a member of a community, so clients would drop its messages
    there."""


class CannotJoin(NotAMember):
    """Error that no request to join would help. The text of the error names the permission that the
    bot lacks."""


@dataclass(slots=True)
class _Place:
    """What is known of one community."""

    clock: int = 0
    """Of the description that counts."""
    standing: Standing = "unknown"
    requested_ms: int = 0
    is_hidden: bool = False
    """True if the members could not be read: their key is lacking."""
    why: str = ""
    """Why it is closed to the bot."""


class Memberships:
    """Membership of the bot in each of its communities, kept across restarts.

    Args:
        public_key: the bot.
        communities: its communities.
        memory: keeps what is known.
        reporter: logs what changes.
        now_ms: milliseconds since 1970.
        request: sends a request to join; None to send none.
    """

    def __init__(
        self,
        public_key: PublicKey,
        communities: Iterable[Community],
        memory: BotMemory,
        reporter: Reporter,
        now_ms: Callable[[], int],
        request: Callable[[Community], None] | None,
    ) -> None:
        self._public_key = public_key
        self._me = public_key.hex
        self._memory = memory
        self._reporter = reporter
        self._now_ms = now_ms
        self._request = request
        self._places = {
            community: _Place(**(memory.note(_name(community)) or {})) for community in communities
        }

    def standing(self, community: Community) -> Standing:
        """Return the membership of the bot in a community.

        Raises:
            KeyError: it is not one of the bot's.
        """
        return self._places[community].standing

    def why(self, community: Community) -> str:
        """Return the reason why a community is closed to the bot, or an empty text if it is
        open."""
        place = self._places.get(community)
        return "" if place is None else place.why

    def check(self, community: Community | None) -> None:
        """Check that clients show the bot's messages in a community, as far as is known.

        Raises:
            NotAMember: they do not.
        """
        place = None if community is None else self._places.get(community)
        if community is not None and place is not None and place.standing not in _CAN_SPEAK:
            raise self._outside(community, place)

    def check_open(self, community: Community) -> None:
        """Check that a request to join could be accepted.

        Raises:
            CannotJoin: it could not.
        """
        if (place := self._places[community]).why and place.standing != "member":
            raise self._outside(community, place)

    @property
    def given_up(self) -> NotAMember | None:
        """Error that a community rejected or removed the bot, or is closed to it. If the bot can
        still become a member, `given_up` is None."""
        places = self._places.items()
        given_up = ((one, place) for one, place in places if place.standing in _FINAL)
        return next((self._outside(one, place) for one, place in given_up), None)

    def _outside(self, community: Community, place: _Place) -> NotAMember:
        if place.why:
            return CannotJoin(f"the bot cannot join {community}: {place.why}")
        return NotAMember(
            f"the bot is not a member of {community} ({place.standing}), whose clients drop what "
            "it says; wait for on_joined, or ask the owner"
        )

    @property
    def undescribed(self) -> tuple[Community, ...]:
        """Communities of which the bot has never read a description."""
        return tuple(community for community, place in self._places.items() if not place.clock)

    def observe(self, received: Received) -> Change | None:
        """Note a community's description, or the owner's answer to a request. `observe` returns the
        change of the bot's membership."""
        community, payload = Community(received.signer), received.payload
        place = self._places.get(community)
        change: Change | None = None
        if place is None:
            return None
        if isinstance(payload, CommunityDescription) and _is_news(payload, place):
            place.clock = payload.clock
            place.is_hidden = is_hidden(payload)
            place.why = why_closed(payload, self._public_key) or ""
            change = self._described(community, place, is_member=self._me in payload.members)
        elif isinstance(payload, CommunityRequestToJoinResponse):
            if not payload.accepted and received.is_private and place.standing == "requested":
                place.standing = change = "rejected"
        if change is not None:
            level = logging.INFO if change == "joined" else logging.WARNING
            self._reporter.count("membership_changes", change)
            self._reporter.log(change, level, community=community.id, why=place.why)
        return change

    def owns(self, community: Community, description: CommunityDescription) -> None:
        """Note the description of a community whose key the bot has."""
        place = self._places[community]
        place.clock = max(place.clock, description.clock)
        place.standing = "member" if self._me in description.members else "not_a_member"
        self.keep(community)

    def keep(self, community: Community) -> None:
        """Write the bot's membership in a community to the memory. Call `keep` after the event's
        functions have ended, because they otherwise run again."""
        self._memory.keep(_name(community), asdict(self._places[community]))

    def requested(self, community: Community) -> None:
        """Note that the bot requested to join a community."""
        place = self._places[community]
        place.standing, place.requested_ms = "requested", self._now_ms()
        self.keep(community)

    def left(self, community: Community) -> None:
        """Note that the bot left a community."""
        self._places[community].standing = "left"
        self.keep(community)

    def _described(self, community: Community, place: _Place, *, is_member: bool) -> Change | None:
        before = place.standing
        if before == "left":  # the owner may not have read of it yet
            return None
        if is_member:
            place.standing = "member"
            return None if before == "member" else "joined"
        if before == "member":
            place.standing = "kicked"
            return "kicked"
        if place.why:
            place.standing = "kicked" if before == "kicked" else "closed"
            return None if before in ("kicked", "closed") else "not_a_member"
        if before in ("unknown", "not_a_member", "closed"):
            place.standing = "not_a_member"
            self._ask(community)
            return "not_a_member" if before == "unknown" else None
        if before == "requested" and self._now_ms() - place.requested_ms > REQUEST_AGAIN_MS:
            self._ask(community)
        return None

    def _ask(self, community: Community) -> None:
        if self._request is None:
            return
        try:
            self._request(community)
        except OutboxFull as error:  # the next description is another chance
            self._reporter.log(
                "not_requested", logging.WARNING, community=community.id, why=str(error)
            )


def _is_news(description: CommunityDescription, place: _Place) -> bool:
    """Return True if it is newer than what counts, or the same with the members that were
    hidden."""
    is_shown = place.is_hidden and not is_hidden(description)
    return description.clock > place.clock or (is_shown and description.clock == place.clock)


def _name(community: Community) -> str:
    """The note in the bot's memory."""
    return f"membership {community.id}"


SEARCHED_MS: Final = 30 * 86_400_000
"""Time span of the search for descriptions, which is the retention of Status' nodes."""


class StoredStanding(Enum):
    """Membership of a bot in one community, as found in Store."""

    MEMBER = "member"
    """The description lists the bot."""
    NOT_A_MEMBER = "not a member"
    """The description does not list the bot, so clients drop its messages."""
    CLOSED = "closed"
    """The description does not list the bot, and no request would help."""
    UNKNOWN = "unknown"
    """Store has no description of the community."""


@dataclass(frozen=True, slots=True)
class MembershipFinding:
    """Bot's membership in one community, as found in Store."""

    community: Community
    place: StoredStanding
    advice: str
    """Advice to the operator about the membership, or an empty text."""

    def to_dict(self) -> dict[str, str]:
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
) -> list[MembershipFinding]:
    """Return the membership of a bot in each community, from the latest descriptions in Store.

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
) -> MembershipFinding:
    me = key.public_key
    if description is None:
        advice = "Store has no description of 30 days; ask the owner, and check node and shards"
        return MembershipFinding(community, StoredStanding.UNKNOWN, advice)
    if me.hex in description.members:
        return MembershipFinding(community, StoredStanding.MEMBER, "")
    if why := why_closed(description, me):
        return MembershipFinding(community, StoredStanding.CLOSED, f"the bot cannot join: {why}")
    advice = "clients drop what it says; run the bot, which asks to join, or ask the owner"
    if is_hidden(description):
        advice = f"its members are encrypted, and not for this bot; {advice}"
    return MembershipFinding(community, StoredStanding.NOT_A_MEMBER, advice)
