"""Control node of a community. The control node has the community's key, publishes the description
and admits users. `ControlNode` takes payloads and times, and returns descriptions, answers and
refusals.

A community has one control node at a time. If the community's key signed a newer description,
another control node runs the community. The older control node then changes nothing until it takes
over.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import Enum
from typing import Final, Literal, TypeAlias

from reliable_channel.errors import ReliableChannelError

from ..wire.chats import Community
from ..wire.codec import encode_payload
from ..wire.community_payloads import (
    CommunityDescription,
    CommunityRequestToJoin,
    CommunityRequestToJoinResponse,
    CommunityRequestToLeave,
)
from ..wire.enums import Access
from ..wire.keys import PrivateKey, PublicKey
from .edits import CommunityProfile, Edit, founded, kicked, with_members, with_owner
from .join_requests import why_refused
from .rules import is_banned, why_invalid

MAX_MEMBERS: Final = 5_000
"""Maximum number of members for which a community admits users automatically, as in status-go."""
MAX_PENDING: Final = 100
"""Maximum number of requests that wait for a decision, as in status-go."""
MAX_DECIDED: Final = 10_000
"""Maximum number of users whose last request is remembered, so that no request counts twice. Beyond
the maximum, the oldest request is forgotten."""
REQUEST_LIFE_S: Final = 7 * 86_400
MAX_AHEAD_S: Final = 120
"""DIVERGES from status-go, which accepts requests with any future time and then no others of that
user."""

State: TypeAlias = Literal["pending", "accepted", "declined", "left"]


class NotControlNode(ReliableChannelError, RuntimeError):
    """Error that this bot may not change a community, because this bot does not run it."""


class JoinRefusal(Enum):
    """Reason why a request to join or leave is refused."""

    NOT_CONTROL_NODE = "not_control_node"
    """The community is not run by this control node."""
    INVALID = "invalid"
    """The request is for another community, or lacks an account that signed the request."""
    BANNED = "banned"
    EXPIRED = "expired"
    """The request is at least a week old."""
    CLOCK_AHEAD = "clock_ahead"
    """The clock of the request is more than two minutes in the future."""
    REPLAYED = "replayed"
    """The clock of the request is not above the clock of the user's last request."""
    TOO_MANY = "too_many"
    """Too many requests wait for a decision, so no more are accepted."""


@dataclass(frozen=True, slots=True)
class RefusedRequest:
    """Request that the control node refused, with the reason."""

    reason: JoinRefusal
    detail: str


@dataclass(frozen=True, slots=True)
class Request:
    """Last request of a user to the community."""

    user: PublicKey
    clock: int
    """Clock of the request in seconds, as the user signed it."""
    state: State
    display_name: str = ""
    is_answered: bool = True
    """True if the decision about the request was returned for sending."""


class Superseded(Enum):
    """Relation of a received description, signed by the community's key, to the control node's own
    description."""

    OWN = "own"
    """Same description as the control node's own, which comes back after publication."""
    OUTDATED = "outdated"
    """Older description than the control node's own, such as a replay, which clients refuse too."""
    NEWER = "newer"
    """Newer description, which another control node published."""


class ControlNode:
    """Control node of one community.

    Args:
        key: of the community.
        description: the last one of an earlier life; None where none was published.
        newer: what another control node published since.
        requests: what was known of requests.
        forgotten_s: the highest clock of requests that are remembered no more.
    """

    def __init__(
        self,
        key: PrivateKey,
        *,
        description: CommunityDescription | None = None,
        newer: CommunityDescription | None = None,
        requests: tuple[Request, ...] = (),
        forgotten_s: int = 0,
    ) -> None:
        self.community = Community(key.public_key)
        self.description = description
        """As it is now; None before the community is founded or taken over."""
        self.newer = newer
        """What another control node published, or None."""
        self.forgotten_s = forgotten_s
        self._requests = {request.user: request for request in requests}

    @property
    def is_active(self) -> bool:
        """True if this control node runs the community now."""
        return self.description is not None and self.newer is None

    # -- the description --------------------------------------------------------------------------

    def found(
        self, profile: CommunityProfile, owner: PublicKey, now_ms: int
    ) -> CommunityDescription:
        """Create the first description of the community.

        Raises:
            NotControlNode: the community exists already.
            ValueError: clients would refuse the description.
        """
        if self.newer is not None or self.description is not None:
            raise NotControlNode(f"community {self.community} exists already; see take_over()")
        return self._publishable(founded(profile, owner, self.community.id), now_ms)

    def change(self, edit: Edit, now_ms: int) -> CommunityDescription:
        """Create the next description, with a change.

        Raises:
            NotControlNode: the community is not run here.
            ValueError: the edit cannot be made, or clients would refuse its result.
        """
        return self._publishable(edit(self._mine()), now_ms)

    def observe(self, description: CommunityDescription) -> Superseded:
        """Compare a description, signed by the community's key, with the control node's own."""
        latest = self.newer or self.description
        if latest is not None and description.clock < latest.clock:
            return Superseded.OUTDATED
        if description == latest:
            return Superseded.OWN if self.newer is None else Superseded.NEWER
        self.newer = description
        return Superseded.NEWER

    def take_over(self, owner: PublicKey, now_ms: int) -> CommunityDescription:
        """Take over the community, with the last description that another control node published.

        The next description lists `owner` as an owner. The other control node stops when it
        receives the next description.

        Raises:
            NotControlNode: nothing was published elsewhere, or it has what cannot be kept here.
            ValueError: clients would refuse it.
        """
        if self.newer is None:
            raise NotControlNode(
                f"no other control node published a description of {self.community}"
            )
        permissions = self.newer.token_permissions.values()
        if any(one.token_criteria for one in permissions) or self.newer.private_data:
            raise NotControlNode(
                f"{self.community} has permissions by tokens, which this package cannot check, or "
                "holds data encrypted with unknown keys"
            )
        description = self._publishable(with_owner(owner)(self.newer), now_ms)
        self.newer = None
        return description

    # -- requests ---------------------------------------------------------------------------------

    @property
    def requests(self) -> tuple[Request, ...]:
        """Last request of each user that is remembered."""
        return tuple(self._requests.values())

    @property
    def pending(self) -> tuple[Request, ...]:
        """Requests that wait for a decision, the oldest first."""
        return tuple(r for r in self._requests.values() if r.state == "pending")

    @property
    def lets_in_by_itself(self) -> bool:
        """True if the community admits all requesters and has room."""
        description = self.description
        if not self.is_active or description is None or description.permissions is None:
            return False
        is_open = description.permissions.access is Access.AUTO_ACCEPT
        return is_open and len(description.members) < MAX_MEMBERS

    def ask(
        self, request: CommunityRequestToJoin, signer: PublicKey, now_ms: int
    ) -> Request | RefusedRequest:
        """Add a user's request to join. A request that is not refused is pending until a
        decision."""
        if (refused := self._why_not(request, signer, now_ms)) is not None:
            return refused
        for waiting in self.pending:
            if waiting.clock + REQUEST_LIFE_S <= now_ms // 1000:
                del self._requests[waiting.user]
        last = self._requests.pop(signer, None)  # the newest stands last
        is_new = last is None or last.state != "pending"
        if is_new and len(self.pending) >= MAX_PENDING:
            if last is not None:
                self._requests[signer] = last
            return RefusedRequest(JoinRefusal.TOO_MANY, f"{MAX_PENDING} requests wait")
        taken = Request(signer, request.clock, "pending", request.display_name[:100])
        self._requests[signer] = taken
        return taken

    def accept(self, users: tuple[PublicKey, ...], now_ms: int) -> CommunityDescription:
        """Admit users, and return the description that lists them. `answer` returns the message for
        each admitted user.

        Raises:
            NotControlNode: the community is not run here.
            ValueError: one of them has no pending request.
        """
        self._mine()
        asked = [self._pending(user) for user in users]
        description = self.change(with_members({r.user: r.clock for r in asked}), now_ms)
        for request in asked:
            self._decide(request, "accepted")
        return description

    def decline(self, user: PublicKey) -> None:
        """Decline the request of a user. `answer` returns the message for the declined user.

        Raises:
            NotControlNode: the community is not run here.
            ValueError: the user has no pending request.
        """
        self._mine()
        self._decide(self._pending(user), "declined")

    def leave(
        self, request: CommunityRequestToLeave, signer: PublicKey, now_ms: int
    ) -> CommunityDescription | RefusedRequest:
        """Accept a member's request to leave. `leave` returns the description without the
        member."""
        description = self.description
        if not self.is_active or description is None:
            return RefusedRequest(JoinRefusal.NOT_CONTROL_NODE, "the community is run elsewhere")
        if request.community_id != self.community.public_key.compressed:
            return RefusedRequest(JoinRefusal.INVALID, "another community")
        last = self._requests.get(signer)
        member = description.members.get(signer.hex)
        since = max(last.clock if last else 0, member.last_update_clock if member else 0)
        if request.clock < since or (last is not None and last.state == "left"):
            return RefusedRequest(JoinRefusal.REPLAYED, f"clock {request.clock}, last {since}")
        if member is None:
            return RefusedRequest(JoinRefusal.INVALID, "no member")
        try:
            left = self.change(kicked(signer), now_ms)
        except ValueError as error:  # the owner
            return RefusedRequest(JoinRefusal.INVALID, str(error))
        self._requests.pop(signer, None)
        self._requests[signer] = Request(signer, request.clock, "left")
        self._forget()
        return left

    def unanswered(self) -> Iterator[Request]:
        """Yield the decided requests whose answers must be sent."""
        return (r for r in tuple(self._requests.values()) if not r.is_answered)

    def answer(self, request: Request, signed_description: bytes) -> CommunityRequestToJoinResponse:
        """Return the message that tells a user the decision."""
        description = self._mine()
        accepted = request.state == "accepted"
        return CommunityRequestToJoinResponse(
            clock=description.clock,
            accepted=accepted,
            community_id=self.community.public_key.compressed,
            community_description_protocol_message=signed_description if accepted else b"",
        )

    def answered(self, request: Request) -> None:
        """Note that the answer to a request was sent."""
        self._requests[request.user] = replace(request, is_answered=True)

    # -- inside -----------------------------------------------------------------------------------

    def _mine(self) -> CommunityDescription:
        if self.newer is not None:
            raise NotControlNode(
                f"another control node runs {self.community}: it signed a description with clock "
                f"{self.newer.clock}; stop the other control node and call take_over()"
            )
        if self.description is None:
            raise NotControlNode(f"this control node did not found {self.community}; call found()")
        return self.description

    def _publishable(self, description: CommunityDescription, now_ms: int) -> CommunityDescription:
        """The description with the next clock, as status-go counts it."""
        clock = max(now_ms, description.clock + 1)
        after = replace(description, clock=clock, id=self.community.id)
        if (why := why_invalid(after)) is not None:
            raise ValueError(f"clients would refuse the description of the community: {why}")
        encode_payload(after)  # a text that is no Unicode, a number out of range
        self.description = after
        return after

    def _why_not(
        self, request: CommunityRequestToJoin, signer: PublicKey, now_ms: int
    ) -> RefusedRequest | None:
        description, now_s = self.description, now_ms // 1000
        last = self._requests.get(signer)
        if not self.is_active or description is None:
            return RefusedRequest(JoinRefusal.NOT_CONTROL_NODE, "the community is run elsewhere")
        if request.clock > now_s + MAX_AHEAD_S:
            return RefusedRequest(JoinRefusal.CLOCK_AHEAD, f"{request.clock - now_s} s ahead")
        if request.clock + REQUEST_LIFE_S <= now_s:
            return RefusedRequest(JoinRefusal.EXPIRED, f"{now_s - request.clock} s old")
        last_s = self.forgotten_s if last is None else last.clock
        if request.clock <= last_s:
            return RefusedRequest(JoinRefusal.REPLAYED, f"clock {request.clock}, last {last_s}")
        if is_banned(description, signer):
            return RefusedRequest(JoinRefusal.BANNED, "can't request access")
        # Last, as it takes the most time: a point is recovered for each account.
        if (why := why_refused(request, signer, self.community)) is not None:
            return RefusedRequest(JoinRefusal.INVALID, why)
        return None

    def _pending(self, user: PublicKey) -> Request:
        request = self._requests.get(user)
        if request is None or request.state != "pending":
            raise ValueError(f"{user} has no pending request to join")
        return request

    def _decide(self, request: Request, state: State) -> None:
        self._requests.pop(request.user)
        self._requests[request.user] = replace(request, state=state, is_answered=False)
        self._forget()

    def _forget(self) -> None:
        if len(self._requests) > MAX_DECIDED:
            decided = (r for r in self._requests.values() if r.is_answered and r.state != "pending")
            if (oldest := next(decided, None)) is not None:
                del self._requests[oldest.user]
                self.forgotten_s = max(self.forgotten_s, oldest.clock)
