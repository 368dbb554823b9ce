"""`reliable-channel demo`: five processes, a lossy network, one log."""

from .command import register

__all__ = ["register"]
