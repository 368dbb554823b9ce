"""Rules of a community, and the consequences of breaking them."""

from dataclasses import dataclass
from typing import Annotated

from reliable_channel.sds.declared import POSITIVE, Bound, Doc, Unit, check


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """Limits and consequences, with defaults for a lively channel.

    Raises:
        ValueError: a value that is not allowed, or a harder consequence for fewer points; the text
            names it and what is.
    """

    flood_messages: Annotated[
        int,
        Bound(1),
        Doc("More messages of a user in `flood_s`, in all channels together, are a flood."),
    ] = 6
    flood_s: Annotated[float, POSITIVE] = 10.0
    max_mentions: Annotated[int, Bound(1), Doc("More mentions in a message are a flood, too.")] = 8
    late_messages: Annotated[
        int,
        Bound(1),
        Doc("""More messages of a user in 10 minutes whose clocks are a minute behind are
        reported: clocks are the author's, so a flood may hide in the past."""),
    ] = 100
    repeats: Annotated[
        int,
        Bound(1),
        Unit("messages"),
        Doc("So many messages of the same text by a user in `repeat_s` are spam."),
    ] = 3
    copies: Annotated[
        int,
        Bound(1),
        Unit("users"),
        Doc("So many users with the same text in `repeat_s` are spam."),
    ] = 4
    repeat_s: Annotated[float, POSITIVE] = 600.0
    min_repeat_characters: Annotated[
        int, Bound(1), Doc("Shorter texts, such as greetings, may be repeated.")
    ] = 12
    allowed_hosts: frozenset[str] | None = None
    """Hosts that links may name, with all of their subdomains. None allows all except disguised
    ones."""
    raid_newcomers: Annotated[
        int,
        Bound(1),
        Unit("users"),
        Doc("So many users that write, or ask to join, for the first time in `raid_s` are a raid."),
    ] = 10
    raid_s: Annotated[float, POSITIVE] = 60.0
    raid_quiet_s: Annotated[
        float, POSITIVE, Doc("A raid is over when no newcomer has come for so long.")
    ] = 600.0
    learn_s: Annotated[
        float,
        POSITIVE,
        Doc("After a start all users seem new for so long, so that no raid is found."),
    ] = 600.0
    link_points: Annotated[int, Bound(1)] = 1
    spam_points: Annotated[int, Bound(1)] = 2
    flood_points: Annotated[int, Bound(1)] = 3
    forget_s: Annotated[
        float, POSITIVE, Doc("Points are forgotten so long after the last case.")
    ] = 86_400.0
    mute_at: Annotated[
        int, Bound(1), Unit("points"), Doc("Points from which a user is muted for `mute_s`.")
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
