"""MVDS as the sync protocol of a channel: `ReliableChannel(…, sync="mvds")`."""

from .core import MvdsCore

__all__ = ["MvdsCore"]
