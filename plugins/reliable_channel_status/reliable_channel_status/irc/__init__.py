"""A bridge between a Status channel and an IRC channel."""

from .bridge import IrcBridge
from .client import IrcClient, IrcError, Joined, Kicked, Said
from .lines import Line, LineBuffer, parse, pieces, without_format

__all__ = [
    "IrcBridge",
    "IrcClient",
    "IrcError",
    "Joined",
    "Kicked",
    "Line",
    "LineBuffer",
    "Said",
    "parse",
    "pieces",
    "without_format",
]
