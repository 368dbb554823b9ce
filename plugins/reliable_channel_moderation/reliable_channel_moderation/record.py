"""Cases and points of users in the bot's state, which survive a restart.

The record keeps the last 10,000 cases, and the users of these cases.
"""

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any, Final, Protocol

from .policy import Policy

MAX_CASES: Final = 10_000
MAX_MUTED: Final = 1_000
"""Maximum number of users that are muted at a time. Beyond the maximum, the user that was muted
first is released."""
MAX_TEXT: Final = 500
_PREFIX: Final = "moderation"


class Notes(Protocol):
    """Interface of a bot's notes, which `BotActions` implements."""

    def note(self, name: str) -> Any:
        """Return the value under a name, or None if there is no such value."""

    def keep(self, name: str, value: Any) -> None:
        """Store a value under a name. The value None deletes the stored value."""


@dataclass(frozen=True, slots=True)
class Case:
    """Case of a message that broke a rule, or of an action of a moderator."""

    number: int
    at_ms: int
    user: str
    """Public key of the user that the case is about."""
    message_id: str
    chat: str
    rule: str
    why: str
    points: int
    action: str
    """Consequence of the case, `report`, `delete`, `mute`, `kick` or `ban`."""
    state: str = "open"
    """State of the case, `open`, `appealed`, `upheld` or `pardoned`."""
    appeal: str = ""
    """Text with which the user appealed."""


class Record:
    """Cases and points of one bot's users.

    Args:
        notes: the bot.
        policy: when which consequence follows.
    """

    def __init__(self, notes: Callable[[], Notes], policy: Policy) -> None:
        self._notes = notes
        self._policy = policy

    def case(self, number: int) -> Case | None:
        """Return the case with a number, or None if it is no longer kept."""
        found = self._note(f"case {number}")
        return None if found is None else Case(**found)

    def about(self, message_id: str) -> Case | None:
        """Return the case about a message, or None."""
        number = self._note(f"message {message_id}")
        return None if number is None else self.case(number)

    @property
    def last(self) -> int:
        """Number of the latest case."""
        return int(self._note("last") or 0)

    def open(
        self,
        *,
        at_ms: int,
        user: str,
        message_id: str,
        chat: str,
        rule: str,
        why: str,
        points: int,
        is_reported: bool,
    ) -> Case:
        """Add a case, and return it with the consequence of the user's points."""
        number, standing = self.last + 1, self._standing(user)
        is_old = at_ms - standing.get("at_ms", 0) > self._policy.forget_s * 1000
        sum_points = points + (0 if is_old else standing.get("points", 0))
        action = "report" if is_reported else self._action(sum_points)
        case = Case(number, at_ms, user, message_id, chat, rule, why[:MAX_TEXT], points, action)
        self._keep(f"user {user}", {"points": sum_points, "at_ms": at_ms, "case": number})
        self._keep(f"case {number}", asdict(case))
        if message_id:
            self._keep(f"message {message_id}", number)
        self._keep("last", number)
        self._forget(number - MAX_CASES)
        return case

    def appeal(self, case: Case, text: str) -> Case:
        """Add the user's appeal to a case, and return the case."""
        return self._change(replace(case, state="appealed", appeal=text[:MAX_TEXT]))

    def decide(self, case: Case, *, is_pardoned: bool) -> Case:
        """Decide an appealed case, and return the case. A pardon cancels the points of the case."""
        if is_pardoned and case.state != "pardoned":
            standing = self._standing(case.user)
            points = max(0, standing.get("points", 0) - case.points)
            self._keep(f"user {case.user}", {**standing, "points": points})
        return self._change(replace(case, state="pardoned" if is_pardoned else "upheld"))

    def points(self, user: str) -> int:
        """Return the points that a user has now."""
        return int(self._standing(user).get("points", 0))

    # -- muted ------------------------------------------------------------------------------------

    def mute(self, user: str, until_ms: int) -> None:
        """Mute a user until a time, or end the mute with the time 0."""
        muted = {key: at for key, at in self.muted.items() if key != user}
        if until_ms:
            muted[user] = until_ms
        self._keep("muted", dict(list(muted.items())[-MAX_MUTED:]))

    @property
    def muted(self) -> dict[str, int]:
        """Muted users, each with the time when the mute ends."""
        return self._note("muted") or {}

    # -- inside -----------------------------------------------------------------------------------

    def _action(self, points: int) -> str:
        policy = self._policy
        steps = ((policy.ban_at, "ban"), (policy.kick_at, "kick"), (policy.mute_at, "mute"))
        return next((action for at, action in steps if points >= at), "delete")

    def _change(self, case: Case) -> Case:
        self._keep(f"case {case.number}", asdict(case))
        return case

    def _forget(self, number: int) -> None:
        case = self.case(number)
        if case is None:
            return
        if case.message_id:
            self._keep(f"message {case.message_id}", None)
        if self._standing(case.user).get("case") == number:
            self._keep(f"user {case.user}", None)
        self._keep(f"case {number}", None)

    def _standing(self, user: str) -> dict[str, int]:
        return self._note(f"user {user}") or {}

    def _note(self, name: str) -> Any:
        return self._notes().note(f"{_PREFIX} {name}")

    def _keep(self, name: str, value: Any) -> None:
        self._notes().keep(f"{_PREFIX} {name}", value)
