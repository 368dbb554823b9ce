"""Bots in Status communities and public chats: `StatusBot`, and what its functions are given."""

from .bot import NotRunning, StatusBot
from .commands import UsageError
from .happenings import (
    Channel,
    Edit,
    JoinRequest,
    Message,
    ReactionChange,
)
from .limits import RateLimit
from .loops import LoopLimits
from .memory import BotMemory, OutboxFull
from .metrics import MetricsUnavailable
from .options import BotOptions, Reliability
from .session import Surroundings
from .testkit import KitUser, StatusTestKit
from .texts import BotTexts
from .watching import JsonLines

__all__ = [
    "BotMemory",
    "BotOptions",
    "BotTexts",
    "Channel",
    "Edit",
    "JoinRequest",
    "JsonLines",
    "KitUser",
    "LoopLimits",
    "Message",
    "MetricsUnavailable",
    "NotRunning",
    "OutboxFull",
    "RateLimit",
    "ReactionChange",
    "Reliability",
    "StatusBot",
    "StatusTestKit",
    "Surroundings",
    "UsageError",
]
