"""Rules of a community, with the consequences of breaking a rule."""

from dataclasses import dataclass
from typing import Annotated

from reliable_channel.sds.declared import POSITIVE, Bound, Doc, Unit, check


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """Limits and consequences of the rules, with defaults for a lively channel.

    Raises:
        ValueError: a value that is not allowed, or a harder consequence for fewer points; the text
            names it and what is.
    """

    flood_messages: Annotated[
        int,
        Bound(1),
        Doc(
            "Number of a user's messages in `flood_s`, in all channels together, beyond which "
            "they are a flood."
        ),
    ] = 6
    flood_s: Annotated[float, POSITIVE] = 10.0
    max_mentions: Annotated[
        int, Bound(1), Doc("Number of mentions in a message beyond which they are a flood.")
    ] = 8
    late_messages: Annotated[
        int,
        Bound(1),
        Doc("""Number of a user's messages in 10 minutes, with clocks a minute late, beyond which
            they are reported."""),
    ] = 100
    repeats: Annotated[
        int,
        Bound(1),
        Unit("messages"),
        Doc("Number of messages of a user with the same text in `repeat_s` that are spam."),
    ] = 3
    copies: Annotated[
        int,
        Bound(1),
        Unit("users"),
        Doc("Number of users with the same text in `repeat_s` that are spam."),
    ] = 4
    repeat_s: Annotated[float, POSITIVE] = 600.0
    min_repeat_characters: Annotated[
        int,
        Bound(1),
        Doc(
            "Minimum length of a text that counts as a repetition, because "
            "greetings may be repeated."
        ),
    ] = 12
    allowed_hosts: frozenset[str] | None = None
    """Hosts that links may name, with all subdomains of these hosts. If `allowed_hosts` is None,
    links to all hosts are allowed, except disguised links."""
    raid_newcomers: Annotated[
        int,
        Bound(1),
        Unit("users"),
        Doc(
            "Number of newcomers in `raid_s` that make a raid, counted by first message or "
            "request to join."
        ),
    ] = 10
    raid_s: Annotated[float, POSITIVE] = 60.0
    raid_quiet_s: Annotated[
        float, POSITIVE, Doc("Time without a newcomer after which a raid is over.")
    ] = 600.0
    learn_s: Annotated[
        float,
        POSITIVE,
        Doc("Time after the start in which no raid is found, because all users seem new."),
    ] = 600.0
    link_points: Annotated[int, Bound(1)] = 1
    spam_points: Annotated[int, Bound(1)] = 2
    flood_points: Annotated[int, Bound(1)] = 3
    forget_s: Annotated[
        float, POSITIVE, Doc("Time after a user's last case in which the points are forgotten.")
    ] = 86_400.0
    mute_at: Annotated[
        int,
        Bound(1),
        Unit("points"),
        Doc("Number of points from which a user is muted for `mute_s`."),
    ] = 3
    mute_s: Annotated[float, POSITIVE] = 600.0
    kick_at: Annotated[int, Bound(1), Unit("points")] = 6
    ban_at: Annotated[int, Bound(1), Unit("points")] = 9

    def __post_init__(self) -> None:
        check(self)
        if not self.mute_at <= self.kick_at <= self.ban_at:
            raise ValueError(
                "`mute_at`, `kick_at` and `ban_at` must not decrease "
                f"(got {self.mute_at}, {self.kick_at} and {self.ban_at})"
            )
