"""Bots in Status communities and public chats: `StatusBot`, and what its functions are given."""

from .bot import NotRunning, StatusBot
from .commands import UsageError
from .happenings import (
    Channel,
    ContactChange,
    ContactRequest,
    Edit,
    GroupChange,
    JoinRequest,
    MembershipChange,
    Message,
    ReactionChange,
)
from .kit_client import KitClient
from .kit_owner import KitOwner
from .limits import RateLimit
from .loops import LoopLimits
from .membership import CannotJoin, NotAMember, Standing
from .memory import BotMemory, OutboxFull
from .metrics import MetricsUnavailable
from .options import BotOptions, Reliability
from .owned import OwnedCommunity
from .session import Surroundings
from .testkit import KitUser, StatusTestKit
from .texts import BotTexts
from .watching import JsonLines

__all__ = [
    "BotMemory",
    "BotOptions",
    "BotTexts",
    "CannotJoin",
    "Channel",
    "ContactChange",
    "ContactRequest",
    "Edit",
    "GroupChange",
    "JoinRequest",
    "JsonLines",
    "KitClient",
    "KitOwner",
    "KitUser",
    "LoopLimits",
    "MembershipChange",
    "Message",
    "MetricsUnavailable",
    "NotAMember",
    "NotRunning",
    "OutboxFull",
    "OwnedCommunity",
    "RateLimit",
    "ReactionChange",
    "Reliability",
    "Standing",
    "StatusBot",
    "StatusTestKit",
    "Surroundings",
    "UsageError",
]
