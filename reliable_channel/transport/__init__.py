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
    has_store,
)
from .lossy import LossyTransport
from .memory import MemoryNetwork, MemoryTransport
from .multicast import MulticastTransport
from .pool import PoolTransport
from .waku import WakuSettings, WakuTransport
from .wrapping import Wrapping

__all__ = [
    "Batch",
    "Envelope",
    "LossyTransport",
    "MemoryNetwork",
    "MemoryTransport",
    "MulticastTransport",
    "NodeHealth",
    "PoolTransport",
    "Received",
    "Source",
    "StoreUnavailable",
    "Transport",
    "TransportError",
    "WakuSettings",
    "WakuTransport",
    "Wrapping",
    "has_store",
]
