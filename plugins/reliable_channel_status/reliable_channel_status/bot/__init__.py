"""Bots in Status communities and public chats: `StatusBot`, and the objects for its functions."""

from .actions import BotActions, NotRunning
from .bot import StatusBot
from .commands import Between, Converter, UsageError
from .dialogues import Question, Talk
from .events import (
    Channel,
    ContactChange,
    ContactRequest,
    Deletion,
    Edit,
    GroupChange,
    JoinRequest,
    MembershipChange,
    Message,
    PinChange,
    ReactionChange,
)
from .failures import Failure
from .handlers import (
    Check,
    NotAllowed,
    any_of,
    by_contact,
    by_member,
    by_moderator,
    in_channels,
    in_direct,
)
from .limits import Cooldown, LoopLimits, RateLimit
from .membership import CannotJoin, NotAMember, Standing
from .memory import BotMemory, OutboxFull
from .options import BotOptions, Reliability, read_settings
from .outbox import BotContext
from .owned import OwnedCommunity
from .reporting import JsonLines, MetricsUnavailable
from .router import CommandGroup, Router
from .texts import BotTexts, Phrases

__all__ = [
    "Between",
    "BotActions",
    "BotContext",
    "BotMemory",
    "BotOptions",
    "BotTexts",
    "CannotJoin",
    "Channel",
    "Check",
    "CommandGroup",
    "ContactChange",
    "ContactRequest",
    "Converter",
    "Cooldown",
    "Deletion",
    "Edit",
    "Failure",
    "GroupChange",
    "JoinRequest",
    "JsonLines",
    "LoopLimits",
    "MembershipChange",
    "Message",
    "MetricsUnavailable",
    "NotAMember",
    "NotAllowed",
    "NotRunning",
    "OutboxFull",
    "OwnedCommunity",
    "Phrases",
    "PinChange",
    "Question",
    "RateLimit",
    "ReactionChange",
    "Reliability",
    "Router",
    "Standing",
    "StatusBot",
    "Talk",
    "UsageError",
    "any_of",
    "by_contact",
    "by_member",
    "by_moderator",
    "in_channels",
    "in_direct",
    "read_settings",
]
