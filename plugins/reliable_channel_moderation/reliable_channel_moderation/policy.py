"""What a community allows, and what follows. Pure."""

from dataclasses import dataclass

from reliable_channel.sds.declared import check, number, positive


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """Limits and consequences, with defaults that suit a lively channel.

    Raises:
        ValueError: a value that is not allowed, or a harder consequence for fewer points; the text
            names it and what is.
    """

    flood_messages: int = number(6, "messages", 1)
    """More messages of a user in `flood_s`, in all channels together, are a flood."""
    flood_s: float = positive(10.0, "s")
    max_mentions: int = number(8, "mentions", 1)
    """More mentions in a message are a flood, too."""
    late_messages: int = number(100, "messages", 1)
    """More messages of a user in 10 minutes whose clocks are a minute behind are reported: clocks
    are the author's, so a flood may hide in the past."""
    repeats: int = number(3, "messages", 1)
    """So many messages of the same text by a user in `repeat_s` are spam."""
    copies: int = number(4, "users", 1)
    """So many users with the same text in `repeat_s` are spam."""
    repeat_s: float = positive(600.0, "s")
    min_repeat_characters: int = number(12, "characters", 1)
    """Shorter texts, such as greetings, may be repeated."""
    allowed_hosts: frozenset[str] | None = None
    """Hosts that links may name, with all below them; None allows all but disguised ones."""
    raid_newcomers: int = number(10, "users", 1)
    """So many users that write, or ask to join, for the first time in `raid_s` are a raid."""
    raid_s: float = positive(60.0, "s")
    raid_quiet_s: float = positive(600.0, "s")
    """A raid is over when no newcomer has come for so long."""
    learn_s: float = positive(600.0, "s")
    """After a start all users seem new for so long, so that no raid is found."""
    link_points: int = number(1, "points", 1)
    spam_points: int = number(2, "points", 1)
    flood_points: int = number(3, "points", 1)
    forget_s: float = positive(86_400.0, "s")
    """Points are forgotten so long after the last case."""
    mute_at: int = number(3, "points", 1)
    """Points from which a user is muted for `mute_s`."""
    mute_s: float = positive(600.0, "s")
    kick_at: int = number(6, "points", 1)
    ban_at: int = number(9, "points", 1)

    def __post_init__(self) -> None:
        check(self)
        if not self.mute_at <= self.kick_at <= self.ban_at:
            raise ValueError("`mute_at`, `kick_at` and `ban_at` must not decrease")
