"""How far a participant is."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Progress:
    """How much of what a participant knows of it has."""

    received: int
    """Messages of others that were delivered."""
    missing: int
    """Messages known by reference alone, and those that wait for them."""
    lost: int
    """Messages that were given up and have not come since."""
    different_from: tuple[str, ...] = ()
    """Participants whose logs differ from the own one, and stay so."""
    repair_failed: bool = False
    """Whether no participant could repair that."""
