"""Transports, which carry bytes to the other participants, and their interface."""

from typing import TYPE_CHECKING

from .._lazy import lazy_names
from .waku_package import require_own_waku

require_own_waku()

if TYPE_CHECKING:
    from .base import (
        BaseTransport,
        Batch,
        Envelope,
        NodeHealth,
        Received,
        Source,
        StoreUnavailable,
        Transport,
        TransportError,
    )
    from .framing import WakuFraming
    from .lossy import LossyTransport
    from .memory import MemoryNetwork, MemoryTransport
    from .multicast import MulticastTransport
    from .pool import PoolTransport
    from .settings import WakuSettings
    from .waku import WakuTransport
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "base": (
                "BaseTransport",
                "Batch",
                "Envelope",
                "NodeHealth",
                "Received",
                "Source",
                "StoreUnavailable",
                "Transport",
                "TransportError",
            ),
            "lossy": ("LossyTransport",),
            "memory": (
                "MemoryNetwork",
                "MemoryTransport",
            ),
            "multicast": ("MulticastTransport",),
            "pool": ("PoolTransport",),
            "settings": ("WakuSettings",),
            "waku": ("WakuTransport",),
            "framing": ("WakuFraming",),
        },
    )

__all__ = [
    "BaseTransport",
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
    "WakuFraming",
    "WakuSettings",
    "WakuTransport",
]
