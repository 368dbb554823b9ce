"""How bytes reach the other participants: the contract, and the transports that keep it."""

from .base import (
    Batch,
    Envelope,
    NodeHealth,
    Received,
    Source,
    StoreUnavailable,
    Transport,
    TransportError,
)
from .lossy import LossyTransport
from .memory import MemoryNetwork, MemoryTransport
from .pool import PoolTransport
from .waku import WakuTransport

__all__ = [
    "Batch",
    "Envelope",
    "LossyTransport",
    "MemoryNetwork",
    "MemoryTransport",
    "NodeHealth",
    "PoolTransport",
    "Received",
    "Source",
    "StoreUnavailable",
    "Transport",
    "TransportError",
    "WakuTransport",
]
