"""Whether a bot is a member of its communities: clients drop what others than members write.

Only the owner's description counts, which lists all members; the one with the highest clock. A bot
that it does not list asks to be let in, and waits for the description that does.
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
"""Where a bot stands: `unknown` until a description is read, `requested` until it is answered,
`closed` where no request would help, such as where members need tokens."""

Change: TypeAlias = Literal["joined", "rejected", "kicked", "not_a_member"]
"""What a payload changed."""

REQUEST_AGAIN_MS: Final = 7 * 86_400_000
"""Owners' clients forget a request after a week."""


_CAN_SPEAK: Final = ("unknown", "member")
_FINAL: Final = ("rejected", "kicked", "closed")


class NotAMember(ReliableChannelError, RuntimeError):
    """The bot is not a member of a community: clients would drop what it says there."""


class CannotJoin(NotAMember):
    """No request would help: the text names the permission that the bot lacks."""


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
    """Where the bot stands in each of its communities; kept over a restart.

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
        """The bot's membership of one of its communities.

        Raises:
            KeyError: it is not one of the bot's.
        """
        return self._places[community].standing

    def why(self, community: Community) -> str:
        """Why a community is closed to the bot, or an empty text."""
        place = self._places.get(community)
        return "" if place is None else place.why

    def check(self, community: Community | None) -> None:
        """See that clients show what the bot says in a community, as far as that is known.

        Raises:
            NotAMember: they do not.
        """
        place = None if community is None else self._places.get(community)
        if community is not None and place is not None and place.standing not in _CAN_SPEAK:
            raise self._outside(community, place)

    def check_open(self, community: Community) -> None:
        """See that a request to join could be accepted.

        Raises:
            CannotJoin: it could not.
        """
        if (place := self._places[community]).why and place.standing != "member":
            raise self._outside(community, place)

    @property
    def given_up(self) -> NotAMember | None:
        """That a community rejected, kicked or cannot take the bot; None while there is hope."""
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
        """The communities of which no description was read yet, in this life or an earlier one."""
        return tuple(community for community, place in self._places.items() if not place.clock)

    def observe(self, received: Received) -> Change | None:
        """Take note of a description, or of the owner's answer; return what changed."""
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
        """Take note of the description of a community whose key the bot has."""
        place = self._places[community]
        place.clock = max(place.clock, description.clock)
        place.standing = "member" if self._me in description.members else "not_a_member"
        self.keep(community)

    def keep(self, community: Community) -> None:
        """Write down what is known of a community; after its functions have ended, as they run
        again otherwise."""
        self._memory.keep(_name(community), asdict(self._places[community]))

    def requested(self, community: Community) -> None:
        """Take note of a request that is on its way."""
        place = self._places[community]
        place.standing, place.requested_ms = "requested", self._now_ms()
        self.keep(community)

    def left(self, community: Community) -> None:
        """Take note that the bot left."""
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
"""How far back descriptions are searched: what Status' nodes keep."""


class StoredStanding(Enum):
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
class MembershipFinding:
    """What was found about one community."""

    community: Community
    place: StoredStanding
    advice: str
    """What to do, or an empty text."""

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
