"""Moderation for Status bots: `bot.include(Moderation(…).router)`."""

from .audit_log import AuditLog, Entry, LogBroken
from .judge import Judge, Rule, Seen, Verdict
from .kit import Moderation
from .policy import Policy
from .record import Case

__all__ = [
    "AuditLog",
    "Case",
    "Entry",
    "Judge",
    "LogBroken",
    "Moderation",
    "Policy",
    "Rule",
    "Seen",
    "Verdict",
]
