"""How bytes reach the other participants: the contract, and the transports that keep it."""

from .base import Batch, Envelope, Received, Source, StoreUnavailable, Transport, TransportError
from .lossy import LossyTransport
from .memory import MemoryNetwork, MemoryTransport
from .waku import WakuTransport

__all__ = [
    "Batch",
    "Envelope",
    "LossyTransport",
    "MemoryNetwork",
    "MemoryTransport",
    "Received",
    "Source",
    "StoreUnavailable",
    "Transport",
    "TransportError",
    "WakuTransport",
]
