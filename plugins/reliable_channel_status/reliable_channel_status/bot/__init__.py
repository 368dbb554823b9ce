"""Bots in Status communities and public chats: `StatusBot`, and what its functions are given."""

from .actions import BotActions, NotRunning
from .bot import StatusBot
from .checks import (
    Check,
    NotAllowed,
    any_of,
    by_contact,
    by_member,
    by_moderator,
    in_channels,
    in_direct,
)
from .converters import Between, Converter, UsageError
from .dialogues import Question, Talk
from .failures import Failure
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
from .languages import Phrases
from .limits import Cooldown, RateLimit
from .loops import LoopLimits
from .membership import CannotJoin, NotAMember, Standing
from .memory import BotMemory, OutboxFull
from .metrics import MetricsUnavailable
from .options import BotOptions, Reliability
from .owned import OwnedCommunity
from .router import CommandGroup, Router
from .session import Surroundings
from .settings import read_settings
from .testkit import KitUser, StatusTestKit
from .texts import BotTexts
from .watching import JsonLines

__all__ = [
    "Between",
    "BotActions",
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
    "Edit",
    "Failure",
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
    "NotAllowed",
    "NotRunning",
    "OutboxFull",
    "OwnedCommunity",
    "Phrases",
    "Question",
    "RateLimit",
    "ReactionChange",
    "Reliability",
    "Router",
    "Standing",
    "StatusBot",
    "StatusTestKit",
    "Surroundings",
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
