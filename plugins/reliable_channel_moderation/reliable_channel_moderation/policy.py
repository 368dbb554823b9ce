"""What a community allows, and what follows. Pure."""

from dataclasses import dataclass, fields


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """Limits and consequences, with defaults that suit a lively channel.

    Raises:
        ValueError: a number that is not positive, or a harder consequence for fewer points.
    """

    flood_messages: int = 6
    """More messages of a user in `flood_s`, in all channels together, are a flood."""
    flood_s: float = 10.0
    max_mentions: int = 8
    """More mentions in a message are a flood, too."""
    late_messages: int = 100
    """More messages of a user in 10 minutes whose clocks are a minute behind are reported: clocks
    are the author's, so a flood may hide in the past."""
    repeats: int = 3
    """So many messages of the same text by a user in `repeat_s` are spam."""
    copies: int = 4
    """So many users with the same text in `repeat_s` are spam."""
    repeat_s: float = 600.0
    min_repeat_characters: int = 12
    """Shorter texts, such as greetings, may be repeated."""
    allowed_hosts: frozenset[str] | None = None
    """Hosts that links may name, with all below them; None allows all but disguised ones."""
    raid_newcomers: int = 10
    """So many users that write, or ask to join, for the first time in `raid_s` are a raid."""
    raid_s: float = 60.0
    raid_quiet_s: float = 600.0
    """A raid is over when no newcomer has come for so long."""
    learn_s: float = 600.0
    """After a start all users seem new for so long, so that no raid is found."""
    link_points: int = 1
    spam_points: int = 2
    flood_points: int = 3
    forget_s: float = 86_400.0
    """Points are forgotten so long after the last case."""
    mute_at: int = 3
    """Points from which a user is muted for `mute_s`."""
    mute_s: float = 600.0
    kick_at: int = 6
    ban_at: int = 9

    def __post_init__(self) -> None:
        for one in fields(self):
            value = getattr(self, one.name)
            if isinstance(value, int | float) and not value > 0:
                raise ValueError(f"`{one.name}` must be positive (got {value})")
        if not self.mute_at <= self.kick_at <= self.ban_at:
            raise ValueError("`mute_at`, `kick_at` and `ban_at` must not decrease")
