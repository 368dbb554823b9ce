"""How a bot behaves, with defaults that suit one of a community."""

from dataclasses import dataclass, field, fields
from typing import Final

from waku import PubsubTopic

from ..chats import Derivation
from ..topics import CONTENT_SHARD, CONTROL_SHARD
from .limits import RateLimit
from .loops import LoopLimits

FOR_USERS: Final = RateLimit(5, 10_000)
FOR_CHANNELS: Final = RateLimit(20, 10_000)


@dataclass(frozen=True, slots=True, kw_only=True)
class BotOptions:
    """Options of a bot.

    Raises:
        ValueError: a time or number that is not positive.
    """

    prefix: str = "!"
    """What commands begin with; a mention of the bot does as well."""
    display_name: str = ""
    """What the bot calls itself."""
    derivation: Derivation = "universal"
    """On which topic the bot writes into channels; it listens to both."""
    shard: PubsubTopic = CONTENT_SHARD
    """Where the bot writes, and listens. status-go of 2024: `DEFAULT_SHARD`."""
    also_listen: tuple[PubsubTopic, ...] = (CONTROL_SHARD,)
    """Descriptions and requests to join travel there."""
    history_ms: int = 86_400_000
    """How far back Store is asked at the start, so that edits, answers and pins of older messages
    are understood. What was said before the bot's first start is not answered."""
    user_limit: RateLimit = FOR_USERS
    """Of commands and mentions, for each user in all chats together."""
    channel_limit: RateLimit = FOR_CHANNELS
    """The same for each channel."""
    loops: LoopLimits = field(default_factory=LoopLimits)
    handler_timeout_ms: int = 30_000
    handlers_at_once: int = 32
    poll_ms: int = 200
    """Between two looks into the node's cache, while there is little to read."""
    stop_timeout_ms: int = 10_000
    """So long handlers may end and messages go out when the bot is stopped."""
    metrics_port: int | None = None
    """Where Prometheus finds the counts (127.0.0.1; 0 takes a free port); needs
    `reliable-channel-status[metrics]`."""

    def __post_init__(self) -> None:
        for option in fields(self):
            value = getattr(self, option.name)
            lowest = 0 if option.name == "metrics_port" else 1
            if isinstance(value, int) and value < lowest:
                raise ValueError(f"{option.name} is {value}; it must be positive")
        if not self.prefix or self.prefix != self.prefix.strip():
            raise ValueError(f"prefix is {self.prefix!r}; it must be a sign or a word")
