"""Moderation for Status bots: `bot.include(Moderation(…).router)`."""

from typing import TYPE_CHECKING

from reliable_channel.spi import lazy_names

if TYPE_CHECKING:
    from .audit_log import AuditLog, Entry, LogBroken
    from .judge import Judge, Rule, Seen, Verdict
    from .kit import Moderation
    from .policy import Policy
    from .record import Case
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "audit_log": ("AuditLog", "Entry", "LogBroken"),
            "judge": ("Judge", "Rule", "Seen", "Verdict"),
            "kit": ("Moderation",),
            "policy": ("Policy",),
            "record": ("Case",),
        },
    )

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
